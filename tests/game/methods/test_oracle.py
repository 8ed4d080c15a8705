"""Which oracle a method asks: what is refused, and what it adds to a forecast."""

import math

import pytest

from understudy.errors import InputError
from understudy.game.methods.dualquery import DualQueryMethod
from understudy.game.methods.fem import FEMMethod
from understudy.game.methods.oracle import exact, seconds_of_search
from understudy.oracles import Annealed
from understudy.testing import tiny_design


@pytest.mark.parametrize("method", [FEMMethod, DualQueryMethod])
@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_search_needs_time(method, seconds):
    with pytest.raises(InputError, match=r"seconds = .* above 0"):
        method(seconds=seconds).check(tiny_design((2, 3)))


@pytest.mark.parametrize("method", [FEMMethod, DualQueryMethod])
def test_oracles_are_known_by_name(method):
    for oracle in ("annealed", "exact"):
        method(oracle=oracle).check(tiny_design((2, 3)))
    with pytest.raises(InputError, match="oracle = 'odo' is not known; choose annealed or exact"):
        method(oracle="odo").check(tiny_design((2, 3)))


def test_the_exact_oracle_begins_where_the_annealed_one_ends():
    first = Annealed(starts=2)
    assert exact(3.0, first).first is first
    assert seconds_of_search("annealed", 3.0) == 0
    assert 0 < seconds_of_search("exact", 3.0) < seconds_of_search("exact", 1e-3) + 1
