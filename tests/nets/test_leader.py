"""The generator's play: leaders of the past, the law that the network is moved to, divergence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.nets.critics import Cells
from understudy.nets.generator import Generator, one_hot
from understudy.nets.leader import Diverged, Past, Play, Player

SHAPE = (2, 3)
PAIR = Cells(SHAPE, ((0, 1),))
# That of tests/nets/test_duel.py, whose programs are then compiled once.
SMALL = Player(
    Generator(SHAPE, latent=8, width=16, blocks=1), steps=5, batch=64, seen=512, rate=0.01, eta=0.3
)
EVERY = np.array(list(np.ndindex(SHAPE)))


def params_of(trained):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trained.params)]


# --- the past -----------------------------------------------------------------------------------


def history(play, batch=None, rounds=9):
    past = Past(play, batch)
    for critic in np.random.default_rng(0).standard_normal((rounds, 5)):
        past = past.plus(critic)
    return past


def test_leaders_are_sums_of_the_past():
    critics = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    rng = np.random.default_rng(1)
    for play in (Play.FTL, Play.FTPL):
        past = history(play)
        np.testing.assert_allclose(past.leader(rng), critics.sum(axis=0), atol=1e-5)
        assert past.critics == ()


@pytest.mark.parametrize("batch", [9, 10, 1000])
def test_a_batch_of_all_the_past_is_the_past_bit_for_bit(batch):
    rng = np.random.default_rng(1)
    whole, part = history(Play.FTPL).leader(rng), history(Play.SFTPL, batch).leader(rng)
    np.testing.assert_array_equal(whole, part)


@pytest.mark.parametrize("batch", [3, None])
def test_a_sample_is_unbiased_and_drawn_anew(batch):
    """Of 4000 fixed draws; each mean is within 4.5 standard errors."""
    past, rng = history(Play.SFTPL, batch), np.random.default_rng(2)
    drawn = np.stack([past.leader(rng) for _ in range(4_000)])
    assert len({row.tobytes() for row in drawn}) > 50
    error = drawn.std(axis=0) / np.sqrt(4_000)
    assert (np.abs(drawn.mean(axis=0) - past.total) < 4.5 * error).all()


def regret(play, rounds=400):
    """Of a player on {0, 1} who answers to its leader while the losses alternate (linear, exact)."""
    rng = np.random.default_rng(3)
    past, paid, total = Past(play), 0.0, 0.0
    losses = [0.5 if t == 0 else (-1.0) ** t for t in range(rounds)]
    for t, loss in enumerate(losses):
        lead = float(past.leader(rng)[0]) if t else 0.0
        # Two actions, each with its noise: argmin of the perturbed leader.
        noise = rng.exponential(np.sqrt(rounds), 2) if play is Play.FTPL else np.zeros(2)
        x = float(t > 0 and lead - noise[0] < -noise[1])
        paid += loss * x
        total += loss
        past = past.plus(np.array([loss]))
    return paid - min(0.0, total)


def test_alternating_losses_ruin_the_leader_and_not_the_perturbed_ones():
    assert regret(Play.FTL) >= 400 / 2 - 2
    assert regret(Play.FTPL) < 400 / 4
    assert regret(Play.SFTPL) < 400 / 4


# --- the law ------------------------------------------------------------------------------------


def law(player, trained, draws=20_000):
    codes = player.records(trained, draws, jax.random.key(3))
    table = np.zeros(SHAPE)
    np.add.at(table, tuple(codes.T), 1 / draws)
    return table


def played(player, leader, shares=None, rounds=40):
    trained = player.start(shares, jax.random.key(0))
    for t in range(rounds):
        trained, _ = player.follow(trained, PAIR, leader, t + 1, jax.random.key(t))
    return trained


def test_the_network_goes_to_the_weights_of_all_records():
    """p₀·exp(η·D), which is what multiplicative weights have after the same critics."""
    shares = [np.array([0.7, 0.3]), np.array([0.2, 0.5, 0.3])]
    table = np.array([[3.0, -2.0, 0.0], [0.0, 1.0, 4.0]])
    player = Player(SMALL.generator, steps=10, batch=128, rate=0.01, eta=0.4)
    found = law(player, played(player, jnp.asarray(PAIR.flat([table]), jnp.float32), shares))
    expected = np.outer(*shares) * np.exp(0.4 * table)
    expected /= expected.sum()
    start = np.abs(np.outer(*shares) - expected).sum() / 2
    assert np.abs(found - expected).sum() / 2 < 0.05 < 0.2 < start


@pytest.mark.slow
def test_noise_moves_the_network_to_the_values_that_it_likes():
    calm = Player(SMALL.generator, steps=10, batch=64, rate=0.01, eta=1.0)
    wild = Player(SMALL.generator, steps=10, batch=64, rate=0.01, eta=1.0, scale=5.0)
    zero, key = jnp.zeros(PAIR.size), jax.random.key(7)
    start = calm.start(None, jax.random.key(0))
    moved = []
    for player in (calm, wild):
        trained = start
        for _ in range(15):
            trained, _ = player.follow(trained, PAIR, zero, 1, key)
        moved.append(np.abs(law(player, trained) - 1 / 6).sum() / 2)
    assert moved[0] < 0.1 < 0.3 < moved[1]


@pytest.mark.slow
def test_one_step_raises_the_likelihood_of_what_the_leader_likes():
    theta = np.zeros(SHAPE)
    theta[1, 2] = 30.0
    player = Player(SMALL.generator, steps=1, batch=256, rate=0.01, eta=1.0)
    before = player.start(None, jax.random.key(0))
    after, _ = player.follow(before, PAIR, jnp.asarray(PAIR.flat([theta])), 1, jax.random.key(1))
    rows, z = one_hot(SHAPE, jnp.asarray(EVERY)), player.generator.latents(jax.random.key(2), 500)
    shares = []
    for trained in (before, after):
        heads = player.generator.log_softmax(player.generator.logits(trained.params, z))
        shares.append(np.exp(np.asarray(rows @ heads.T)).mean(axis=1))
    assert shares[0].sum() == pytest.approx(1.0, abs=1e-5)
    assert (shares[1] - shares[0]).argmax() == 5
    assert shares[1][5] > shares[0][5]


def test_a_loss_that_is_no_number_is_said():
    trained = SMALL.start(None, jax.random.key(0))
    with pytest.raises(Diverged, match=r"diverged in round 7.*lower rate"):
        SMALL.follow(trained, PAIR, np.full(PAIR.size, np.nan), 7, jax.random.key(1))


def test_same_numbers_same_generator_bit_for_bit():
    theta = PAIR.flat([np.array([[0, 0.3, 1.0], [0.1, 0, 0]])])
    twins = [
        SMALL.follow(SMALL.start(None, jax.random.key(0)), PAIR, theta, 1, jax.random.key(1))
        for _ in range(2)
    ]
    assert twins[0][1] == twins[1][1]
    for one, other in zip(*(params_of(twin) for twin, _ in twins), strict=True):
        np.testing.assert_array_equal(one, other)
