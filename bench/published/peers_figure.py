"""The figure: mean total variation against CPU seconds, one set of axes per workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.published.figure import FAINT, STYLE
from bench.published.peers import Point, label

__all__ = ["draw_peers"]

_COLOURS = ("#009E73", "#0072B2", "#D55E00", "#E69F00", "#CC79A7", "#56B4E9", "#8C6D1F", "#7A7A7A")
_MARKERS = ("*", "o", "s", "^", "v", "D", "P", "X")


def draw_peers(
    points: Sequence[Point], floors: Mapping[str, tuple[float, float]], folder: Path
) -> list[Path]:
    """Write peers.svg and peers.png; nothing where no run has succeeded."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = [point for point in points if point.tv is not None]
    names = list(dict.fromkeys(point.workload for point in shown))
    if not names:
        return []
    systems = sorted({p.system for p in shown}, key=[p.system for p in points].index)
    looks = {
        system: (_COLOURS[at % len(_COLOURS)], _MARKERS[at % len(_MARKERS)])
        for at, system in enumerate(systems)
    }
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.1 * len(names) + 0.5, 3.6), layout="constrained")
        axes = figure.subplots(1, len(names), squeeze=False)[0]
        handles: dict[str, Any] = {}
        for spot, name in zip(axes, names, strict=True):
            handles |= _panel(spot, name, [p for p in shown if p.workload == name], looks)
            if name in floors:
                spot.axhline(floors[name][1], color="#1A1A1A", linestyle=(0, (4, 2)), linewidth=1)
        axes[0].set_ylabel("mean total variation over the workload")
        figure.legend(
            list(handles.values()), [label(name) for name in handles], loc="outside upper left",
            ncols=min(len(handles), 2 * len(names)), frameon=False, handlelength=1.2,
        )  # fmt: skip
        written = [folder / "peers.svg", folder / "peers.png"]
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=160)
    return written


def _panel(
    spot: Any, name: str, points: Sequence[Point], looks: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """Every point with its intervals and its ε; what was drawn, by system."""
    handles: dict[str, Any] = {}
    for point in points:
        assert point.tv is not None
        colour, marker = looks[point.system]
        handles[point.system] = spot.errorbar(
            [point.cpu.mean], [point.tv.mean],
            xerr=[[min(point.cpu.half or 0.0, 0.9 * point.cpu.mean)], [point.cpu.half or 0.0]],
            yerr=[[min(point.tv.half or 0.0, 0.9 * point.tv.mean)], [point.tv.half or 0.0]],
            color=colour, marker=marker, markersize=6, markeredgecolor="white",
            markeredgewidth=0.4, linestyle="none", elinewidth=0.9, capsize=1.8, zorder=3,
        )  # fmt: skip
        spot.annotate(
            f"ε {point.epsilon}", (point.cpu.mean, point.tv.mean), xytext=(5, 3),
            textcoords="offset points", fontsize=6.5,
        )  # fmt: skip
    spot.set_title(name, fontsize=9, loc="left")
    spot.set_xscale("log")
    spot.set_yscale("log")
    spot.set_xlabel("CPU seconds of a run, imports included")
    spot.grid(color=FAINT, linewidth=0.6)
    spot.set_axisbelow(True)
    spot.margins(0.2)
    _ticks(spot)
    for side in ("top", "right"):
        spot.spines[side].set_visible(False)
    spot.tick_params(length=2.5)
    return handles


def _ticks(spot: Any) -> None:
    """1, 2, 5 in every decade, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for axis in (spot.xaxis, spot.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
