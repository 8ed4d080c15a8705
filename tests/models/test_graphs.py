"""Graphs from numbers: simple always, with the degrees and blocks that were asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thorough import examples

from understudy.models.graphs import (
    classes,
    closed,
    counted,
    fitted,
    matched,
    mixed,
    rewired,
    triangles,
)

RNG = np.random.default_rng


def numbers(u, v, sizes):
    block = np.repeat(np.arange(len(sizes)), sizes)
    pairs = np.zeros((len(sizes), len(sizes)), np.int64)
    np.add.at(pairs, (np.minimum(block[u], block[v]), np.maximum(block[u], block[v])), 1)
    return np.bincount(np.concatenate([u, v]), minlength=sum(sizes)), pairs


def simple(u, v):
    return bool(np.all(u < v)) and len({*zip(u.tolist(), v.tolist(), strict=True)}) == len(u)


def some_graph(sizes, density, key):
    rng, nodes = RNG(key), sum(sizes)
    low, high = np.triu_indices(nodes, 1)
    kept = rng.random(len(low)) < density
    return low[kept], high[kept]


@settings(max_examples=examples(15, 40), deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) > 1),
    st.floats(0, 1),
    st.integers(0, 10**6),
)
def test_a_graph_with_the_numbers_of_another_is_simple_and_as_large(sizes, density, key):
    u, v = some_graph(sizes, density, key)
    again = matched(*numbers(u, v, sizes), sizes, RNG(key))
    assert simple(*again)
    assert len(again[0]) == len(u)


def test_degrees_and_blocks_are_kept_where_there_is_room():
    sizes = (40, 30, 50)
    u, v = some_graph(sizes, 0.15, 3)
    degrees, pairs = numbers(u, v, sizes)
    one, two = (matched(degrees, pairs, sizes, RNG(key)) for key in (1, 2))
    for found in (one, two):
        assert np.array_equal(numbers(*found, sizes)[0], degrees)
        assert np.array_equal(numbers(*found, sizes)[1], pairs)
    assert {*zip(*one, strict=True)} != {*zip(*two, strict=True)}


@settings(max_examples=examples(15, 40), deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) > 1),
    st.integers(1, 60),
    st.floats(0.1, 50),
    st.integers(0, 10**6),
)
def test_whatever_the_noise_the_numbers_agree(sizes, edges, sigma, key):
    rng, nodes, count = RNG(key), sum(sizes), len(sizes)
    degrees = np.rint(rng.normal(3, sigma, nodes)).astype(np.int64)
    pairs = np.rint(rng.normal(edges / count**2, sigma, (count, count))).astype(np.int64)
    found, between = fitted(degrees, sigma, pairs, sigma, sizes, edges, rng)
    wanted = min(edges, nodes * (nodes - 1) // 2)
    assert found.min() >= 0
    assert between.sum() == wanted
    ends = [part.sum() for part in np.split(found, np.cumsum(sizes)[:-1])]
    assert ends == (between.sum(axis=0) + between.sum(axis=1)).tolist()
    drawn = matched(found, between, sizes, rng)
    assert simple(*drawn)
    assert len(drawn[0]) == wanted


def test_sorting_undoes_most_of_the_noise():
    rng, sizes = RNG(5), (300, 200)
    true = [np.sort(rng.poisson(rng.gamma(1.5, 8.0, size))) for size in sizes]
    true[0][0] += sum(part.sum() for part in true) % 2
    true = [np.sort(part) for part in true]
    flat, edges = np.concatenate(true), int(sum(part.sum() for part in true)) // 2
    noisy = flat + np.rint(rng.normal(0, 8, flat.size)).astype(np.int64)
    ends = [int(part.sum()) for part in true]
    cross = min(ends) // 2
    table = np.array([[(ends[0] - cross) // 2, cross], [0, (ends[1] - cross) // 2]])
    found, _ = fitted(noisy, 8.0, table, 1.0, sizes, edges, rng)
    again = np.concatenate([np.sort(part) for part in np.split(found, [sizes[0]])])
    assert np.abs(again - flat).mean() < np.abs(noisy - flat).mean() / 3


def test_the_number_of_edges_is_read_from_everything_and_taken_where_it_is_public():
    degrees, pairs = np.array([10, 10, 20]), np.array([[5, 10], [0, 6]])
    assert counted(100, 0.0, degrees, 1.0, pairs, 1.0) == 100
    # Variances 3, 3/4 and 3: the weights are 1, 4 and 1.
    assert counted(26, np.sqrt(3), degrees, 1.0, pairs, 1.0) == round((26 + 4 * 20 + 21) / 6)
    assert counted(25, np.sqrt(0.75), degrees, 1.0, None, 0.0) == round((25 + 20) / 2)
    assert counted(-9, 1.0, -degrees, 1.0, None, 0.0) == 1


@pytest.mark.parametrize("sizes", [(6,), (3, 3)])
def test_a_full_graph_is_drawn_in_full(sizes):
    u, v = np.triu_indices(6, 1)
    again = matched(*numbers(u, v, sizes), sizes, RNG(0))
    assert {*zip(*again, strict=True)} == {*zip(u, v, strict=True)}


def test_named_degrees_say_who_has_which():
    sizes, rng = (3, 4), RNG(0)
    degrees = np.array([1, 2, 5, 0, 1, 1, 4])
    named = np.array([9.0, 1.0, 4.0, 0.5, 7.0, 0.6, 0.7])
    pairs = np.array([[2, 4], [0, 1]])
    found, _ = fitted(degrees, 0.01, pairs, 0.01, sizes, 7, rng, named)
    for part, own in zip(np.split(found, [3]), np.split(named, [3]), strict=True):
        assert (np.diff(part[np.argsort(own)]) >= 0).all()
    assert found[0] == found[:3].max() > found[1]
    assert found[4] == found[3:].max() > found[3]


@settings(max_examples=examples(15, 60), deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=40))
def test_classes_are_cut_by_degree_alone(degrees):
    labels = classes(np.array(degrees))
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))
    assert labels.max() < 4
    for a, b in zip(degrees, labels.tolist(), strict=True):
        assert all((a <= c) or (b >= d) for c, d in zip(degrees, labels.tolist(), strict=True))
    if len(set(degrees)) == len(degrees) and len(degrees) > 12 and max(degrees) < sum(degrees) / 4:
        ends = np.bincount(labels, degrees)
        assert ends.max() < sum(degrees) / 2


@settings(max_examples=examples(15, 30), deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) > 3),
    st.floats(0.05, 0.9),
    st.integers(0, 10**6),
)
def test_swaps_keep_degrees_and_blocks_and_a_simple_graph(sizes, density, key):
    u, v = some_graph(sizes, density, key)
    if not len(u):
        return
    labels = RNG(key).permutation(np.arange(sum(sizes)) % 2)
    found = rewired(u, v, sizes, labels, np.zeros((2, 2)), 0.1, RNG(key))
    assert simple(*found)
    for one, other in zip(numbers(u, v, sizes), numbers(*found, sizes), strict=True):
        assert np.array_equal(one, other)


def test_swaps_lead_to_the_wanted_mixture_as_far_as_the_noise_lets_it_be_believed():
    sizes = (60, 60)
    u, v = some_graph(sizes, 0.15, 4)
    degrees, _ = numbers(u, v, sizes)
    labels = classes(degrees)
    here = mixed(u, v, labels)
    wanted = here.astype(float)
    wanted[0, 3] += 30  # the fewest with the most, at the cost of their own kind
    wanted[0, 0] -= 15
    wanted[3, 3] -= 15

    def left(sigma):
        found = rewired(u, v, sizes, labels, wanted, sigma, RNG(7))
        return np.abs(mixed(*found, labels) - wanted).max()

    assert np.abs(here - wanted).max() == 30
    assert left(1.0) <= 6
    assert left(1e3) > 6


@settings(max_examples=examples(15, 30), deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) > 3),
    st.floats(0.05, 0.9),
    st.integers(0, 500),
    st.integers(0, 10**6),
)
def test_closing_triangles_keeps_everything_else(sizes, density, wanted, key):
    u, v = some_graph(sizes, density, key)
    if not len(u):
        return
    degrees, pairs = numbers(u, v, sizes)
    labels = classes(degrees)
    found = closed(u, v, sizes, labels, wanted, 0.5, RNG(key))
    assert simple(*found)
    for one, other in zip((degrees, pairs), numbers(*found, sizes), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(mixed(u, v, labels), mixed(*found, labels))
    links = np.zeros((sum(sizes),) * 2, np.int64)
    links[found] = links[found[::-1]] = 1
    after = triangles(*found, sum(sizes))
    assert after == np.trace(links @ links @ links) // 6
    assert abs(after - wanted) <= abs(triangles(u, v, sum(sizes)) - wanted)


def test_triangles_are_reached_and_noise_is_not_chased():
    sizes = (100, 100)
    u, v = some_graph(sizes, 0.08, 1)
    labels, before = classes(numbers(u, v, sizes)[0]), triangles(u, v, 200)
    found = closed(u, v, sizes, labels, 1.5 * before, 5.0, RNG(0))
    assert abs(triangles(*found, 200) - 1.5 * before) <= 5
    same = closed(u, v, sizes, labels, 1.5 * before, before, RNG(0))
    assert all(np.array_equal(a, b) for a, b in zip(same, (u, v), strict=True))
