"""How every picture of understudy looks, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

INK, FAINT = "#333333", "#DDDDDD"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#8C6D1F", "#7A7A7A")
"""Okabe and Ito's, told apart by all."""
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial", "sans-serif"],
    "font.size": 8.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": "#000000",
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "understudy",
}


def plain(spot: Any) -> None:
    """Axes without a frame: faint lines behind, short ticks."""
    spot.grid(color=FAINT, linewidth=0.6)
    spot.set_axisbelow(True)
    for side in ("top", "right"):
        spot.spines[side].set_visible(False)
    spot.tick_params(length=2.5)


def save(figure: Any, folder: Path, name: str = "figure") -> list[Path]:
    """Write an SVG that is the same bytes for the same picture, and a PNG."""
    written = [folder / f"{name}.svg", folder / f"{name}.png"]
    figure.savefig(written[0], metadata={"Date": None})
    figure.savefig(written[1], dpi=160)
    return written
