"""Random features: norms by enumeration, sums by brute force, charges, and exact sensitivities."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.errors import PrivacyError
from understudy.privacy import accounting
from understudy.privacy.cost import Charge, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Moments
from understudy.privacy.questions.moments import GRID, KINDS, RandomFeatures, event_for, summed
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts

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
