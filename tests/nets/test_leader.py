"""The generator's play: leaders of the past, steps that help, and divergence that is said."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.nets.critics import Cells, Objective, Units
from understudy.nets.generator import Generator, one_hot
from understudy.nets.leader import (
    Conjunctions,
    Diverged,
    Past,
    Play,
    Player,
    Truth,
    duel,
    moments_of,
)

SHAPE = (2, 3)
PAIR = Cells(SHAPE, ((0, 1),))
SMALL = Player(Generator(SHAPE, latent=8, width=16, blocks=1), steps=5, batch=64)


def params_of(trained):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trained.params)]


# --- the past -----------------------------------------------------------------------------------


def history(play, batch=1, rounds=9):
    past = Past(play, batch)
    for critic in np.random.default_rng(0).standard_normal((rounds, 5)):
        past = past.plus(critic)
    return past


def test_leaders_are_means_of_the_past():
    critics = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    rng = np.random.default_rng(1)
    np.testing.assert_array_equal(history(Play.LAST).leader(rng), critics[-1])
    for play in (Play.FTL, Play.FTPL):
        np.testing.assert_allclose(history(play).leader(rng), critics.mean(axis=0), atol=1e-6)
    assert history(Play.FTL).mean().shape == (5,)


@pytest.mark.parametrize("batch", [9, 10, 1000])
def test_a_batch_of_all_the_past_is_the_past_bit_for_bit(batch):
    rng = np.random.default_rng(1)
    whole, part = history(Play.FTPL).leader(rng), history(Play.SFTPL, batch).leader(rng)
    np.testing.assert_array_equal(whole, part)


def test_a_batch_is_unbiased_and_drawn_anew():
    past, rng = history(Play.SFTPL, 3), np.random.default_rng(2)
    drawn = np.stack([past.leader(rng) for _ in range(4_000)])
    assert len({row.tobytes() for row in drawn}) > 50
    error = drawn.std(axis=0) / np.sqrt(4_000)
    assert (np.abs(drawn.mean(axis=0) - past.mean()) < 4.5 * error).all()


def regret(play, rounds=400, batch=None):
    """Of a player on {0, 1} who answers to its leader while the losses alternate (linear, exact)."""
    rng = np.random.default_rng(3)
    past, paid = Past(play, 1), 0.0
    total = 0.0
    losses = [0.5 if t == 0 else (-1.0) ** t for t in range(rounds)]
    for t, loss in enumerate(losses):
        if t == 0:
            x = 0.0
        else:
            now = past if batch is None else Past(play, batch(t, rng), t, past.critics, past.total)
            lead = t * float(now.leader(rng)[0])
            noise = rng.exponential(np.sqrt(rounds)) if play is Play.FTPL else 0.0
            # Two actions, each with its noise: argmin of the perturbed leader.
            other = rng.exponential(np.sqrt(rounds)) if play is Play.FTPL else 0.0
            x = float(lead - noise < -other)
        paid += loss * x
        total += loss
        past = past.plus(np.array([loss]))
    return paid - min(0.0, total)


def test_alternating_losses_ruin_the_leader_and_not_the_perturbed_one():
    assert regret(Play.FTL) >= 400 / 2 - 2
    assert regret(Play.FTPL) < 400 / 4
    half = regret(Play.SFTPL, batch=lambda t, rng: max(1, rng.binomial(t, 0.5)))
    assert half < 400 / 3


# --- steps --------------------------------------------------------------------------------------


def test_conjunctions_are_products_of_heads():
    rng = np.random.default_rng(0)
    heads = np.concatenate([rng.dirichlet(np.ones(s), 7) for s in SHAPE], axis=1)
    literals = np.array([[0, 2], [1, 4], [3, 5], [5, 5]])
    found = Conjunctions(4, 2).moments(jnp.asarray(heads), jnp.asarray(literals))
    padded = np.concatenate([heads, np.ones((7, 1))], axis=1)
    expected = [(padded[:, a] * padded[:, b]).mean() for a, b in literals]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    hard = one_hot(SHAPE, jnp.asarray(list(itertools.product(range(2), range(3)))))
    ones = Conjunctions(1, 2).moments(hard, jnp.asarray([[1, 4]]))
    assert float(ones[0]) == pytest.approx(1 / 6)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "play", [Play.SFTPL, *(pytest.param(p, marks=SLOW) for p in Play)], ids=str
)
def test_the_generator_goes_where_the_critic_sends_it(play):
    player = Player(SMALL.generator, 20, 64, scale=0.01 * play.perturbed)
    key = jax.random.key(0)
    trained = player.start(None, key)
    theta = PAIR.flat([np.array([[0, 0, 1.0], [0, 0, 0]])])
    before = float(theta @ moments_of(player, PAIR, trained.params, key))
    past, rng = Past(play, 2), np.random.default_rng(0)
    for t in range(1, 6):
        past = past.plus(theta)
        trained, _ = player.improve(trained, PAIR, past.leader(rng), 0.01, t, jax.random.key(t))
    after = float(theta @ moments_of(player, PAIR, trained.params, key))
    assert before < 0.3 < 0.6 < after


@pytest.mark.slow
def test_an_anchor_holds_the_generator_where_it_began():
    shares = [np.array([0.7, 0.3]), np.array([0.2, 0.5, 0.3])]
    theta = PAIR.flat([np.array([[0, 0, 1.0], [0, 0, 0]])])
    moved = []
    for anchor in (0.0, 10.0):
        player = Player(SMALL.generator, 50, 64, anchor)
        trained = player.start(shares, jax.random.key(0))
        for t in range(1, 4):
            trained, _ = player.improve(trained, PAIR, theta, 0.01, 1, jax.random.key(t))
        seen = PAIR.tables(moments_of(player, PAIR, trained.params, jax.random.key(9)))[0]
        moved.append(float(np.abs(seen.sum(axis=0) - shares[1]).sum()))
    assert moved[1] < 0.2 < 0.8 < moved[0]


@pytest.mark.parametrize(
    "objective", [Objective.TV, *(pytest.param(o, marks=SLOW) for o in Objective)], ids=str
)
def test_duels_bring_the_generator_to_the_table(objective):
    table = np.array([[0.4, 0.1, 0.0], [0.0, 0.1, 0.4]])
    noise = PAIR.spread([0.01])
    truth = Truth(PAIR, PAIR.flat([table]), noise, np.ones(PAIR.size))
    player = Player(SMALL.generator, 1, 128)
    trained = player.start(None, jax.random.key(0))
    rounds = []
    trained, past = duel(
        player, trained, truth, objective, Past(Play.LAST), 150, lambda t: 0.01 / (1 + t / 30),
        np.random.default_rng(0), lambda t, trained, worst: rounds.append(t),
    )  # fmt: skip
    assert rounds == list(range(1, 151))
    assert past.rounds == 150
    codes = player.records(trained, 4_000, jax.random.key(3))
    seen = np.zeros(SHAPE)
    np.add.at(seen, tuple(codes.T), 1 / 4_000)
    assert 0.5 * np.abs(seen - table).sum() < 0.12


@pytest.mark.slow
def test_waves_are_learned_from_relaxed_records():
    rng = np.random.default_rng(0)
    waves = Units("fourier", rng.standard_normal((sum(SHAPE), 16)), np.zeros(16), 4.0)
    data = one_hot(SHAPE, jnp.asarray(np.array([[0, 0], [1, 2]])))
    means = np.asarray(waves.moments(data), np.float64)
    truth = Truth(waves, means, np.full(waves.size, 0.01), np.ones(waves.size))
    trained, _ = duel(
        SMALL, SMALL.start(None, jax.random.key(0)), truth, Objective.MMD, Past(Play.LAST), 100,
        lambda t: 0.01, rng, lambda t, trained, worst: None,
    )  # fmt: skip
    codes = SMALL.records(trained, 2_000, jax.random.key(1))
    together = ((codes == [0, 0]).all(axis=1) | (codes == [1, 2]).all(axis=1)).mean()
    assert together > 0.75


def test_a_loss_that_is_no_number_is_said():
    trained = SMALL.start(None, jax.random.key(0))
    with pytest.raises(Diverged, match=r"diverged in round 7.*lower rate"):
        SMALL.improve(trained, PAIR, np.full(PAIR.size, np.nan), 0.01, 7, jax.random.key(1))


def test_same_numbers_same_generator_bit_for_bit():
    theta = PAIR.flat([np.array([[0, 0.3, 1.0], [0.1, 0, 0]])])
    twins = [
        SMALL.improve(SMALL.start(None, jax.random.key(0)), PAIR, theta, 0.01, 1, jax.random.key(1))
        for _ in range(2)
    ]
    assert twins[0][1] == twins[1][1]
    for one, other in zip(*(params_of(twin) for twin, _ in twins), strict=True):
        np.testing.assert_array_equal(one, other)
