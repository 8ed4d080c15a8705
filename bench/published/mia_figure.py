"""The picture: attack accuracy against ε, one set of axes per model, under the ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.published.mia import PANELS, Panel, Point, Results, delta
from understudy.audit import ceiling
from understudy.figures import INK, STYLE, plain, save

__all__ = ["draw"]

_LOOKS = {"frank-wolfe": ("#0072B2", "o", "DP-FW"), "sgd": ("#D55E00", "s", "DP-SGD")}
_BARE = "#009E73"
_COLUMNS = 4


def draw(results: Results, folder: Path) -> list[Path]:
    """Write figure.svg and figure.png; panels without a point are left out."""
    import matplotlib
    from matplotlib.figure import Figure

    points = [point for point in results.points() if point.rule == "rank"]
    panels = [panel for panel in PANELS if any(p.panel == panel.name for p in points)]
    if not panels:
        return []
    rows = -(-len(panels) // _COLUMNS)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.55 * min(_COLUMNS, len(panels)) + 0.5, 2.5 * rows + 0.75),
                        layout="constrained")  # fmt: skip
        spots = figure.subplots(
            rows, min(_COLUMNS, len(panels)), squeeze=False, sharey=True
        ).ravel()
        handles: dict[str, Any] = {}
        for spot, panel in zip(spots, panels, strict=False):
            handles |= _panel(spot, panel, [p for p in points if p.panel == panel.name])
        for spot in spots[len(panels) :]:
            spot.set_axis_off()
        for spot in spots[:: min(_COLUMNS, len(panels))]:
            spot.set_ylabel("attack accuracy")
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper left", ncols=len(handles),
            frameon=False, handlelength=1.8, columnspacing=1.6,
        )  # fmt: skip
        least = min(point.trainings for point in points)
        figure.supxlabel(
            f"Rank rule over N members and N fresh rows, by loss (LASSO, overfitted) or entropy. "
            f"Means of {least} or more trainings, bars: 95 % intervals. "
            "δ = $N^{-1.5}$, one row replaced.",
            x=0.005, ha="left", fontsize=7.5,
        )  # fmt: skip
        return save(figure, folder)


def _panel(spot: Any, panel: Panel, points: Sequence[Point]) -> dict[str, Any]:
    mine = [point for point in points if point.attack == panel.score]
    epsilons = sorted({point.epsilon for point in mine if point.epsilon is not None})
    handles: dict[str, Any] = {}
    spot.axhline(0.5, color="#BBBBBB", linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=1)
    low, high = (0.8 * epsilons[0], 1.25 * epsilons[-1]) if epsilons else (0.1, 10.0)
    grid = np.geomspace(low, high, 100)
    (line,) = spot.plot(
        grid, [ceiling.accuracy(float(e), delta(panel.rows)) for e in grid], color=INK,
        linewidth=1.2, linestyle=(0, (4, 2)), zorder=2,
    )  # fmt: skip
    handles["ceiling of (ε, δ)"] = line
    bare = [point for point in mine if point.epsilon is None]
    for point in bare:
        handles["without privacy"] = spot.axhline(point.mean, color=_BARE, linewidth=1.6, zorder=2)
        spot.axhspan(point.low, point.high, color=_BARE, alpha=0.15, linewidth=0, zorder=1)
    for place, (solver, (colour, marker, name)) in enumerate(_LOOKS.items()):
        shown = sorted((p for p in mine if p.solver == solver), key=lambda p: p.epsilon or 0.0)
        if not shown:
            continue
        aside = 1.04 ** (2 * place - 1)
        handles[name] = spot.errorbar(
            [aside * (p.epsilon or 0.0) for p in shown], [p.mean for p in shown],
            yerr=[[p.mean - p.low for p in shown], [p.high - p.mean for p in shown]],
            color=colour, marker=marker, markersize=4.5, linewidth=1.3, elinewidth=0.9, capsize=1.8,
            zorder=3,
        )  # fmt: skip
    _dress(spot, panel, epsilons, low, high)
    return handles


def _dress(spot: Any, panel: Panel, epsilons: Sequence[float], low: float, high: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    spot.set_xscale("log")
    spot.set_xlim(low, high)
    spot.set_ylim(0.44, 1.01)
    spot.xaxis.set_major_locator(FixedLocator(list(epsilons)))
    spot.xaxis.set_minor_locator(NullLocator())
    spot.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    spot.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.0f} %"))
    spot.set_title(panel.title, fontsize=8.5, loc="left")
    spot.set_xlabel(f"ε   (N = {panel.rows})")
    plain(spot)
    spot.grid(axis="x", visible=False)
