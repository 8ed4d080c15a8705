"""The figure: worst error against ε and against the number of marginals, one row of axes per table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from bench.published import published
from bench.published.game import Panel, Point, Results
from bench.published.game_tables import reason
from understudy.figures import FAINT, STYLE, save

__all__ = ["FAINT", "STYLE", "draw"]

# Okabe and Ito's colours, told apart by all; markers tell them apart in grey as well.
_LOOKS: dict[str, tuple[str, str]] = {
    "fem": ("#0072B2", "o"),
    "sepfem": ("#56B4E9", "s"),
    "dualquery": ("#E69F00", "^"),
    "dqrs": ("#D55E00", "v"),
    "mwem": ("#CC79A7", "D"),
    "frankwolfe": ("#8C6D1F", "P"),
    "hdmm": ("#7A7A7A", "X"),
    "auto": ("#009E73", "*"),
}
_PUBLISHED = "#1A1A1A"
# Points at the same place on the axis stand side by side, so that bars do not hide each other.
_ASIDE = 1.012


def draw(panels: Sequence[Panel], results: Results, folder: Path) -> list[Path]:
    """Write figure.svg and figure.png; panels without a point are left out."""
    import matplotlib
    from matplotlib.figure import Figure

    points = results.points()
    rows = _grid(panels, points)
    if not rows:
        return []
    width = max(len(row) for row in rows)
    with matplotlib.rc_context(STYLE):
        notes = [part for note in _notes(panels, results) for part in wrap(note, 45 * width)]
        height = 2.75 * len(rows) + 0.9 + 0.16 * len(notes)
        figure = Figure(figsize=(3.0 * width + 0.4, height), layout="constrained")
        axes = figure.subplots(len(rows), width, squeeze=False)
        handles: dict[str, Any] = {}
        for place, row in zip(axes, rows, strict=True):
            for spot, panel in zip(place, row, strict=False):
                own = [p for p in points if p.panel == panel.name]
                handles |= _panel(spot, panel, own, results.answered.get(panel.name, {}))
            _level([spot for spot, panel in zip(place, row, strict=False) if panel.order])
            for spot in place[len(row) :]:
                spot.set_axis_off()
            place[0].set_ylabel("worst error over all cells")
        _legend(figure, handles, 2 * width)
        figure.supxlabel("\n".join(notes), x=0.005, ha="left", fontsize=7.5, linespacing=1.35)
        return save(figure, folder)


def _notes(panels: Sequence[Panel], results: Results) -> list[str]:
    """What a reader of the picture alone must know: runs, and which methods are missing, and why."""
    names = {panel.name: panel.title for panel in panels}
    runs = {point.runs for point in results.points() if point.panel in names}
    notes: list[str] = []
    if several := sorted(runs - {1}):
        means = (
            f"Means of {' or '.join(map(str, several))} runs, bars from the least to the largest"
        )
        notes.append(f"{means}; hollow: one run." if 1 in runs else f"{means}.")
    first: dict[tuple[str, str], str] = {}
    for one in results.left_out:
        if one.panel in names:
            first.setdefault((one.panel, one.method), reason(one))
    return notes + [
        f"{names[panel]}, no {_name(method)}: {why}." for (panel, method), why in first.items()
    ]


def _name(method: str) -> str:
    """How a method is called in the picture."""
    from understudy.game.methods import method as named

    return f"default ({named('auto').name})" if method == "auto" else method


def _level(spots: Sequence[Any]) -> None:
    """One scale for the same table; six columns keep their own."""
    for spot in spots:
        spot.set_ylim(
            min(each.get_ylim()[0] for each in spots), max(each.get_ylim()[1] for each in spots)
        )


def _grid(panels: Sequence[Panel], points: Sequence[Point]) -> list[list[Panel]]:
    """One row a table; growing workloads after six columns."""
    drawn = {point.panel for point in points}
    rows: dict[str, list[Panel]] = {}
    for panel in sorted(panels, key=lambda panel: (panel.order is None, panel.figure)):
        if panel.name in drawn:
            rows.setdefault(panel.bench.name, []).append(panel)
    return [rows[name] for name in dict.fromkeys(p.bench.name for p in panels) if name in rows]


def _panel(
    spot: Any, panel: Panel, points: Sequence[Point], answers: Mapping[str, float]
) -> dict[str, Any]:
    """One set of axes; what it drew, by label."""
    growing = panel.figure == 2
    handles: dict[str, Any] = {}
    if answers:
        (line,) = spot.plot(
            [float(at) for at in answers], list(answers.values()), color=_LOOKS["hdmm"][0],
            linestyle=(0, (1, 1.5)), linewidth=1.4, zorder=2,
        )  # fmt: skip
        handles[published.HDMM_NAME] = line
    known = {} if growing else published.fem(panel.bench.name, panel.order)
    if known:
        shown = [epsilon for epsilon in panel.epsilons if epsilon in known]
        (line,) = spot.plot(
            [float(e) for e in shown], [known[e] for e in shown],
            color=_PUBLISHED, linestyle=(0, (4, 2)), linewidth=1.2, marker="x", markersize=4,
            zorder=2,
        )  # fmt: skip
        handles[published.FEM_NAME] = line
    shown = [method for method in _LOOKS if any(point.method == method for point in points)]
    for place, method in enumerate(shown):
        colour, marker = _LOOKS[method]
        mine = [point for point in points if point.method == method]
        mine.sort(key=lambda point: point.marginals if growing else float(point.epsilon))
        aside = _ASIDE ** (place - (len(shown) - 1) / 2)
        x = [aside * (point.marginals if growing else float(point.epsilon)) for point in mine]
        y = [point.mean for point in mine]
        below = [max(0.0, point.mean - point.min) for point in mine]  # equal runs round
        above = [max(0.0, point.max - point.mean) for point in mine]
        size = 7.5 if marker == "*" else 4.5  # a star fills less than its size
        handles[method] = spot.errorbar(
            x, y, yerr=[below, above], color=colour, marker=marker, markersize=size,
            markeredgecolor="white", markeredgewidth=0.4, linewidth=1.4, elinewidth=0.9,
            capsize=1.8, zorder=3,
        )  # fmt: skip
        alone = [at for at, point in enumerate(mine) if point.runs == 1]
        spot.plot(
            [x[at] for at in alone], [y[at] for at in alone], linestyle="", marker=marker,
            markersize=size, color=colour, markerfacecolor="white", markeredgewidth=1.1, zorder=4,
        )  # fmt: skip
    _dress(spot, panel, growing, [point.marginals for point in points])
    return handles


def _dress(spot: Any, panel: Panel, growing: bool, marginals: Sequence[int]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    spot.set_title(panel.title, fontsize=9, loc="left")
    spot.set_xscale("log")
    spot.set_yscale("log")
    ticks = sorted(set(marginals)) if growing else [float(e) for e in panel.epsilons]
    spot.xaxis.set_major_locator(FixedLocator(_apart(ticks)))
    spot.xaxis.set_minor_locator(NullLocator())
    spot.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if growing else f"{x:g}"))
    spot.set_xlabel(f"number of {panel.order}-way marginals" if growing else "ε   (δ = 1/n²)")
    spot.yaxis.set_major_locator(
        FixedLocator([m * 10.0**e for e in range(-4, 1) for m in (1, 1.5, 2, 3, 5, 7)])
    )
    spot.yaxis.set_minor_locator(NullLocator())
    spot.yaxis.set_minor_formatter(NullFormatter())
    spot.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    spot.grid(axis="y", color=FAINT, linewidth=0.6)
    spot.set_axisbelow(True)
    for side in ("top", "right"):
        spot.spines[side].set_visible(False)
    spot.tick_params(length=2.5)


def _apart(ticks: Sequence[float]) -> list[float]:
    """Ticks whose labels do not run into each other on a logarithmic axis."""
    least = 0.15 * math.log(max(ticks) / min(ticks))
    kept: list[float] = []
    for tick in sorted(ticks, reverse=True):
        if not kept or math.log(kept[-1] / tick) > least:
            kept.append(tick)
    return kept[::-1]


def _legend(figure: Any, handles: dict[str, Any], most: int) -> None:
    """Names above the panels, at most so many side by side."""
    order = [published.FEM_NAME, published.HDMM_NAME, *_LOOKS]
    names = [name for name in order if name in handles]
    words = [_name(name) for name in names]
    figure.legend(
        [handles[name] for name in names],
        words,
        loc="outside upper left",
        ncols=min(most, len(names)),
        frameon=False,
        handlelength=1.8,
        columnspacing=1.6,
    )
