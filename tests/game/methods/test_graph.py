"""`graph`: its plan, its players, and which tables it serves."""

from fractions import Fraction

import pytest

from understudy.errors import InputError
from understudy.game import require_pair
from understudy.game.methods.graph import GraphMethod
from understudy.players.data.particles import Particles
from understudy.players.query.fixed import FixedMarginals
from understudy.players.query.graph import DegreesAndBlocks
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.testing import tiny_design

DESIGN = tiny_design((5, 5, 2, 2), rows=4)
RHO = Fraction(1, 2)


def test_a_graph_is_learned_from_its_degrees_alone():
    method = GraphMethod((3, 2))
    query, data = method.players(DESIGN, Plan(method.charges(DESIGN, RHO)))
    require_pair(query, data)
    with pytest.raises(InputError, match="does not give degrees of nodes"):
        require_pair(FixedMarginals(((2, 3),), 1.0), data)
    with pytest.raises(InputError, match=r"degrees of nodes.*paid for and not used"):
        require_pair(query, Particles())


@pytest.mark.parametrize("triangles", [False, True])
@pytest.mark.parametrize("sizes", [(3, 2), (5,)])
def test_the_plan_uses_the_whole_budget_and_no_more(sizes, triangles):
    method = GraphMethod(sizes, triangles)
    design = tiny_design((5, 5, len(sizes), len(sizes)), rows=4)
    method.check(design)
    plan = Plan(method.charges(design, RHO))
    assert 0 <= RHO - accounting.total_rho(plan) < Fraction(1, 10**12)
    assert (DegreesAndBlocks.PAIRS in plan) == (len(sizes) > 1)
    assert (DegreesAndBlocks.TRIANGLES in plan) == triangles
    query, _ = method.players(design, plan)
    assert (query.triangle_sigma is not None) == triangles


def test_other_tables_are_refused():
    with pytest.raises(InputError, match="serves lists of edges alone; use release_graph"):
        GraphMethod((3, 3)).check(DESIGN)
    assert GraphMethod((3, 2)).describe() == {"name": "graph", "sizes": [3, 2]}
