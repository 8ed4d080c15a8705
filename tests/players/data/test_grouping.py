"""Groups of weights: found anew from rows that anybody may know, and none of them dead."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.thorough import slow
from understudy.nets.coding import Coding
from understudy.nets.gan import Gan
from understudy.players.data.gan import Networks
from understudy.players.data.grouping import grouped, parted, regrouped

GAN = Gan(
    Coding((6, 4, 3), ("choice",) * 3, (False,) * 3),
    latent=4,
    width=8,
    critic_width=8,
    conditioned=False,
)


def networks(key=0):
    shares = [np.full(n, 1 / n) for n in GAN.coding.shape]
    return Networks.begun(GAN, key, shares).rows


def rows(count=200, most=(6, 4, 3), key=0):
    rng = np.random.default_rng(key)
    return tuple(rng.integers(n, size=count) for n in most)


@pytest.mark.parametrize("groups", [1, slow(2), 5, slow(12)])
def test_no_group_is_dead(groups):
    """Values that no public row has give weights without a gradient: they are in a live group."""
    found = grouped(networks(), rows(most=(2, 4, 1)), groups)
    assert 1 <= len(found.thresholds) <= groups
    assert min(found.thresholds) >= 1e-2 * max(found.thresholds)
    assert sum(s**2 for s in found.shares) == pytest.approx(1)
    if found.members is None:
        assert len(found.thresholds) == 1
    else:
        names = np.concatenate([m.reshape(-1) for m in found.members])
        assert set(names.tolist()) == set(range(len(found.thresholds)))


def test_there_are_several_groups_where_gradients_differ():
    found = grouped(networks(), rows(), 3)
    assert len(found.thresholds) > 1


def test_groups_follow_the_critic_and_thresholds_stay_as_large_together():
    before = grouped(networks(), rows(), 3)
    moved = replace(before, thresholds=tuple(2 * c for c in before.thresholds))
    after, fresh = regrouped(moved, networks(key=9), rows(), 3), grouped(networks(key=9), rows(), 3)
    assert after.members is not None
    assert fresh.members is not None
    assert before.members is not None
    pairs = list(zip(after.members, fresh.members, before.members, strict=True))
    assert all((a == b).all() for a, b, _ in pairs)
    assert any((a != c).any() for a, _, c in pairs)
    assert math.hypot(*after.thresholds) == pytest.approx(2 * math.hypot(*before.thresholds))
    ratios = [a / b for a, b in zip(after.thresholds, fresh.thresholds, strict=True)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios))


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_rows_that_tell_thresholds_do_not_warm_the_critic(count):
    kept, rest = parted((np.arange(count), np.arange(count) * 2))
    assert len(kept[0]) == -(-count // 4)
    assert len(rest[0]) > 0
    assert (kept[1] == 2 * kept[0]).all()
    if count > 1:
        assert sorted([*kept[0], *rest[0]]) == list(range(count))
