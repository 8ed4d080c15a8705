"""The best of some public models: scores move by what is charged, and the best is found."""

from __future__ import annotations

import math
import warnings
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from understudy.errors import PrivacyError
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Plan, SampledGroups, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import BestModels, NetworkGradient
from understudy.privacy.questions.best_models import Models, cost_scores, jensen_shannon_step
from understudy.privacy.questions.gradient import Groups
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts


class Given:
    """A network whose factors are looked up by the row's number, in its first column."""

    def __init__(self, inputs, deltas, slots=4):
        self.inputs, self.deltas, self.slots = inputs, deltas, slots
        self.layers = tuple((a.shape[1], d.shape[1]) for a, d in zip(inputs, deltas, strict=True))
        self.seen = []

    def factors(self, rows):
        assert len(rows) == self.slots
        self.seen.append(rows[:, 0].copy())
        numbers = rows[:, 0]
        pairs = zip(self.inputs, self.deltas, strict=True)
        return [(a[numbers], d[numbers]) for a, d in pairs]


def network(rng, rows, layers, scale=1.0, slots=4):
    inputs = [rng.normal(size=(rows, i)) for i, _ in layers]
    deltas = [scale * rng.normal(size=(rows, o)) for _, o in layers]
    return Given(inputs, deltas, slots)


def gate_of(rows, charges, noise=None, relation=Relation.ADD_REMOVE, shape=(9, 3)):
    return Gate(TinyCounts(shape, rows), charges, relation, noise or StillNoise(), 8)


def tiny(slots=4):
    rng = np.random.default_rng(5)
    return network(rng, 9, [(3, 2), (2, 1)], slots=slots)


# Numbered from 1: what is padded to a whole chunk is row 0, which nobody is.
ROWS = [(i, i % 3) for i in range(1, 9)]


def choosing(event, **other):
    return StrictCharges(Plan((Charge("choice", event), *other.values())))


def test_held_out_rows_never_train_and_trained_rows_never_judge():
    event = Selection(1.0, Models.SENSITIVITY)
    plan = Plan((Charge("step", SampledGroups((2.0,), 11), 50), Charge("choice", event)))
    asked = gate_of(ROWS, StrictCharges(plan), SeededNoise(3))
    net, judged = tiny(slots=8), []
    for _ in range(50):
        asked.ask("step", NetworkGradient(net, Groups((0.5,)), held_out=0.5))
    trained = {int(v) for seen in net.seen for v in seen}
    models = Models((lambda rows: judged.extend(rows[:, 0].tolist()) or 0.0,))
    asked.ask("choice", BestModels(models, 8, held_out=0.5))
    assert judged
    assert not trained & set(judged)
    assert (trained - {0}) | set(judged) == set(range(1, 9))


def test_planted_models_are_found_and_the_charge_is_there():
    event = planning.selection(8, sensitivity=Models.SENSITIVITY, k=2)
    charges = choosing(event)
    models = Models(tuple(lambda rows, s=s: float(s) for s in (0, 90, 10, 100, 5)))
    asked = gate_of(ROWS, charges, SeededNoise(0))
    assert asked.ask("choice", BestModels(models, 8)) == (3, 1)
    assert charges.charged == [("choice", event)]


def test_planted_tables_are_found_by_divergence():
    rows = [(i % 4, i % 3) for i in range(8)] * 500
    event = planning.selection(8, sensitivity=Models.SENSITIVITY, k=1)
    right = np.bincount([r[1] for r in rows], minlength=3) / len(rows)
    wrong = np.array([0.9, 0.05, 0.05])
    models = Models(cliques=((1,),), tables=((wrong,), (right,), (wrong[::-1],)))
    asked = Gate(
        TinyCounts((4, 3), rows), choosing(event), Relation.ADD_REMOVE, SeededNoise(0), len(rows)
    )
    assert asked.ask("choice", BestModels(models, len(rows))) == (1,)


@pytest.mark.parametrize("relation", list(Relation))
def test_scores_of_divergence_move_by_no_more_than_is_charged(relation):
    """All tables of up to four rows over three values, all neighbours, several models."""
    from understudy.privacy.questions.best_models import divergence_scores

    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.full(3, 0.3)) for _ in range(40)] + [np.array([1.0, 0, 0])]
    models = Models(cliques=((0,),), tables=tuple((t,) for t in tables))
    worst = 0

    def scores(rows):
        exact = np.bincount(np.array(rows, int), minlength=3).astype(np.int64)
        return divergence_scores(models, [exact], 4, relation)

    for rows in combinations_with_replacement(range(3), 4):
        for value in range(3):
            other = (*rows[1:], value) if relation is Relation.REPLACE else rows[1:]
            worst = max(worst, int(np.abs(scores(rows) - scores(other)).max()))
    assert 100 < worst <= Models.SENSITIVITY


def some_costs(rng, shape, choices=2):
    return tuple(rng.uniform(0, 3, (n, choices)) * rng.integers(2, size=(n, 1)) for n in shape)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("bound", [0.5, 2.0, 6.0])
def test_costs_move_by_no_more_than_is_charged(relation, bound):
    """All tables of three rows of two columns, all neighbours: also where costs pass the bound."""
    rng = np.random.default_rng(0)
    shape = (3, 2)
    models = Models(sensitivity=bound, costs=tuple(some_costs(rng, shape) for _ in range(5)))
    values = list(product(*map(range, shape)))
    worst = 0
    for rows in combinations_with_replacement(values, 3):
        before = cost_scores(models, np.array(rows))
        for value in values:
            other = (*rows[1:], value) if relation is Relation.REPLACE else rows[1:]
            worst = max(worst, int(np.abs(before - cost_scores(models, np.array(other))).max()))
    assert 100 < worst <= 256 < Models.SENSITIVITY


def test_costs_are_those_of_the_nearest_choice_and_the_cheapest_model_is_found():
    rows = [(i % 4, i % 3) for i in range(8)] * 50
    near = tuple(np.where(np.arange(n)[:, None] == [0, 1], 0.0, 0.5) for n in (4, 3))
    far = tuple(np.full((n, 2), 1.0) for n in (4, 3))
    models = Models(sensitivity=2.0, costs=(far, near))
    one = np.array([[0, 0], [0, 1], [3, 2]])
    assert cost_scores(models, one).tolist() == [-3 * 256, -(0 + 64 + 128)]
    event = planning.selection(8, sensitivity=Models.SENSITIVITY, k=1)
    asked = gate_of(rows, choosing(event), SeededNoise(0), shape=(4, 3))
    assert asked.ask("choice", BestModels(models, len(rows))) == (1,)


def test_costs_that_do_not_fit_are_refused():
    event = Selection(1.0, Models.SENSITIVITY)
    right = tuple(np.ones((n, 2)) for n in (9, 3))
    for wrong in (right[:1], (right[0], np.ones((4, 2))), (right[0], np.ones((3, 1))),
                  (np.ones((9, 0)), np.ones((3, 0))), (right[0], np.ones(3))):  # fmt: skip
        with pytest.raises(PrivacyError, match="costs have"):
            gate_of(ROWS, choosing(event)).ask("choice", BestModels(Models(costs=(wrong,)), 8))
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(PrivacyError, match="costs from 0"):
            Models(costs=((np.full((9, 2), value), right[1]),))
    with pytest.raises(PrivacyError, match="one kind of score"):
        Models((len,), costs=(right,))


@pytest.mark.parametrize("share", [1e6, -0.1, math.nan, math.inf])
def test_tables_that_are_no_shares_are_refused(share):
    """Against them a row would move the divergence by more: for 1e6 by 974 units; 257 are paid."""
    with pytest.raises(PrivacyError, match="shares from 0 to 1"):
        Models(cliques=((0,),), tables=((np.array([share, 0.0]),),))


def test_the_step_of_the_divergence_is_the_published_one():
    n = 1000
    assert jensen_shannon_step(n, Relation.REPLACE) == pytest.approx(
        (math.log(n) + 1 + 1 / n) / (2 * n)
    )
    assert jensen_shannon_step(n, Relation.ADD_REMOVE) < jensen_shannon_step(n, Relation.REPLACE)


def test_a_choice_that_is_not_covered_is_refused():
    for event in (Selection(1.0), Selection(1.0, Models.SENSITIVITY, 9)):
        charges = choosing(event)
        with pytest.raises(PrivacyError, match="does not cover"):
            gate_of(ROWS, charges).ask("choice", BestModels(Models((len, len)), 8))
        assert charges.charged == []
    with pytest.raises(PrivacyError, match="sensitivity"):
        Models((len,), sensitivity=0.0)
    with pytest.raises(PrivacyError, match="one kind of score"):
        Models()


def test_a_bound_on_costs_cannot_change_after_its_check_and_no_warning_tells_of_a_row():
    costs = ((np.array([[0.0], [2.0**52]]),),)
    bound = np.array(1e-300)
    models = Models(sensitivity=bound, costs=costs)
    bound[...] = -1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [cost_scores(models, np.array(rows)) for rows in ([[0]], [[0], [1]])]
    assert [int(scores[0]) for scores in found] == [0, -256]
