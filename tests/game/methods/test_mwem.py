"""`mwem`: its rounds, and what it cannot enumerate."""

import math
from fractions import Fraction

import pytest

from understudy.errors import InputError
from understudy.game.methods.mwem import MWEMMethod
from understudy.privacy.cost import Plan
from understudy.testing import tiny_design


def test_mwem_takes_its_rounds_from_public_facts():
    known = tiny_design((2, 3), rows=400)
    unknown = tiny_design((2, 3))
    for design, rows in ((known, 400), (unknown, 10_000)):
        for rho in (Fraction(1, 100), Fraction(1)):
            select, measure = MWEMMethod().charges(design, rho)
            expected = max(1, round(0.9 * math.sqrt(rows * math.sqrt(2 * rho))))
            assert select.times == measure.times == expected
            assert MWEMMethod().players(design, Plan((select, measure)))[0].rounds == expected


def test_mwem_refuses_what_it_cannot_enumerate():
    with pytest.raises(InputError, match="use method = auto"):
        MWEMMethod().check(tiny_design((100, 100, 100, 100)))
    with pytest.raises(InputError, match="rounds = 0"):
        MWEMMethod(rounds=0).check(tiny_design((2,)))
    MWEMMethod().check(tiny_design((100, 100)))
