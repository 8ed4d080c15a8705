"""The estimators: what is charged, what is refused before anything is, and that they learn."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from learners import SOLVERS, N, classes_table, lasso, logistic, numbers_table, spent
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from understudy.errors import BudgetExhausted, InputError, RelationError
from understudy.learn import PrivateLogisticRegression
from understudy.privacy import Ledger, Relation, accounting
from understudy.testing import SeededNoise

# --- they learn ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("fixed_noise")
@pytest.mark.parametrize("solver", SOLVERS)
def test_two_classes(solver):
    X, y = classes_table()
    model = logistic(solver=solver).fit(X, y)
    assert model.score(X, y) > 0.8
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))


@pytest.mark.usefixtures("fixed_noise")
@pytest.mark.parametrize("solver", SOLVERS)
def test_three_classes_of_text(solver):
    X, y = classes_table(classes=3)
    names = np.array(["cat", "dog", "eel"])
    model = logistic(10, solver, classes=names.tolist(), radius=20).fit(X, names[y])
    assert model.score(X, names[y]) > 0.7
    assert model.predict_proba(X).shape == (N, 3)
    assert model.coef_.shape == (2, 6)


@pytest.mark.usefixtures("fixed_noise")
@pytest.mark.parametrize("solver", SOLVERS)
def test_numbers(solver):
    X, y = numbers_table()
    model = lasso(4, solver).fit(X, y)
    assert model.score(X, y) > 0.7
    inside = (model.predict(X) > -9) & (model.predict(X) < 39)
    linear = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose((15 + 25 * linear[inside, 0]), model.predict(X)[inside], rtol=1e-9)


@pytest.mark.usefixtures("fixed_noise")
@pytest.mark.parametrize(
    "settings", [{"noise": "laplace"}, {"iterate": "one"}, {"delay": 5}], ids=str
)
def test_other_settings_of_picks(settings, monkeypatch):
    monkeypatch.setattr("secrets.randbelow", lambda number: number - 2)
    X, y = classes_table()
    model = logistic(solver="frank-wolfe", **settings).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.spent_.epsilon <= 2
    assert len(model.entries_) == model.n_iter_ + 3  # the start, a reservation and its end


def test_pipelines_and_cross_validation():
    X, y = classes_table()
    pipeline = make_pipeline(FunctionTransformer(np.abs), logistic(bounds=(0, 1)))
    pipeline.fit(X, y)
    assert pipeline.predict(X).shape == (N,)
    scores = cross_val_score(logistic(3, steps=30), X, y, cv=3)
    assert (scores > 0.7).all()
    settings = logistic().get_params()
    assert clone(logistic()).get_params() == settings
    assert logistic().set_params(epsilon=5).epsilon == 5


# --- what is charged ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("make", [logistic, lasso])
def test_a_fit_charges_its_budget_and_every_draw(ledger, solver, make):
    X, y = classes_table() if make is logistic else numbers_table()
    model = make(2, solver, ledger=ledger, dataset="rows").fit(X, y)
    account = spent(ledger)
    assert account.epsilon == 2
    assert account.delta == Fraction(1, N * N)
    kinds = [entry.kind for entry in model.entries_]
    draws = model.n_iter_ + (solver == "frank-wolfe")  # which has a start to draw
    assert kinds == ["reserve", *["charge"] * draws, "settle"]
    assert accounting.epsilon(model.plan_, 1 / N**2).epsilon == model.spent_.epsilon
    assert 1.8 < model.spent_.epsilon <= 2
    with Ledger(ledger) as opened:
        opened.verify("rows")
    with pytest.raises(BudgetExhausted):
        make(2, solver, ledger=ledger, dataset="rows").fit(X, y)
    assert spent(ledger).epsilon == 2


def test_without_a_ledger_the_fit_keeps_an_account_of_its_own():
    X, y = classes_table()
    model = logistic(steps=3).fit(X, y)
    assert [e.kind for e in model.entries_] == ["reserve", "charge", "charge", "charge", "settle"]
    assert model.entries_[0].body["noise"] == "opendp"


def test_every_charge_is_durable_before_its_draw(ledger, monkeypatch):
    X, y = classes_table()

    class Watching(SeededNoise):
        seen: list[int] = []  # noqa: RUF012

        def gaussian(self, values, sigma):
            with Ledger(ledger) as other:
                charges = [e for e in other.entries("rows") if e.kind == "charge"]
            self.seen.append(len(charges))
            return super().gaussian(values, min(sigma, 1e5))

    monkeypatch.setattr(PrivateLogisticRegression, "_noise", lambda self: Watching(0))
    logistic(steps=4, rate=1.0, ledger=ledger, dataset="rows").fit(X, y)
    assert Watching.seen == [1, 2, 3, 4]


def test_a_relation_that_the_ledger_does_not_have_is_refused(ledger):
    X, y = classes_table()
    with pytest.raises(RelationError):
        logistic(ledger=ledger, dataset="rows", neighbours="replace").fit(X, y)
    assert spent(ledger).epsilon == 0


def test_replacing_costs_more_noise_and_makes_n_public():
    X, y = classes_table()
    one = logistic(steps=5, rows_public=N).fit(X, y)
    two = logistic(steps=5, rows_public=None, neighbours="replace").fit(X, y)
    assert two.plan_.charges[0].event.sigma > 1.2 * one.plan_.charges[0].event.sigma
    assert two.entries_[0].body["relation"] == str(Relation.REPLACE)


# --- what is refused ----------------------------------------------------------------------------


def table_with(value):
    X, y = classes_table()
    X = X.copy()
    X[7, 3] = value
    return X, y


BAD = {
    "no epsilon": ({"epsilon": None}, None, "epsilon is missing"),
    "epsilon zero": ({"epsilon": 0}, None, "epsilon = 0 must be above 0"),
    "epsilon below zero": ({"epsilon": -1}, None, "epsilon = -1 must be above 0"),
    "epsilon infinite": ({"epsilon": float("inf")}, None, "epsilon = inf is not finite"),
    "epsilon text": ({"epsilon": "much"}, None, "epsilon = 'much' is not a number"),
    "delta zero": ({"delta": 0}, None, "delta = 0 must be above 0"),
    "delta one": ({"delta": 1}, None, "delta = 1 must be at least 0 and far below"),
    "delta above 1/n": ({"delta": 0.01}, None, "delta = 0.01 must be above 0 and below 1/n"),
    "no bounds": ({"bounds": None}, None, "bounds are missing"),
    "bounds inverted": ({"bounds": (1, -1)}, None, "column 0: low = 1 is not below high = -1"),
    "a constant column": (
        {"bounds": ([-1, -1, 0, -1, -1, -1], [1, 1, 0, 1, 1, 1])}, None,
        "column 2: low = 0 is not below high = 0",
    ),
    "bounds of another width": ({"bounds": ([0, 0], [1, 1])}, None, "one for each of the 6 columns"),
    "radius zero": ({"radius": 0}, None, "radius = 0 must be above 0"),
    "radius below zero": ({"radius": -2.0}, None, "radius = -2.0 must be above 0"),
    "radius nan": ({"radius": float("nan")}, None, "radius = nan must be above 0"),
    "no solver": ({"solver": "adam"}, None, "solver = 'adam' is not one of"),
    "no steps": ({"steps": 0}, None, "steps = 0 must be a whole number from 1"),
    "half steps": ({"steps": 2.5}, None, "steps = 2.5 must be a whole number"),
    "rate": ({"rate": 1.5}, None, "rate = 1.5 must be in"),
    "clip": ({"clip": 0}, None, "clip = 0 must be above 0"),
    "clip of frank-wolfe": (
        {"clip": 1.0, "solver": "frank-wolfe"}, None, "clip = 1.0 is a setting of sgd",
    ),
    "one class": ({"classes": (1,)}, None, "1 class: a classifier needs at least two classes"),
    "no classes": ({"classes": None}, None, "classes are missing"),
    "classes of odd kind": ({"classes": 5}, None, "classes = 5 must be a list of labels"),
    "one class in y": (
        {"classes": "in y"}, (classes_table()[0], np.ones(N)), "1 class: a classifier needs",
    ),
    "a label beyond": ({"classes": (0, 2)}, None, "y holds labels that are not among"),
    "no labels": ({}, (classes_table()[0], np.linspace(0, 1, N)), "Unknown label type"),
    "nan": ({}, table_with(np.nan), "contains NaN"),
    "infinity": ({}, table_with(np.inf), "contains infinity"),
    "one row": ({}, (np.ones((1, 6)), np.ones(1)), "minimum of 2"),
    "lengths": ({}, (np.ones((5, 6)), np.ones(4)), "inconsistent numbers of samples"),
    "no y": ({}, (np.ones((5, 6)), None), "requires y"),
    "no n": ({"rows_public": None}, None, "rows_public is missing"),
    "n of one": ({"rows_public": 1}, None, "rows_public = 1 must be a whole number of at least 2"),
    "n too small": ({"rows_public": 20, "epsilon": 0.5}, None, "n = 20 rows are too few"),
    "n too small for picks": (
        {"rows_public": 20, "epsilon": 0.1, "solver": "frank-wolfe", "rate": None}, None,
        "n = 20 rows are too few",
    ),
    "neighbours": ({"neighbours": "close"}, None, "neighbours = 'close' must be"),
    "a ledger alone": ({"dataset": None}, None, "ledger and dataset go together"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_before_anything_is_charged(name, ledger):
    settings, table, said = BAD[name]
    X, y = table if table is not None else classes_table()
    settings = {"ledger": ledger, "dataset": "rows"} | settings
    model = logistic().set_params(**settings)
    with pytest.raises(InputError, match=said):
        model.fit(X, y)
    with Ledger(ledger) as opened:
        assert [entry.kind for entry in opened.entries("rows")] == ["open"]


def test_without_scikit_learn_the_error_names_the_extra():
    code = (
        "import sys\nsys.modules['sklearn'] = None\n"
        "import understudy.learn\n"
        "try:\n    from understudy.learn import PrivateLasso\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "InputError PrivateLasso needs scikit-learn, which is not installed: pip install '.[learn]', "
        "in the folder of the source"
    )
