"""Opened tables: how much is held at once changes no answer."""

import itertools
import math

import numpy as np
import pytest

from tests.privacy.privacy_fakes import FakeTables, LoggedCharges, LoggedNoise
from understudy.privacy import exact as exact_module
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.cost import Gaussian, Laplace, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import (
    Marginals,
    RowCount,
    ThresholdedErrors,
    TotalVariations,
    WorstError,
    WorstMarginals,
)
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing.stand_ins import TinyCounts


def codes(*values):
    return np.array(values, dtype=np.int64)


SHAPE = (2, 3)


ENDS = Coarsened(
    (0, 1), (codes(0, 1), codes(0, 1, 0))
)  # 2 × 2: the outer values of column 1 joined


FLIPPED = Coarsened((1,), (codes(1, 0, 0),))


ONE_ROW = Coarsened((0, 1), (codes(0, 0), codes(2, 0, 1)))  # 1 × 3


class CountedTables(FakeTables):
    """Writes down how many cells each pass over the rows was asked for."""

    def __init__(self, table):
        super().__init__(table)
        self.passes = []

    def marginals(self, cliques):
        self.passes.append(sum(math.prod(self.shape[i] for i in clique) for clique in cliques))
        return super().marginals(cliques)


@pytest.mark.parametrize("cache", [0, 20, 10**6])
def test_chunks_change_no_answer_and_bound_what_is_held(monkeypatch, cache):
    rng = np.random.default_rng(5)
    shape, chunk = (3, 4, 5, 2), 12
    table = rng.integers(0, 9, shape)
    pairs = list(itertools.combinations(range(4), 2))
    merged = Coarsened((1, 2), (codes(0, 0, 1, 1), codes(0, 1, 1, 1, 0)))
    tables = [(0, 1), (1, 2), merged, (1, 2), *pairs, (3,), (0,), ()]
    references = [np.full(each.shape, 2.3) if each is merged else np.full([shape[i] for i in each], 2.3)
                  for each in tables]  # fmt: skip
    plain = [each for each in tables if each is not merged]
    synthetic = [rng.multinomial(50, np.ones(size) / size).reshape([shape[i] for i in each])
                 for each in plain for size in [math.prod(shape[i] for i in each)]]  # fmt: skip
    event = Gaussian(3.0, step=4, changes=100)
    answers = []
    for cells, room in ((chunk, cache), (10**9, 10**9)):
        monkeypatch.setattr(exact_module, "_CHUNK_CELLS", cells)
        monkeypatch.setattr(exact_module, "_CACHE_CELLS", room)
        counts, noise = CountedTables(table), LoggedNoise()
        charges = LoggedCharges(look=event, worst=Laplace(2.0, 4), pick=Selection(9, 16, 3))
        asked = Gate(counts, charges, Relation.ADD_REMOVE, noise)
        measured = asked.ask("look", Marginals(tables))
        off = asked.ask("look", ThresholdedErrors(tables, references, [0.7] * len(tables)))
        worst = asked.ask("worst", WorstError(plain, synthetic, 50))
        variations = asked.ask("look", TotalVariations(plain, synthetic, 50))
        wanted = [references[tables.index(each)] for each in plain]
        picked = asked.ask("pick", WorstMarginals(plain, wanted, [0.0] * len(plain)))
        assert len(noise.log) == 5, "one draw for each request, however it was counted"
        if room < 10**6:
            assert max(counts.passes) <= max(chunk, 20), "the largest table has 20 cells"
        answers.append((*measured, off, worst, variations, picked))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("room", "passes"), [(10**6, [12]), (11, [1, 6, 2])])
def test_what_will_be_asked_about_is_counted_in_one_pass_if_it_can_be_kept(
    monkeypatch, room, passes
):
    monkeypatch.setattr(exact_module, "_CACHE_CELLS", room)
    table = np.random.default_rng(3).integers(0, 9, (2, 3))
    counts = CountedTables(table)
    charges = LoggedCharges(rows=Gaussian(1.0), look=Gaussian(1.0, changes=2))
    ahead = [(0,), (1,), (0, 1), (), (0,)]
    gate = Gate(counts, charges, Relation.ADD_REMOVE, LoggedNoise(), ahead=ahead)
    assert counts.passes == []
    assert gate.ask("rows", RowCount()) == table.sum()
    whole, again, first = (gate.ask("look", Marginals([c]))[0] for c in ((0, 1), (0, 1), (0,)))
    np.testing.assert_array_equal(whole, table)
    np.testing.assert_array_equal(again, table)
    np.testing.assert_array_equal(first, table.sum(axis=1))
    assert counts.passes == passes


def test_a_table_too_large_to_be_held_is_merged_from_its_occupied_cells(monkeypatch):
    """The same numbers, and the whole table is never asked for."""
    rng = np.random.default_rng(0)
    rows = [(int(a), int(b)) for a, b in rng.integers(0, 3, (40, 2)) % (2, 3)]
    cells, counts = np.unique([a * 3 + b for a, b in rows], return_counts=True)

    class Sparse(TinyCounts):
        def sparse(self, cliques):
            assert list(cliques) == [(0, 1)]
            return Sensitive(((cells.astype(np.int64), counts.astype(np.int64)),))

        def marginals(self, cliques):
            assert (0, 1) not in cliques
            return super().marginals(cliques)

    def drawn(held):
        noise = LoggedNoise()
        charges = LoggedCharges(a=Gaussian(2.0, changes=3))
        Gate(held(SHAPE, rows), charges, Relation.ADD_REMOVE, noise).ask(
            "a", Marginals([ENDS, FLIPPED, ONE_ROW])
        )
        return noise.values[0].tolist()

    usual = drawn(TinyCounts)
    monkeypatch.setattr(exact_module, "_HELD_CELLS", 5)
    assert drawn(Sparse) == usual
