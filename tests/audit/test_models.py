"""Audits of models that leak and of one that does not; bad input."""

import json

import numpy as np
import pyarrow as pa
import pytest

from tests.audit.learners import CLAIM, NoChances, design, known
from tests.audit.tables import background
from understudy.audit import inside
from understudy.audit.judge import audit
from understudy.audit.models import (
    Examples,
    Layout,
    Logistic,
    Own,
    Trained,
    corners,
    probabilities,
)
from understudy.audit.releases import outliers
from understudy.errors import InputError


def test_a_model_that_learns_by_heart_is_refuted(tmp_path):
    found = audit(design("ByHeart"), CLAIM, runs=12, folder=tmp_path / "runs")
    assert found.refuted
    best = {attack.name: attack.curve.auc for attack in found.attacks}
    for name in ("loss", "confidence", "entropy", "LiRA online", "network, black box"):
        assert best[name] > 0.95, name
    body = json.loads(found.save(tmp_path / "audit.json").read_text())
    assert body["refuted"] is True
    assert body["lower_bound"]["epsilon"] > 1
    assert "never prove" in body["limits"]
    assert body["rows_used"]


def test_a_model_that_learns_nothing_is_not_refuted(tmp_path):
    found = audit(design("Deaf"), CLAIM, runs=12, folder=tmp_path)
    assert not found.refuted
    assert found.verdict.bound < 0.5
    assert all(0.3 < attack.curve.auc < 0.7 for attack in found.attacks)
    assert "never prove" in found.verdict.words


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
        ("tests.audit.learners:NoChances", "NoChances has no predict_proba"),
        ("tests.audit.learners:object", "cannot be imported"),
        ("builtins:object", "object has no fit"),
        ("no_such_module:thing", "cannot be imported"),
        ("thing", "module:factory"),
    ],
)
def test_learners_that_cannot_be_attacked(where, said):
    with pytest.raises(InputError, match=said):
        Own(where).make()


def test_without_a_budget_the_logistic_regression_is_not_private_and_can_be_looked_into():
    rows = known()
    box = tuple(rows.features.min(axis=0)), tuple(rows.features.max(axis=0))
    learner = Logistic(2, box, None, 1e-5, len(rows), {"solver": "sgd"})
    assert learner.describe()["private"] is False
    model = learner(rows.features, rows.labels)
    assert probabilities(model, rows.features).shape == (len(rows), 2)
    assert inside.has_inside(model)


def test_a_model_without_probabilities_is_named():
    with pytest.raises(InputError, match="NoChances has no predict_proba"):
        probabilities(NoChances(), np.zeros((2, 2)))


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
