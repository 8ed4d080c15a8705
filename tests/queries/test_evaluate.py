"""Exact evaluation against brute force, on odd shapes."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.errors import WorkloadError
from understudy.queries import evaluate
from understudy.queries.evaluate import Counter, cells, count, counts


def brute(codes, shape, clique):
    table = np.zeros([shape[i] for i in clique], np.int64)
    for row in zip(*codes, strict=True):
        table[tuple(int(row[i]) for i in clique)] += 1
    return table


@st.composite
def encoded(draw):
    shape = tuple(draw(st.lists(st.sampled_from([1, 1, 2, 3, 7, 300]), min_size=1, max_size=5)))
    rows = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = [
        rng.integers(0, size, rows).astype(np.uint8 if size <= 256 else np.uint16) for size in shape
    ]
    every = [c for k in range(4) for c in itertools.combinations(range(len(shape)), k)]
    cliques = draw(st.lists(st.sampled_from(every), max_size=8))
    return codes, shape, cliques


@given(encoded())
@settings(max_examples=examples(20, 80), deadline=None)
def test_equals_brute_force(data):
    codes, shape, cliques = data
    tables = counts(codes, shape, cliques)
    assert len(tables) == len(cliques)
    for clique, table in zip(cliques, tables, strict=True):
        assert table.dtype == np.int64
        assert table.shape == tuple(shape[i] for i in clique)
        np.testing.assert_array_equal(table, brute(codes, shape, clique))
        np.testing.assert_array_equal(table, count(codes, shape, clique))


@given(encoded(), st.integers(1, 9))
@settings(max_examples=examples(8, 40), deadline=None)
def test_chunks_and_batches_do_not_matter(data, chunk):
    codes, shape, cliques = data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "CHUNK_ROWS", chunk)
        counter = Counter(shape, cliques)
        for start in range(0, codes[0].size, 11):
            counter.add([column[start : start + 11] for column in codes])
    for table, clique in zip(counter.tables(), cliques, strict=True):
        np.testing.assert_array_equal(table, brute(codes, shape, clique))


def test_codes_of_different_widths_do_not_overflow():
    codes = [np.full(3, 255, np.uint8), np.full(3, 255, np.uint8), np.full(3, 65535, np.uint16)]
    table = count(codes, (256, 256, 65536), (0, 2))
    assert table[255, 65535] == 3
    assert table.sum() == 3


def test_empty_clique_is_the_total_and_no_rows_give_zeros():
    codes = [np.zeros(5, np.uint8)]
    assert count(codes, (1,), ()).shape == ()
    assert count(codes, (1,), ()) == 5
    nothing = [np.zeros(0, np.uint8), np.zeros(0, np.uint8)]
    assert count(nothing, (2, 3), ()) == 0
    np.testing.assert_array_equal(count(nothing, (2, 3), (0, 1)), np.zeros((2, 3)))
    assert counts(nothing, (2, 3), ()) == ()


def test_temporary_memory_is_bounded():
    rows, size = 2_000_000, 7
    codes = [np.zeros(rows, np.uint8) for _ in range(3)]
    tracemalloc.start()
    counts(codes, (size,) * 3, [(0, 1, 2), (0, 1), (1, 2)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 8 * evaluate.CHUNK_ROWS + 2**20  # packed at once it would be 8 bytes a row


def test_large_tables_take_one_table_of_memory():
    shape, cell_bytes = (3000, 2000), 8
    codes = [np.array([0, 2999], np.uint16), np.array([1, 1999], np.uint16)]
    tracemalloc.start()
    table = count(codes, shape, (0, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table[0, 1] == table[2999, 1999] == 1
    assert table.sum() == 2
    assert peak < 1.2 * cells(shape, (0, 1)) * cell_bytes


@pytest.mark.parametrize("clique", [(1, 0), (0, 0), (0, 3), (-1, 0)])
def test_refuses_what_is_not_a_clique(clique):
    with pytest.raises(WorkloadError, match="strictly increasing"):
        Counter((2, 2, 2), [clique])


def test_refuses_a_marginal_with_too_many_cells():
    with pytest.raises(WorkloadError, match=r"100,010,000 cells, more than 100,000,000"):
        Counter((10001, 10000), [(0, 1)])
    assert cells((10000, 10000), (0, 1)) == evaluate.MAX_CELLS


def test_refuses_ragged_codes():
    with pytest.raises(ValueError, match="differ in length"):
        counts([np.zeros(2, np.uint8), np.zeros(3, np.uint8)], (1, 1), [(0,)])
    with pytest.raises(ValueError, match="1 columns of codes"):
        counts([np.zeros(2, np.uint8)], (1, 1), [(0,)])
