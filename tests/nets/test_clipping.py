"""Ghost norms, groups of weights, thresholds and noise; all on public gradients."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thorough import examples

from understudy.nets.clipping import adapted, clusters, norms, shares, thresholds


@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    rows=st.integers(1, 6),
    groups=st.integers(1, 3),
    key=st.integers(0, 10_000),
)
@settings(max_examples=examples(20, 60), deadline=None)
def test_norms_are_those_of_a_loop(sizes, rows, groups, key):
    rng = np.random.default_rng(key)
    layers = list(pairwise(sizes))
    factors = [(rng.normal(size=(rows, i)), rng.normal(size=(rows, o))) for i, o in layers]
    whole = np.array(
        [
            np.concatenate([np.outer(np.append(a[r], 1.0), d[r]).reshape(-1) for a, d in factors])
            for r in range(rows)
        ]
    )
    members = tuple(rng.integers(groups, size=(i + 1, o)) for i, o in layers)
    flat = (
        np.concatenate([m.reshape(-1) for m in members]) if groups > 1 else np.zeros(len(whole[0]))
    )
    found = norms(factors, members if groups > 1 else None, groups)
    for j in range(groups):
        part = np.where(flat == j, whole, 0.0)
        lengths = np.linalg.norm(part, axis=1)
        assert found[:, j] == pytest.approx(lengths, rel=1e-9, abs=1e-9)


def naive_clusters(sizes, groups):
    found = [([i], max(abs(x), 1e-12)) for i, x in enumerate(sizes)]
    while len(found) > groups:
        found.sort(key=lambda group: group[1])
        at = min(
            range(len(found) - 1), key=lambda i: math.log(found[i + 1][1]) - math.log(found[i][1])
        )
        (one, c), (other, d) = found[at], found[at + 1]
        found[at : at + 2] = [(one + other, math.hypot(c, d))]
    found.sort(key=lambda group: group[1])
    named = np.zeros(len(sizes), int)
    for number, (group, _) in enumerate(found):
        named[group] = number
    return named


def test_clusters_of_four_numbers():
    assert clusters(np.array([1, 1.01, 10, 10.2]), 2).tolist() == [0, 0, 1, 1]
    assert clusters(np.array([10.2, -1, 10, 1.01]), 2).tolist() == [1, 0, 1, 0]


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40, unique=True), st.integers(1, 5))
@settings(max_examples=examples(20, 60), deadline=None)
def test_clusters_are_those_of_all_pairs(sizes, groups):
    groups = min(groups, len(sizes))
    made = clusters(np.array(sizes), groups, floor=1e-12)
    assert len(set(made.tolist())) == groups
    logs = np.sort(np.log(sizes))
    if np.diff(logs).min() > 1e-9:  # ties may fall either way
        assert made.tolist() == naive_clusters(sizes, groups).tolist()


def test_zero_gradients_have_a_floor():
    made = clusters(np.array([0.0, 0.0, 1.0, 0.0, 1.1]), 2)
    assert made.tolist() == [0, 0, 1, 0, 1]
    assert set(clusters(np.zeros(6), 3).tolist()) == {0, 1, 2}


def test_thresholds_are_medians_of_rows_not_of_their_mean():
    rows = np.array([[1.0, 4.0], [3.0, 2.0], [2.0, 9.0]])
    assert thresholds(rows) == (2.0, 4.0)


def test_rows_that_leave_a_group_alone_do_not_close_it():
    """Three rows in four have no value of the group: the median over all rows would be 0."""
    rows = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [5.0, 1.0]])
    assert thresholds(rows) == (5.0, 1.0)
    assert thresholds(np.zeros((3, 1))) == (1e-8,)


@given(
    st.lists(st.tuples(st.floats(0.01, 10), st.integers(1, 10_000)), min_size=1, max_size=6),
    st.floats(0.3, 10),
)
@settings(max_examples=examples(20, 50), deadline=None)
def test_shares_cost_the_same_and_add_the_least_noise(pairs, multiplier):
    limits, sizes = zip(*pairs, strict=True)
    found = shares(limits, sizes)
    assert sum(s**2 for s in found) == pytest.approx(1, rel=1e-9)

    def total(parts):
        triples = zip(parts, limits, sizes, strict=True)
        return sum(d * (multiplier * c / s) ** 2 for s, c, d in triples)

    expected = multiplier**2 * sum(c * math.sqrt(d) for c, d in pairs) ** 2
    assert total(found) == pytest.approx(expected, rel=1e-9)
    assert total(found) <= total([1 / math.sqrt(len(pairs))] * len(pairs)) * (1 + 1e-9)


def test_thresholds_follow_the_quantile():
    assert adapted((1.0,), (0.5,), 0.5, 0.2) == (1.0,)
    assert adapted((1.0,), (1.0,), 0.5, 0.2)[0] == pytest.approx(math.exp(-0.1))
    assert adapted((1.0,), (-3.0,), 0.5, 0.2)[0] == pytest.approx(math.exp(0.1))
    sizes = np.random.default_rng(0).lognormal(size=2000)
    limit = (20.0,)
    for _ in range(200):
        limit = adapted(limit, (float((sizes <= limit[0]).mean()),), 0.5, 0.2)
    assert limit[0] == pytest.approx(np.median(sizes), rel=0.05)
