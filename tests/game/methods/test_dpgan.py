"""`dpgan`: its plan, its bad input, and what its players release."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import understudy as us
from understudy.errors import InputError
from understudy.game.methods import Design
from understudy.game.methods import method as named_method
from understudy.game.methods.dpgan import DPGANMethod
from understudy.players.data.checkpoints import Clusters, Task, least_squares
from understudy.players.query.critic import CriticSteps
from understudy.privacy import planning
from understudy.privacy.cost import Plan, SampledGroups, Selection
from understudy.privacy.questions.best_models import Models
from understudy.privacy.relation import Relation
from understudy.schema import Schema

TINY = {"steps": 6, "width": 4, "latent": 4, "critic_width": 4, "fakes": 8}
SCHEMA = Schema.loads("""[understudy]
version = 1
[[column]]
name = "age"
type = "integer"
lower = 0
upper = 99
bins = 20
[[column]]
name = "visits"
type = "integer"
lower = 0
upper = 10
[[column]]
name = "weight"
type = "number"
lower = 30.0
upper = 150.0
bins = 12
nullable = true
[[column]]
name = "seen"
type = "date"
lower = 2020-01-01
upper = 2020-12-31
bins = 12
[[column]]
name = "ward"
type = "category"
values = ["a", "b", "c"]
[[column]]
name = "ill"
type = "boolean"
""")


def design_of(rows=1000):
    cliques = tuple(combinations(range(len(SCHEMA.shape)), 2))
    columns = SCHEMA.modelled
    return Design(
        SCHEMA.shape, cliques, (1.0,) * len(cliques), Relation.ADD_REMOVE, rows, (),
        tuple(c.name for c in columns), tuple(c.kind for c in columns),
        tuple(c.nullable for c in columns),
    )  # fmt: skip


def weights_of(critic):
    return sum((inputs + 1) * outputs for inputs, outputs in critic.layers)


def planned(rows=1000, method=None, rho=Fraction(1, 8), **parameters):
    """Checked, planned at a fixed nominal ρ and confirmed, without the search for ρ."""
    design = design_of(rows)
    made = method or named_method("dpgan", **{**TINY, **parameters})
    made.check(design)
    plan = Plan(made.charges(design, rho))
    made.confirm(design, plan)
    return made, design, plan


def step_of(plan):
    event = plan[CriticSteps.STEP].event
    assert isinstance(event, SampledGroups)
    return event


def test_the_plan_holds_everything_and_stays_within_the_budget():
    made = us.prepare(
        SCHEMA, epsilon=2, delta="1e-7", rows_public=1000, workload="marginals:2", method="dpgan",
        parameters={**TINY, "pick": 1, "checkpoints": 2},
    )  # fmt: skip
    purposes = [charge.purpose for charge in made.plan]
    assert purposes == [CriticSteps.COLUMNS, CriticSteps.STEP, CriticSteps.CHOICE, "certificate"]
    assert made.plan[CriticSteps.STEP].times == 6
    assert 1.97 < made.cost().epsilon <= 2
    assert made.cost().by == "pld"


def test_for_a_given_sigma_as_many_steps_as_the_budget_allows():
    """T_max is known before training; one more step would pass it."""
    made, design, plan = planned(sigma=3.0, rate=0.05, rho=Fraction(1, 2))
    slot = plan[CriticSteps.STEP]
    event = step_of(plan)
    assert event.multiplier == pytest.approx(3.0)
    part = Fraction(1, 2) * Fraction(9, 10)
    assert planning.nominal(event) * slot.times <= part
    assert planning.nominal(event) * (slot.times + 1) > part
    assert slot.times > 100
    query, _ = made.players(design, plan)
    assert query.steps == slot.times


def test_groups_cost_nothing_and_bits_of_all_share_one_multiplier():
    """What a step costs does not depend on groups, which are found anew as training goes on."""
    one, five = (step_of(planned(groups=n)[2]) for n in (1, 5))
    assert one == five
    assert len(one.multipliers) == 1
    one, four = (step_of(planned(groups=n, adapt=0.2)[2]) for n in (1, 4))
    assert four.coordinates == one.coordinates + 3
    for event in (one, four):
        _, bits = event.multipliers
        assert 0 < (event.multiplier / bits) ** 2 <= 0.0501  # a twentieth at most


def test_public_rows_play_no_part_in_the_plan():
    rng = np.random.default_rng(0)
    public = tuple(rng.integers(s, size=50).astype(np.uint8) for s in SCHEMA.shape)
    method, _, plan = planned(method=DPGANMethod(**TINY, groups=3).warm(public))
    assert step_of(plan) == step_of(planned(groups=3)[2])
    described = method.describe()["public"]
    assert described["rows"] == 50
    assert len(described["digest"]) == 64


def test_coordinates_are_those_of_the_critic():
    for numbers in ("bins", "real"):
        made, design, plan = planned(numbers=numbers, adapt=0.1)
        _, data = made.players(design, plan)
        critic = data.gan.critic
        assert step_of(plan).coordinates == weights_of(critic) + 1


def test_kinds_of_columns():
    made, design, plan = planned(numbers="real")
    _, data = made.players(design, plan)
    assert data.gan.coding.kinds == ("real", "bits", "real", "real", "choice", "choice")
    made, design, plan = planned(numbers="bins")
    _, data = made.players(design, plan)
    assert set(data.gan.coding.kinds) == {"choice"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"steps": 0}, "steps = 0 must be a whole number"),
        ({"batch": 5000}, "batch = 5000 is more than the 1,000 rows"),
        ({"batch": 10, "rate": 0.1}, "give one of them"),
        ({"rate": 1.5}, "rate = 1.5"),
        ({"sigma": 0}, "sigma = 0"),
        ({"loss": "hinge"}, "loss = 'hinge' is not one of"),
        ({"numbers": "text"}, "numbers = 'text'"),
        ({"adapt": 3}, "adapt = 3"),
        ({"columns": 1.0}, "columns = 1.0"),
        ({"columns": 1e-300}, "columns = 1e-300 must lie between 1e-06 and 0.9"),
        ({"columns": 0.6, "choice": 0.5, "pick": 1}, "leave no share of the budget for the steps"),
        ({"pick": 9, "checkpoints": 2}, "pick = 9 is more than checkpoints = 2"),
        ({"pick": 1, "checkpoints": 5}, "need at least twice as many steps"),
        ({"task": "ill"}, "task needs pick"),
        ({"task": "sick", "pick": 1, "checkpoints": 2}, "task = 'sick' is not a modelled column"),
        ({"regroup": 0}, "regroup = 0 must be a whole number"),
        ({"selection": "luck", "pick": 1, "checkpoints": 2}, "selection = 'luck' is not one of"),
        ({"selection": "clustering"}, "selection needs pick"),
        ({"selection": "task", "pick": 1, "checkpoints": 2}, "selection = task needs task"),
        (
            {"selection": "clustering", "task": "ill", "pick": 1, "checkpoints": 2},
            "selection = clustering uses no task",
        ),
        ({"centres": 0}, "centres = 0 must be a whole number"),
        ({"public": "x"}, "public is no setting"),
        ({"round": 3}, "round"),
    ],
)
def test_bad_settings_are_named_before_anything_is_planned(parameters, message):
    with pytest.raises(InputError, match=message):
        planned(**parameters)


def test_a_batch_of_a_private_number_of_rows_is_refused():
    with pytest.raises(InputError, match="number of rows that is private; give rate"):
        planned(rows=None, batch=10)


def test_a_holdout_too_small_to_mean_anything_is_refused():
    with pytest.raises(InputError, match="keeps about 10 rows"):
        planned(task="ill", pick=1, checkpoints=2, holdout=0.01)
    with pytest.raises(InputError, match="rows' largest costs"):
        planned(selection="clustering", pick=1, checkpoints=2, holdout=0.01)
    with pytest.raises(InputError, match="Jensen-Shannon"):
        planned(rows=40, pick=1, checkpoints=2, choice=1e-4)
    _, _, plan = planned(rows=20_000, task="ill", pick=1, checkpoints=2, holdout=0.3)
    event = plan[CriticSteps.CHOICE].event
    assert isinstance(event, Selection)
    assert event.sensitivity == Models.SENSITIVITY


def test_clusters_know_which_columns_have_an_order_and_hold_rows_out():
    made, design, plan = planned(
        rows=20_000, selection="clustering", pick=1, checkpoints=2, holdout=0.25, centres=3
    )
    query, data = made.players(design, plan)
    assert query.held_out == 0.25
    assert data.judge == Clusters(
        SCHEMA.shape, (True,) * 4 + (False,) * 2, (False, False, True, False, False, False), 3
    )


def test_a_declared_sensitivity_that_cannot_be_is_refused():
    def metric(truth, found):
        return float((truth == found).mean())

    def asked(sensitivity, **other):
        task = Task(5, least_squares(), metric, sensitivity)
        return planned(task=task, pick=1, checkpoints=2, holdout=0.5, **other)

    with pytest.raises(InputError, match="below 1/h"):
        asked(1e-6)
    with pytest.raises(InputError, match="above 0"):
        asked(0.0)
    with pytest.raises(InputError, match="one row moves one"):
        planned(task=Task(5, sensitivity=2.0), pick=1, checkpoints=2)
    assert asked(1 / 500)[0].describe()["task"].startswith("Task(target=5")


def test_an_unbounded_number_is_refused():
    text = '[understudy]\nversion = 1\n[[column]]\nname = "x"\ntype = "number"\n'
    with pytest.raises(us.errors.UnderstudyError, match="x"):
        us.prepare(Schema.loads(text), epsilon=1, method="dpgan")
