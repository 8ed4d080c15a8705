"""The attacks on linear models: their rows, their rules, their arithmetic, and the alarm."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from bench.commands import mia as command
from bench.published import mia, mia_rows, mia_table

from understudy.audit import ceiling

PANELS = {panel.name: panel for panel in mia_rows.PANELS}


@pytest.mark.parametrize("share", [20, 40, 60])
def test_boxes_share_the_rows_that_the_title_says(share: int):
    """Seeded; 40 000 rows, so 5 deviations are 0.0125."""
    rows = mia_rows.draw(PANELS[f"logistic {share}"], 40_000, np.random.default_rng(1))
    inner = 1 - 2 * PANELS[f"logistic {share}"].apart
    common = (np.abs(rows.x) <= inner).all(axis=1)
    assert common.mean() == pytest.approx(share / 100, abs=0.0125)
    assert np.corrcoef(rows.x.mean(axis=1), rows.y)[0, 1] > 0.2


@pytest.mark.parametrize("panel", mia_rows.PANELS, ids=lambda panel: panel.name)
def test_rows_stay_in_the_public_box(panel: mia_rows.Panel):
    rows = mia_rows.draw(panel, 500, np.random.default_rng(2))
    assert rows.x.shape == (500, panel.features)
    assert np.abs(rows.x).max() <= 1
    assert (
        np.abs(rows.y).max() <= 1
        if panel.classes == 0
        else set(rows.y) == set(range(panel.classes))
    )


def test_steps_are_those_of_the_thesis_or_of_the_learner():
    assert mia.Training(PANELS["lasso"], 1000, "sgd", 0.4, 0).steps == {"steps": 400, "rate": 0.1}
    assert mia.Training(PANELS["lasso"], 1000, "frank-wolfe", 1, 0).steps["steps"] == 1000
    assert mia.Training(PANELS["lasso wide"], 1000, "frank-wolfe", 1, 0).steps == {}


def test_models_without_privacy_may_be_more():
    made = list(mia.trainings([PANELS["lasso"]], [1000], [1.0], 1, alone=3))
    assert [(each.solver, each.number) for each in made] == [
        ("none", 0),
        ("frank-wolfe", 0),
        ("sgd", 0),
        ("none", 1),
        ("none", 2),
    ]


def test_thresholds_come_from_rows_that_they_do_not_judge():
    """Only calibrating rows, every second one, tell members apart: judged ones are as by lot."""
    members = np.arange(80) < 40
    found = np.where(np.arange(80) % 2 == 0, members.astype(float), 0.25)
    assert mia._calibrated(found, members, mia._midpoint) == 0.5
    found[1] = 9.0  # a member that is judged
    assert mia._calibrated(found, members, mia._midpoint) == 0.5 + 1 / 40
    everyone = mia.threshold_rule(found, members, found.min())  # the thesis's τ = max H
    assert everyone == 0.5
    assert mia._midpoint(np.array([1.0, 3.0, 5.0]), np.array([True, False, False])) == 2.5


def test_a_training_is_scored_against_its_constant_and_its_bound():
    """Privacy noise is real, so what is held is what no noise can break."""
    alone = mia.run(mia.Training(PANELS["logistic 20"], 300, "none", None, 0))
    assert alone["quality"] > alone["constant"] + 0.1
    assert alone["excess"] == alone["distance"] == alone["bound"] == 0
    for solver in mia_rows.SOLVERS:
        one = mia.run(mia.Training(PANELS["logistic 20"], 300, solver, 0.5, 0))
        assert one["start"] == pytest.approx(alone["start"])
        assert -1e-3 < one["excess"] < one["bound"]
        assert one["steps"] == 150
        assert set(one["attacks"]) == set(mia.RULES)


def runs(epsilon: float | None, accuracy: float, quality: float = 0.9) -> list[dict[str, Any]]:
    """Three trainings a hair apart."""
    return [
        {
            "panel": "lasso",
            "rows": 1000,
            "solver": "sgd" if epsilon else "none",
            "epsilon": epsilon,
            "run": number,
            "attacks": {rule: {"loss": accuracy + number / 1e6} for rule in mia.RULES},
            "quality": quality + number / 1e6,
            "constant": 0.5,
            "excess": 0.1 / (epsilon or 1),
            "start": 1.0,
            "bound": 2.0,
            "distance": 0.1,
            "steps": 10,
        }
        for number in range(3)
    ]


def results(tmp_path: Path, *groups: list[dict[str, Any]]) -> mia.Results:
    made = mia.Results(tmp_path / "results.json")
    for one in (one for group in groups for one in group):
        made.add(one)
    return made


def test_a_model_no_better_than_a_constant_says_so(tmp_path: Path):
    made = results(tmp_path, runs(1.0, 0.6), runs(3.0, 0.6, quality=0.499999))
    assert {p.epsilon: p.better for p in made.points()} == {1.0: 3, 3.0: 1}
    shown = {p.epsilon: mia_table.cell(p) for p in made.points() if p.rule == "rank"}
    assert shown == {1.0: "60.0 ± 0.0", 3.0: "1 of 3"}
    assert mia_table.bound(made.points()[0]) == "says nothing (2)"


def test_fits_have_the_slope_of_the_line(tmp_path: Path):
    made = results(tmp_path, *(runs(e, 0.5 + 0.02 * math.log(e)) for e in (1.0, 2.0, 4.0)))
    found = {slope.what: slope.mean for slope in made.slopes()}
    assert found["accuracy"] == pytest.approx(0.02)
    assert found["ln excess"] == pytest.approx(-1)


def test_tables_have_every_model_and_rule(tmp_path: Path):
    made = results(tmp_path, runs(1.0, 0.6), runs(3.0, 0.7), runs(None, 0.9))
    found = mia_table.tables(made)
    assert (
        found.count("| LASSO, p = 10 | 1,000 | loss | – | – | 60.0 ± 0.0 | 70.0 ± 0.0 | 90.0") == 3
    )
    assert "| ceiling |  | any | 73.1 | 95.3 | 73.1 | 95.3 | 100 |" in found
    assert "| LASSO, p = 10 | 1,000 | SGD | +9.10 ± 0.00 | -1.00 ± 0.00 |" in found


def test_an_attack_above_the_ceiling_fails_the_build(tmp_path: Path):
    high = ceiling.accuracy(1.0, mia.delta(1000))
    command._judge(results(tmp_path, runs(1.0, high - 0.001), runs(None, 0.99)))
    with pytest.raises(typer.Exit) as stopped:
        command._judge(results(tmp_path, runs(1.0, high + 0.001)))
    assert stopped.value.exit_code == 1


def test_a_threshold_comes_from_other_rows_and_is_the_best_there():
    calibration, members = np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, False, True, True])
    threshold = mia.best_threshold(calibration, members)
    assert threshold == 0.6
    judged = np.array([0.5, 0.7]), np.array([False, True])
    assert mia.threshold_rule(*judged, threshold) == 1
    assert mia.threshold_rule(*judged, 0.5) == 0.5
