"""The picture of an audit: ROC curves on logarithmic axes under the ceiling, and the bound on ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from understudy.audit import ceiling
from understudy.audit.judge import LEVELS, LIMITS, Attack, Audit
from understudy.figures import COLOURS, FAINT, INK, STYLE, plain, save

_REFUTED, _SHOWN = "#D55E00", "#0072B2"


def draw(audit: Audit, folder: Path) -> list[Path]:
    """Write figure.svg and figure.png."""
    import matplotlib
    from matplotlib.figure import Figure

    ranked = sorted(audit.attacks, key=lambda a: (-a.tpr_at[LEVELS[-1]], -a.curve.auc))
    many = "1 canary" if audit.canaries == 1 else f"{audit.canaries} canaries in each"
    colours = {attack.name: COLOURS[at % len(COLOURS)] for at, attack in enumerate(ranked)}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 4.7), layout="constrained")
        places = figure.subplot_mosaic(
            [["curves", "table"], ["curves", "bound"]], width_ratios=(1, 1), height_ratios=(1.2, 1)
        )
        _curves(places["curves"], audit, ranked, colours)
        _table(places["table"], audit, ranked, colours)
        _bound(places["bound"], audit)
        figure.suptitle(_headline(audit), x=0.01, ha="left", fontsize=11, fontweight="bold")
        below = (
            f"{audit.runs} runs, {many}; half of the runs were judged. Curves are "
            f"samples and may cross the ceiling by chance, the bound takes that\ninto account. "
            f"{LIMITS}"
        )
        figure.supxlabel(below, x=0.01, ha="left", fontsize=7.5, linespacing=1.35)
        return save(figure, folder)


def _headline(audit: Audit) -> str:
    claim, found = audit.verdict.claim, audit.verdict
    if claim.epsilon is None:
        return f"Attacks on the {audit.what} show ε ≥ {found.bound:.3g}"
    if audit.refuted:
        return f"Refuted: ε = {claim.epsilon:g} was claimed, ε ≥ {found.bound:.3g} is shown"
    return f"Not refuted: ε = {claim.epsilon:g} is claimed, ε ≥ {found.bound:.3g} is shown"


def _curves(spot: Any, audit: Audit, ranked: Sequence[Attack], colours: Mapping[str, str]) -> None:
    """TPR against FPR, both logarithmic: what happens at few false alarms is what counts."""
    claim = audit.verdict.claim
    steps = [np.diff(np.unique(attack.curve.fpr)) for attack in audit.attacks]
    finest = min(step.min() for step in steps if len(step))
    least = min(1e-3, 10.0 ** float(np.floor(np.log10(finest))))
    grid = np.geomspace(least, 1, 400)
    spot.plot(grid, grid, color="#BBBBBB", linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=1)
    if claim.epsilon is not None:
        best = ceiling.tpr(grid, claim.epsilon, claim.delta)
        spot.fill_between(grid, best, 1, color="#F3EFE6", linewidth=0, zorder=0)
        spot.plot(grid, best, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=4)
        beyond = f"out of reach if ε = {claim.epsilon:g}, δ = {claim.delta:g}"
        spot.text(0.03, 0.97, beyond, transform=spot.transAxes, va="top", fontsize=7.5)
    for attack in reversed(ranked):
        curve = np.maximum(np.interp(grid, attack.curve.fpr, attack.curve.tpr), least / 2)
        width = 2.0 if attack.name == audit.verdict.attack else 1.1
        spot.plot(grid, curve, color=colours[attack.name], linewidth=width, zorder=3)
    spot.set_xscale("log")
    spot.set_yscale("log")
    spot.set_xlim(least, 1)
    spot.set_ylim(least, 1.0)
    plain(spot)
    spot.set_xlabel("false positive rate: records that were out, called members")
    spot.set_ylabel("true positive rate: records that were in, found")
    spot.set_title("Membership attacks (dotted: guessing)", loc="left", fontsize=9)


def _table(spot: Any, audit: Audit, ranked: Sequence[Attack], colours: Mapping[str, str]) -> None:
    """The legend, with the numbers of every attack."""
    spot.set_axis_off()
    spot.set_xlim(0, 1)
    spot.set_ylim(-len(ranked) - 0.6, 1.0)
    heads = ("AUC", "advantage", "TPR at 1 %", "at 0.1 %")
    at = (0.52, 0.69, 0.86, 1.0)
    spot.text(0.0, 0.3, "attack", fontsize=7.5, color="#777777", va="center")
    for x, head in zip(at, heads, strict=True):
        spot.text(x, 0.3, head, fontsize=7.5, color="#777777", ha="right", va="center")
    for place, attack in enumerate(ranked):
        y = -place - 0.7
        chosen = attack.name == audit.verdict.attack
        weight, width = ("bold", 3) if chosen else ("normal", 2)
        line = {"color": colours[attack.name], "linewidth": width, "solid_capstyle": "butt"}
        spot.plot([0, 0.045], [y, y], **line)
        spot.text(0.065, y, attack.name, fontsize=8, va="center", fontweight=weight)
        found = [f"{attack.curve.auc:.2f}", f"{attack.curve.advantage:.2f}"]
        found += [f"{100 * attack.tpr_at[level]:.1f} %" for level in sorted(LEVELS, reverse=True)]
        for x, told in zip(at, found, strict=True):
            spot.text(x, y, told, fontsize=8, ha="right", va="center", fontweight=weight)


def _bound(spot: Any, audit: Audit) -> None:
    """What is shown, what could have been, and what is claimed, on one line of ε."""
    found, claim = audit.verdict, audit.verdict.claim
    right = 1.15 * max(found.bound, found.largest, claim.epsilon or 0.0, 1e-3)
    bars = [("shown, with confidence", found.bound, _REFUTED if audit.refuted else _SHOWN)]
    bars += [(f"shown, {name}", value, "#9DB8C9") for name, value in sorted(found.others.items())]
    bars.append(("if every guess were right", found.largest, FAINT))
    for place, (name, value, colour) in enumerate(bars):
        spot.barh(-place, value, height=0.34, color=colour, zorder=2)
        spot.text(value + 0.012 * right, -place, f"{value:.2f}", va="center", fontsize=8)
        spot.text(0, -place + 0.24, name, va="bottom", fontsize=7.5, zorder=4)
    spot.set_yticks([])
    spot.set_ylim(-len(bars) + 0.6, 0.95)
    if claim.epsilon is not None:
        spot.axvline(claim.epsilon, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)
        said, left = f" claimed: {claim.epsilon:g} ", claim.epsilon < 0.6 * right
        spot.text(claim.epsilon, 0.86, said, fontsize=8, va="top", ha="left" if left else "right")
    spot.set_xlim(0, right)
    plain(spot)
    spot.grid(axis="y", visible=False)
    spot.spines["left"].set_visible(False)
    spot.tick_params(axis="y", length=0)
    spot.set_xlabel(f"ε at δ = {claim.delta:g}, {100 * (1 - claim.beta):g} % confidence")
    spot.set_title(f"Lower bound on ε, from {found.attack}", loc="left", fontsize=9)
