"""Requests that ask for more than is charged: each is refused before the charge, or moves no more."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.exact_privacy import compare
from tests.privacy.neighbour_cases import (
    CoinNoise,
    Learning,
    Net,
    World,
    gate_of,
    given_to_noise,
    law,
)
from understudy.errors import PrivacyError
from understudy.privacy.buckets import DataSupport
from understudy.privacy.cost import (
    Gaussian,
    Laplace,
    SampledGaussian,
    SampledGroups,
    Selection,
    Zcdp,
)
from understudy.privacy.gate import Facts
from understudy.privacy.losses import Logistic
from understudy.privacy.mechanisms import Grouped, noised
from understudy.privacy.questions import (
    BernoulliRejection,
    BestModels,
    Cell,
    CellCounts,
    Marginals,
    NetworkGradient,
    Payoff,
    PickedCells,
    ThresholdedErrors,
    WorstCell,
    WorstError,
    WorstErrorOfRows,
)
from understudy.privacy.questions.best_models import Models
from understudy.privacy.questions.descent import LinearGradient, SteepestVertex, Weights
from understudy.privacy.questions.gradient import Groups
from understudy.privacy.questions.rejection import half_log_odds
from understudy.privacy.relation import Relation

ROWS = ((0, 0), (0, 1), (1, 1))
TABLE = World(ROWS, ((0, 0),) * 3, Relation.ADD_REMOVE, 3, (2, 2))
PAIR = ((0, 1),)
CODES = [np.array([0, 1]), np.array([0, 1])]
ROW = 1 << 16
EXAMPLES = Learning(((1.0, 1.0, 0.0),) * 3, ((0, 0),) * 3, Relation.ADD_REMOVE, None, (3,))


def refused(question, event, table=TABLE, match=None):
    """Refused with a message of ours, and nothing was charged."""
    noise = CoinNoise(())
    gate, charges = gate_of(table, event, noise)
    with pytest.raises(PrivacyError, match=match):
        gate.ask("slot", question)
    assert charges.charged == []
    assert noise.asked == []


# --- numbers that pass what integers or float64 hold --------------------------------------------


@pytest.mark.parametrize("scale", [2.0**62, 1e18, 1e300])
def test_picks_whose_noise_passes_64_bits_are_refused(scale):
    """b·ln(size of a bucket) wrapped around: how many cells are empty decided whether any is picked."""
    refused(PickedCells(PAIR, CODES, 3), Selection(scale, ROW + 3))


def test_picks_with_the_largest_noise_allowed_keep_their_law():
    question, event = PickedCells(PAIR, CODES, 3), Selection(2.0**40, ROW + 3)
    laws = [law(table, question, event) for table in (TABLE, TABLE.without(0))]
    assert compare(*laws).bounded_range <= 2 * event.sensitivity / event.scale + 1e-9


@pytest.mark.parametrize("l1", [2**61, 2**62, 2**70])
def test_no_worst_error_passes_64_bits(l1):
    """An answer beyond int64 raised, and so told exactly whether the error passed a threshold."""
    none = World((), (), Relation.ADD_REMOVE, 1000, (2, 2))
    many = World(ROWS * 9, ((0, 0),) * 27, Relation.ADD_REMOVE, 1000, (2, 2))
    fixed = [np.array([[1000, 0], [0, 0]])]
    for table in (none, many):
        ((_, exact, _),) = given_to_noise(table, WorstError(PAIR, fixed, 1000), Laplace(1e30, l1))
        assert 0 <= exact[0] <= 2**61


@pytest.mark.parametrize("rows", [0, -3, 1e20, 2**60, math.nan, math.inf])
def test_models_are_compared_at_a_number_of_rows_that_float64_resolves(rows):
    """Rounding of 1e-16 in a divergence is thousands of units where 1/N is smaller than that."""
    models = Models(None, 1.0, PAIR, ((np.full((2, 2), 0.25),),))
    refused(BestModels(models, rows), Selection(900.0, 257))


@pytest.mark.parametrize(("scale", "gamma"), [(1e-300, 0.1), (1.0, 1e-300), (1e-12, 0.1)])
def test_coins_too_steep_for_float64_are_refused(scale, gamma):
    event = Selection(2.0 * ROW * scale * -math.expm1(-gamma), 2 * ROW)
    refused(BernoulliRejection(PAIR, [Cell(0, (0, 0), 1)], CODES, 2**33, scale, gamma), event)


def test_coins_are_drawn_on_a_grid_that_float64_resolves():
    """Of noise a thousand times as wide, rounding would be more than the two units set aside."""
    rows, gamma = 2**33, 0.5
    for wider in (1.0, 1.9):
        drawn = wider * 2 * ROW * 50.0 * -math.expm1(-gamma)
        scores = ROW * np.array([*range(1000), *range(rows - 1000, rows)], np.int64)
        moved = np.abs(np.diff(half_log_odds(scores, rows, 50.0, gamma, drawn)))
        moved[999] = 0.0  # no neighbours: from few rows to many
        assert moved.max() <= ROW * wider * (1 + 1e-9) + 2
    event = Selection(1000 * 2 * ROW * 50.0 * -math.expm1(-gamma), 1001 * ROW)
    refused(BernoulliRejection(PAIR, [Cell(0, (0, 0), 1)], CODES, rows, 50.0, gamma), event)


@pytest.mark.parametrize("target", [math.nan, math.inf, -math.inf, 1e308])
def test_a_target_that_is_no_number_moves_no_more_than_another(target):
    weights = Weights(np.full((1, 3), 10, np.int64), 0.1)
    odd = EXAMPLES.exchanged(0, (1.0, 1.0, target))
    for question, event in (
        (SteepestVertex(Logistic(), weights), Selection(1e9, 2**30)),
        (LinearGradient(Logistic(), weights), SampledGaussian(1e9, 2**30, 3)),
    ):
        with np.errstate(all="ignore"):
            (_, a, _), (_, b, _) = (
                given_to_noise(table, question, event)[0] for table in (odd, odd.without(0))
            )
        assert np.abs(a - b).max() <= 2**30


# --- numbers that are not what they seem --------------------------------------------------------


class Liar(int):
    """A number that is equal to everything, above everything and below everything."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        return True

    def __ge__(self, other):
        return True

    def __le__(self, other):
        return True


def test_a_side_that_lies_is_refused():
    """A side of 1000 multiplied the count by 1000."""
    cells = [Cell(0, (0, 0), Liar(1000))]
    refused(Payoff(PAIR, cells, [0.0]), Laplace(1e6, ROW))
    event = Selection(2.0 * ROW * 3.0 * -math.expm1(-0.5), ROW + 3)
    refused(BernoulliRejection(PAIR, cells, CODES, 3, 3.0, 0.5), event)


def test_an_event_that_lies_cannot_be_written():
    with pytest.raises(PrivacyError, match="changes"):
        Gaussian(1.0, 1, Liar(1))


@pytest.mark.parametrize(
    "cells",
    [
        [Cell(0, ([0, 1], 0))],
        [Cell(0, (np.array([0]), 0))],
        [Cell(0, (slice(None), 0))],
        [Cell(0, (True, 0))],
        [Cell(0, (0.0, 0))],
        [Cell(0, (-1, 0))],
        [Cell(0, (0,))],
        [Cell(0, ())],
        [Cell(-1, (0, 0))],
        [Cell(True, (0, 0))],
        [Cell(0, (0, 0, 0))],
        [Cell(0, (None, 0))],
        [Cell(0, (..., 0))],
        [Cell(1, (0, 0))],
        [Cell(0, np.array(0))],
        [Cell(0, {0: 1, 1: 1})],
        [Cell(0, np.zeros((2, 9), int))],
        [None],
        [(0, (0, 0), 1)],
        [],
    ],
)
def test_a_cell_is_one_cell(cells):
    refused(CellCounts(PAIR, cells), Gaussian(1.0, 1, 99))
    if cells:
        sided = [replace(c, sign=1) if isinstance(c, Cell) else c for c in cells]
        refused(Payoff(PAIR, sided, [0.0]), Laplace(1e6, ROW * 99))


@pytest.mark.parametrize(
    "cliques",
    [
        [[0, 1]],
        [(0, 0)],
        [(1, 0)],
        [(0, 2)],
        [(-1, 0)],
        [(0.0,)],
        [(True,)],
        [(np.int64(0),)],
        [0],
        [None],
        [iter((0, 1))],
        [(i for i in (0, 1))],
        ["01"],
        [{0: 1}],
        [np.array([0, 1])],
        [],
    ],
)
def test_a_clique_is_a_tuple_of_columns(cliques):
    """Lists passed the check and failed past the charge; an iterator passed as a clique of nothing."""
    refused(Marginals(cliques), Gaussian(1.0, 1, 99))
    refused(WorstCell(cliques, [np.zeros((2, 2))] * len(cliques)), Selection(100.0, 99))


def test_requests_that_can_be_read_once_are_refused():
    refused(Marginals(clique for clique in PAIR), Gaussian(1.0, 1, 99), match="list or a tuple")


class Shifting(list):
    """Gives other things the second time."""

    def __init__(self, first, then):
        super().__init__(first)
        self._then = iter((list(first),))
        self._after = then

    def __iter__(self):
        return iter(next(self._then, self._after))


def test_requests_that_change_are_refused():
    event = Gaussian(1.0, 1, 1)
    refused(Marginals(Shifting(PAIR, PAIR * 9)), event, match="list or a tuple")
    refused(CellCounts(PAIR, Shifting([Cell(0, (0, 0))], [])), event, match="list or a tuple")


class Growing:
    """An array that is small when it is checked and huge when it is used."""

    dtype = np.dtype(np.float64)
    shape = (2, 2)

    def __init__(self):
        self._seen = 0

    def __array__(self, dtype=None, copy=None):
        self._seen += 1
        return np.full((2, 2), 0.0 if self._seen < 2 else 2.0**59)


def test_references_that_change_are_refused():
    """Sums of what passes 64 bits would be anything."""
    refused(ThresholdedErrors(PAIR, [Growing()], [0.0]), Gaussian(1.0), match="array")
    refused(WorstCell(PAIR, [Growing()]), Selection(100.0, 16), match="array")


def test_records_of_mixed_integers_are_counted():
    """Columns of uint64 and int64 were stacked to floats, and failed past the charge."""
    mixed = [np.array([0, 1], np.uint64), np.array([0, 1], np.int64)]
    for question, event in (
        (PickedCells(PAIR, mixed, 3), Selection(1e5, ROW + 3)),
        (WorstErrorOfRows(PAIR, mixed), Laplace(20.0)),
    ):
        noise = CoinNoise((0,) * 9)
        gate, _ = gate_of(TABLE, event, noise)
        gate.ask("slot", question)
        assert noise.asked


# --- parts that compute otherwise ---------------------------------------------------------------


def network(groups):
    net = Net(np.ones((3, 5)), (np.zeros(3), 0.0))
    return NetworkGradient(net, groups)


class OtherGroups(Groups):
    def flat(self, layers):
        return np.full(11, 7)


def test_groups_that_name_others_are_refused():
    """Coordinates of no group were never written to: whatever lay in memory was released."""
    table = World(((0, 0, 0),), ((0, 0),), Relation.ADD_REMOVE, None, (2, 3, 2))
    members = tuple(np.zeros(shape, np.int64) for shape in ((4, 2), (3, 1)))
    groups = OtherGroups((1.0, 1.0), members)
    refused(network(groups), SampledGroups((1.0,), 11), table)
    none = Grouped(np.zeros(2, np.int64), np.array([0, 5]), 1)
    for event in (SampledGroups((1.0, 1.0), 2), SampledGroups((1.0,), 2)):
        with pytest.raises(PrivacyError, match="nothing was drawn"):
            noised(none, event, CoinNoise(()))


class OtherModels(Models):
    @property
    def size(self):
        return 1


def test_models_of_another_kind_are_refused():
    shares = ((np.full((2, 2), 0.25),),)
    refused(BestModels(OtherModels(None, 1.0, PAIR, shares), 3), Selection(900.0, 257))


def test_a_models_tables_cannot_be_written_to():
    shares = np.full((2, 2), 0.25)
    models = Models(None, 1.0, PAIR, ((shares,),))
    shares[:] = 1e9
    assert models.tables[0][0].max() == 0.25
    with pytest.raises(ValueError, match="read-only"):
        models.tables[0][0][:] = 1e9


class Mixing(Logistic):
    """A loss whose residuals depend on all rows."""

    def residuals(self, scores, targets):
        return np.full_like(scores, np.sign(targets.sum() - 0.5))


def test_a_loss_that_mixes_rows_is_refused():
    weights = Weights(np.zeros((1, 3), np.int64), 1.0)
    refused(SteepestVertex(Mixing(), weights), Selection(1e9, 2**30), EXAMPLES, "loss")
    refused(LinearGradient(Mixing(), weights), SampledGaussian(1e9, 1, 3), EXAMPLES, "loss")


class Sly(Gaussian):
    """Says one scale to the ledger and draws with another."""

    def to_json(self):
        return {"kind": "gaussian", "sigma": 1e9, "step": 1, "changes": 1}


def test_an_event_of_a_subclass_is_refused():
    refused(CellCounts(PAIR, [Cell(0, (0, 0))]), Sly(0.01))
    gate, charges = gate_of(TABLE, Zcdp(1.0), CoinNoise(()))
    with pytest.raises(PrivacyError, match="nothing was charged"):
        gate.ask("slot", CellCounts(PAIR, [Cell(0, (0, 0))]), Sly(9.0))
    assert charges.charged == []


def test_what_is_known_of_a_table_cannot_be_exchanged():
    gate, _ = gate_of(replace(TABLE, relation=Relation.REPLACE), Gaussian(1.0), CoinNoise(()))
    with pytest.raises(AttributeError):
        gate.facts = replace(gate.facts, relation=Relation.ADD_REMOVE)


SIDE, WIDE = 1000, tuple(tuple(range(k, k + 6)) for k in range(10))
"""Ten marginals of 10^18 cells each: 10^19 together, above 2^63."""


def _wide(name):
    records = [np.zeros(3, np.int64)] * 15
    cell = Cell(0, (0,) * 6, 1)
    return {
        "picks": PickedCells(WIDE, records, 3),
        "coins": BernoulliRejection(WIDE, [cell], records, 3, 50.0, 0.5),
        "payoff": Payoff(WIDE, [cell], [1.0]),
        "certificate": WorstErrorOfRows(WIDE, records),
    }[name]


@pytest.mark.parametrize("name", ["picks", "coins", "payoff", "certificate"])
def test_cells_that_64_bits_cannot_number_are_refused_before_any_charge(name):
    """Numbers that wrap would let one row move the counts of other cells."""
    facts = Facts((SIDE,) * 15, Relation.ADD_REMOVE, None, None, True)
    with pytest.raises(PrivacyError, match=r"2\^63"):
        _wide(name).need(facts)
    nine = Facts((SIDE,) * 6 + (2,) * 9, Relation.ADD_REMOVE, None, None, True)
    _wide(name).need(nine)


def test_a_support_that_64_bits_cannot_number_is_refused():
    tables = [(np.zeros(1, np.int64), np.ones(1, np.int64))] * 3
    with pytest.raises(PrivacyError, match=r"2\^63"):
        DataSupport([2**62, 2**61, 2**61], tables)
    DataSupport([2**62, 2**61, 2**61 - 1], tables)
