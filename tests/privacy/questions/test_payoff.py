"""The payoff of past picks: its sum, its sensitivity on all neighbours, and what is refused."""

import itertools
import math

import pytest

from tests.privacy.privacy_fakes import FakeTables
from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_ROWS, UNIT
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Cell, Payoff
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts

SHAPE = (3, 2, 4)


CLIQUES = ((0, 1), (1, 2), (0, 1, 2))


ROWS = [(0, 1, 3), (0, 1, 3), (2, 0, 1), (1, 1, 0)]


CELLS = [Cell(0, (0, 1), 1), Cell(2, (2, 0, 1), -1), Cell(1, (1, 3), 1)]


EXPECTED = [0.5, 1.25, 0.0]


def payer(rows, event=None, noise=None):
    charges = StrictCharges(
        Plan((Charge("payoff", event or Laplace(9.0 * UNIT, 3 * UNIT)),)), Relation.REPLACE
    )
    return Gate(
        TinyCounts(SHAPE, rows), charges, Relation.REPLACE, noise or StillNoise(), len(rows)
    ), charges


def test_a_payoff_is_the_sum_over_picked_sides():
    gate, charges = payer(ROWS)
    paid = gate.ask("payoff", Payoff(CLIQUES, CELLS, EXPECTED))
    assert paid == (2 - 0.5) - (1 - 1.25) + (2 - 0.0)
    assert [purpose for purpose, _ in charges.charged] == ["payoff"]


def test_payoffs_of_neighbours_differ_by_no_more_than_what_is_charged():
    shape, cliques = (2, 2), ((0, 1), (0,))
    universe = list(itertools.product(range(2), range(2)))
    cells = [Cell(0, (0, 1), 1), Cell(1, (0,), 1), Cell(0, (1, 1), -1)]

    def paid(rows):
        event = Laplace(1.0, 3 * UNIT)
        charges = StrictCharges(Plan((Charge("payoff", event),)), Relation.REPLACE)
        gate = Gate(TinyCounts(shape, rows), charges, Relation.REPLACE, StillNoise(), 2)
        return gate.ask("payoff", Payoff(cliques, cells, [0.3, 0.7, 0.1]))

    worst = 0.0
    for kept, a, b in itertools.product(universe, repeat=3):
        worst = max(worst, abs(paid([kept, a]) - paid([kept, b])))
    for kept, a in itertools.product(universe, repeat=2):
        worst = max(worst, abs(paid([kept, a]) - paid([kept])))
    assert worst == 3.0  # (0, 1) leaves two cells that counted for, (1, 1) joins one against


def test_many_picks_of_very_many_rows_are_summed_and_cut_off():
    """More than 4096 rounds are usual for large tables; their sum may pass 64 bits."""
    for count, rounds in ((1, 9000), (MOST_ROWS, 2**12), (2**40, 2**14)):
        cells = [Cell(0, (0,), 1)] * rounds
        plan = Plan((Charge("payoff", Laplace(1.0, rounds * UNIT)),))
        for expected in (0.0, -float(MOST_ROWS)):
            charges = StrictCharges(plan)
            gate = Gate(FakeTables([count, 0]), charges, Relation.ADD_REMOVE, StillNoise())
            paid = gate.ask("payoff", Payoff([(0,)], cells, [expected] * rounds))
            exact = rounds * UNIT * (min(count, MOST_ROWS) - int(expected))
            assert paid == min(exact, 2**62) / UNIT


@pytest.mark.parametrize(
    ("cells", "expected", "event", "message"),
    [
        (CELLS, EXPECTED, Laplace(1.0, 3 * UNIT - 1), "does not cover"),
        (CELLS, EXPECTED, Gaussian(1.0), "does not cover"),
        (CELLS, EXPECTED[:2], None, "as many expected"),
        ([], [], None, "one at least"),
        (CELLS, [0.5, math.nan, 0.0], None, "not finite"),
        ([Cell(0, (0, 1), 0)], [0.5], None, "with its side"),
        ([Cell(0, (0, 2), 1)], [0.5], None, "leaves the domain"),
    ],
)
def test_bad_payoffs_cost_nothing(cells, expected, event, message):
    gate, charges = payer(ROWS, event)
    with pytest.raises(PrivacyError, match=message):
        gate.ask("payoff", Payoff(CLIQUES, cells, expected))
    assert charges.charged == []
