"""Graphs from numbers: simple always, with the degrees and blocks that were asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.models.graphs import counted, fitted, matched

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


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=40, deadline=None)
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
