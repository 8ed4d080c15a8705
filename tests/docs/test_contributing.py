"""The player of CONTRIBUTING.md, as printed there, passes the conformance kit."""

from __future__ import annotations

import sys
import types
from fractions import Fraction

from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.testing import check_query_player

from .test_readme import ROOT, blocks


def test_the_player_of_the_page_conforms(monkeypatch):
    code = next(b for b in blocks(ROOT / "CONTRIBUTING.md", "python") if "class Turns" in b)
    assert len(code.splitlines()) < 40
    module = types.ModuleType("turns")
    monkeypatch.setitem(sys.modules, "turns", module)  # where dataclasses look their names up
    exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)  # the page's own code
    event = Gaussian.within(Fraction(1, 10))
    plan = Plan((Charge(module.Turns.PURPOSE, event, 3),))
    assert check_query_player(lambda: module.Turns(3, event.sigma), plan) >= 5
