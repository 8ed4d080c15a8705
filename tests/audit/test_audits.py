"""Whole audits: what they find, keep, refuse and say."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.audit.tables import SCHEMA, background
from understudy.audit import judge, runs
from understudy.audit.figure import draw
from understudy.audit.learners import Own
from understudy.audit.models import Examples, Trained, audit_model, corners, probabilities
from understudy.audit.reading import Layout
from understudy.audit.releases import Releasing, encoded, outliers, plant, releasing_like
from understudy.errors import InputError
from understudy.releases import prepare
from understudy.releases.run import release


class ByHeart:
    """A model that knows its rows by heart, and nothing else."""

    def fit(self, X: Any, y: Any) -> "ByHeart":
        self.known = {x.tobytes(): int(label) for x, label in zip(X, y, strict=True)}
        self.classes = int(max(y)) + 1
        return self

    def predict_proba(self, X: Any) -> Any:
        found = np.full((len(X), self.classes), 0.1 / (self.classes - 1))
        for row, x in zip(found, X, strict=True):
            label = self.known.get(x.tobytes())
            if label is None:
                row[:] = 1 / self.classes
            else:
                row[label] = 0.9
        return found


class Deaf(ByHeart):
    """A model that learns nothing: perfect privacy."""

    def fit(self, X: Any, y: Any) -> "Deaf":
        super().fit(X, y)
        self.known = {}
        return self


class NoChances:
    """A regression: it has no probabilities."""

    def fit(self, X: Any, y: Any) -> "NoChances":
        return self


def known(rows: int = 60) -> Examples:
    rng = np.random.default_rng(0)
    return Examples(rng.normal(size=(rows, 4)), np.arange(rows) % 2, ("a", "b", "c", "d"))


def design(name: str, canaries: int = 20) -> Trained:
    return Trained(
        Own(f"tests.audit.test_audits:{name}"), known(), corners(known(), canaries, 1), 1
    )


CLAIM = judge.Claim(1.0, 1e-6, 0.05)


def test_a_model_that_learns_by_heart_is_refuted_and_drawn(tmp_path):
    found = audit_model(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "runs")
    assert found.refuted
    best = {attack.name: attack.curve.auc for attack in found.attacks}
    for name in ("loss", "confidence", "entropy", "LiRA online", "network, black box"):
        assert best[name] > 0.95, name
    body = json.loads(found.save(tmp_path / "audit.json").read_text())
    assert body["refuted"] is True
    assert body["lower_bound"]["epsilon"] > 1
    assert "never prove" in body["limits"]
    assert body["rows_used"]
    assert [path.name for path in draw(found, tmp_path)] == ["figure.svg", "figure.png"]
    text = (tmp_path / "figure.svg").read_text()
    assert "Refuted: ε = 1 was claimed" in text
    assert "out of reach if ε = 1" in text


def test_a_model_that_learns_nothing_is_not_refuted(tmp_path):
    found = audit_model(design("Deaf"), CLAIM, runs=12, folder=tmp_path)
    assert not found.refuted
    assert found.verdict.bound < 0.5
    assert all(0.3 < attack.curve.auc < 0.7 for attack in found.attacks)
    assert "never prove" in found.verdict.words


def test_a_flipped_rule_is_an_attack_too():
    rng = np.random.default_rng(0)
    inside = rng.random((30, 10)) < 0.5
    scores = {"upside down": -(inside + 0.1 * rng.normal(size=inside.shape))}
    parts = judge.Parts.of(30)
    turned = judge.oriented(scores, inside, parts)
    assert list(turned) == ["upside down, flipped"]
    assert judge.verdict(turned, inside, parts, CLAIM, rng).bound > 1


def test_runs_are_kept_and_never_done_twice(tmp_path):
    """What an interruption leaves is gone on with, and ends in the same audit."""
    whole = audit_model(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "whole")

    class Stop(KeyboardInterrupt):
        pass

    def interrupt(done: int, total: int) -> None:
        if done == 5:
            raise Stop

    with pytest.raises(Stop):
        audit_model(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "cut", progress=interrupt)
    kept = runs.Runs(tmp_path / "cut", design("ByHeart").describe())
    assert kept.missing(12) == list(range(5, 12))
    before = kept.path(3).read_bytes()
    again = audit_model(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "cut")
    assert kept.path(3).read_bytes() == before
    assert again.to_json() == whole.to_json()


def test_runs_in_other_processes_are_the_same(tmp_path):
    alone = audit_model(design("ByHeart"), CLAIM, runs=8, folder=tmp_path / "alone")
    two = audit_model(design("ByHeart"), CLAIM, runs=8, folder=tmp_path / "two", workers=2)
    assert two.to_json() == alone.to_json()


def test_runs_of_another_audit_are_refused(tmp_path):
    audit_model(design("Deaf"), CLAIM, runs=8, folder=tmp_path)
    with pytest.raises(InputError, match="runs of another audit"):
        audit_model(design("ByHeart"), CLAIM, runs=8, folder=tmp_path)
    runs.Runs(tmp_path, design("Deaf").describe()).path(2).write_bytes(b"half")
    with pytest.raises(InputError, match="is damaged; remove it"):
        audit_model(design("Deaf"), CLAIM, runs=8, folder=tmp_path)


# --- bad input, before anything is trained -------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": np.zeros(60, int)}, "one class only"),
        ({"column": np.full(60, 3.0)}, "column 'b' is constant"),
        ({"column": np.append(np.ones(59), np.nan)}, "column 'b' holds values that are not finite"),
        ({"column": np.append(np.ones(59), np.inf)}, "column 'b' holds values that are not finite"),
        ({"labels": np.zeros(7, int)}, "one label for each row"),
    ],
)
def test_rows_that_no_model_can_learn_from(change, said):
    fine = known()
    features = fine.features.copy()
    if "column" in change:
        features[:, 1] = change["column"]
    broken = Examples(features, change.get("labels", fine.labels), fine.names)
    with pytest.raises(InputError, match=said):
        Trained(Own("nowhere:never"), broken, corners(fine, 4, 1), 1)


@pytest.mark.parametrize("width", [1, 3, 40])
def test_planted_rows_are_in_the_box_and_no_two_alike(width):
    rng = np.random.default_rng(1)
    rows = Examples(rng.normal(size=(50, width)), np.arange(50) % 3)
    found = corners(rows, 30, 2)
    assert len(np.unique(found.features, axis=0)) == 30
    assert (found.features >= rows.features.min(axis=0)).all()
    assert (found.features <= rows.features.max(axis=0)).all()
    assert set(found.labels.tolist()) <= {0, 1, 2}


def test_more_canaries_than_rows():
    with pytest.raises(InputError, match="canaries = 61 are more than the rows"):
        design("Deaf", 61)
    with pytest.raises(InputError, match="canaries = 41 are more than the rows"):
        outliers(background(), (9, 9, 9), (True,) * 3, 41, 0)
    with pytest.raises(InputError, match="canaries = 0"):
        corners(known(), 0, 1)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("tests.audit.test_audits:NoChances", "NoChances has no predict_proba"),
        ("tests.audit.test_audits:object", "cannot be imported"),
        ("builtins:object", "object has no fit"),
        ("no_such_module:thing", "cannot be imported"),
        ("thing", "module:factory"),
    ],
)
def test_learners_that_cannot_be_attacked(where, said):
    with pytest.raises(InputError, match=said):
        Own(where).make()


def test_a_model_without_probabilities_is_named():
    with pytest.raises(InputError, match="NoChances has no predict_proba"):
        probabilities(NoChances(), np.zeros((2, 2)))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf])
def test_a_claim_must_be_one(epsilon):
    with pytest.raises(InputError, match="epsilon = "):
        judge.Claim(epsilon, 1e-6, 0.05)


def test_too_few_runs_say_what_they_could_have_shown(tmp_path):
    with pytest.raises(
        InputError, match=r"too few to say anything.*no more than ε = ([\d.]+)"
    ) as e:
        audit_model(design("ByHeart", 1), CLAIM, runs=30, folder=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    told = judge.largest_bound(30, 1, CLAIM)
    assert f"ε = {told:.3g}" in str(e.value)
    enough = int(str(e.value).split("at least ")[1].split()[0])
    assert judge.largest_bound(enough, 1, CLAIM) > 1 >= judge.largest_bound(30, 1, CLAIM)
    with pytest.raises(InputError, match="at least 6 runs"):
        judge.require_power(5, 10, CLAIM)


# --- releases ------------------------------------------------------------------------------------

CHOICES: dict[str, Any] = {
    "epsilon": "1", "delta": "1e-6", "workload": "marginals:2", "method": "independent",
}  # fmt: skip


def test_outliers_are_legal_distinct_and_far():
    found = outliers(background(), (9, 9, 9), (True,) * 3, 10, 3)
    assert len(np.unique(found, axis=0)) == 10
    assert ((found >= 0) & (found < 9)).all()
    assert np.array_equal(found, outliers(background(), (9, 9, 9), (True,) * 3, 10, 3))
    assert not any((row == background()).all(axis=1).any() for row in found)


def test_replaced_records_leave_the_number_of_rows_alone():
    sizes = set()

    class Counting:
        def describe(self) -> dict[str, Any]:
            return {}

        def __call__(self, table: Any) -> Any:
            sizes.add(len(table))
            return made(table)

    made = Releasing(SCHEMA, {**CHOICES, "neighbours": "replace", "rows_public": 40})
    planted = plant(made, background(), canaries=8, key=2)
    object.__setattr__(planted, "pipeline", Counting())
    coins = [planted.run(k)["inside"] for k in range(3)]
    assert sizes == {40}
    assert len({tuple(c) for c in coins}) == 3


@pytest.mark.parametrize("share", [{}, {"certificate_share": "0.3"}])
def test_the_pipeline_of_a_release_is_read_from_its_bundle(share):
    table = SCHEMA.decode(list(background().T), np.random.default_rng(0))
    made = release(table, SCHEMA, **CHOICES, **share)
    again = releasing_like(made).describe()
    assert again == Releasing(SCHEMA, {**CHOICES, **share}).describe()
    assert again["plan"] == made.plan.to_json()
    assert np.array_equal(encoded(SCHEMA, table), background())


def test_a_plan_of_another_version_is_not_audited_as_ours():
    table = SCHEMA.decode(list(background().T), np.random.default_rng(0))
    made = release(table, SCHEMA, **CHOICES)
    other = prepare(SCHEMA, **{**CHOICES, "epsilon": 3 * CHOICES["epsilon"]}).plan
    with pytest.raises(InputError, match="another version"):
        releasing_like(replace(made, plan=other))


# --- tables as features --------------------------------------------------------------------------


def test_text_becomes_indicators_and_numbers_stay():
    table = pa.table({"n": [1, 2, 3], "t": ["x", "y", "x"], "y": ["no", "yes", "no"]})
    found = Layout(table, "y").examples(table)
    assert found.names == ("n", "t = y")
    assert found.features.tolist() == [[1, 0], [2, 1], [3, 0]]
    assert found.labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("label", "columns", "said"),
    [
        ("z", {"a": [1], "y": [0]}, "label = 'z' is not a column"),
        ("y", {"y": [0, 1]}, "no column but the label"),
        ("y", {"a": [[1], [2]], "y": [0, 1]}, "column 'a' is of type list"),
        ("y", {"a": [str(i) for i in range(51)], "y": list(range(51))}, "51 different texts"),
    ],
)
def test_tables_without_features(label, columns, said):
    with pytest.raises(InputError, match=said):
        Layout(pa.table(columns), label)


def test_held_out_rows_must_have_the_same_columns_and_classes():
    layout = Layout(pa.table({"a": [1, 2], "y": ["u", "v"]}), "y")
    with pytest.raises(InputError, match="lacks the column 'a'"):
        layout.examples(pa.table({"b": [1], "y": ["u"]}))
    with pytest.raises(InputError, match="has no class 'w'"):
        layout.examples(pa.table({"a": [1], "y": ["w"]}))
