"""Maximum-entropy models by mbi, behind one function.

Among all distributions that fit the measurements best (least squares weighted by 1/σ²), the one of
largest entropy: a Markov random field over the measured cliques, estimated by mirror descent
(McKenna, Sheldon, Miklau 2019). mbi and JAX are loaded here and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy.models.decomposable import Clique, Decomposable
from understudy.models.measured import Measured

__all__ = ["maximum_entropy"]


def maximum_entropy(
    shape: tuple[int, ...],
    measurements: Sequence[Measured],
    total: float,
    *,
    iterations: int = 1000,
) -> Decomposable:
    """The maximum-entropy model of `total` rows for the measurements. Deterministic."""
    jax, mbi = _libraries()
    names = [f"c{i}" for i in range(len(shape))]
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        domain = mbi.Domain(names, shape)
        linear = [
            mbi.LinearMeasurement(
                np.asarray(m.values, dtype=np.float64).reshape(-1),
                tuple(names[i] for i in m.clique),
                stddev=float(m.sigma),
            )
            for m in measurements
        ]
        field = mbi.estimation.MirrorDescent().estimate(
            domain, linear, known_total=max(float(total), 1.0), iters=iterations
        )
        tree, _ = mbi.junction_tree.make_junction_tree(domain, [tuple(c) for c in field.cliques])
        cliques = _running_intersection(
            [tuple(sorted(names.index(n) for n in node)) for node in tree.nodes]
        )
        tables = [
            np.asarray(
                field.project(tuple(names[i] for i in clique)).datavector(flatten=False),
                dtype=np.float64,
            )
            for clique in cliques
        ]
    return _covering(shape, cliques, [np.maximum(table, 0.0) for table in tables])


def _libraries() -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax
        import mbi
    return jax, mbi


def _running_intersection(cliques: list[Clique]) -> list[Clique]:
    """Order the cliques of a chordal graph so that each separator lies in one earlier clique.

    A maximum spanning tree of the clique graph, weighted by overlap, is a junction tree; Prim's
    order of it has the running intersection.
    """
    left = sorted(cliques)
    ordered = [left.pop(0)]
    while left:
        overlap = [max(len(set(c) & set(before)) for before in ordered) for c in left]
        ordered.append(left.pop(overlap.index(max(overlap))))
    return ordered


def _covering(shape: tuple[int, ...], cliques: list[Clique], tables: list[Any]) -> Decomposable:
    covered = {i for clique in cliques for i in clique}
    for i in range(len(shape)):
        if i not in covered:
            cliques.append((i,))
            tables.append(np.full(shape[i], 1.0 / shape[i]))
    return Decomposable(shape, tuple(cliques), tuple(tables))
