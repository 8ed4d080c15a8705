"""Two columns that together are a place, and the promise that synthetic rows lie on a public mask.

The model sees two numbers cut into bins. What it draws is post-processed before the certificate looks
at it: a pair of bins without any allowed point is replaced by the nearest pair that has one, and
within a pair the place is drawn uniformly from its allowed points.

A pair of bins counts as having allowed points if one of its test points is allowed, `_FINEST`² of them
evenly spread (for centroids: if one lies in it). So islands far smaller than a pair may be missed, and
no row is ever put where the mask is not. Private rows are never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Rng
from understudy.columns import Column, Number
from understudy.columns.base import near, require_known
from understudy.columns.reading import flat, floats
from understudy.constraints.masks import Box, Centres, Mask, from_facts, read_mask
from understudy.errors import SchemaError

KEYS = ("latitude", "longitude", "mask", "polygons", "grid", "centroids")

_FINEST = 8
_MOST_TESTS = 4_000_000
_MOST_PAIRS = 1_000_000
_TRIES = 16  # Draws before a place is taken from the test points of its pair of bins

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Geography:
    """Columns `latitude` and `longitude`, in degrees, and the mask that synthetic rows lie on."""

    latitude: str
    longitude: str
    mask: Mask

    @classmethod
    def from_toml(cls, table: Mapping[str, Any], folder: Path | None) -> Geography:
        """What a [[geography]] table declares; `mask` names a file, relative to `folder`.

        Without a folder no file is read: a text that came from elsewhere must hold its mask.
        """
        facts = dict(table)
        require_known(facts, KEYS, "[[geography]]")
        for key in ("latitude", "longitude"):
            if not isinstance(facts.get(key), str):
                raise SchemaError(f'[[geography]] needs {key} = "…", the name of a number column')
        if "mask" in facts:
            if not isinstance(facts["mask"], str) or len(facts) > 3:
                raise SchemaError(
                    "[[geography]] mask must be the name of a file, with nothing else that says where "
                    "rows may lie"
                )
            if folder is None:
                raise SchemaError(
                    f"[[geography]] mask = {facts['mask']!r} names a file, and only a schema that is "
                    "read from a file itself may; write the mask out as polygons, grid or centroids"
                )
            mask = read_mask(folder / facts["mask"])
        else:
            mask = from_facts(facts)
        return cls(facts["latitude"], facts["longitude"], mask)

    def facts(self) -> dict[str, Any]:
        """What a schema file says, the mask written out."""
        return {"latitude": self.latitude, "longitude": self.longitude, **self.mask.facts()}

    def bind(self, columns: Mapping[str, Column]) -> Places:
        """The places of a schema's columns; SchemaError where they cannot be."""
        places = Places(
            _degrees("latitude", self.latitude, columns, 90),
            _degrees("longitude", self.longitude, columns, 180),
            self.mask,
        )
        places.require_some()
        return places


def _degrees(key: str, name: str, columns: Mapping[str, Column], most: int) -> Number:
    """The column that holds a coordinate."""
    said = f"[[geography]] {key} = {name!r}"
    column = columns.get(name)
    if column is None:
        raise SchemaError(f"{said} is not a column{near(name, columns)}")
    if not isinstance(column, Number):
        raise SchemaError(
            f"{said} is a column of type {column.kind!r}; declare it "
            'with type = "number", public bounds in degrees, and bins or edges'
        )
    if column.special:
        raise SchemaError(
            f"{said} has special = {[*column.special]!r}, which are no places; take them out, or "
            "declare them as null_values with nullable = true"
        )
    lower, upper = _bounds(column)
    if lower < -most or upper > most:
        raise SchemaError(
            f"{said} has the bounds {lower:g}..{upper:g}; a {key} lies in -{most}..{most} degrees"
            + ("; are latitude and longitude swapped?" if key == "latitude" else "")
        )
    return column


def _bounds(column: Number) -> tuple[float, float]:
    assert column.lower is not None
    assert column.upper is not None
    return column.lower, column.upper


@dataclass(frozen=True, eq=False)
class Places:
    """Two columns and their mask; everything here is a function of public facts."""

    latitude: Number
    longitude: Number
    mask: Mask

    @property
    def box(self) -> Box:
        """The bounds of the two columns."""
        (south, north), (west, east) = _bounds(self.latitude), _bounds(self.longitude)
        return Box(south, west, north, east)

    def require_some(self) -> None:
        """Refuse a mask that leaves no place."""
        mask, box = self.mask.box, self.box
        said = f"[[geography]] of {self.latitude.name!r} and {self.longitude.name!r}"
        if not mask.meets(box):
            hint = ""
            if mask.swapped().meets(box):
                hint = "; latitude and longitude seem to be swapped in one of the two"
            raise SchemaError(
                f"{said}: the mask ({mask}) lies outside the columns' box ({box}){hint}"
            )
        pairs = self.latitude.cells * self.longitude.cells
        if pairs > _MOST_PAIRS:
            raise SchemaError(
                f"{said}: {pairs:,} pairs of bins are more than {_MOST_PAIRS:,}; use fewer bins"
            )
        if not self._held.any():
            raise SchemaError(
                f"{said}: the mask excludes the whole box ({box}): no pair of bins has an allowed "
                "point; correct the mask or the bounds, or use smaller bins"
            )

    # Codes

    def project(self, y: Codes, x: Codes) -> tuple[Codes, Codes]:
        """The nearest pairs of bins that have allowed points; idempotent. Nulls stay as they are."""
        lines, columns = self._shape
        there = (y < lines) & (x < columns)
        pair = self._nearest[
            np.where(there, y, 0).astype(np.intp) * columns + np.where(there, x, 0)
        ]
        return (
            np.where(there, pair // columns, y).astype(y.dtype),
            np.where(there, pair % columns, x).astype(x.dtype),
        )

    def decode(self, y: Codes, x: Codes, rng: Rng) -> tuple[pa.Array, pa.Array]:
        """Allowed places for projected codes; a row without a latitude or a longitude has none."""
        lines, columns = self._shape
        no_y, no_x = y == lines, x == columns
        at_y = np.where(no_y, 0, y).astype(np.intp)
        at_x = np.where(no_x, 0, x).astype(np.intp)
        drawn = [self.latitude.grid.draw(at_y, rng), self.longitude.grid.draw(at_x, rng)]
        pair = at_y * columns + at_x
        asked = np.flatnonzero(~no_y & ~no_x & self._cut[pair])
        for _ in range(0 if isinstance(self.mask, Centres) else _TRIES):
            asked = asked[~self._on(drawn[0][asked], drawn[1][asked])]
            if not asked.size:
                break
            drawn[0][asked] = self.latitude.grid.draw(at_y[asked], rng)
            drawn[1][asked] = self.longitude.grid.draw(at_x[asked], rng)
        asked = asked[~self._on(drawn[0][asked], drawn[1][asked])]
        of, known_y, known_x = self._known
        first = np.searchsorted(of, pair[asked], "left")
        size = np.searchsorted(of, pair[asked], "right") - first
        pick = first + (rng.random(len(asked)) * size).astype(np.intp)
        drawn[0][asked], drawn[1][asked] = known_y[pick], known_x[pick]
        return self.latitude._emit(drawn[0], no_y), self.longitude._emit(drawn[1], no_x)

    def legal(self, y: pa.Array | pa.ChunkedArray, x: pa.Array | pa.ChunkedArray) -> Bools:
        """Whether each row lies on the mask; one without a latitude or a longitude lies nowhere."""
        latitudes, there = _floats(y)
        longitudes, too = _floats(x)
        return ~(there & too) | self._contains(latitudes, longitudes)

    # What the mask does to pairs of bins, numbered line by line

    @property
    def _shape(self) -> tuple[int, int]:
        return self.latitude.cells, self.longitude.cells

    @cached_property
    def _known(self) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
        """Allowed points that are known: their pair of bins, in order, and the columns' points."""
        columns = self._shape[1]
        if isinstance(self.mask, Centres):
            x, y = np.array(self.mask.positions).T
            box = self.box
            inside = (y >= box.south) & (y <= box.north) & (x >= box.west) & (x <= box.east)
            at_y, at_x = (
                column.grid.clip(column._read(pa.array(values[inside]), ())[0])
                for column, values in ((self.latitude, y), (self.longitude, x))
            )
        else:
            finest = int(math.sqrt(_MOST_TESTS / (self._shape[0] * columns)))
            tests = max(1, min(_FINEST, finest))
            at_y, at_x = _spread(self.latitude, tests), _spread(self.longitude, tests)
            allowed = self.mask.over(_values(self.latitude, at_y), _values(self.longitude, at_x))
            lines, places = np.nonzero(allowed)
            at_y, at_x = at_y[lines], at_x[places]
        pair = self.latitude.grid.find(at_y) * columns + self.longitude.grid.find(at_x)
        order = np.argsort(pair, kind="stable")
        return pair[order], at_y[order], at_x[order]

    @cached_property
    def _held(self) -> Bools:
        """Which pairs have allowed points."""
        held = np.zeros(self._shape[0] * self._shape[1], np.bool_)
        held[self._known[0]] = True
        return held

    @cached_property
    def _cut(self) -> Bools:
        """Which pairs may hold points that are not allowed."""
        if isinstance(self.mask, Centres):
            return np.ones(self._held.shape, np.bool_)
        ends = [
            _values(column, points)
            for column in (self.latitude, self.longitude)
            for points in (column.grid.lows, column.grid.highs)
        ]
        return self.mask.cut(*ends).reshape(-1) | ~self._held

    @cached_property
    def _nearest(self) -> NDArray[np.intp]:
        """The nearest pair with allowed points, by the middles, on a map true at the box's middle."""
        from scipy.spatial import KDTree

        box, (lines, columns) = self.box, self._shape
        narrow = math.cos(math.radians((box.south + box.north) / 2))
        y, x = (_values(column, _spread(column, 1)) for column in (self.latitude, self.longitude))
        middles = np.stack([np.repeat(y, columns), np.tile(x * narrow, lines)], axis=1)
        held = np.flatnonzero(self._held)
        nearest = np.arange(lines * columns)
        off = np.flatnonzero(~self._held)
        if off.size:
            nearest[off] = held[KDTree(middles[held]).query(middles[off])[1]]
        return nearest

    def _on(self, y: NDArray[Any], x: NDArray[Any]) -> Bools:
        """Whether points are allowed, judged by the values that are written."""
        return self._contains(_values(self.latitude, y), _values(self.longitude, x))

    def _contains(self, latitudes: Floats, longitudes: Floats) -> Bools:
        if isinstance(self.mask, Centres):
            _, y, x = self._known
            centres = _values(self.longitude, x) + 1j * _values(self.latitude, y)
            return np.isin(longitudes + 1j * latitudes, centres)
        return self.mask.contains(latitudes, longitudes)


def _spread(column: Number, tests: int) -> NDArray[Any]:
    """`tests` points of every cell, evenly spread and in order."""
    lows, highs = column.grid.lows[:, None], column.grid.highs[:, None]
    part = 2 * np.arange(tests) + 1
    if column.grid.discrete:
        points = lows + (highs - lows) * part // (2 * tests)
    else:
        points = lows + (highs - lows) * (part / (2 * tests))
    return points.reshape(-1)


def _values(column: Number, points: NDArray[Any]) -> Floats:
    """Points of a column as the numbers that are written for them."""
    return _floats(column._emit(points, np.zeros(len(points), np.bool_)))[0]


def _floats(array: pa.Array | pa.ChunkedArray) -> tuple[Floats, Bools]:
    parts = [floats(chunk, ()) for chunk in flat(array)]
    values, valid = (np.concatenate(each) for each in zip(*parts, strict=True))
    return np.where(valid, values, 0.0).astype(np.float64), valid
