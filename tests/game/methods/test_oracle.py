"""Which oracle a method asks: what is refused, and what it adds to a forecast."""

import math

import pytest

from understudy.errors import InputError
from understudy.game.methods.oracle import ORACLES, check_oracle, exact, seconds_of_search
from understudy.oracles import Annealed


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_search_needs_time(seconds):
    with pytest.raises(InputError, match=r"method = fem: seconds = .* above 0"):
        check_oracle("fem", "annealed", seconds)


def test_oracles_are_known_by_name():
    for oracle in ORACLES:
        check_oracle("fem", oracle, 1.0)
    with pytest.raises(InputError, match="oracle = 'odo' is not known; choose annealed or exact"):
        check_oracle("fem", "odo", 1.0)


def test_the_exact_oracle_begins_where_the_annealed_one_ends():
    first = Annealed(starts=2)
    assert exact(3.0, first).first is first
    assert seconds_of_search("annealed", 3.0) == 0
    assert 0 < seconds_of_search("exact", 3.0) < seconds_of_search("exact", 1e-3) + 1
