"""Where places may lie: polygons, a grid of ones and zeros, or the centres of regions. All public.

Positions are (longitude, latitude) in degrees, in the order of GeoJSON. A mask is written into the
schema itself, so that anyone can check that a release's rows lie on it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from understudy._types import Bools, Floats
from understudy.errors import SchemaError

Position = tuple[float, float]

_MOST_VERTICES = 100_000
_MOST_PIXELS = 4_000_000
_CHUNK = 4_000_000


@dataclass(frozen=True)
class Box:
    """Bounds in degrees, all included."""

    south: float
    west: float
    north: float
    east: float

    @classmethod
    def around(cls, x: Floats, y: Floats) -> Box:
        """The least box that holds some points."""
        return cls(float(y.min()), float(x.min()), float(y.max()), float(x.max()))

    def __str__(self) -> str:
        latitudes, longitudes = f"{self.south:g}..{self.north:g}", f"{self.west:g}..{self.east:g}"
        return f"latitudes {latitudes} and longitudes {longitudes}"

    def meets(self, other: Box) -> bool:
        """Whether the two have a point in common."""
        return (
            self.south <= other.north
            and other.south <= self.north
            and self.west <= other.east
            and other.west <= self.east
        )

    def swapped(self) -> Box:
        """Latitudes for longitudes."""
        return Box(self.west, self.south, self.east, self.north)


@dataclass(frozen=True)
class Polygons:
    """The inside of closed rings of (longitude, latitude), by the even-odd rule: rings inside others
    are holes. A point at the same latitude as a vertex, or on an edge, is inside or not in one way
    always.
    """

    rings: tuple[tuple[Position, ...], ...]

    def __post_init__(self) -> None:
        rings = tuple(_ring(ring) for ring in _listed("polygons", self.rings))
        if not rings:
            _refuse("polygons", "lists no ring; list at least one of three positions or more")
        if sum(map(len, rings)) > _MOST_VERTICES:
            _refuse("polygons", f"has more than {_MOST_VERTICES} vertices; simplify the outline")
        object.__setattr__(self, "rings", rings)

    @cached_property
    def _edges(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Start and end of every edge: x, y, x, y."""
        starts = [position for ring in self.rings for position in ring]
        ends = [position for ring in self.rings for position in (*ring[1:], ring[0])]
        (x0, y0), (x1, y1) = np.array(starts).T, np.array(ends).T
        return x0, y0, x1, y1

    @property
    def box(self) -> Box:
        """The least box that holds it."""
        return Box.around(*self._edges[:2])

    def contains(self, latitudes: Floats, longitudes: Floats) -> Bools:
        """Whether each point is inside: an odd number of edges lies east of it."""
        _, y0, _, y1 = self._edges
        found = np.zeros(len(latitudes), np.bool_)
        step = max(1, _CHUNK // len(y0))
        for start in range(0, len(latitudes), step):
            y = latitudes[start : start + step, None]
            x = longitudes[start : start + step, None]
            passes = (y0 > y) != (y1 > y)
            found[start : start + step] = (passes & (x < self._crossing(y))).sum(axis=1) % 2 == 1
        return found

    def over(self, latitudes: Floats, longitudes: Floats) -> Bools:
        """`contains` for every pair of a latitude and a longitude, line by line."""
        _, y0, _, y1 = self._edges
        found = np.zeros((len(latitudes), len(longitudes)), np.bool_)
        for line, y in enumerate(latitudes):
            passes = (y0 > y) != (y1 > y)
            crossings = np.sort(self._crossing(y)[passes])
            east = len(crossings) - np.searchsorted(crossings, longitudes, side="right")
            found[line] = east % 2 == 1
        return found

    def _crossing(self, y: Any) -> Floats:
        """The longitude at which every edge passes a latitude; meaningless where it does not."""
        x0, y0, x1, y1 = self._edges
        rise = np.where(y1 == y0, 1.0, y1 - y0)
        return x0 + (y - y0) / rise * (x1 - x0)

    def cut(self, souths: Floats, norths: Floats, wests: Floats, easts: Floats) -> Bools:
        """Which boxes of a grid an edge may pass; every other one is inside as a whole, or outside."""
        found = np.zeros((len(souths), len(wests)), np.bool_)
        room = 1e-9  # far more than rounding, far less than a cell
        for x0, y0, x1, y1 in zip(*self._edges, strict=True):
            top, bottom = max(y0, y1) + room, min(y0, y1) - room
            right, left = max(x0, x1) + room, min(x0, x1) - room
            rows = slice(norths.searchsorted(bottom, "left"), souths.searchsorted(top, "right"))
            columns = slice(easts.searchsorted(left, "left"), wests.searchsorted(right, "right"))
            found[rows, columns] = True
        return found

    def facts(self) -> dict[str, Any]:
        """What a schema file says of it; `from_facts` reads it."""
        return {"polygons": self.rings}


@dataclass(frozen=True)
class Raster:
    """A grid of square pixels from the north-west corner on: "1" is allowed, anything else is not.

    `corner` is the south-west (longitude, latitude), `pixel` the side of one in degrees, `rows` one
    text per line, the northernmost first.
    """

    corner: Position
    pixel: float
    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        rows = _listed("grid: rows", self.rows)
        if not rows or not all(isinstance(row, str) and set(row) <= {"0", "1"} for row in rows):
            _refuse("grid", 'rows must be a list of texts of 0 and 1, such as ["0011", "0111"]')
        if not rows[0] or len({len(row) for row in rows}) > 1:
            _refuse("grid", "its rows must be equally long and not empty")
        if len(rows) * len(rows[0]) > _MOST_PIXELS:
            _refuse("grid", f"has more than {_MOST_PIXELS:,} pixels; make it coarser")
        if not _real(self.pixel) or self.pixel <= 0:
            _refuse("grid", f"pixel = {self.pixel!r} must be a number of degrees above zero")
        object.__setattr__(self, "rows", tuple(rows))
        object.__setattr__(self, "corner", _position("grid: corner", self.corner))
        object.__setattr__(self, "pixel", float(self.pixel))

    @cached_property
    def _allowed(self) -> Bools:
        """From south to north."""
        return np.array([[mark == "1" for mark in row] for row in reversed(self.rows)])

    @property
    def box(self) -> Box:
        """The box of the whole grid, or of its ones where it has some."""
        lines, columns = np.nonzero(self._allowed)
        if not lines.size:
            lines, columns = (np.array([0, size - 1]) for size in self._allowed.shape)
        west, south = self.corner
        x, y = (np.array([at.min(), at.max() + 1]) for at in (columns, lines))
        return Box.around(west + self.pixel * x, south + self.pixel * y)

    def contains(self, latitudes: Floats, longitudes: Floats) -> Bools:
        """Whether the pixel of each point is allowed; none outside the grid is."""
        west, south = self.corner
        line = np.floor((latitudes - south) / self.pixel)
        column = np.floor((longitudes - west) / self.pixel)
        height, width = self._allowed.shape
        inside = (line >= 0) & (line < height) & (column >= 0) & (column < width)
        at = (np.where(inside, place, 0).astype(np.intp) for place in (line, column))
        return inside & self._allowed[tuple(at)]

    def over(self, latitudes: Floats, longitudes: Floats) -> Bools:
        """`contains` for every pair of a latitude and a longitude."""
        return self.contains(latitudes[:, None], longitudes[None, :])

    def cut(self, souths: Floats, norths: Floats, wests: Floats, easts: Floats) -> Bools:
        """Any box may be cut: looking up a pixel is quick enough for every point."""
        return np.ones((len(souths), len(wests)), np.bool_)

    def facts(self) -> dict[str, Any]:
        """What a schema file says of it; `from_facts` reads it."""
        return {"grid": {"corner": self.corner, "pixel": self.pixel, "rows": self.rows}}


@dataclass(frozen=True)
class Centres:
    """The centres of regions, (longitude, latitude): the only places there are."""

    positions: tuple[Position, ...]

    def __post_init__(self) -> None:
        listed = _listed("centroids", self.positions)
        positions = tuple(_position("centroids", position) for position in listed)
        if not positions:
            _refuse("centroids", "lists none; list one [longitude, latitude] for every region")
        if len(positions) > _MOST_VERTICES:
            _refuse("centroids", f"lists more than {_MOST_VERTICES}; use larger regions")
        object.__setattr__(self, "positions", positions)

    @property
    def box(self) -> Box:
        """The least box that holds them."""
        return Box.around(*np.array(self.positions).T)

    def facts(self) -> dict[str, Any]:
        """What a schema file says of them; `from_facts` reads it."""
        return {"centroids": self.positions}


Mask = Polygons | Raster | Centres
"""A set of allowed places."""


def from_facts(facts: Mapping[str, Any]) -> Mask:
    """The mask that a schema file declares; one of `polygons`, `grid` and `centroids`."""
    given = [key for key in ("polygons", "grid", "centroids") if key in facts]
    if len(given) != 1:
        said = "nothing" if not given else " and ".join(given)
        raise SchemaError(
            f"[[geography]] says {said} of where rows may lie; give one: mask (a file), polygons, "
            "grid or centroids"
        )
    found = facts[given[0]]
    if given[0] != "grid":
        return Polygons(found) if given[0] == "polygons" else Centres(found)
    if not isinstance(found, Mapping) or set(found) != {"corner", "pixel", "rows"}:
        _refuse("grid", "needs corner = [longitude, latitude], pixel = degrees and rows = [...]")
    return Raster(**found)


def read_mask(path: Path) -> Mask:
    """The mask of a public file: GeoJSON polygons, an Esri ASCII grid, or a CSV of centroids."""
    said = f"[[geography]] mask = {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SchemaError(f"{said}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{said} cannot be read: {error}") from None
    reader = _READERS.get(path.suffix.lower())
    try:
        if reader is not None:
            return reader(text)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except json.JSONDecodeError as error:
        raise SchemaError(f"{said} is not JSON: {error}") from None
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise SchemaError(f"{said}: {error}") from None
    raise SchemaError(
        f"{said} must end in .geojson (polygons), .asc (an Esri ASCII grid "
        "of 0 and 1) or .csv (centroids, with columns latitude and longitude)"
    )


def _polygons(text: str) -> Polygons:
    return Polygons(tuple(_geojson(json.loads(text))))


def _geojson(value: Any) -> Iterator[tuple[Position, ...]]:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in ("FeatureCollection", "GeometryCollection"):
        for part in value["features" if kind == "FeatureCollection" else "geometries"]:
            yield from _geojson(part)
    elif kind == "Feature":
        yield from _geojson(value["geometry"])
    elif kind in ("Polygon", "MultiPolygon"):
        parts = [value["coordinates"]] if kind == "Polygon" else value["coordinates"]
        for ring in (ring for part in parts for ring in part):
            yield tuple((position[0], position[1]) for position in ring)
    else:
        raise ValueError(f"it holds a {kind!r}; a mask is made of Polygon and MultiPolygon")


def _ascii_grid(text: str) -> Raster:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    head = {line[0].lower(): line[1] for line in lines if line[0][0].isalpha()}
    lacking = {"ncols", "nrows", "xllcorner", "yllcorner", "cellsize"} - set(head)
    if lacking:
        raise ValueError(f"its head lacks {', '.join(sorted(lacking))}")
    marks = [line for line in lines if not line[0][0].isalpha()]
    width, height = int(head["ncols"]), int(head["nrows"])
    if [len(line) for line in marks] != [width] * height:
        raise ValueError(f"it must hold {height} lines of {width} numbers")
    rows = tuple("".join("1" if float(mark) == 1 else "0" for mark in line) for line in marks)
    corner = (float(head["xllcorner"]), float(head["yllcorner"]))
    return Raster(corner, float(head["cellsize"]), rows)


def _centroids(text: str) -> Centres:
    reader = csv.DictReader(text.splitlines())
    named = {name.strip().lower(): name for name in reader.fieldnames or ()}
    if not {"latitude", "longitude"} <= set(named):
        raise ValueError("its header must have the columns latitude and longitude")
    x, y = named["longitude"], named["latitude"]
    return Centres(tuple((float(row[x]), float(row[y])) for row in reader))


_READERS = {".geojson": _polygons, ".json": _polygons, ".asc": _ascii_grid, ".csv": _centroids}


def _ring(ring: Any) -> tuple[Position, ...]:
    positions = [_position("polygons", position) for position in _listed("polygons", ring)]
    if len(positions) > 1 and positions[0] == positions[-1]:  # GeoJSON repeats the first
        positions.pop()
    if len(set(positions)) < 3:
        _refuse("polygons", f"has a ring of {len(positions)} positions; three or more make one")
    return tuple(positions)


def _position(what: str, value: Any) -> Position:
    if not isinstance(value, Sequence) or len(value) != 2 or not all(map(_real, value)):
        _refuse(what, f"holds {value!r}; a position is [longitude, latitude] in degrees")
    x, y = float(value[0]), float(value[1])
    if abs(y) > 90 or abs(x) > 180:
        hint = "; is it [latitude, longitude]?" if abs(x) <= 90 and abs(y) <= 180 else ""
        _refuse(what, f"holds [{x:g}, {y:g}], which is no [longitude, latitude] in degrees{hint}")
    return x, y


def _listed(what: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        _refuse(what, f"must be a list, not {value!r}")
    return value


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _refuse(what: str, why: str) -> NoReturn:
    raise SchemaError(f"[[geography]] {what} {why}")
