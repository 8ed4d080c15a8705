"""How a network was trained privately, as pictures: losses, thresholds, noise and ε against steps.

The report of such a release shows them; as files of their own they are drawn by

    from understudy import Release
    from understudy.report import training

    training.draw(Release.load("patients.release"), "figures")   # figures/training.svg and .png

Made of the release alone: losses and thresholds are functions of released gradients, noise and ε follow
from the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.errors import InputError, require_extra
from understudy.figures import COLOURS, STYLE, plain, save
from understudy.privacy import accounting
from understudy.privacy.cost import Charge, Plan, SampledGroups
from understudy.releases.release import Release
from understudy.units import group

_POINTS = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """A number against steps; the name tells it from the others of its panel."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves that share an axis, and perhaps a limit that none of them passes."""

    title: str
    curves: tuple[Curve, ...]
    limit: float | None = None


def panels(release: Release) -> tuple[Panel, ...]:
    """What there is to see of a training; nothing if there was none, or the release is silent."""
    told: Any = release.diagnostics.get("training")
    slot = _slot(release)
    if not told or slot is None:
        return ()
    event = slot.event
    assert isinstance(event, SampledGroups)
    steps = tuple(told["step"])

    def curve(name: str, values: Any) -> Curve:
        known = [(s, float(v)) for s, v in zip(steps, values, strict=True) if v is not None]
        return Curve(name, tuple(s for s, _ in known), tuple(v for _, v in known))

    def by_group(values: Any, unit: float) -> tuple[Curve, ...]:
        """One curve a group; weights are grouped anew now and then, into more or fewer groups."""
        most = max(map(len, values))
        return tuple(
            curve(
                f"group {j + 1}" if most > 1 else "all weights",
                [unit * each[j] if j < len(each) else None for each in values],
            )
            for j in range(most)
        )

    costs = spent(release)
    return (
        Panel(
            "Loss",
            (
                curve("critic, on made-up rows", told["critic_loss_on_made_up_rows"]),
                curve("generator", told["generator_loss"]),
            ),
        ),
        Panel("Threshold of a row's gradient", by_group(told["thresholds"], 1.0)),
        Panel("Noise on a weight, its deviation", by_group(told["scales"], event.multipliers[0])),
        Panel(
            "ε spent",
            (Curve("spent", tuple(s for s, _ in costs), tuple(e for _, e in costs)),),
            float(release.budget.epsilon),
        ),
    )


def spent(release: Release, points: int = _POINTS) -> list[tuple[int, float]]:
    """(step, ε that everything drawn up to it costs at the release's δ), from step 0 on.

    The certificate comes last, so the last of these is below what was promised.

    Raises:
        InputError: The release was not made by training on gradients.
    """
    slot = _slot(release)
    if slot is None:
        raise _untrained(release)
    before: list[Charge] = []
    for charge in release.plan:
        if charge.purpose == slot.purpose:
            break
        before.append(charge)
    found: list[tuple[int, float]] = []
    for step in sorted({round(slot.times * k / points) for k in range(points + 1)}):
        steps = [Charge(slot.purpose, slot.event, step)] if step else []
        cost = accounting.epsilon(
            Plan((*before, *steps)), release.budget.delta, group(release.schema.unit)
        )
        found.append((step, cost.epsilon))
    return found


def draw(release: Release, folder: str | Path) -> list[Path]:
    """Write `training.svg` and `training.png` into a folder, which is made if it is not there.

    Raises:
        InputError: The release was not made by training on gradients, or matplotlib is missing.
    """
    require_extra("drawing", "figures")
    shown = panels(release)
    if not shown:
        raise _untrained(release)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        spots = figure.subplots(2, 2, sharex=True)
        for spot, panel in zip(spots.flat, shown, strict=True):
            plain(spot)
            spot.set_title(panel.title, loc="left")
            for j, curve in enumerate(panel.curves):
                look = {"color": COLOURS[j % len(COLOURS)], "linewidth": 1, "label": curve.name}
                dots = "o" if len(curve.steps) <= _POINTS + 1 else None
                spot.plot(curve.steps, curve.values, marker=dots, markersize=3, **look)
            if panel.limit is not None:
                spot.axhline(panel.limit, color=COLOURS[1], linewidth=1, linestyle="--")
            if min(v for curve in panel.curves for v in curve.values) >= 0:
                spot.set_ylim(bottom=0)
            if len(panel.curves) > 1:
                spot.legend(frameon=False)
        for spot in spots[-1]:
            spot.set_xlabel("critic step")
        into = Path(folder)
        into.mkdir(parents=True, exist_ok=True)
        return save(figure, into, "training")


def _slot(release: Release) -> Charge | None:
    return next((c for c in release.plan if isinstance(c.event, SampledGroups)), None)


def _untrained(release: Release) -> InputError:
    return InputError(
        f"a release by {release.method.get('name')} has no training to show; use method = dpgan"
    )
