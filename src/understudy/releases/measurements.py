"""What a game measured, for the record: which tables, with how much noise, and columns in numbers.

Every answer that a query player returns has been charged and released, so keeping it costs nothing.
Tables of single columns are kept whole: beside the synthetic rows they show how far noise and model
may have moved a column. Of larger tables it is kept that they were measured, and how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from understudy._types import Clique
from understudy.players.base import Answer, Measured, MeasuredCell, PickedQuery

__all__ = ["Measurement", "measurements"]

MOST_COUNTS = 10_000
"""Larger tables of one column are named, and their counts left out."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One table of noisy counts, or some cells or queries of one.

    kind    "table": every cell, `merged` if values were counted together; "cells": single cells;
            "queries": queries that were selected, without a number
    sigma   the standard deviation of the noise, in rows; None where no number was drawn
    times   how often the same was done
    counts  the noisy counts of a whole column, in the order of its codes; None for anything else
    """

    clique: Clique
    kind: str
    sigma: float | None
    times: int = 1
    merged: bool = False
    counts: tuple[float, ...] | None = None

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """For the bundle, with columns by name."""
        body: dict[str, Any] = {
            "columns": [names[i] for i in self.clique],
            "kind": self.kind,
            "sigma": self.sigma,
            "times": self.times,
        }
        if self.merged:
            body["merged"] = True
        if self.counts is not None:
            body["counts"] = list(self.counts)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any], names: Sequence[str]) -> Measurement:
        """Read what `to_json` wrote."""
        counts = body.get("counts")
        return cls(
            tuple(names.index(name) for name in body["columns"]),
            str(body["kind"]),
            None if body["sigma"] is None else float(body["sigma"]),
            int(body["times"]),
            bool(body.get("merged", False)),
            None if counts is None else tuple(counts),
        )


def measurements(rounds: Sequence[Sequence[Answer]]) -> tuple[Measurement, ...]:
    """What the transcript of a game holds; what is alike is counted."""
    times = Counter(
        measurement
        for answers in rounds
        for measurement in map(_measurement, answers)
        if measurement is not None
    )
    return tuple(replace(each, times=number) for each, number in times.items())


def _measurement(answer: Answer) -> Measurement | None:
    match answer:
        case Measured(clique, values, sigma, labels):
            counts = None
            if len(clique) == 1 and labels is None and values.size <= MOST_COUNTS:
                counts = tuple(values.tolist())
            return Measurement(
                clique, "table", float(sigma), merged=labels is not None, counts=counts
            )
        case MeasuredCell(clique, _, _, sigma):
            kind = "queries" if sigma is None else "cells"
            return Measurement(clique, kind, None if sigma is None else float(sigma))
        case PickedQuery(clique):
            return Measurement(clique, "queries", None)
        case _:
            return None
