"""Releases by `dpgan`: verified by both programs, interrupted, warm, and never without noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import understudy as us
from understudy.errors import InputError
from understudy.players.query.critic import CriticSteps
from understudy.privacy.gate import Gate
from understudy.privacy.questions import NetworkGradient
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


def test_everything_is_on_the_ledger_and_both_verifiers_agree(table, tmp_path):
    """The choice among checkpoints by clusters, thresholds watched, groups found anew: one plan."""
    made = us.release(
        table, SCHEMA, **CHOICES,
        parameters={
            **SMALL, "groups": 2, "regroup": 2, "adapt": 0.2, "pick": 1, "checkpoints": 2,
            "selection": "clustering", "centres": 2, "holdout": 0.5, "choice": 0.4, "numbers": "real",
        },
    )  # fmt: skip
    drawn = [e.body["purpose"] for e in made.entries if e.kind == "charge" and e.body]
    assert drawn.count(CriticSteps.STEP) == 4
    assert drawn.count(CriticSteps.CHOICE) == 1
    assert SCHEMA.illegal(made.rows) == []
    assert len(made.diagnostics["chosen_checkpoints"]) == 1
    assert made.diagnostics["training"]["step"] == [1, 2, 3, 4]
    saved = made.save(tmp_path / "r")
    us.verify(saved).require()
    # The second program has looked at it while it was saved; a cheaper event is refused by both.
    manifest = json.loads((saved / "release.json").read_text(encoding="utf-8"))
    (plan,) = [e["body"]["plan"] for e in manifest["ledger"]["entries"] if e["kind"] == "reserve"]
    (slot,) = [slot for slot in plan if slot["purpose"] == CriticSteps.STEP]
    assert slot["event"]["kind"] == "sampled groups"
    assert len(slot["event"]["multipliers"]) == 2
    assert us.verify(saved).digest == manifest["digest"]


@pytest.mark.slow
def test_a_killed_release_goes_on_without_spending_again(table, tmp_path, monkeypatch):
    whole, asked = Gate.ask, []

    def dies(self, purpose, question, event=None):
        asked.append(isinstance(question, NetworkGradient))
        if sum(asked) == 3:
            raise KeyboardInterrupt
        return whole(self, purpose, question, event)

    monkeypatch.setattr(Gate, "ask", dies)
    with pytest.raises(KeyboardInterrupt):
        us.release(table, SCHEMA, **CHOICES, parameters=SMALL, checkpoint=tmp_path / "c")
    monkeypatch.undo()
    made = us.release(table, SCHEMA, **CHOICES, parameters=SMALL, checkpoint=tmp_path / "c")
    drawn = [e.body["purpose"] for e in made.entries if e.kind == "charge" and e.body]
    assert drawn.count(CriticSteps.STEP) == 4
    us.verify(made.save(tmp_path / "r")).require()


@pytest.mark.slow
def test_public_rows_start_it_and_may_not_be_the_private_ones(table, tmp_path):
    public = table.slice(0, 40)
    made = us.release(
        table.slice(40), SCHEMA, **{**CHOICES, "rows_public": 160}, public=public,
        parameters={**SMALL, "public_steps": 2},
    )  # fmt: skip
    assert made.method["public"]["rows"] == 40
    with pytest.raises(InputError, match=r"public.*is the private table"):
        us.release(table, SCHEMA, **CHOICES, public=table)
    with pytest.raises(InputError, match=r"public.*is a part of the private table"):
        us.release(table, SCHEMA, **CHOICES, public=public)
    with pytest.raises(InputError, match=r"public = 0\.02.*agreed"):
        us.release(table, SCHEMA, **CHOICES, public=0.02)
    frame = table.to_pandas()
    with pytest.raises(InputError, match=r"public.*is the private table"):
        us.release(frame, SCHEMA, **CHOICES, public=frame)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    (tmp_path / "other.csv").write_text(path.read_text() + "5,,True\n")
    with pytest.raises(InputError, match=r"public: column 'ward'.*null"):
        us.release(path, SCHEMA, **CHOICES, public=tmp_path / "other.csv")
    with pytest.raises(InputError, match=r"public.*is the private table"):
        us.release(path, SCHEMA, **CHOICES, public=Path(str(path)))


@pytest.mark.slow
def test_the_synthesizer_and_its_settings(table):
    made = us.DPGAN(epsilon=2, delta="1e-6", rows_public=200, **SMALL)
    assert made.get_params()["steps"] == 4
    rows = made.fit(table, SCHEMA).sample(10)
    assert rows.num_rows == 10
    with pytest.raises(InputError, match="stesp"):
        us.DPGAN(stesp=3)


def test_training_without_privacy_says_so_and_makes_no_release():
    from understudy.nets import gan

    assert "without_privacy" in gan.train_without_privacy.__name__
    assert "Protects nobody" in (gan.train_without_privacy.__doc__ or "")
    assert "understudy.releases" not in Path(gan.__file__).read_text(encoding="utf-8")
    for room in ("gate", "questions", "exact"):
        assert f"understudy.privacy.{room}" not in Path(gan.__file__).read_text(encoding="utf-8")
    with pytest.raises(InputError, match="sigma = 0"):
        us.prepare(SCHEMA, **CHOICES, parameters={"sigma": 0})


def test_sources_that_keep_their_rows_are_refused_before_anything_is_spent(table, monkeypatch):
    from understudy.source.base import EncodedCounts

    monkeypatch.delattr(EncodedCounts, "records")
    with pytest.raises(InputError, match=r"needs the rows.*export the table to Parquet"):
        us.release(table, SCHEMA, **CHOICES, parameters=SMALL)


@pytest.mark.parametrize("more", [{}, {"batch": None, "rate": 1.0}])
def test_domains_that_are_to_be_found_are_refused_before_anything_is_spent(table, more):
    """Where all rows are taken ρ would add up, but for what the noise lacks of exactness."""
    text = SCHEMA.dumps().replace('values = ["a", "b", "c"]', 'values = "discover"')
    with pytest.raises(InputError, match="counts its cost by samples of rows"):
        us.release(table, Schema.loads(text), **CHOICES, parameters={**SMALL, **more})
