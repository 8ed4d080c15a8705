"""Graphs: a released list of edges with edge-level privacy, as an ordinary release of the edges' table.

Unit: one edge, added or removed. The nodes, and the block that each is in, are public. What is measured
are degrees, and edges between blocks and between classes (`understudy.game.methods.graph`); everything
else, clustering too, is the model's: a random graph with these numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.errors import InputError
from understudy.game.methods.graph import GraphMethod
from understudy.models.graphs import classes, closed, matched, mixed, rewired
from understudy.models.graphs import triangles as counted
from understudy.releases.release import Release
from understudy.releases.run import release
from understudy.schema.nodes import ENDS, PAIR, Nodes
from understudy.source.edges import edge_source


def release_graph(
    edges: Any,
    nodes: int | str | Path | Iterable[object] | Mapping[object, object] | Nodes,
    *,
    ends: tuple[str, str] | None = None,
    unit: str = "edge",
    edges_public: int | None = None,
    triangles: bool = False,
    **choices: Any,
) -> Release:
    """Release a synthetic graph with (ε, δ)-differential privacy per edge.

    Guarantee: what is returned is (ε, δ)-DP for one edge added or removed. It hides whether two nodes
    are linked, not whether somebody takes part: a node with many edges is not protected as a whole.

    edges         a CSV or Parquet file, a bare list (.txt: two names a line), or a frame; private.
                  Pairs are unordered, repetitions count once, loops and undeclared ends for nothing
    nodes         public: a number n (0..n−1), a range "1..34", a file with a node a line and perhaps
                  its block, names, or a mapping of names to blocks
    ends          the names of the two columns; by default the first two
    unit          "edge"; nothing else is offered
    edges_public  the number of edges, if it may be known; otherwise it is measured and charged
    triangles     measure their number as well, with a fifth of the budget, so that clustering follows;
                  an edge can close n − 2 of them, so it takes a graph that has many times as many
    choices       epsilon, delta, ledger, dataset, key, checkpoint, progress, … as for `release`

    The rows of the release are its edges with the blocks of their ends; the certificate bounds the
    error of the shares of edges between blocks. `sample_graph` draws further graphs, free.
    """
    require_edges(unit)
    for name in ("method", "parameters", "workload", "rows", "rows_public"):
        if name in choices:
            raise InputError(
                f"{name} = {choices[name]!r} is not for graphs: the method is fixed, and a graph has "
                "as many edges as there seem to be; edges_public states their number"
            )
    known = nodes if isinstance(nodes, Nodes) else Nodes.of(nodes)
    source = edge_source(edges, known, ends)
    return release(
        source, known.schema, rows_public=edges_public, **edge_choices(known, triangles), **choices
    )


def edge_choices(nodes: Nodes, triangles: bool = False) -> dict[str, Any]:
    """The method and the workload of a release of edges."""
    return {"method": GraphMethod(nodes.sizes, triangles), "workload": [PAIR]}


def require_edges(unit: str) -> None:
    """Refuse what cannot be promised."""
    if unit == "edge":
        return
    why = (
        "whoever may have any number of edges would need noise as large as the graph"
        if unit == "node"
        else "there is no such unit"
    )
    raise InputError(
        f"unit = {unit!r}: {why}; graphs are released with unit = 'edge', which hides whether two "
        "nodes are linked and does not hide a node with all its edges"
    )


def sample_graph(made: Release, *, key: int | None = None) -> pa.Table:
    """Another graph with the degrees and the edges between blocks and classes of a released one. Free.

    It has about as many triangles where these were measured.

    `key` makes it repeatable. Columns are `source` and `target`.
    """
    if made.method.get("name") != "graph":
        raise InputError("sample_graph draws from releases of graphs; use `Release.sample`")
    sizes = tuple(int(size) for size in made.method["sizes"])
    rng = np.random.default_rng(secrets.randbits(128) if key is None else key)
    u, v, *_ = (codes.astype(np.int64) for codes in made.schema.encode(made.rows))
    block = np.repeat(np.arange(len(sizes)), sizes)
    pairs = np.zeros((len(sizes), len(sizes)), np.int64)
    np.add.at(pairs, (np.minimum(block[u], block[v]), np.maximum(block[u], block[v])), 1)
    degrees = np.bincount(np.concatenate([u, v]), minlength=sum(sizes)).astype(np.int64)
    labels = classes(degrees)
    found = matched(degrees, pairs, sizes, rng)
    found = rewired(*found, sizes, labels, mixed(u, v, labels), 1.0, rng)
    if made.method.get("triangles"):
        found = closed(*found, sizes, labels, counted(u, v, sum(sizes)), 0.0, rng)
    columns = (made.schema.column(name) for name in ENDS)
    return pa.table(
        {
            column.name: column.decode(codes, rng)
            for column, codes in zip(columns, found, strict=True)
        }
    )
