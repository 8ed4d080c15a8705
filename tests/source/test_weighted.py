"""Weights are repetition, in exact integers."""

import numpy as np
import pytest

from understudy.privacy.exact import ExactRows
from understudy.privacy.sensitive import reveal
from understudy.queries import evaluate
from understudy.schema import Category, Identifier, Schema
from understudy.source.base import EncodedCounts
from understudy.source.weighted import WeightedCounts
from understudy.units import Unit

SCHEMA = Schema(
    (Identifier("who"), Category("a", ("x", "y", "z")), Category("b", tuple("01234"))),
    unit=Unit("who", 720),
)
CLIQUES = ((), (0,), (1,), (0, 1))


def table(rows, most=9):
    rng = np.random.default_rng(rows)
    codes = [rng.integers(size, size=rows).astype(np.uint8) for size in SCHEMA.shape]
    return codes, rng.integers(0, most, rows)


@pytest.mark.parametrize("chunk", [3, 1 << 18])
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_a_row_of_weight_w_counts_as_w_rows(rows, chunk, monkeypatch):
    monkeypatch.setattr(evaluate, "CHUNK_ROWS", chunk)
    codes, weights = table(rows)
    weighted = WeightedCounts(codes, weights, SCHEMA)
    repeated = EncodedCounts([np.repeat(column, weights) for column in codes], SCHEMA)
    assert weighted.shape == repeated.shape
    assert weighted.unit == SCHEMA.unit
    assert reveal(weighted.rows()) == reveal(repeated.rows())
    for one, other in zip(
        reveal(weighted.marginals(CLIQUES)), reveal(repeated.marginals(CLIQUES)), strict=True
    ):
        assert one.dtype == np.int64
        np.testing.assert_array_equal(one, other)
    for (cells, counts), (there, wanted) in zip(
        reveal(weighted.sparse(CLIQUES[1:])), reveal(repeated.sparse(CLIQUES[1:])), strict=True
    ):
        np.testing.assert_array_equal(cells, there)
        np.testing.assert_array_equal(counts, wanted)
        assert counts.dtype == np.int64


def test_large_weights_stay_exact():
    codes, weights = table(2_000, 2**32)
    found = reveal(WeightedCounts(codes, weights, SCHEMA).marginals([(0, 1)]))[0]
    for i, j in np.ndindex(*SCHEMA.shape):
        wanted = sum(int(w) for w in weights[(codes[0] == i) & (codes[1] == j)])
        assert int(found[i, j]) == wanted


def test_rows_are_never_handed_over():
    codes, weights = table(5)
    assert not isinstance(WeightedCounts(codes, weights, SCHEMA), ExactRows)
