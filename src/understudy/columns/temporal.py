"""Dates and times between public bounds."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Whole
from understudy.columns.base import near
from understudy.columns.binned import Binned, largest
from understudy.columns.reading import DAY, UNITS, Read, array_of, pc, tick_of, ticks, writes_text

RESOLUTIONS = {
    "microsecond": 10**3,
    "millisecond": 10**6,
    "second": 10**9,
    "minute": 60 * 10**9,
    "hour": 3600 * 10**9,
    "day": DAY,
}
"""How fine a datetime column is, in nanoseconds."""


@dataclass(frozen=True)
class _Temporal(Binned):
    """Points are whole ticks since 1970-01-01."""

    iso: ClassVar[str]
    """How texts are written unless `format` says otherwise."""

    format: str | None = None

    @property
    def _tick(self) -> int:
        return DAY

    @property
    def _zoned(self) -> bool:
        return False

    def _moment(self, key: str, value: Any) -> datetime:
        """A bound as a naive datetime."""
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                self._refuse(f"{key} holds {value!r}, which is not an ISO date or time")
        if (moment := self._naive(value)) is None:
            example = f"{key} = {self.example}"
            self._refuse(f"{key} holds {value!r}; it must be a date, such as {example}")
        return moment

    def _naive(self, value: Any) -> datetime | None:
        """A date or time as a naive datetime: UTC in a zoned column, the wall clock otherwise."""
        if isinstance(value, datetime):
            if value.tzinfo is not None and self._zoned:
                value = value.astimezone(UTC)
            return value.replace(tzinfo=None)
        return datetime(value.year, value.month, value.day) if isinstance(value, date) else None

    def _normalise(self) -> None:
        if self.format is not None and (not isinstance(self.format, str) or "%" not in self.format):
            self._refuse(f'format = {self.format!r} must be a pattern such as format = "%d/%m/%Y"')
        super()._normalise()

    def _point(self, bound: Any) -> int:
        return tick_of(self._moment("lower", bound), self._tick)

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        return ticks(array, tokens, tick=self._tick, form=self.format, zoned=self._zoned)

    def _emit(self, points: NDArray, null: Bools) -> pa.Array:
        type_ = self.arrow_type
        if pa.types.is_date32(type_):
            return array_of(points.astype(np.int32), null).cast(type_)
        if pa.types.is_date64(type_):
            return array_of(points * (DAY // 10**6), null).cast(type_)
        if pa.types.is_timestamp(type_):
            return array_of(self._scaled(points, UNITS[type_.unit]), null).cast(type_)
        return self._formatted(points, null).cast(type_)

    def _formatted(self, points: NDArray, null: Bools) -> pa.Array:
        unit = "s" if self._tick >= UNITS["s"] else "us"
        moments = array_of(self._scaled(points, UNITS[unit]), null)
        return pc.strftime(moments.cast(pa.timestamp(unit)), format=self.format or self.iso)

    def _written(self, value: Any) -> str:
        """By its format, as texts are read, whatever the type of the column."""
        if self.format is None or isinstance(value, str):
            return super()._written(value)
        return self._formatted(np.array([self._point(value)]), np.zeros(1, np.bool_))[0].as_py()

    def _scaled(self, points: Whole, unit: int) -> Whole:
        if self._tick % unit:
            raise ValueError("the type is coarser than the resolution")
        factor = self._tick // unit
        if largest(points) * factor >= 2**63:
            raise ValueError("a value lies beyond the type")
        return points * factor

    def _at(self, point: Any) -> datetime:
        return datetime(1970, 1, 1) + timedelta(microseconds=int(point) * (self._tick // 1000))

    def _place(self, literal: Any) -> Fraction:
        moment = self._naive(self._parsed(literal) if isinstance(literal, str) else literal)
        if moment is None:
            self._misuse(f"{literal!r} is not a date; write it as '{self.example}'")
        return Fraction(tick_of(moment, 1000) * 1000, self._tick)

    def _parsed(self, text: str) -> datetime | None:
        with suppress(ValueError):
            return datetime.fromisoformat(text)
        with suppress(ValueError):
            return datetime.strptime(text, self.format or self.iso)
        return None

    def _remedy(self) -> str:
        if self.format is not None:
            return f"format = {self.format!r} may lose a part of it: write every part"
        return "choose a finer or wider dtype, or narrower bounds"


def _is_naive(type_: pa.DataType) -> bool:
    return pa.types.is_timestamp(type_) and type_.tz is None


@dataclass(frozen=True)
class Date(_Temporal):
    """A day in `lower..upper`; without bins at most 1000 days, one cell each.

    Texts are read in ISO form, or by `format` (as in strptime); a text dtype is written by it.
    A time counts as the day its own wall clock shows. What lies outside becomes the nearest
    bound, what cannot be read is null, a null where none is allowed becomes the lower bound.
    """

    kind: ClassVar[str] = "date"
    usual: ClassVar[str] = "date32[day]"
    held_by = (pa.types.is_date, _is_naive, writes_text)
    example: ClassVar[str] = "2000-01-31"
    iso: ClassVar[str] = "%Y-%m-%d"

    lower: date | None = None
    upper: date | None = None
    edges: tuple[date, ...] | None = None

    def _bound(self, key: str, value: Any) -> date:
        return self._moment(key, value).date()

    def _show_point(self, point: Any) -> str:
        return self._at(point).date().isoformat()


@dataclass(frozen=True)
class Datetime(_Temporal):
    """A moment in `lower..upper`, known to one `resolution` ("second" unless declared).

    In a column with a time zone, bounds and values are instants, and a naive one counts as UTC;
    in a column without, they are what the wall clock shows. Reading rounds down to the
    resolution; otherwise as `Date`.
    """

    kind: ClassVar[str] = "datetime"
    usual: ClassVar[str] = "timestamp[us]"
    held_by = (pa.types.is_timestamp, writes_text)
    example: ClassVar[str] = "2000-01-31T00:00:00"
    iso: ClassVar[str] = "%Y-%m-%dT%H:%M:%S"

    lower: datetime | None = None
    upper: datetime | None = None
    edges: tuple[datetime, ...] | None = None
    resolution: str = "second"

    def _normalise(self) -> None:
        if not isinstance(self.resolution, str) or self.resolution not in RESOLUTIONS:
            self._refuse(
                f"resolution = {self.resolution!r} is unknown"
                f"{near(str(self.resolution), RESOLUTIONS)}; use one of {', '.join(RESOLUTIONS)}"
            )
        super()._normalise()

    @property
    def _tick(self) -> int:
        return RESOLUTIONS[self.resolution]

    @property
    def _zoned(self) -> bool:
        return self.dtype.startswith("timestamp[") and "tz=" in self.dtype

    def _bound(self, key: str, value: Any) -> datetime:
        return self._moment(key, value)

    def _show_point(self, point: Any) -> str:
        return self._at(point).isoformat()
