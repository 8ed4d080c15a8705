"""What a game measured, for the record: which tables, with how much noise, and columns in numbers.

Every answer that a query player returns has been charged and released, so keeping it costs nothing.
Tables of single columns are kept whole: beside the synthetic rows they show how far noise and model
may have moved a column. Of larger tables it is kept that they were measured, and how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from understudy.players.base import Answer, Measured, MeasuredCell, PickedQuery, Problem, View
from understudy.players.base import QueryPlayer as Player
from understudy.privacy.gate import Gate

__all__ = ["Heard", "Measurement"]

MOST_COUNTS = 10_000
"""Larger tables of one column are named, and their counts left out."""

Clique = tuple[int, ...]


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


class Heard:
    """A query player that remembers what it measured; it plays as the one it stands for."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._times: dict[Measurement, int] = {}

    @property
    def rounds(self) -> int:
        """See `QueryPlayer.rounds`."""
        return self._player.rounds

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        answers = self._player.play(problem, gate, view, round)
        for made in map(_measurement, answers):
            if made is not None:
                self._times[made] = self._times.get(made, 0) + 1
        return answers

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What was measured so far; what is alike is counted."""
        return tuple(replace(made, times=times) for made, times in self._times.items())


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
