"""Random features: norms by enumeration, sums by brute force, charges, and exact sensitivities."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from privacy_fakes import FakeTables

from understudy.errors import PrivacyError
from understudy.privacy import accounting
from understudy.privacy.buckets import MOST_ROWS, UNIT
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.noise import SeededNoise
from understudy.privacy.questions import Cell, Moments, Payoff
from understudy.privacy.questions.moments import GRID, KINDS, RandomFeatures, event_for, summed
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts

SHAPE = (3, 2, 4)
CLIQUES = ((0, 1), (1, 2), (0, 1, 2))
ROWS = [(0, 1, 3), (0, 1, 3), (2, 0, 1), (1, 1, 0)]
EVERY = list(itertools.product(*map(range, SHAPE)))


def maps(kind="fourier", **more):
    return RandomFeatures(SHAPE, CLIQUES, kind, **{"units": 5, "key": 3, **more})


def of_row(made, row):
    """rint(GRID·ψ) of one row."""
    tables = []
    for clique in made.cliques:
        place = np.ravel_multi_index([row[i] for i in clique], [SHAPE[i] for i in clique])
        tables.append((np.array([place]), np.array([1])))
    return summed(made, tables)


def asked(made, relation=Relation.ADD_REMOVE, rho=Fraction(1), noise=None):
    charges = StrictCharges(Plan((Charge("features", event_for(made, relation, rho)),)), relation)
    public = len(ROWS) if relation is Relation.REPLACE else None
    return Gate(TinyCounts(SHAPE, ROWS), charges, relation, noise or StillNoise(), public), charges


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_longer_than_what_is_charged(kind):
    for units in (1, 7, 64):
        made = maps(kind, units=units)
        event = event_for(made, Relation.ADD_REMOVE, Fraction(1))
        lengths = [math.sqrt(float((of_row(made, row) ** 2).sum())) for row in EVERY]
        assert max(lengths) <= event.l2
        if kind == "fourier":  # cos² + sin² = 1: nothing is given away
            assert min(lengths) > 0.98 * event.l2
        apart = max(
            float(((of_row(made, a) - of_row(made, b)) ** 2).sum())
            for a, b in itertools.combinations(EVERY, 2)
        )
        assert math.sqrt(apart) <= 2 * event.l2


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", ["1e-6", "0.3", "40"])
def test_noise_is_exactly_calibrated(rho, relation):
    event = event_for(maps(), relation, Fraction(rho))
    cost = accounting.rho(event)
    assert Fraction(rho) * (1 - Fraction(1, 10**12)) < cost <= Fraction(rho)
    sides = 2 if relation is Relation.REPLACE else 1
    assert event.sigma / GRID == pytest.approx(
        sides * math.sqrt(3) / math.sqrt(2 * float(Fraction(rho))), rel=1e-3
    )


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_rows(kind):
    made = maps(kind)
    gate, charges = asked(made)
    expected = sum(of_row(made, row) for row in ROWS) / GRID
    np.testing.assert_array_equal(gate.ask("features", Moments(made)), expected)
    assert [purpose for purpose, _ in charges.charged] == ["features"]


def test_a_rectified_unit_counts_the_rows_of_its_conjunction():
    made = maps("relu", units=40)
    for at, clique in enumerate(CLIQUES):
        weights = np.split(made.weights[at], np.cumsum([SHAPE[i] for i in clique])[:-1])
        for row in EVERY:
            inside = np.prod([w[row[i]] for w, i in zip(weights, clique, strict=True)], axis=0)
            found = made.features(at, [np.array([row[i]]) for i in clique])[0]
            np.testing.assert_allclose(found * made.over, inside, atol=1e-12)


def test_waves_have_the_gaussian_kernel():
    made = RandomFeatures(SHAPE, ((0, 1, 2),), "fourier", 6_000)
    codes = [np.array(column) for column in zip(*EVERY, strict=True)]
    psi = made.features(0, codes)
    differ = sum((code[:, None] != code[None]).astype(float) for code in codes)
    # Two one-hot codes that differ in k columns are √(2k) apart.
    np.testing.assert_allclose(psi @ psi.T, np.exp(-differ), atol=0.08)


def test_the_key_is_public_and_decides():
    one, same, other = maps(key=1), maps(key=1), maps(key=2)
    assert one == same
    for a, b in zip(one.weights, same.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one.weights[0], other.weights[0])


def test_noise_is_drawn_at_the_scale_that_was_charged():
    made = maps(units=2_000)
    rho = Fraction(1, 50)
    gate, _ = asked(made, rho=rho, noise=SeededNoise(0))
    exact = asked(made)[0].ask("features", Moments(made))
    noise = gate.ask("features", Moments(made)) - exact
    sigma = event_for(made, Relation.ADD_REMOVE, rho).sigma / GRID
    # 12 000 draws: the standard deviation is known to 0.65 %.
    assert noise.std() == pytest.approx(sigma, rel=0.04)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"units": 6}, "does not cover"),
        ({"cliques": (*CLIQUES, (0,))}, "does not cover"),
        ({"shape": (3, 2, 5)}, "speak of"),
        ({"cliques": ((1, 0),)}, "increasing"),
    ],
)
def test_other_features_than_were_planned_are_refused_before_the_charge(change, message):
    gate, charges = asked(maps())
    given = {"shape": SHAPE, "cliques": CLIQUES, "kind": "fourier", "units": 5, **change}
    with pytest.raises(PrivacyError, match=message):
        gate.ask("features", Moments(RandomFeatures(**given)))
    assert charges.charged == []


def test_another_relation_than_was_planned_is_refused():
    charges = StrictCharges(
        Plan((Charge("features", event_for(maps(), Relation.ADD_REMOVE, Fraction(1))),)),
        Relation.REPLACE,
    )
    gate = Gate(TinyCounts(SHAPE, ROWS), charges, Relation.REPLACE, StillNoise(), 4)
    with pytest.raises(PrivacyError, match="does not cover"):
        gate.ask("features", Moments(maps()))
    assert charges.charged == []


@pytest.mark.parametrize(
    ("change", "message"),
    [({"kind": "cosine"}, "not one of fourier, relu"), ({"units": 0}, "one unit")],
)
def test_features_that_cannot_be_are_refused(change, message):
    with pytest.raises(PrivacyError, match=message):
        RandomFeatures(**{"shape": SHAPE, "cliques": CLIQUES, **change})


# --- payoffs ------------------------------------------------------------------------------------

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
