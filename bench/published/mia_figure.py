"""The pictures: attack accuracy, what the models are worth, and their loss, against ε, by model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.published.mia import Point, Results, Slope, delta
from bench.published.mia_rows import PANELS, Panel
from understudy.audit import ceiling
from understudy.figures import COLOURS, INK, STYLE, plain, save

__all__ = ["draw"]

_LOOKS = {"frank-wolfe": (COLOURS[0], "o", "DP-FW"), "sgd": (COLOURS[1], "s", "DP-SGD")}
_BARE = COLOURS[2]
_DASHED, _DOTTED = (0, (4, 2)), (0, (1, 1.5))
_COLUMNS = 4

Handles = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _View:
    """One panel at one number of rows."""

    panel: Panel
    rows: int
    points: tuple[Point, ...]
    slopes: tuple[Slope, ...]

    @property
    def epsilons(self) -> list[float]:
        return sorted({p.epsilon for p in self.points if p.epsilon is not None})

    def of(self, solver: str) -> list[Point]:
        mine = [point for point in self.points if point.solver == solver]
        return sorted(mine, key=lambda point: point.epsilon or 0.0)


@dataclass(frozen=True, slots=True)
class _Picture:
    """One file: a set of axes for every view."""

    name: str
    fill: Callable[[Any, _View], Handles]
    label: str
    caption: str


def draw(results: Results, folder: Path) -> list[Path]:
    """Write attacks, quality and loss, each as SVG and PNG; panels without a point are left out."""
    views = _views(results)
    return [path for picture in _PICTURES if views for path in _draw(picture, views, folder)]


def _views(results: Results) -> list[_View]:
    points = [point for point in results.points() if point.rule == "rank"]
    slopes = results.slopes()
    made = (
        _View(
            panel,
            rows,
            tuple(
                p for p in points if (p.panel, p.rows, p.attack) == (panel.name, rows, panel.attack)
            ),
            tuple(s for s in slopes if (s.panel, s.rows) == (panel.name, rows)),
        )
        for rows in sorted({point.rows for point in points})
        for panel in PANELS
    )
    return [view for view in made if view.epsilons]


def _draw(picture: _Picture, views: Sequence[_View], folder: Path) -> list[Path]:
    import matplotlib
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(views))
    rows = -(-len(views) // columns)
    least = min(point.trainings for view in views for point in view.points)
    told = f"Means of {least} or more trainings. δ = $N^{{-1.5}}$, one row replaced."
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.55 * columns + 0.5, 2.4 * rows + 0.75), layout="constrained")
        spots = figure.subplots(rows, columns, squeeze=False).ravel()
        handles: Handles = {}
        for spot, view in zip(spots, views, strict=False):
            handles |= picture.fill(spot, view)
            _dress(spot, view)
        for spot in spots[len(views) :]:
            spot.set_axis_off()
        for spot in spots[::columns]:
            spot.set_ylabel(picture.label)
        names = list(handles)
        looks: dict[str, Any] = {"frameon": False, "handlelength": 1.8, "columnspacing": 1.6}
        figure.legend(
            [handles[name] for name in names],
            names,
            loc="outside upper left",
            ncols=len(names),
            **looks,
        )
        figure.supxlabel(f"{picture.caption}\n{told}", x=0.005, ha="left", fontsize=7.5)
        return save(figure, folder, picture.name)


def _attacks(spot: Any, view: _View) -> Handles:
    """Accuracy with intervals and log fits, under the ceiling."""
    spot.axhline(0.5, color="#BBBBBB", linewidth=1.0, linestyle=_DOTTED, zorder=1)
    grid = np.geomspace(*_ends(view), 100)
    (line,) = spot.plot(
        grid,
        [ceiling.accuracy(float(e), delta(view.rows)) for e in grid],
        color=INK,
        linewidth=1.2,
        linestyle=_DASHED,
        zorder=2,
    )
    handles: Handles = {"ceiling of (ε, δ)": line}
    for point in view.of("none"):
        handles["without privacy"] = spot.axhline(point.mean, color=_BARE, linewidth=1.6, zorder=2)
        spot.axhspan(point.low, point.high, color=_BARE, alpha=0.15, linewidth=0, zorder=1)
    for place, (solver, (colour, marker, name)) in enumerate(_LOOKS.items()):
        shown = [point for point in view.of(solver) if point.attacked]
        if not shown:
            continue
        aside = 1.04 ** (2 * place - 1)
        handles[name] = spot.errorbar(
            [aside * (p.epsilon or 0.0) for p in shown],
            [p.mean for p in shown],
            yerr=[[p.mean - p.low for p in shown], [p.high - p.mean for p in shown]],
            color=colour,
            marker=marker,
            markersize=4.5,
            linewidth=0,
            elinewidth=0.9,
            capsize=1.8,
            zorder=3,
        )
        for slope in view.slopes:
            if (slope.solver, slope.what) == (solver, "accuracy") and len(shown) > 1:
                spot.plot(grid, _fit(shown, slope.mean, grid), color=colour, linewidth=0.8)
    spot.set_ylim(0.46, 0.8)
    _percent(spot)
    return handles


def _fit(points: Sequence[Point], slope: float, grid: Any) -> Any:
    """The line of this slope in ln ε through the points' middle."""
    middle = sum(math.log(p.epsilon or 1.0) for p in points) / len(points)
    return sum(p.mean for p in points) / len(points) + slope * (np.log(grid) - middle)


def _quality(spot: Any, view: _View) -> Handles:
    """The thesis's target accuracy, beside a constant and the model without privacy."""
    level = view.points[0].constant
    constant = spot.axhline(level, color=INK, linewidth=1.2, linestyle=_DASHED, zorder=2)
    handles: Handles = {"constant": constant}
    for point in view.of("none"):
        handles["without privacy"] = spot.axhline(point.quality, color=_BARE, linewidth=1.6)
    for solver, (colour, marker, name) in _LOOKS.items():
        shown = view.of(solver)
        (handles[name],) = spot.plot(
            [p.epsilon for p in shown],
            [p.quality for p in shown],
            color=colour,
            marker=marker,
            markersize=4.5,
            linewidth=1.3,
        )
    spot.set_ylim(min(level - 0.05, spot.get_ylim()[0]), 1.02)
    _percent(spot)
    return handles


def _loss(spot: Any, view: _View) -> Handles:
    """Excess loss, its bound, and how far the weights are from those without privacy."""
    level = view.points[0].start
    handles: Handles = {
        "weights 0": spot.axhline(level, color="#999999", linewidth=1.2, linestyle=_DOTTED)
    }
    for solver, (colour, marker, name) in _LOOKS.items():
        shown = view.of(solver)
        at = [p.epsilon for p in shown]
        common: dict[str, Any] = {"color": colour, "linewidth": 1.2, "markersize": 4.5}
        (handles[name],) = spot.plot(at, [p.excess for p in shown], marker=marker, **common)
        spot.plot(at, [p.bound for p in shown], linestyle=_DASHED, **common)
        spot.plot(
            at,
            [p.distance for p in shown],
            marker=marker,
            markerfacecolor="none",
            linestyle=_DOTTED,
            **common,
        )
    spot.set_yscale("log")
    return handles


def _percent(spot: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    spot.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.0f} %"))


def _ends(view: _View) -> tuple[float, float]:
    return 0.8 * view.epsilons[0], 1.25 * view.epsilons[-1]


def _dress(spot: Any, view: _View) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    spot.set_xscale("log")
    spot.set_xlim(*_ends(view))
    spot.xaxis.set_major_locator(FixedLocator(view.epsilons))
    spot.xaxis.set_minor_locator(NullLocator())
    spot.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    spot.set_title(view.panel.title, fontsize=8.5, loc="left")
    spot.set_xlabel(f"ε   (N = {view.rows:,})")
    plain(spot)
    spot.grid(axis="x", visible=False)


_PICTURES = (
    _Picture(
        "attacks",
        _attacks,
        "attack accuracy",
        "Rank rule over N members and N fresh rows, by loss (LASSO, wide models) or entropy, where "
        "every model beats a constant. Bars: 95 % intervals; thin lines: log fits.",
    ),
    _Picture(
        "quality",
        _quality,
        "on fresh rows",
        "Accuracy on fresh rows; for LASSO, variance explained.",
    ),
    _Picture(
        "loss",
        _loss,
        "excess loss, ‖w − w*‖",
        "F(w) − F* (filled), ‖w − w*‖ (hollow) and the bound on F(w) − F* (dashed), which says nothing "
        "above the dotted line, the loss of weights 0.",
    ),
)
