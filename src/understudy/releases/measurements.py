"""What a game measured, and its noisy tables as a file of a bundle.

Every answer that a query player returns has been charged and released, so keeping it costs nothing.
Noisy tables are kept whole: beside the model they say how far noise and model may have moved a
statistic. Of cells and queries it is kept that they were measured or selected, and how.

`measurements.npz` holds two arrays: `values`, the integers of all tables one after the other, and
`labels`, which values of a column were counted as one, for every column of every merged table. Where
each table begins follows from the schema, the labels and the index in `release.json`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Whole
from understudy.errors import BundleError
from understudy.players.base import Answer, Measured, MeasuredCell, PickedQuery
from understudy.releases import form

NAME = "measurements.npz"
_LEAST_SIGMA = 1e-9  # No release draws less noise; a stranger's bundle may claim to
MOST_COUNTS = 10_000
"""Bundles without the file list the counts of single columns of at most so many values."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One table of noisy counts, or some cells or queries of one.

    kind    "table": every cell, `merged` if values were counted together; "cells": single cells;
            "queries": queries that were selected, without a number
    sigma   the standard deviation of the noise, in rows; None where no number was drawn
    times   how often the same was done
    draws   how many draws a table is the mean of
    table   the noisy counts; None for cells, queries and tables that a bundle has not kept
    """

    clique: Clique
    kind: str
    sigma: float | None
    times: int = 1
    merged: bool = False
    draws: int = 1
    table: Measured | None = None

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """For the index of a bundle, with columns by name; the table is in the file."""
        body: dict[str, Any] = {
            "columns": [names[i] for i in self.clique],
            "kind": self.kind,
            "sigma": self.sigma,
            "times": self.times,
        }
        if self.merged:
            body["merged"] = True
        if self.draws > 1:
            body["draws"] = self.draws
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any], names: Sequence[str]) -> Measurement:
        """Read what `to_json` wrote; older bundles have the counts of single columns in the index."""
        clique = tuple(names.index(name) for name in body["columns"])
        sigma = None if body["sigma"] is None else float(body["sigma"])
        table = None
        if "counts" in body and sigma is not None:
            table = Measured(clique, np.array(body["counts"]), sigma)
        times, merged = int(body["times"]), bool(body.get("merged", False))
        return cls(clique, str(body["kind"]), sigma, times, merged, body.get("draws", 1), table)


def measurements(rounds: Sequence[Sequence[Answer]]) -> tuple[Measurement, ...]:
    """What the transcript of a game holds; cells and queries that are alike are counted."""
    times = Counter(
        measurement
        for answers in rounds
        for measurement in map(_measurement, answers)
        if measurement is not None
    )
    return tuple(replace(each, times=number) for each, number in times.items())


def _measurement(answer: Answer) -> Measurement | None:
    match answer:
        case Measured(clique, _, sigma, labels, draws):
            return Measurement(
                clique, "table", float(sigma), 1, labels is not None, draws, table=answer
            )
        case MeasuredCell(clique, _, _, sigma):
            kind = "queries" if sigma is None else "cells"
            return Measurement(clique, kind, None if sigma is None else float(sigma))
        case PickedQuery(clique):
            return Measurement(clique, "queries", None)
        case _:
            return None


def arrays(made: Sequence[Measurement]) -> dict[str, NDArray[Any]]:
    """The arrays of the file; none without tables, or where they have more than `MOST_KEPT` cells."""
    tables = [each.table for each in made if each.kind == "table"]
    kept = [table for table in tables if table is not None]
    cells = sum(table.values.size for table in kept)
    if not kept or len(kept) < len(tables) or cells > form.MOST_KEPT:
        return {}
    labels = [map_ for table in kept for map_ in table.labels or ()]
    # The integers that were drawn, added up where there were several draws.
    sums = [np.rint(table.values * table.draws).astype("<i8") for table in kept]
    return {
        "values": np.concatenate([each.reshape(-1) for each in sums]),
        "labels": np.concatenate([np.zeros(0, "<i4"), *labels]).astype("<i4"),
    }


def with_tables(
    made: Sequence[Measurement], shape: Sequence[int], path: Path
) -> tuple[Measurement, ...]:
    """The measurements of an index with their tables, from a file that may be a stranger's.

    Raises:
        BundleError: The file does not hold exactly the tables of the index, as integers, or a map of
            labels leaves out a number.
    """
    held = form.packed_arrays(path, {"labels": "<i4", "values": "<i8"})
    tables = [each for each in made if each.kind == "table"]
    if not tables or any(each.table is not None or each.times != 1 for each in tables):
        raise BundleError(f"the index of {NAME} has no table, or has counts or times of its own")
    if not all(each.sigma is not None and each.sigma >= _LEAST_SIGMA for each in tables):
        raise BundleError(f"the index of {NAME} has a table without noise")
    merged = [shape[i] for each in tables if each.merged for i in each.clique]
    parts = iter(_split(held["labels"], merged, "labels"))
    maps = [tuple(next(parts) for _ in each.clique) if each.merged else None for each in tables]
    sizes = [
        tuple(shape[i] for i in each.clique) if own is None else tuple(map(_labelled, own))
        for each, own in zip(tables, maps, strict=True)
    ]
    values = _split(held["values"], list(map(math.prod, sizes)), "values")
    found = iter(
        Measured(
            each.clique,
            part.reshape(size) if each.draws == 1 else part.reshape(size) / each.draws,
            float(each.sigma or 0),
            own,
            each.draws,
        )
        for each, own, size, part in zip(tables, maps, sizes, values, strict=True)
    )
    return tuple(
        replace(each, table=next(found)) if each.kind == "table" else each for each in made
    )


def _split(array: NDArray[Any], sizes: Sequence[int], name: str) -> list[Whole]:
    if array.size != sum(sizes):
        raise BundleError(f"{NAME} has {array.size:,} {name}; its tables have {sum(sizes):,}")
    return np.split(array.astype(np.int64, copy=False), np.cumsum(sizes)[:-1]) if sizes else []


def _labelled(labels: Whole) -> int:
    """How many values are counted, if every number is used."""
    used = np.sort(labels)
    if used[:1].any() or np.any(np.diff(used) > 1):
        raise BundleError(f"{NAME}: labels of a column leave out a number")
    return int(used[-1]) + 1 if used.size else 0
