"""How a network was trained, drawn from the release alone."""

from __future__ import annotations

import numpy as np
import pytest

import understudy as us
from understudy.errors import InputError
from understudy.players.query.critic import CriticSteps
from understudy.privacy.cost import SampledGroups
from understudy.schema import Schema

SMALL = {"steps": 4, "width": 4, "latent": 4, "critic_width": 4, "fakes": 8, "rate": 0.25}
SCHEMA = Schema.loads("""[understudy]
version = 1
[[column]]
name = "age"
type = "integer"
lower = 0
upper = 99
bins = 10
[[column]]
name = "ward"
type = "category"
values = ["a", "b", "c"]
[[column]]
name = "ill"
type = "boolean"
""")
CHOICES = {"epsilon": 2, "delta": "1e-6", "rows_public": 200, "method": "dpgan"}


@pytest.fixture(scope="module")
def table():
    import pyarrow as pa

    rng = np.random.default_rng(0)
    age = rng.integers(100, size=200)
    return pa.table(
        {"age": age, "ward": rng.choice(["a", "b", "c"], size=200), "ill": age > 60}
    )  # fmt: skip


@pytest.mark.slow
def test_training_is_drawn_from_the_release_alone(table, tmp_path):
    from understudy.report import training

    made = us.release(table, SCHEMA, **CHOICES, parameters=SMALL)
    loaded = us.Release.load(made.save(tmp_path / "r"))
    written = training.draw(loaded, tmp_path / "figures")
    assert [path.suffix for path in written] == [".svg", ".png"]
    text = written[0].read_text(encoding="utf-8")
    for words in ("Threshold of a row's gradient", "ε spent", "Noise on a weight"):
        assert words in text
    costs = training.spent(loaded, points=2)
    assert [step for step, _ in costs] == [0, 2, 4]
    assert 0 < costs[0][1] < costs[1][1] < costs[2][1] < 2
    (loss, threshold, noise, cost) = training.panels(loaded)
    assert [curve.name for curve in loss.curves] == ["critic, on made-up rows", "generator"]
    event = loaded.plan[CriticSteps.STEP].event
    assert isinstance(event, SampledGroups)
    pairs = zip(threshold.curves[0].values, noise.curves[0].values, strict=True)
    assert all(high == pytest.approx(event.multipliers[0] * c) for c, high in pairs)
    assert cost.limit == 2
    plain = us.release(table, SCHEMA, **{**CHOICES, "method": "independent"})
    assert training.panels(plain) == ()
    with pytest.raises(InputError, match="no training to show"):
        training.draw(plain, tmp_path)
