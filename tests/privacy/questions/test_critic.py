"""The critic as a question: its answer after its charge, and requests that are refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.privacy.test_objective import RECORDS, TABLES, gate
from understudy.errors import PrivacyError
from understudy.privacy.noise import OpenDPNoise
from understudy.privacy.objective import MarginalFeatures, Sides, covers, event_for, perturbed
from understudy.privacy.questions import Critic
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise


def test_a_critic_comes_as_tables_after_its_charge():
    event = event_for(MarginalFeatures((2, 3), TABLES), Relation.ADD_REMOVE, Fraction(50))
    asked, charges = gate(event, noise=OpenDPNoise())
    pair, one = asked.ask("critic", Critic(TABLES, RECORDS, 4))
    assert pair.shape == (2, 3)
    assert one.shape == (3,)
    assert [purpose for purpose, _ in charges.charged] == ["critic"]
    # All rows have 1 in the second column, and no record has.
    assert one[1] > max(one[0], one[2])


@pytest.mark.parametrize(
    ("cliques", "relation"),
    [(((0, 1), (0,), (1,)), Relation.ADD_REMOVE), (TABLES, Relation.REPLACE)],
)
def test_another_critic_than_was_planned_is_refused_before_the_charge(cliques, relation):
    asked, charges = gate(
        event_for(MarginalFeatures((2, 3), TABLES), Relation.ADD_REMOVE, Fraction(1)), relation
    )
    with pytest.raises(PrivacyError, match="does not cover"):
        asked.ask("critic", Critic(cliques, RECORDS, 4))
    assert charges.charged == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": 0.0}, "weight = 0.0"),
        ({"weight": math.nan}, "weight = nan"),
        ({"weight": 1e16}, "up to 2\\^27"),
        ({"weight": np.array(4.0)}, "weight = 4.0"),
        ({"records": [np.array([0]), np.array([3])]}, "leaves its domain"),
        ({"cliques": ((1, 0),)}, "increasing"),
    ],
)
def test_bad_requests_cost_nothing(change, message):
    event = event_for(MarginalFeatures((2, 3), TABLES), Relation.ADD_REMOVE, Fraction(1))
    asked, charges = gate(event)
    request = {"cliques": TABLES, "records": RECORDS, "weight": 4.0, **change}
    with pytest.raises(PrivacyError, match=message):
        asked.ask("critic", Critic(**request))
    assert charges.charged == []


@pytest.mark.parametrize("rho", [Fraction(10**10), Fraction(1, 10**20)])
def test_events_under_which_rounding_would_tell_of_rows_are_refused(rho):
    event = event_for(MarginalFeatures((2, 3), TABLES), Relation.ADD_REMOVE, rho)
    asked, charges = gate(event)
    with pytest.raises(PrivacyError, match="does not cover"):
        asked.ask("critic", Critic(TABLES, RECORDS, 4))
    assert charges.charged == []


@pytest.mark.parametrize("rho", [1e-13, 1e-6, 1.0, 8e7])
@pytest.mark.parametrize("weight", [1e-300, 1.0, 2.0**27])
@pytest.mark.parametrize("rows", [0, 1, 1000, 2**27])
def test_a_minimum_is_found_whatever_the_rows(rho, weight, rows):
    looks = MarginalFeatures((2, 3), ((0,), (1,), (0, 1)))
    event = event_for(looks, Relation.REPLACE, Fraction(rho))
    assert covers(event, looks, Relation.REPLACE)
    records = [np.array([0, 1, 1]), np.array([0, 1, 2])], np.full(3, weight / 3)
    for cell in ((0, 0), (1, 0)):
        held = [np.array([code] if rows else [], np.int64) for code in cell]
        private = held, np.array([rows] if rows else [], np.int64)
        theta = perturbed(Sides(looks, private, records), event, SeededNoise(1))
        assert np.isfinite(theta).all()
