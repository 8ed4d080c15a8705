"""Single counts: one number for each cell that was charged, and nothing else can be asked for."""

import itertools

import numpy as np
import pytest

from tests.exact_privacy import neighbours
from tests.privacy.privacy_fakes import LoggedCharges, LoggedNoise
from understudy.errors import PrivacyError
from understudy.privacy.cost import Gaussian
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Cell, CellCounts, RowCount
from understudy.privacy.relation import Relation
from understudy.testing.stand_ins import TinyCounts

SHAPE = (3, 2)
ROWS = ((0, 0), (0, 1), (2, 1), (2, 1))
CLIQUES = ((0,), (0, 1))
ONE = Gaussian(20.0)


def asked(cells, event=ONE, relation=Relation.ADD_REMOVE, cliques=CLIQUES):
    """(what came back, what was charged and drawn)"""
    log = []
    public = len(ROWS) if relation is Relation.REPLACE else None
    counts, charges = TinyCounts(SHAPE, ROWS), LoggedCharges(log, slot=event, relation=relation)
    gate = Gate(counts, charges, relation, LoggedNoise(log), public)
    return lambda: gate.ask("slot", CellCounts(cliques, cells)), log


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_cells_are_counted_each_at_the_charged_scale(relation):
    cells = [Cell(0, (2,)), Cell(1, (0, 1), -1), Cell(1, (2, 1)), Cell(0, (1,)), Cell(0, (2,))]
    ask, log = asked(cells, Gaussian(20.0, changes=5), relation)
    assert ask().tolist() == [2, 1, 2, 0, 2]
    assert log == [("charge", "slot"), ("gaussian", 20.0)]


def test_numbers_of_numpy_name_a_cell_too():
    ask, _ = asked([Cell(np.int64(1), (np.int16(2), np.uint8(1)))])
    assert ask().tolist() == [2]
    ask, _ = asked([Cell(1, np.array([2, 1]))])
    assert ask().tolist() == [2]


def test_a_cell_that_is_named_again_is_one_more():
    ask, log = asked([Cell(0, (2,))] * 2, ONE)
    with pytest.raises(PrivacyError, match="does not cover 2 cells"):
        ask()
    assert log == []


MANY = [2] * 1000
BAD = {
    "a list": Cell(0, (MANY,)),
    "a list for a list": Cell(0, [MANY]),
    "an array": Cell(0, (np.array(MANY),)),
    "an array of one": Cell(0, (np.array([2]),)),
    "an array without axes": Cell(0, (np.array(2),)),
    "arrays for all columns": Cell(1, (np.array(MANY), np.array([1] * 1000))),
    "rows of an array": Cell(1, np.array([MANY, MANY])),
    "no index": Cell(0, ()),
    "no index of two": Cell(1, ()),
    "too few": Cell(1, (2,)),
    "too many": Cell(0, (2, 0)),
    "all of a column": Cell(0, (slice(None),)),
    "the rest": Cell(1, (..., 0)),
    "a new axis": Cell(0, (None,)),
    "true": Cell(0, (True,)),
    "true of numpy": Cell(0, (np.True_,)),
    "a mask": Cell(0, (np.array([True, False, True]),)),
    "a float": Cell(0, (1.0,)),
    "a text": Cell(0, "2"),
    "below the domain": Cell(0, (-1,)),
    "beyond the domain": Cell(0, (3,)),
    "beyond the second": Cell(1, (0, 2)),
    "a marginal that is not there": Cell(2, (0,)),
    "the last marginal": Cell(-1, (0, 0)),
    "several marginals": Cell([0, 1], (0,)),
    "a truth for a marginal": Cell(True, (0, 0)),
}


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("cell", BAD.values(), ids=BAD)
def test_what_is_no_single_cell_is_refused_before_anything_is_charged(cell, relation):
    """An index of lists would give thousands of numbers under a charge for one."""
    ask, log = asked([cell], Gaussian(20.0, changes=9), relation)
    with pytest.raises(PrivacyError):
        ask()
    assert log == []


def test_no_cells_are_refused_before_anything_is_charged():
    ask, log = asked([])
    with pytest.raises(PrivacyError, match="at least one cell"):
        ask()
    assert log == []


@pytest.mark.parametrize("cliques", [(), ((0, 0),), ((1, 0),), ((True,),), (([0, 1],),)])
def test_cells_of_impossible_cliques_are_refused(cliques):
    ask, log = asked([Cell(0, (0,))], cliques=cliques)
    with pytest.raises(PrivacyError):
        ask()
    assert log == []


@pytest.mark.parametrize("number", range(1, 5))
def test_every_cell_needs_a_change_of_its_own(number):
    cells = [Cell(0, (2,)), Cell(1, (0, 1)), Cell(1, (2, 1)), Cell(0, (1,))][:number]
    ask, _ = asked(cells, Gaussian(20.0, changes=number))
    assert ask().shape == (number,)
    if number > 1:
        ask, log = asked(cells, Gaussian(20.0, changes=number - 1))
        with pytest.raises(PrivacyError, match="does not cover"):
            ask()
        assert log == []


def test_the_number_of_rows_is_one_number():
    log = []
    gate = Gate(
        TinyCounts(SHAPE, ROWS), LoggedCharges(log, n=ONE), Relation.ADD_REMOVE, LoggedNoise(log)
    )
    found = gate.ask("n", RowCount())
    assert found == 4
    assert type(found) is int
    assert log == [("charge", "n"), ("gaussian", 20.0)]


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_cells_move_by_what_is_charged_on_every_neighbour(relation):
    cells = [Cell(0, (2,)), Cell(1, (0, 1)), Cell(1, (2, 1)), Cell(0, (2,)), Cell(0, (0,))]
    event = Gaussian(20.0, changes=len(cells))

    def exact(rows, question):
        noise = LoggedNoise()
        charges = LoggedCharges(slot=event, relation=relation)
        Gate(TinyCounts(SHAPE, rows), charges, relation, noise, None).ask("slot", question)
        return noise.values[0]

    universe = tuple(itertools.product(range(3), range(2)))
    pairs = list(neighbours(universe, 2, relation.value))
    for question, changed in ((CellCounts(CLIQUES, cells), (3, 5)), (RowCount(), (1, 0))):
        moves = [np.abs(exact(a, question) - exact(b, question)) for a, b in pairs]
        assert max(int(m.max()) for m in moves) <= event.step
        most = changed[relation is Relation.REPLACE]
        assert max(int((m > 0).sum()) for m in moves) == most <= event.changes
