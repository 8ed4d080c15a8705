"""Critics of noisy means against a generator: it comes to the table, and regret is within its bound."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.nets.critics import Cells, Objective, Question, Units
from understudy.nets.duel import Best, Regularised, Truth, duel, match
from understudy.nets.generator import Generator, one_hot
from understudy.nets.leader import Diverged, Past, Play, Player

SHAPE = (2, 3)
PAIR = Cells(SHAPE, ((0, 1),))
TABLE = np.array([[0.4, 0.1, 0.0], [0.0, 0.1, 0.4]])
GENERATOR = Generator(SHAPE, latent=8, width=16, blocks=1)
MATCHING = Player(GENERATOR, steps=1, batch=128, seen=128)
LEADING = Player(GENERATOR, steps=5, batch=64, seen=512, rate=0.01, eta=0.3)
SLOW = pytest.mark.slow


def truth(questions=()):
    cells = Cells(SHAPE, PAIR.cliques, questions)
    return Truth(cells, PAIR.flat([TABLE]), PAIR.spread([0.01]), np.ones(PAIR.size))


def matched(known):
    return lambda trained, critic, t, key: match(
        MATCHING, trained, known.features, critic, 0.01 / (1 + t / 30), t, key
    )


def following(player, known, play=Play.FTL):
    past, rng = [Past(play)], np.random.default_rng(1)

    def answer(trained, critic, t, key):
        past[0] = past[0].plus(np.asarray(critic))
        return player.follow(trained, known.features, past[0].leader(rng), t, key)[0]

    return answer


def averaged(player, known, critics, answer, rounds, first=None):
    """The table of the last half of the rounds, or of those from the first on, and who played."""
    kept = []
    start = player.start([TABLE.sum(axis=1), TABLE.sum(axis=0)], jax.random.key(0))
    rng = np.random.default_rng(0)
    for t, trained, after, _ in duel(player, start, known, critics, answer, rounds, rng):
        critics = after
        if t > (rounds // 2 if first is None else first):
            kept.append(player.records(trained, 500, jax.random.key(t)))
    codes = np.concatenate(kept)
    seen = np.zeros(SHAPE)
    np.add.at(seen, tuple(codes.T), 1 / len(codes))
    return seen, critics


@pytest.mark.parametrize(
    "objective", [Objective.TV, *(pytest.param(o, marks=SLOW) for o in Objective)], ids=str
)
def test_matching_brings_the_generator_to_the_table(objective):
    asked = {Objective.WASSERSTEIN: Question.CUT, Objective.PARITY: Question.SIGN}
    known = truth((asked[objective],) * 2 if objective in asked else ())
    seen, _ = averaged(MATCHING, known, Best(objective, known), matched(known), 150)
    assert 0.5 * np.abs(seen - TABLE).sum() < 0.12


@SLOW  # the semi-convex solver's generator follows the leader too
@pytest.mark.parametrize("play", Play, ids=str)
def test_leaders_bring_the_average_to_the_table(play):
    """Independent columns are off by 0.2 in the worst cell; drawing halves of the history is slower."""
    known = truth()
    answer = following(LEADING, known, play)
    seen, _ = averaged(LEADING, known, Best(Objective.MAX, known), answer, 80)
    assert np.abs(seen - TABLE).max() < (0.08 if play is Play.SFTPL else 0.06)


@SLOW
def test_waves_are_matched_from_relaxed_records():
    rng = np.random.default_rng(0)
    waves = Units("fourier", rng.standard_normal((sum(SHAPE), 16)), np.zeros(16), 4.0)
    data = one_hot(SHAPE, jnp.asarray(np.array([[0, 0], [1, 2]])))
    means = np.asarray(waves.moments(data), np.float64)
    known = Truth(waves, means, np.full(waves.size, 0.01), np.ones(waves.size))
    seen, _ = averaged(MATCHING, known, Best(Objective.MMD, known), matched(known), 150)
    assert seen[0, 0] + seen[1, 2] > 0.75


def test_matching_that_diverges_is_said():
    trained = MATCHING.start(None, jax.random.key(0))
    with pytest.raises(Diverged, match=r"diverged in round 7.*lower rate"):
        match(MATCHING, trained, PAIR, jnp.full(PAIR.size, jnp.nan), 0.01, 7, jax.random.key(1))


# --- the regularised leader ---------------------------------------------------------------------


def ran(gradients, eta=1.0):
    critics = Regularised(len(gradients), eta)
    played = []
    for gradient in gradients:
        theta, critics = critics.play(jnp.asarray(gradient), jnp.zeros(0))
        played.append(np.asarray(theta, np.float64))
    return np.array(played), critics


def test_regularised_critics_maximise_their_objective():
    gradients = np.random.default_rng(0).standard_normal((6, 4))
    played, _ = ran(gradients, eta=0.5)
    assert not played[0].any()
    rng = np.random.default_rng(1)
    for t in range(1, 6):
        total, weight = gradients[:t].sum(axis=0), np.sqrt(6) / (2 * 0.5)
        others = rng.standard_normal((2_000, 4))
        others /= np.maximum(1, np.linalg.norm(others, axis=1, keepdims=True))
        values = others @ total - weight * (others**2).sum(axis=1)
        assert played[t] @ total - weight * played[t] @ played[t] >= values.max() - 1e-6
        assert np.linalg.norm(played[t]) <= 1 + 1e-6


@pytest.mark.parametrize("eta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", ["random", "constant", "alternating", "turning"])
def test_regret_is_what_it_is_called_and_within_its_bound(kind, eta):
    rng, t = np.random.default_rng(0), np.arange(200)
    gradients = {
        "random": rng.standard_normal((200, 3)),
        "constant": np.tile([0.3, 0.0, -0.1], (200, 1)),
        "alternating": np.outer((-1.0) ** t, [1.0, 0.5, 0.0]),
        "turning": np.stack([np.cos(t / 20), np.sin(t / 20), 0 * t], axis=1),
    }[kind]
    played, critics = ran(gradients, eta)
    paid = (played * gradients).sum()
    assert critics.regret == pytest.approx(
        (np.linalg.norm(gradients.sum(axis=0)) - paid) / 200, abs=1e-5
    )
    squares = (gradients**2).sum()
    root = np.sqrt(200)
    assert critics.bound == pytest.approx((root / (2 * eta) + eta / (2 * root) * squares) / 200)
    assert critics.regret <= critics.bound


def test_the_semi_convex_solver_comes_to_the_table():
    """Algorithm 1: regularised critics, a generator that follows the leader."""
    known = truth()
    answer = following(LEADING, known)
    seen, critics = averaged(LEADING, known, Regularised(100, 4.0), answer, 100, first=0)
    assert np.abs(seen - TABLE).max() < 0.06
    assert isinstance(critics, Regularised)
    assert critics.played == 100
    assert critics.regret <= critics.bound < 1
