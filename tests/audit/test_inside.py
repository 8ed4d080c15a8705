"""What a white box shows, against finite differences, and what an attack makes of it."""

from typing import Any

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.audit import learners
from understudy.audit import inside, scores, shadows
from understudy.audit.roc import roc
from understudy.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Linear:
    coef_ = np.array([[1.0, 0.0], [0.0, 1.0]])
    intercept_ = np.array([0.0, 0.5])


def test_a_linear_model_shows_its_gradient_by_finite_differences():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(3, 2)), np.array([0, 1, 1])

    def probabilities(coef, intercept):
        z = x @ coef.T + intercept
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    p = probabilities(Linear.coef_, Linear.intercept_)
    found = inside.white_box(Linear(), x, p, y)
    black = scores.black_box(p, y)
    assert np.array_equal(found[:, : black.shape[1]], black)
    assert found[:, -4:-2] == pytest.approx(x @ Linear.coef_.T + Linear.intercept_)
    norms = np.zeros((3, 2))
    for c in range(2):
        squares = np.zeros(3)
        for j in range(3):
            coef, intercept = Linear.coef_.copy(), Linear.intercept_.copy()
            (coef if j < 2 else intercept)[(c, j) if j < 2 else c] += 1e-6
            moved = -np.log(probabilities(coef, intercept)[np.arange(3), y])
            squares += ((moved + np.log(p[np.arange(3), y])) / 1e-6) ** 2
        norms[:, c] = np.sqrt(squares)
    assert found[:, -2:] == pytest.approx(norms, rel=1e-4)


def test_a_model_that_shows_nothing_is_named():
    with pytest.raises(InputError, match="object shows nothing of its inside"):
        inside.white_box(object(), np.zeros((1, 2)), np.array([[0.5, 0.5]]), np.array([0]))
    assert not inside.has_inside(object())


def cross_entropy(model: Any, x: Any, y: Any) -> Any:
    return -np.log(model.predict_proba(x)[np.arange(len(y)), y])


def squared(model: Any, x: Any, y: Any) -> Any:
    return (model.predict(x) - y) ** 2 / 2


def poisson(model: Any, x: Any, y: Any) -> Any:
    found = model.predict(x)
    return found - y * np.log(found)


def numerical(model: Any, block: Any, loss: Any) -> Any:
    """The norm of every row's gradient in one block of parameters."""
    squares, step = 0.0, 1e-6
    for place in np.ndindex(block.shape):
        kept = block[place]
        block[place] = kept + step
        up = loss(model)
        block[place] = kept - step
        squares = squares + ((up - loss(model)) / (2 * step)) ** 2
        block[place] = kept
    return np.sqrt(squares)


NETWORKS = [
    (MLPClassifier, {"hidden_layer_sizes": (4, 3), "activation": "tanh"}, 2, cross_entropy),
    (MLPClassifier, {"hidden_layer_sizes": (4,), "activation": "relu"}, 3, cross_entropy),
    (MLPClassifier, {"hidden_layer_sizes": (3, 2), "activation": "logistic"}, 3, cross_entropy),
    (MLPRegressor, {"hidden_layer_sizes": (4,), "activation": "identity"}, 0, squared),
    (MLPRegressor, {"hidden_layer_sizes": (3,), "loss": "poisson"}, 0, poisson),
]


@pytest.mark.parametrize(("kind", "choices", "classes", "loss"), NETWORKS)
def test_a_network_shows_its_gradients_by_finite_differences(
    kind: Any, choices: Any, classes: int, loss: Any
):
    """Blocks come from the last layer to the first, weights before intercepts."""
    if "loss" in choices:
        pytest.importorskip("sklearn", minversion="1.7")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(30, 3))
    y = rng.integers(0, classes, 30) if classes else rng.random(30) + 0.1
    model = kind(max_iter=20, random_state=1, **choices).fit(x, y)
    x, y = x[:6], y[:6]
    outputs = model.predict_proba(x) if classes else model.predict(x)
    found = inside.white_box(model, x, outputs, y)
    blocks = [b for pair in zip(model.coefs_, model.intercepts_, strict=True) for b in pair]
    expected = [numerical(model, block, lambda m: loss(m, x, y)) for block in blocks]
    ordered = [block for i in reversed(range(0, len(expected), 2)) for block in expected[i : i + 2]]
    assert found[:, -len(ordered) :] == pytest.approx(np.column_stack(ordered), rel=1e-4, abs=1e-7)


def test_hidden_units_in_another_order_show_the_same():
    """Two networks that are the same function must look the same to an attack."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(20, 3)), np.arange(20) % 3
    model = MLPClassifier((5,), max_iter=20, random_state=1).fit(x, y)
    before = inside.white_box(model, x, model.predict_proba(x), y)
    order = rng.permutation(5)
    model.coefs_[0], model.intercepts_[0] = model.coefs_[0][:, order], model.intercepts_[0][order]
    model.coefs_[1] = model.coefs_[1][order]
    assert inside.white_box(model, x, model.predict_proba(x), y) == pytest.approx(before)


def test_a_pipeline_is_looked_into():
    rng = np.random.default_rng(3)
    x, y = 100 * rng.normal(size=(20, 3)), np.arange(20) % 2
    model = make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=9)).fit(x, y)
    chances = model.predict_proba(x)
    assert inside.has_inside(model)
    alone = inside.white_box(model[-1], model[0].transform(x), chances, y)
    assert np.array_equal(inside.white_box(model, x, chances, y), alone)


def overfitted(rng: np.random.Generator) -> tuple[Any, Any]:
    """What the white box shows of 60 members, with labels by lot, and 60 others."""
    x, y = rng.normal(size=(120, 8)), rng.integers(0, 2, 120)
    network = MLPClassifier((32,), solver="lbfgs", max_iter=60, alpha=1e-3, random_state=7)
    model = network.fit(x[:60], y[:60])
    return inside.white_box(model, x, model.predict_proba(x), y), np.arange(120) < 60


def test_an_overfitted_network_is_attacked_better_than_by_chance():
    """Every seed is fixed: the numbers are the same in every run.

    The gradient's norm alone ranks members before others, and a network that was shown the white box
    of two shadows tells them apart in a third.
    """
    rng = np.random.default_rng(0)
    shadows_seen = [overfitted(rng) for _ in range(2)]
    shown, members = overfitted(rng)
    black = scores.black_box(np.full((1, 2), 0.5), np.array([0])).shape[1]
    assert roc(-shown[:, -1], members).auc > 0.7
    features, labels = (np.concatenate(part) for part in zip(*shadows_seen, strict=True))
    attacker = shadows.train_network(features[:, black:], labels, key=1)
    assert roc(attacker(shown[:, black:]), members).auc > 0.7


def test_a_network_that_learnt_nothing_gives_nothing_away():
    """Members of a network that never saw them are as others are: 0.5 ± 4 × 0.053."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(180, 8)), rng.integers(0, 2, 180)
    model = MLPClassifier((32,), solver="lbfgs", max_iter=60, random_state=7).fit(x[:60], y[:60])
    shown = inside.white_box(model, x[60:], model.predict_proba(x[60:]), y[60:])
    assert abs(roc(-shown[:, -1], np.arange(120) < 60).auc - 0.5) < 0.21


def test_the_audit_of_a_network_has_the_white_box():
    run = learners.design("network", canaries=6).run(0)
    assert run["white box"].shape[1] == run["black box"].shape[1] + 1 + 3 + 4
