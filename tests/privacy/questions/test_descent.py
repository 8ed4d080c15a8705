"""Questions about examples: exact sums, exact sensitivities, exact privacy, charges first."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from tests.exact_privacy import (
    ChoosingNoise,
    PrivacyViolation,
    check,
    compare,
    enumerate_transcripts,
    neighbours,
)
from tests.thorough import some
from understudy.errors import BudgetExhausted, PrivacyError
from understudy.learn.plans import GRADIENT, PICK
from understudy.learn.solvers import frank_wolfe, stochastic_descent
from understudy.privacy import accounting
from understudy.privacy.cost import (
    Charge,
    Laplace,
    Plan,
    SampledGaussian,
    SampledSelection,
    Selection,
)
from understudy.privacy.exact import Examples
from understudy.privacy.features import GRID, Box
from understudy.privacy.gate import Gate
from understudy.privacy.losses import Logistic, Softmax, Squared
from understudy.privacy.noise import OpenDPNoise, poisson
from understudy.privacy.questions.descent import (
    UNIT,
    LinearGradient,
    SteepestVertex,
    Weights,
    l2_units,
)
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges

BOTH = list(Relation)


def gate_of(rows, targets, plan, *, noise=None, relation=Relation.ADD_REMOVE):
    features = np.array(rows, float).reshape(len(rows), -1)
    box = Box.of((-1, 1), features.shape[1], intercept=False)
    examples = Examples.seal(features, np.array(targets, float), box)
    return Gate(examples, StrictCharges(plan, relation), relation, noise or StillNoise())


def gradient(gate, weights, loss=None):
    return gate.ask(GRADIENT, LinearGradient(loss or Logistic(), weights))


def vertex(gate, weights, loss=None):
    return gate.ask(PICK, SteepestVertex(loss or Logistic(), weights))


def gaussian_plan(width, *, clip=1.0, sigma=1.0, rate=1.0, times=1, loss=None, sides=1):
    l2 = l2_units(clip, loss or Logistic())
    return Plan((Charge(GRADIENT, SampledGaussian(sigma * l2, l2, width, rate, sides), times),))


def zero(width, outputs=1):
    return Weights(np.zeros((outputs, width), np.int64), 1.0)


# --- sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Squared(2.0), Logistic(), Softmax(2)], ids=str)
def test_without_noise_and_clipping_it_is_the_gradient(loss):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (60, 5))
    y = (
        rng.uniform(-1, 1, 60)
        if isinstance(loss, Squared)
        else rng.integers(loss.outputs + 1, size=60)
    )
    whole = rng.integers(-(2**20), 2**20, (loss.outputs, 5))
    weights = Weights(whole, 2.0**-20)
    plan = gaussian_plan(5 * loss.outputs, clip=100.0, loss=loss)
    found = gradient(gate_of(rows, y, plan), weights, loss)
    expected = loss.residuals(rows @ weights.values.T, y.astype(float)).T @ rows
    np.testing.assert_allclose(found, expected, atol=60 * 3e-4)


def test_every_row_is_clipped_to_the_norm_that_is_charged():
    """Exactly: the integers of one row never have a larger norm, and come close to it."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        width, clip = int(rng.integers(1, 30)), float(rng.uniform(0.05, 1.0))
        rows = rng.uniform(-1, 1, (1, width)) * rng.choice([1.0, 0.1])
        noise = StillNoise()
        plan = gaussian_plan(width, clip=clip)
        gradient(gate_of(rows, [1], plan, noise=noise), zero(width))
        ((_, exact, _),) = noise.asked
        norm = math.isqrt(sum(int(v) ** 2 for v in exact.reshape(-1)))
        free = 0.5 * np.linalg.norm(rows) * UNIT
        assert norm <= plan[GRADIENT].event.l2
        assert norm >= min(free, plan[GRADIENT].event.l2) * 0.995


@pytest.mark.parametrize("relation", BOTH)
def test_scores_move_by_the_sensitivity_and_no_more(relation):
    """Over all neighbours of three rows at corners of the cube, to the unit."""
    rng = np.random.default_rng(2)
    corners = [((1.0, -1.0), -1), ((1.0, -1.0), 1), ((-1.0, 0.37), -1)]
    most = UNIT * relation.marginal_l1()
    plan = Plan((Charge(PICK, Selection(1.0, most)),))

    def scores(data, weights):
        noise = StillNoise()
        rows, targets = [x for x, _ in data], [y for _, y in data]
        if not rows:
            return np.zeros(4, np.int64)
        gate = gate_of(rows, targets, plan, noise=noise, relation=relation)
        vertex(gate, weights, Squared(1.0))
        return noise.asked[0][1]

    moved = []
    for size in (1, 2**10, 2**18, 2**20, 2**24):
        w = Weights(rng.integers(-size, size, (1, 2)), 2.0**-22)
        moved += [
            np.abs(scores(a, w) - scores(b, w)).max()
            for a, b in neighbours(corners, 2, str(relation))
        ]
    assert 0.99 * most < max(moved) <= most


def test_scores_are_kept_up_to_date_by_what_changed():
    rng = np.random.default_rng(3)
    rows, y = rng.uniform(-1, 1, (50, 40)), rng.integers(2, size=50)
    plan = Plan((Charge(PICK, Selection(1.0, UNIT), 100),))
    noise = StillNoise()
    kept = gate_of(rows, y, plan, noise=noise)
    whole = np.zeros((1, 40), np.int64)
    for t in range(20):
        whole[0, rng.integers(40)] += rng.integers(-5, 6)
        if t == 10:
            whole = rng.integers(-9, 9, (1, 40))
        fresh = StillNoise()
        found = vertex(kept, Weights(whole, 0.1))
        assert found == vertex(gate_of(rows, y, plan, noise=fresh), Weights(whole, 0.1))
        np.testing.assert_array_equal(noise.asked[-1][1], fresh.asked[-1][1])


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(4)
    rows, y = rng.uniform(-1, 1, (500, 7)), rng.integers(2, size=500)
    order = rng.permutation(500)
    plan, weights = gaussian_plan(7), Weights(rng.integers(-99, 99, (1, 7)), 0.01)
    one = gradient(gate_of(rows, y, plan), weights)
    two = gradient(gate_of(rows[order], y[order], plan), weights)
    assert np.array_equal(one, two)


@pytest.mark.parametrize("loss", [Squared(2.0), Logistic(), Softmax(3)], ids=str)
def test_a_row_adds_the_same_integers_whatever_the_others_are(loss):
    """Sums over a table are those without a row plus those of the row, to the unit."""
    rng = np.random.default_rng(5)
    rows, y = rng.uniform(-1, 1, (257, 9)), rng.integers(loss.outputs + 1, size=257)
    width = 9 * loss.outputs
    plans = (gaussian_plan(width, clip=0.4, loss=loss), Plan((Charge(PICK, Selection(1.0, UNIT)),)))
    weights = Weights(rng.integers(-(2**30), 2**30, (loss.outputs, 9)), 2.0**-28)

    def sums(part, plan):
        noise = StillNoise()
        gate = gate_of(rows[part], y[part], plan, noise=noise)
        ask = gradient if GRADIENT in plan else vertex
        ask(gate, weights, loss)
        return noise.asked[0][1].reshape(-1)

    everyone = np.arange(257)
    for plan in plans:
        for i in (0, 1, 100, 255, 256):
            others = np.delete(everyone, i)
            np.testing.assert_array_equal(
                sums(everyone, plan), sums(others, plan) + sums(np.array([i]), plan)
            )


# --- exact privacy ------------------------------------------------------------------------------


class Coins(ChoosingNoise):
    """Every row is taken, or not, on a branch of its own; scales can be cheated with."""

    rate, factor = 1.0, 1.0

    def below(self, number):
        taken = self._chooser.choose([math.log(self.rate), math.log1p(-self.rate)]) == 0
        return 0 if taken else number - 1

    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale * self.factor, k)


def picks_law(data, steps, event, relation, factor=1.0):
    plan = Plan((Charge(PICK, event, steps),))

    def run(chooser):
        noise = type("N", (Coins,), {"rate": getattr(event, "rate", 1.0), "factor": factor})(
            chooser
        )
        gate = gate_of(
            [x for x, _ in data], [y for _, y in data], plan, noise=noise, relation=relation
        )
        picked = []
        original = gate.ask

        def ask(purpose, question):
            picked.append(original(purpose, question))
            return picked[-1]

        gate.ask = ask
        frank_wolfe(gate, Squared(1.0), 3, 3.0, steps)
        return tuple((v.feature, v.sign) for v in picked)

    return enumerate_transcripts(run)


# The residuals of these are as large as they can be from the first step on.
ROWS = [((1.0, -1.0), -1), ((-1.0, 1.0), 1), ((1.0, 1.0), -1)]


@pytest.mark.parametrize(("relation", "steps"), some(itertools.product(BOTH, (1, 2)), 3))
def test_exact_privacy_of_frank_wolfe(relation, steps):
    event = Selection(2.0 * UNIT, UNIT * relation.marginal_l1())
    pairs = [pair for pair in neighbours(ROWS, 2, str(relation)) if all(pair)]
    claims = {
        "pure": steps * float(accounting.pure(event)),
        "rho": steps * float(accounting.rho(event)),
    }
    seen = check(lambda d: picks_law(d, steps, event, relation), pairs, **claims)
    if steps == 1:
        assert seen.pure > 0.5 * claims["pure"]
    with pytest.raises(PrivacyViolation):
        check(lambda d: picks_law(d, steps, event, relation, 0.3), pairs, **claims)


@pytest.mark.parametrize(("relation", "steps"), some(itertools.product(BOTH, (1, 2)), 3))
def test_exact_privacy_of_stochastic_frank_wolfe(relation, steps):
    event = SampledSelection(4.0 * UNIT, UNIT * relation.marginal_l1(), 0.5)
    pairs = [pair for pair in neighbours(ROWS, 1, str(relation)) if all(pair)]
    claims = {
        "pure": steps * float(accounting.pure(event)),
        "rho": steps * float(accounting.rho(event)),
    }
    check(lambda d: picks_law(d, steps, event, relation), pairs, **claims)
    with pytest.raises(PrivacyViolation):
        check(lambda d: picks_law(d, steps, event, relation, 0.2), pairs, **claims)


def test_picks_by_laplace_noise_need_twice_what_a_score_moves():
    rows, targets = [[1.0, 0.5]], [1.0]
    for relation in BOTH:
        most = UNIT * relation.marginal_l1()
        enough = Plan((Charge(PICK, Laplace(3.0 * UNIT, 2 * most), 1),))
        noise = StillNoise()
        picked = vertex(gate_of(rows, targets, enough, noise=noise, relation=relation), zero(2))
        assert (picked.feature, picked.sign) == (0, 1)
        assert [(kind, scale) for kind, _, scale in noise.asked] == [("laplace", 3.0 * UNIT)]
        short = Plan((Charge(PICK, Laplace(3.0 * UNIT, 2 * most - 1), 1),))
        with pytest.raises(PrivacyError, match="scores of vertices"):
            vertex(gate_of(rows, targets, short, relation=relation), zero(2))
        cut_off = Plan((Charge(PICK, Laplace(2.0**60, 2 * most), 1),))
        with pytest.raises(PrivacyError, match="scores of vertices"):
            vertex(gate_of(rows, targets, cut_off, relation=relation), zero(2))


class Scripted(StillNoise):
    """Takes the rows it is told to, answers with given gradients, and keeps the exact ones."""

    def __init__(self, batches, answers):
        super().__init__()
        self._coins = [coin for batch in batches for coin in batch]
        self._answers = list(answers)

    def below(self, number):
        return 0 if self._coins.pop(0) else number - 1

    def gaussian(self, values, sigma):
        super().gaussian(values, sigma)
        return np.full_like(values, self._answers.pop(0))


def gradients_law(data, steps, event, relation, factor=1.0):
    """The law of one or two noisy gradients of `stochastic_descent`, as an array over answers."""
    sigma = event.sigma * factor
    support = np.arange(-int(5.5 * event.sigma), int(5.5 * event.sigma) + 1)
    batches = list(itertools.product([True, False], repeat=len(data)))
    chance = [math.prod(event.rate if taken else 1 - event.rate for taken in b) for b in batches]
    plan = Plan((Charge(GRADIENT, event, steps),))

    def exact(batch, before):
        noise = Scripted([(False,) * len(data)] * len(before) + [batch], [*before, 0])
        gate = gate_of(
            [x for x, _ in data], [y for _, y in data], plan, noise=noise, relation=relation
        )
        # Weights after the steps so far are the solver's own.
        stochastic_descent(gate, Logistic(), 2, 1e6, len(before) + 1)
        return int(noise.asked[-1][1].item())

    def noisy(center):
        law = np.exp(-((support - center) ** 2) / (2 * sigma**2))
        return law / law.sum()

    first = sum(p * noisy(exact(b, [])) for p, b in zip(chance, batches, strict=True))
    if steps == 1:
        return dict(zip(support.tolist(), np.log(first).tolist(), strict=True))
    law = {}
    for z, p_z in zip(support.tolist(), first, strict=True):
        centers = Counter()
        for p, b in zip(chance, batches, strict=True):
            centers[exact(b, [z])] += p
        second = sum(p * noisy(c) for c, p in centers.items())
        for i, q in enumerate(second):
            law[z, i] = math.log(p_z) + math.log(q)
    return law


# One unit of the grid, so that gradients are small integers and their laws can be written down.
TINY = [((1 / GRID,), 0), ((1 / GRID,), 1), ((-1 / GRID,), 1)]


@pytest.mark.parametrize(("relation", "steps"), some(itertools.product(BOTH, (1, 2)), 2))
def test_exact_privacy_of_noisy_gradients(relation, steps):
    event = SampledGaussian(16.0, 12, 1, 0.5, relation.marginal_l1())
    delta = 0.02
    claimed = accounting.epsilon(Plan((Charge(GRADIENT, event, steps),)), delta)
    assert claimed.by == "pld"
    pairs = [pair for pair in neighbours(TINY, 1, str(relation)) if all(pair)]
    pairs = pairs if steps == 1 else pairs[:2]
    check(
        lambda d: gradients_law(d, steps, event, relation),
        pairs,
        epsilon_delta=(claimed.epsilon, delta),
    )
    if steps == 2:
        return
    cheated = [
        compare(*(gradients_law(d, steps, event, relation, 0.5) for d in pair)) for pair in pairs
    ]
    assert max(each.delta(claimed.epsilon) for each in cheated) > delta


# --- noise and samples --------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (2 / 3, False), (1.5, False)])
def test_the_noise_has_the_scale_that_was_charged(factor, right):
    """On rows without features a gradient is noise alone."""
    width = 1500
    plan = gaussian_plan(width, sigma=3.0 * factor)
    found = gradient(gate_of(np.zeros((1, width)), [1], plan, noise=OpenDPNoise()), zero(width))
    spread = math.sqrt((found**2).mean()) / 3.0
    assert (abs(spread - 1) < 5 / math.sqrt(2 * width)) is right


def test_a_poisson_sample_takes_every_row_by_itself():
    rate, rows = 0.25, 4000
    taken = [poisson(OpenDPNoise(), rows, rate) for _ in range(20)]
    sizes = np.array([len(each) for each in taken])
    assert abs(sizes.mean() - 1000) < 5 * math.sqrt(rows * rate * 0.75 / 20)
    assert len(set(sizes)) > 1
    assert len(np.intersect1d(taken[0], taken[1])) == pytest.approx(rows / 16, rel=0.4)
    assert np.array_equal(poisson(OpenDPNoise(), 5, 1.0), np.arange(5))
    seeded = poisson(SeededNoise(0), rows, rate)
    assert len(seeded) == pytest.approx(1000, rel=0.15)


def test_empty_batches_are_charged_and_noisy():
    plan = gaussian_plan(4, rate=2.0**-32, times=3, sigma=2.0)
    gate = gate_of(np.ones((5, 4)), [1] * 5, plan, noise=OpenDPNoise())
    assert (gradient(gate, zero(4)) != 0).any()


# --- charges ------------------------------------------------------------------------------------


def test_every_draw_is_charged_and_the_plan_is_the_limit():
    plan = gaussian_plan(2, times=2)
    gate = gate_of(np.ones((3, 2)), [1, 0, 1], plan)
    gradient(gate, zero(2))
    gradient(gate, zero(2))
    with pytest.raises(BudgetExhausted):
        gradient(gate, zero(2))


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (Selection(1.0, UNIT - 1), Relation.ADD_REMOVE),
        (Selection(1.0, UNIT), Relation.REPLACE),
        (Selection(1.0, UNIT, 2), Relation.ADD_REMOVE),
        (SampledSelection(1.0, UNIT, 0.5), Relation.REPLACE),
        (SampledGaussian(100.0, 10, 2), Relation.ADD_REMOVE),
    ],
)
def test_a_pick_that_the_plan_does_not_cover_is_refused(event, relation):
    plan = Plan((Charge(PICK, event),))
    charges = StrictCharges(plan, relation)
    box = Box.of((-1, 1), 2, intercept=False)
    examples = Examples.seal(np.ones((3, 2)), np.ones(3), box)
    gate = Gate(examples, charges, relation, StillNoise())
    with pytest.raises(PrivacyError, match="does not cover"):
        vertex(gate, zero(2))
    assert charges.charged == []


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (SampledGaussian(100.0, 10, 1), Relation.ADD_REMOVE),
        (SampledGaussian(100.0, 10, 2), Relation.REPLACE),
        (Selection(1.0, UNIT), Relation.ADD_REMOVE),
    ],
)
def test_a_gradient_that_the_plan_does_not_cover_is_refused(event, relation):
    gate = gate_of(np.ones((3, 2)), [1, 0, 1], Plan((Charge(GRADIENT, event),)), relation=relation)
    with pytest.raises(PrivacyError, match="does not cover"):
        gradient(gate, zero(2))


@pytest.mark.parametrize(
    "weights",
    [
        Weights(np.zeros((1, 3), np.int64), 1.0),
        Weights(np.zeros((1, 2), np.int32), 1.0),
        Weights(np.zeros((1, 2), np.int64), math.inf),
        Weights(np.full((1, 2), 2**60), 1.0),
    ],
)
def test_weights_that_cannot_be_summed_exactly_are_refused(weights):
    gate = gate_of(np.ones((3, 2)), [1, 0, 1], gaussian_plan(2))
    with pytest.raises(PrivacyError):
        gradient(gate, weights)


def test_nothing_about_rows_is_in_an_error_of_the_noise():
    class Broken(StillNoise):
        def gaussian(self, values, sigma):
            raise ValueError(f"secret {values}")

    gate = gate_of(np.ones((3, 2)), [1, 0, 1], gaussian_plan(2), noise=Broken())
    with pytest.raises(PrivacyError, match=r"could not be drawn \(ValueError\)") as caught:
        gradient(gate, zero(2))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
