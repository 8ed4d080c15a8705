"""GEM: released tables alone train the network, and divergence ends the game in good order."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.game import play
from understudy.game.methods.gem import GEMMethod
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.progress import silent
from understudy.testing import SeededNoise, tiny_design
from understudy.testing.stand_ins import StrictCharges, TinyCounts

SMALL = {"batch": 16, "width": 8, "latent": 4, "steps": 50, "picks": 2}
SHAPE = (3, 4, 2)


def rows_of(n, seed):
    """Three columns that depend on one another, the third on both others together."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 4, n))
    c = np.where(rng.random(n) < 0.8, (a + b) % 2, rng.integers(0, 2, n))
    return [a, b, c]


def test_plans_cost_at_most_rho_with_and_without_rounds():
    for rounds in (0, 1, 3):
        made = GEMMethod(rounds=rounds, picks=5)
        design = tiny_design((2, 3, 2, 4), rows=1_000, order=3)
        plan = Plan(made.charges(design, Fraction(1, 10)))
        assert accounting.total_rho(plan) <= Fraction(1, 10)
        query, _ = made.players(design, plan)
        assert query.rounds == 2 + rounds


def test_marginals_that_would_show_noise_alone_are_never_selected():
    shape = (100, 80, 90, 2)
    for rows, rho, some in ((10**6, Fraction(1), True), (1_000, Fraction(1, 10**6), False)):
        design = tiny_design(shape, rows=rows, order=3)
        plan = Plan(GEMMethod().charges(design, rho))
        query, _ = GEMMethod().players(design, plan)
        cells = [np.prod([shape[i] for i in clique]) for clique in query.candidates]
        assert bool(cells) == some
        assert all(c <= min(250_000, 12 * rows / query.sigma) for c in cells)
        assert query.rounds == 2 + some
        assert accounting.total_rho(plan) <= rho


def test_steps_are_fewer_where_pairs_have_many_cells():
    for shape, steps in (((30, 20, 2), 1200), ((800, 1000, 2), 750), ((2_000, 2_000, 2), 600)):
        design = replace(tiny_design(shape, rows=1_000), cliques=((0, 1),), weights=(1.0,))
        plan = Plan(GEMMethod().charges(design, Fraction(1)))
        assert GEMMethod().players(design, plan)[1].steps == steps
        assert GEMMethod(steps=77).players(design, plan)[1].steps == 77


def test_settings_out_of_range_name_themselves():
    design = tiny_design((2, 3), rows=100)
    for name, value in {"rounds": -1, "batch": 0, "steps": 0, "width": 1.5, "picks": 0}.items():
        with pytest.raises(InputError, match=rf"method = gem: {name} = {value} must be"):
            GEMMethod(**{name: value}).check(design)
    for name, value in {"rate": 0, "megabytes": -1}.items():
        with pytest.raises(InputError, match=f"{name} = {value}"):
            GEMMethod(**{name: value}).check(design)


@pytest.mark.parametrize("public", ["rows.csv", (), (np.array([0, 9]), np.array([0, 1]))])
def test_public_rows_are_a_table_not_a_setting(public):
    with pytest.raises(InputError, match=r"public is no setting; give a table .* --public"):
        GEMMethod(public=public).check(tiny_design((2, 3), rows=100))


def test_what_does_not_fit_memory_is_said_with_its_size_and_what_to_lower():
    design = tiny_design((4_000, 3_000, 2), rows=10_000)
    with pytest.raises(InputError) as refused:
        GEMMethod(batch=200_000).check(design)
    said = str(refused.value)
    assert "MB, above megabytes = 4,000" in said
    assert "lower batch or width" in said
    assert "at position 0 (4,000 values)" in said
    GEMMethod(batch=100).check(tiny_design((400, 300, 2), rows=10_000))


def game(rate, progress=None):
    design = tiny_design(SHAPE, rows=200, order=3)
    made = GEMMethod(**SMALL, rate=rate)
    plan = Plan(made.charges(design, Fraction(1, 4)))
    charges = StrictCharges(plan, design.relation)
    table = tuple(zip(*(c.tolist() for c in rows_of(200, 3)), strict=True))
    gate = Gate(TinyCounts(SHAPE, table), charges, design.relation, SeededNoise(0), 200)
    query, data = made.players(design, plan)
    told = progress if progress is not None else silent
    model = play(design.problem(200), query, data, gate, np.random.default_rng(0), told).model
    return model, [purpose for purpose, _ in charges.charged]


@pytest.mark.slow
def test_divergence_keeps_the_last_good_state_and_asks_nothing_more():
    with pytest.warns(RuntimeWarning, match="training diverged in round 2 after 0 steps with rate"):
        model, charged = game(1e30)
    assert charged == ["columns", "pairs"]
    for clique in ((0,), (1,), (0, 1, 2)):
        assert np.isfinite(model.marginal(clique)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, charged = game(0.01)
    assert charged == ["columns", "pairs", "select the worst", "measure the worst"]


def test_progress_tells_rounds_and_the_loss_on_released_tables():
    told = []
    game(0.01, told.append)
    trained = [step for step in told if step.stage.startswith("training")]
    assert {step.stage for step in trained} == {"training on round 2", "training on round 3"}
    assert all("loss" in step.note and step.done <= step.total for step in trained)
