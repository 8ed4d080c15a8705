"""How a network was trained privately, as a picture: losses, thresholds, noise and ε against steps.

    from understudy import Release
    from understudy.report import training

    training.draw(Release.load("patients.release"), "figures")   # figures/training.svg and .png

Made of the release alone: losses and thresholds are functions of released gradients, noise and ε follow
from the plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from understudy.errors import InputError
from understudy.figures import COLOURS, STYLE, plain, require_matplotlib, save
from understudy.privacy import accounting
from understudy.privacy.cost import Charge, Plan, SampledGroups
from understudy.releases.release import Release

__all__ = ["draw", "spent"]

_POINTS = 8


def spent(release: Release, points: int = _POINTS) -> list[tuple[int, float]]:
    """(step, ε that everything drawn up to it costs at the release's δ); the certificate comes last."""
    slot = _slot(release)
    before: list[Charge] = []
    for charge in release.plan:
        if charge.purpose == slot.purpose:
            break
        before.append(charge)
    found: list[tuple[int, float]] = []
    for k in range(1, points + 1):
        step = max(1, round(slot.times * k / points))
        plan = Plan((*before, Charge(slot.purpose, slot.event, step)))
        found.append((step, accounting.epsilon(plan, release.budget.delta).epsilon))
    return found


def draw(release: Release, folder: str | Path) -> list[Path]:
    """Write `training.svg` and `training.png` into a folder, which is made if it is not there.

    Raises:
        InputError: The release was not made by training on gradients, or matplotlib is missing.
    """
    slot = _slot(release)
    told: Any = release.remarks.get("training")
    if not told:
        raise InputError(
            "this release says nothing about its training; it was made by an older one"
        )
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    event = slot.event
    assert isinstance(event, SampledGroups)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        (losses, limits), (noises, costs) = figure.subplots(2, 2, sharex=True)
        for spot, title in (
            (losses, "loss"), (limits, "threshold of a group"),
            (noises, "deviation of the noise on a weight"), (costs, "ε spent"),
        ):  # fmt: skip
            plain(spot)
            spot.set_title(title, loc="left")
        steps = told["step"]
        for key, colour, words in (
            ("critic_loss_on_made_up_rows", COLOURS[0], "critic, made-up rows"),
            ("generator_loss", COLOURS[1], "generator"),
        ):
            pairs = [(s, v) for s, v in zip(steps, told[key], strict=True) if v is not None]
            losses.plot(*zip(*pairs, strict=True), color=colour, linewidth=1, label=words)
        losses.legend(frameon=False)
        groups = list(zip(*told["thresholds"], strict=True))
        for j, group in enumerate(groups):
            colour = COLOURS[j % len(COLOURS)]
            limits.plot(steps, group, color=colour, linewidth=1)
            drawn = [event.multipliers[j] * c for c in group]
            noises.plot(steps, drawn, color=colour, linewidth=1)
        limits.set_ylim(bottom=0)
        noises.set_ylim(bottom=0)
        costs.plot(*zip(*spent(release), strict=True), color=COLOURS[2], marker="o", markersize=3)
        costs.set_ylim(bottom=0)
        for spot in (noises, costs):
            spot.set_xlabel("critic step")
        into = Path(folder)
        into.mkdir(parents=True, exist_ok=True)
        return save(figure, into, "training")


def _slot(release: Release) -> Charge:
    for charge in release.plan:
        if isinstance(charge.event, SampledGroups):
            return charge
    raise InputError(
        f"a release by {release.method.get('name')} has no training to show; use method = dpgan"
    )
