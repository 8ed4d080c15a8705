"""Maximum-entropy models by mbi, behind one function.

Among all distributions that fit the measurements best (least squares weighted by 1/σ²), the one of
largest entropy: a Markov random field over the measured cliques, estimated by mirror descent
(McKenna, Sheldon, Miklau 2019). mbi and JAX are loaded here and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from understudy._types import Floats
from understudy.models.decomposable import Clique, Decomposable, project
from understudy.models.junction import ordered, tree_cells, tree_cliques
from understudy.models.measured import Measured


def fit(
    shape: tuple[int, ...],
    measurements: Sequence[Measured],
    total: float,
    *,
    iterations: int = 1000,
    start: Any = None,
) -> tuple[Decomposable, Any]:
    """The maximum-entropy model of `total` rows for the measurements; deterministic.

    And its potentials, mbi's own, from which the next fit may `start`.
    """
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
        loss = mbi.marginal_loss.from_linear_measurements(linear, domain)
        if start is None:
            zeros = {c: np.zeros([domain[name] for name in c]) for c in loss.cliques}
            factors = {c: mbi.Factor(domain.project(c), table) for c, table in zeros.items()}
            start = mbi.CliqueVector(domain, loss.cliques, factors)
        work = iterations * tree_cells(shape, [m.clique for m in measurements])
        descend = _descent(-(-iterations // _STEPS), work < _SMALL_WORK)
        potentials = descend(loss, max(float(total), 1.0), start.expand(loss.cliques))
        logs = [
            (tuple(names.index(n) for n in c), np.asarray(factor.values, dtype=np.float64))
            for c, factor in potentials.tables.items()
        ]
    return _calibrated(shape, logs), potentials


_STEPS = 50  # As mbi's own loop: so many steps between two looks
_SMALL_WORK = 5e7  # Cells times steps below which compiling takes longer than running
# A third of the time to compile, three times that to run.
_QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}


@lru_cache(maxsize=8)
def _descent(blocks: int, quick: bool) -> Any:
    """Mirror descent with mbi's steps, `blocks` times 50 of them, compiled as one program.

    `MirrorDescent.estimate` runs its first and last step outside of the program, operation by
    operation, and each operation on a table of a new shape is compiled by itself.
    """
    jax, mbi = _libraries()
    descent = mbi.estimation.MirrorDescent()

    @partial(jax.jit, compiler_options=_quick() if quick else None)
    def run(loss: Any, total: Any, start: Any) -> Any:
        state = descent._init(start.domain, loss, total, warm_start=start)

        def step(state: Any, _: Any) -> tuple[Any, None]:
            return descent._step(state, loss, total), None

        return jax.lax.scan(step, state, None, length=blocks * _STEPS)[0].potentials

    return run


@lru_cache(maxsize=1)
def _quick() -> dict[str, object] | None:
    """Options of the compiler, where this JAX knows them."""
    jax, _ = _libraries()
    try:
        jax.jit(lambda x: x, compiler_options=_QUICK)(0.0)
    except jax.errors.JaxRuntimeError:
        return None
    return _QUICK


def _calibrated(
    shape: tuple[int, ...], potentials: Sequence[tuple[Clique, Floats]]
) -> Decomposable:
    """p ∝ exp Σ θ_c as clique tables of a junction tree: sum towards the root, then back."""
    cliques, above = ordered(tree_cliques(shape, [clique for clique, _ in potentials]))
    logs = [np.zeros(tuple(shape[i] for i in clique)) for clique in cliques]
    for clique, table in potentials:
        at = next(k for k, own in enumerate(cliques) if set(own).issuperset(clique))
        logs[at] = logs[at] + _spread(clique, table, cliques[at])
    shared = [
        tuple(i for i in own if parent >= 0 and i in cliques[parent])
        for own, parent in zip(cliques, above, strict=True)
    ]
    for k in range(len(cliques) - 1, 0, -1):
        message = _log_sum(cliques[k], logs[k], shared[k])
        logs[k] = logs[k] - _spread(shared[k], message, cliques[k])
        parent = above[k]
        logs[parent] = logs[parent] + _spread(shared[k], message, cliques[parent])
    tables = [np.exp(logs[0] - _log_sum(cliques[0], logs[0], ()))]
    for k in range(1, len(cliques)):
        separator = project(cliques[above[k]], tables[above[k]], shared[k])
        tables.append(np.exp(logs[k]) * _spread(shared[k], separator, cliques[k]))
    return Decomposable(shape, tuple(cliques), tuple(tables))


def _spread(clique: Clique, table: Floats, own: Clique) -> Floats:
    """A table of some columns of `own`, shaped so that it is added to every cell of `own`."""
    inside = [i for i in own if i in clique]
    ordered = np.transpose(table, [clique.index(i) for i in inside])
    sizes = iter(ordered.shape)
    return ordered.reshape(tuple(next(sizes) if i in clique else 1 for i in own))


def _log_sum(own: Clique, logs: Floats, clique: Clique) -> Floats:
    """log Σ exp over the columns of `own` outside `clique`, columns in the order of `own`."""
    axes = tuple(axis for axis, i in enumerate(own) if i not in clique)
    most = logs.max(axis=axes, keepdims=True)
    return np.log(np.exp(logs - most).sum(axis=axes)) + most.squeeze(axis=axes)


def _libraries() -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax
        import mbi
    return jax, mbi
