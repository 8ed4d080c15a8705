"""Groups of weights: found anew from rows that anybody may know, and none of them dead."""

from __future__ import annotations

import math

import numpy as np
import pytest

from understudy.nets.coding import Coding
from understudy.nets.gan import Gan
from understudy.players.data.gan import Networks
from understudy.players.data.grouping import grouped, regrouped

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


@pytest.mark.parametrize("groups", [1, 2, 5, 12])
def test_no_group_is_dead(groups):
    """Values that no public row has give weights without a gradient: they are in a live group."""
    found = grouped(networks(), rows(most=(2, 4, 1)), groups)
    assert 1 <= len(found.thresholds) <= groups
    assert min(found.thresholds) >= 1e-2 * max(found.thresholds)
    assert sum(s**2 for s in found.shares) == pytest.approx(1)
    assert found.thresholds == found.found
    if found.members is None:
        assert len(found.thresholds) == 1
    else:
        names = np.concatenate([m.reshape(-1) for m in found.members])
        assert set(names.tolist()) == set(range(len(found.thresholds)))


def test_there_are_several_groups_where_gradients_differ():
    found = grouped(networks(), rows(), 3)
    assert len(found.thresholds) > 1


def test_groups_follow_the_critic_and_keep_what_thresholds_have_learned():
    before = grouped(networks(), rows(), 3)
    moved = before.__class__(
        before.members, tuple(2 * c for c in before.thresholds), before.shares, before.found
    )
    after = regrouped(moved, networks(key=9), rows(), 3)
    fresh = grouped(networks(key=9), rows(), 3)
    assert after.found == fresh.found != before.found
    assert after.thresholds == pytest.approx([2 * c for c in fresh.thresholds])
    one = regrouped(moved, networks(key=9), rows(), 1)  # other groups than before: their mean
    assert one.thresholds[0] == pytest.approx(2 * one.found[0])
    assert math.prod(one.shares) == 1
