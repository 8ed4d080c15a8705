"""Estimates: a number, an interval, what it is made of, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass
from typing import Any

from understudy.markup import notebook
from understudy.wording import comma


@dataclass(frozen=True, slots=True)
class Parts:
    """What an interval is made of, in the units of the statistic.

    noise     standard deviation by the noise of the released tables
    rows      the same by the noise of a private number of rows
    sampling  the same by the rows being a sample; 0 where the table itself is the target
    model     a bound on what the tables do not tell and the model may have missed
    inside    a bound on what bins hide, and its standard deviation, added
    """

    noise: float
    rows: float
    sampling: float
    model: float
    inside: float

    def times(self, scale: float) -> Parts:
        """In other units."""
        return Parts(*(scale * part for part in astuple(self)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with an estimated interval, which is not a certified bound.

    `target` is "population" (the parameter of whatever the rows were drawn from) or "table" (the
    private table's own value). The interval holds it with probability `level` if the model is off by
    no more than the stated ω (see docs/estimate.md). Where nothing can be said, `determined` is False
    and there are no numbers; `warning` says why, or what the estimate leans on.

    `reliance` is the share of the statistic's variance that no released table explains.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    level: float
    target: str
    parts: Parts | None = None
    reliance: float | None = None
    warning: str | None = None
    unit: str = ""
    """How it is told: "%" of a share, "points" of a difference of shares; numbers stay shares of 1."""

    @property
    def base(self) -> bool:
        """Whether it is 0 by definition: the value that others of a column are compared with."""
        return self.parts is None and self.determined

    @property
    def determined(self) -> bool:
        """Whether there is a number."""
        return self.value is not None

    @property
    def shown(self) -> tuple[str, str, str]:
        """(value, low, high) with as many digits as the interval makes meaningful, and one more."""
        if self.base:
            return "0 (base)", "–", "–"
        if self.value is None or self.low is None or self.high is None:
            return "not determined", "–", "–"
        times = 100 if self.unit else 1
        width, size = abs(times * (self.high - self.low)), abs(times * self.value)
        form = ".6g"  # of what no noise can move, such as most medians of whole numbers
        if width > 1e-6 * size:
            form = f".{min(9, max(0, 1 - math.floor(math.log10(width / 2))))}f"
        behind = f" {self.unit}" if self.unit else ""
        ends = [times * x for x in (self.value, self.low, self.high)]
        value, low, high = (f"{x:{comma(*ends)}{form}}{behind}" for x in ends)
        return value, low, high

    def __str__(self) -> str:
        if not self.determined:
            return f"{self.name}: not determined ({self.warning})"
        value, low, high = self.shown
        if self.base:
            return f"{self.name} = {value}; {self.warning}"
        sure = f"estimated, {100 * self.level:g} %, {self.target}"
        told = f"{self.name} = {value} [{low}, {high}] ({sure})"
        return told if self.warning is None else f"{told}; {self.warning}"

    def __repr__(self) -> str:
        return f"<Estimate {self}>"

    def to_json(self) -> dict[str, Any]:
        """As plain values; shares are of 1."""
        plain = {**asdict(self), "determined": self.determined}
        del plain["unit"]
        return plain

    def _repr_html_(self) -> str:
        return Estimates((self,))._repr_html_()


@dataclass(frozen=True, slots=True)
class Estimates:
    """Several estimates, such as the coefficients of a regression; by position or by name."""

    each: tuple[Estimate, ...]

    def __len__(self) -> int:
        return len(self.each)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.each)

    def __getitem__(self, key: int | str) -> Estimate:
        if isinstance(key, int):
            return self.each[key]
        for estimate in self.each:
            if estimate.name == key:
                return estimate
        raise KeyError(f"{key!r}; there are {', '.join(e.name for e in self.each)}")

    def __str__(self) -> str:
        return "\n".join(map(str, self.each))

    def __repr__(self) -> str:
        return f"<Estimates\n{self}>"

    def to_json(self) -> list[dict[str, Any]]:
        """As plain values."""
        return [estimate.to_json() for estimate in self.each]

    def _repr_html_(self) -> str:
        rows = [(e.name, *e.shown) for e in self.each]
        first = self.each[0]
        facts = [("interval", f"estimated, {100 * first.level:g} %"), ("target", first.target)]
        facts += [(e.name, e.warning) for e in self.each if e.warning is not None]
        return notebook("Estimate", facts, (("", "estimate", "low", "high"), rows))
