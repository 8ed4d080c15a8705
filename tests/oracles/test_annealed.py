import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples, slow
from understudy.oracles import Annealed, History, Law, LazyNoise, objective
from understudy.queries.classes import Condition

from .instances import brute_force, histories, joined, random_history, solve


def legal(records, shape):
    return bool((records >= 0).all() and (records < np.asarray(shape)).all())


@given(st.booleans().flatmap(lambda general: histories(general=general)), st.integers(0, 2**32))
@settings(max_examples=examples(25, 150), deadline=None)
def test_records_are_legal_never_above_brute_force_and_never_below_the_warm_start(history, seed):
    rng = np.random.default_rng(seed)
    rows = 4
    noise = rng.laplace(0, 0.3, (rows, sum(history.shape)))
    warm = rng.integers(0, history.shape, (rows, len(history.shape)))
    found = solve(Annealed(), history, noise, warm=warm, rng=rng)
    assert found.shape == warm.shape
    assert legal(found, history.shape)
    values = objective(history, noise, found)
    assert (values <= objective(history, noise, brute_force(history, noise)) + 1e-9).all()
    assert (values >= objective(history, noise, warm) - 1e-9).all()


@pytest.mark.parametrize("general", [slow(False), True])
def test_best_of_eight_is_nearly_always_exact(general):
    rng, exact = np.random.default_rng(11), []
    for _ in range(150):
        shape = tuple(int(size) for size in rng.integers(2, 5, rng.integers(3, 6)))
        history = random_history(rng, shape, int(rng.integers(1, 25)), general)
        noise = rng.exponential(rng.choice([0.1, 0.5, 1.0]), (3, sum(shape)))
        found = solve(Annealed(starts=8), history, noise, rng=rng)
        best = objective(history, noise, brute_force(history, noise))
        exact += list(objective(history, noise, found) >= best - 1e-9)
    assert np.mean(exact) >= 0.97


def test_jumps_find_what_single_moves_cannot():
    # One conjunction of three pays more than all the noise against it.
    shape = (6, 6, 6)
    history = History.empty(shape).add((0, 1, 2), (5, 5, 5), 10.0)
    noise = np.zeros((50, 18))
    noise[:, [0, 6, 12]] = 1.0
    warm = np.zeros((50, 3), int)
    rng = np.random.default_rng(0)
    assert (solve(Annealed(starts=1), history, noise, warm=warm, rng=rng) == 5).all()
    assert (solve(Annealed(starts=1, blocks=0), history, noise, warm=warm, rng=rng) == 0).all()


@pytest.mark.parametrize("lazy", [False, True])
def test_the_key_decides(lazy):
    rng = np.random.default_rng(3)
    shape = (9, 16, 7, 15)
    history = random_history(rng, shape, 40)
    noise = LazyNoise(Law.GUMBEL, 0.5, 64) if lazy else rng.gumbel(0, 0.5, (64, sum(shape)))
    first, again, other = (
        solve(Annealed(), history, noise, rng=np.random.default_rng(key)) for key in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not lazy or (first != other).any()


def test_large_batches_come_in_parts():
    history = History.empty((5000,)).add((0,), (4,), 100.0)
    found = solve(
        Annealed(),
        History.empty((3, 5000)).add((1,), (4,), 100.0),
        np.zeros((900, 5003)),
        rng=np.random.default_rng(0),
    )
    assert (found[:, 1] == 4).all()
    noise = np.zeros((2, 5000))
    noise[1, 4000] = 1000.0
    assert solve(Annealed(), history, noise, rng=np.random.default_rng(0))[:, 0].tolist() == [
        4,
        4000,
    ]


def test_an_empty_history_follows_the_noise():
    noise = np.random.default_rng(0).normal(size=(20, 7))
    found = solve(Annealed(), History.empty((3, 4)), noise, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found[:, 0], noise[:, :3].argmax(axis=1))
    np.testing.assert_array_equal(found[:, 1], noise[:, 3:].argmax(axis=1))


def test_a_literal_that_nothing_satisfies_is_left_alone():
    both = joined("all", [Condition(0, 0, 1, True), Condition(1, 0, 0)])
    history = History.empty((2, 2)).add_query(both, 5.0)
    found = solve(Annealed(), history, np.zeros((4, 4)), rng=np.random.default_rng(0))
    assert legal(found, (2, 2))


def test_perturbed_leaders_have_little_regret_where_leaders_have_half_of_all_rounds():
    # Linear gains on {0,1}: the favourite of the past is always wrong next time.
    rounds, rng = 400, np.random.default_rng(0)

    def regret(scale):
        history, total, gains = History.empty((2,)), 0.0, np.zeros(2)
        for t in range(rounds):
            noise = LazyNoise(Law.EXPONENTIAL, scale, 200)
            played = solve(Annealed(starts=1, blocks=0), history, noise, rng=rng)
            weight = 0.5 if t == 0 else 1.0
            cell = t % 2
            total += weight * (played[:, 0] == cell).mean()
            gains[cell] += weight
            history = history.add((0,), (cell,), weight)
        return gains.max() - total

    assert regret(0.0) > rounds / 2 - 2
    assert regret(np.sqrt(rounds)) < 3 * np.sqrt(rounds)


def test_numba_is_loaded_by_the_first_search_alone():
    code = (
        "import sys, understudy.oracles; print(*(m in sys.modules for m in ('numba', 'ortools')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
