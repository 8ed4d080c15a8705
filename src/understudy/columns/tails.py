"""The tail of a column in order: how many rows its outer cells hold, most of them below the noise.

Beyond the last cell that is clear of noise counts say little one by one, and much together: the density
of a tail goes on as it came. So the logarithm of the density is taken for a path whose slope drifts
from piece to piece, and may end anywhere. The law of the drift is one of a few, which the counts weigh
by their likelihood; a piece then gets what it holds given all counts. Post-processing of released ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats

_STEP = 0.125  # Of logarithms and of slopes, which lie on one grid
_STEEPEST, _RISING = 4.0, 0.5
"""How far the logarithm falls or rises over a unit of the axis, at most."""
_LEAST = 1 / 3  # A path ends where a unit of it holds fewer rows
_ROUGH = 0.2  # By how much of themselves counts are off a smooth path, noise aside
_DRIFTS = ((0.0, 0.05), (-0.05, 0.12), (-0.15, 0.2))
"""Laws of the drift: mean and deviation of the change of the slope from unit to unit."""
_BENDS, _WIDER = 0.1, 4.0  # So often it comes from a law so much wider
_ENDS = 0.02  # The chance that a path ends within a unit
_CLEAR, _APART, _BESIDE = 3.5, 5.0, 0.1
"""A count so many deviations off the path is believed as it is: values that many rows hold. Where the
path has less than `_BESIDE` deviations, so many as `_APART`."""
_POWER = 0.5
"""The mean of so high a power of the count is taken: what is hardly likely counts for less."""


def outward(
    counts: Floats,
    sigma: Floats,
    units: NDArray[np.intp],
    sizes: Floats,
    fall: tuple[float, float] = (1.0, 0.05),
) -> Floats:
    """What pieces hold that follow each other outwards, from the bulk on.

    A piece is so many `units` of the axis long, and of a density of one row a unit holds `sizes`. A
    path below `fall[0]` deviations of a count falls by `fall[1]` a unit, or ends.
    """
    density, noise = counts / sizes, sigma / sizes
    top = np.log(max(float(density.max()), float(noise.min()), 1.0)) + 1.0
    grid = np.arange(np.log(_LEAST), top + _STEP, _STEP)
    slopes = np.arange(-round(_STEEPEST / _STEP), round(_RISING / _STEP) + 1)
    inner = [np.mean(np.exp(_STEP * slopes * (np.arange(k)[:, None] + 0.5)), axis=0) for k in units]
    held = np.exp(grid)[None, :, None] * np.array(inner)[:, None, :]
    rough = np.hypot(noise[:, None, None], _ROUGH * held)
    off = (density[:, None, None] - held) / rough
    alive = noise[:, None, None] / rough * np.exp(-np.minimum(off**2 / 2, 300.0))
    flat = (held < fall[0] * float(noise.min())) & (slopes * _STEP > -fall[1])
    alive[flat] = 0.0
    dead = np.exp(-np.minimum((density / noise) ** 2 / 2, 300.0))
    found = [_smoothed(alive, dead, law, slopes, units) for law in _DRIFTS]
    evidence = np.array([each[1] for each in found])
    weight = np.exp(evidence - evidence.max())
    chance = np.tensordot(weight / weight.sum(), np.array([each[0] for each in found]), 1)
    path = np.sum(chance * held**_POWER, axis=(1, 2)) ** (1 / _POWER)
    own, off = (_ROUGH * path) ** 2, density - path
    clear = np.where(path > _BESIDE * noise, _CLEAR, _APART) * noise
    keep = np.where(np.abs(off) > clear, 1.0, own / (own + noise**2))
    return np.maximum(path + keep * off, 0.0) * sizes


def outwards(runs: Sequence[tuple[Floats, float]]) -> list[Floats]:
    """`outward` of several runs of counts, each with one noise for all, in pieces of one unit."""
    return [
        outward(y, np.full(y.size, sigma), np.ones(y.size, np.intp), np.ones(y.size))
        for y, sigma in runs
    ]


def _turns(slopes: NDArray[np.intp], law: tuple[float, float], units: int) -> Floats:
    """How likely every slope follows every other, so many units further out."""
    change = _STEP * (slopes[None, :] - slopes[:, None])
    mean, spread = law[0] * units, law[1] * units**0.5
    kernels = [np.exp(-(((change - mean) / (wide * spread)) ** 2) / 2) for wide in (1.0, _WIDER)]
    one, other = (kernel / kernel.sum(axis=1, keepdims=True) for kernel in kernels)
    return (1 - _BENDS) * one + _BENDS * other


def _smoothed(
    alive: Floats,
    dead: Floats,
    law: tuple[float, float],
    slopes: NDArray[np.intp],
    units: NDArray[np.intp],
) -> tuple[Floats, float]:
    """(the chance of every height and slope in every piece, the log likelihood)."""
    pieces, size, _ = alive.shape
    turns = {k: _turns(slopes, law, int(k)) for k in {*units.tolist()}}
    column, level = np.arange(slopes.size)[None, :], np.arange(size)[:, None]
    ahead, ended, log = np.zeros_like(alive), np.zeros(pieces), 0.0
    for at in range(pieces):
        if at:
            lasts = (1 - _ENDS) ** units[at]
            source = level - units[at - 1] * slopes[None, :]
            inside = (source >= 0) & (source < size)
            before = ahead[at - 1]
            moved = np.where(inside, before[np.clip(source, 0, size - 1), column], 0.0)
            fallen = float(before[level + units[at - 1] * slopes[None, :] < 0].sum())
            ahead[at] = lasts * (moved @ turns[units[at]]) * alive[at]
            ended[at] = (ended[at - 1] + fallen + (1 - lasts) * float(moved.sum())) * dead[at]
        else:
            ahead[at] = alive[at] / alive[at].size
        total = max(float(ahead[at].sum()) + ended[at], 1e-300)
        ahead[at] /= total
        ended[at] /= total
        log += float(np.log(total))
    chance = np.zeros_like(alive)
    behind, without = np.ones(alive.shape[1:]), 1.0
    for at in range(pieces - 1, -1, -1):
        joint = ahead[at] * behind
        chance[at] = joint / max(float(joint.sum()) + ended[at] * without, 1e-300)
        if at:
            lasts = (1 - _ENDS) ** units[at]
            without *= dead[at]
            there = lasts * ((behind * alive[at]) @ turns[units[at]].T) + (1 - lasts) * without
            target = level + units[at - 1] * slopes[None, :]
            after = np.where(target < size, there[np.clip(target, 0, size - 1), column], 0.0)
            behind = np.where(target >= 0, after, without)
            scale = max(float(behind.max()), without)
            behind, without = behind / scale, without / scale
    return chance, log
