"""What templates/charts.html draws with: colours, axes, steps of colour, and drawings in words.

Every pair of colours that carries text keeps WCAG's AA contrast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from understudy.report.facts import Column, Pair
from understudy.report.training import Curve, Panel
from understudy.wording import comma, number, percent

COLOURS = {
    "paper": ("#fbfbf9", "#15171a"),
    "card": ("#ffffff", "#1d2024"),
    "ink": ("#1d1f21", "#ececea"),
    "soft": ("#565b60", "#aab0b6"),
    "rule": ("#dddfe0", "#363a40"),
    "accent": ("#0a5c9e", "#7fbdf0"),
    "bar": ("#5f95c4", "#4f86b5"),
    "noise": ("#9a3b00", "#ffb27a"),
    "good": ("#cfe8da", "#1d4a35"),
    "rough": ("#fbe7bd", "#574413"),
    "bad": ("#f6d2cd", "#5f2723"),
    "alarm": ("#a3211a", "#ff9d93"),
    "heat0": ("#f0f5fa", "#1c2835"),
    "heat1": ("#d5e5f3", "#20394f"),
    "heat2": ("#aecde8", "#275071"),
    "heat3": ("#7fafd8", "#336d9b"),
    "heat4": ("#2f6fa8", "#7fb3df"),
    "heat5": ("#0e4777", "#c2dff7"),
    "onlow": ("#1d1f21", "#ececea"),
    "onhigh": ("#ffffff", "#15171a"),
}
"""On a light ground and on a dark one; templates/style.css says what they are for."""
HEAT = 6
"""Steps of the matrix."""
CURVES = 4
"""Looks of a line, told apart by colour and dashes."""
_LAST_LOW = 3
TEXT_ON = {
    "paper": ("ink", "soft", "accent", "alarm"),
    "card": ("ink", "soft", "accent", "alarm", "noise"),
    "good": ("ink",),
    "rough": ("ink",),
    "bad": ("ink",),
    **{f"heat{i}": ("onlow" if i <= _LAST_LOW else "onhigh",) for i in range(HEAT)},
}
"""Which colours carry text of which; held by a test."""

WITHIN = 10
"""A share of this many times the bound is right to within a tenth of itself."""

_WIDTH, _TALL, _BASE = 300, 92, 106


def log_axis(bound: float) -> Callable[[float], float]:
    """Where a share stands, in percent of the width: from below `bound` to 1, on a log scale."""
    low = 10.0 ** math.floor(math.log10(max(bound, 1e-9)) - 0.5)
    return lambda share: 100 * (1 - math.log10(min(max(share, low), 1.0)) / math.log10(low))


def short(text: str, most: int) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def tick(label: str) -> str:
    """The end of an axis: 200000.00 is 200,000, and 1900 a year."""
    try:
        value = float(label)
    except ValueError:
        return label
    return f"{value:{comma(value)}.6g}"


def described(shown: Column) -> str:
    """The drawing of a column in words."""
    top = max(range(len(shown.shares)), key=shown.shares.__getitem__)
    most = f"Most frequent: {shown.labels[top]}, {percent(shown.shares[top])}."
    if shown.measured is None or shown.band is None:
        return f"{most} Not measured by itself."
    inside = sum(
        abs(share - noisy) <= band
        for share, noisy, band in zip(shown.shares, shown.measured, shown.band, strict=True)
    )
    return f"{most} {inside} of {len(shown.shares)} bars lie within the band of the measurement."


# Pairs


def scale(pairs: Sequence[Pair]) -> tuple[float, ...]:
    """Where the steps of the matrix end: round numbers, so that each step holds about as many."""
    found = sorted(pair.error for pair in pairs if pair.error is not None)
    if not found:
        return ()
    ends = [_ceil(found[min(len(found) - 1, len(found) * (i + 1) // HEAT)]) for i in range(HEAT)]
    return tuple(max(ends[: i + 1]) for i in range(HEAT))


def _ceil(value: float) -> float:
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value)) / 2
    return round(math.ceil(value / unit - 1e-9) * unit, 12)


def step_of(pair: Pair, ends: Sequence[float]) -> int | None:
    """The step that an error falls into; None where none is stated."""
    if pair.error is None:
        return None
    return next(k for k, end in enumerate(ends) if pair.error <= end * (1 + 1e-9))


def worst_pair(pairs: Sequence[Pair]) -> str:
    """The matrix in words."""
    known = [(pair.error, pair.names) for pair in pairs if pair.error is not None]
    error, (one, other) = max(known, key=lambda each: each[0])
    return (
        f"{len(known)} pairs; the largest is {percent(error)}, of {one} and {other}. All of them are "
        f"in the table below"
    )


# Training


@dataclass(frozen=True)
class Axes:
    """Steps from left to right, values from below, with zero among them."""

    panel: Panel

    @cached_property
    def least(self) -> float:
        """The lowest value, or 0."""
        return min(0.0, *(min(curve.values) for curve in self.panel.curves))

    @cached_property
    def most(self) -> float:
        """The highest value, or the limit; above 0."""
        return max(1e-9, self.panel.limit or 0.0, *(max(c.values) for c in self.panel.curves))

    @cached_property
    def first(self) -> int:
        """The first step."""
        return min(curve.steps[0] for curve in self.panel.curves)

    @cached_property
    def last(self) -> int:
        """The last step."""
        return max(curve.steps[-1] for curve in self.panel.curves)

    def y(self, value: float) -> float:
        """How far down a value is drawn."""
        return _BASE - _TALL * (value - self.least) / (self.most - self.least)

    def path(self, curve: Curve) -> str:
        """A curve as a path."""
        wide = _WIDTH / max(self.last - self.first, 1)
        points = zip(curve.steps, curve.values, strict=True)
        return "M" + "L".join(
            f"{wide * (step - self.first):.1f} {self.y(value):.1f}" for step, value in points
        )

    @property
    def described(self) -> str:
        """The drawing in words."""
        said = "; ".join(
            f"{curve.name}: {number(curve.values[0])} at step {curve.steps[0]:,}, "
            f"{number(curve.values[-1])} at step {curve.steps[-1]:,}, "
            f"between {number(min(curve.values))} and {number(max(curve.values))}"
            for curve in self.panel.curves
        )
        limit = self.panel.limit
        return said if limit is None else f"{said}; {number(limit)} was promised"
