"""Line searches: the best record with and without a query, and the weight between them."""

import itertools

import numpy as np
import pytest
from bench.oracle import Given

from understudy.oracles import Annealed, History, Law, LazyNoise, objective
from understudy.oracles.base import Split, into
from understudy.oracles.exact import Exact
from understudy.queries.classes import Condition

from .instances import joined, solve

SHAPE = (3, 3, 3)
EVERY = np.array(list(itertools.product(*(range(size) for size in SHAPE))))


class Thorough(Annealed):
    """One that never searches less."""

    def brief(self):
        return self


def past(rng):
    columns = np.array([np.sort(rng.choice(3, 2, replace=False)) for _ in range(6)])
    return History.empty(SHAPE).add_many(
        columns, rng.integers(0, 3, columns.shape), rng.random(6) + 0.5, rng.random(6) < 0.4
    )


def queries():
    nothing = History.empty(SHAPE)
    some = [Condition(0, 1, 1), Condition(1, 0, 1), Condition(2, 0, 0, negated=True)]
    return {
        "cell": nothing.add((0, 1, 2), (1, 2, 0)),
        "complement": nothing.add((0, 1), (1, 2), complement=True),
        "conjunction": nothing.add_query(joined("all", some)),
        "disjunction": nothing.add_query(joined("any", some)),
        "parity": nothing.add_query(joined("odd", some)),
    }


@pytest.mark.parametrize("name", list(queries()))
@pytest.mark.parametrize("oracle", [Thorough(starts=40), Exact(seconds=5)], ids=["search", "exact"])
def test_one_pair_of_searches_answers_for_every_weight(oracle, name):
    query, rng = queries()[name], np.random.default_rng(3)
    history = past(rng)
    noise = Given.of(rng.exponential(1.0, (12, sum(SHAPE))))
    warm = EVERY[rng.integers(0, len(EVERY), 12)]
    pair = oracle.split(history, query, noise, warm=warm, rng=rng)
    assert (query.evaluate(pair.held) == 1).all()
    for weight in (0.0, 0.3, 1.0, 3.0, 100.0):
        joint = history.plus(query, weight)
        for j, record in enumerate(pair.at(weight)):
            noises = np.repeat(noise.values[j : j + 1], len(EVERY), axis=0)
            best = objective(joint, noises, EVERY).max()
            assert objective(joint, noises[:1], record[None])[0] == pytest.approx(best)


@pytest.mark.parametrize("name", list(queries()))
def test_the_annealed_split_has_the_law_of_solving(name):
    query, rng = queries()[name], np.random.default_rng(4)
    history = past(rng)
    noise = LazyNoise(Law.LAPLACE, 1.0, 4000)
    warm = EVERY[rng.integers(0, len(EVERY), 4000)]
    pair = Annealed(starts=4).split(history, query, noise, warm=warm, rng=rng)
    assert (query.evaluate(pair.held) == 1).all()
    for weight in (0.2, 1.0, 2.5):
        solved = solve(Annealed(starts=4), history.plus(query, weight), noise, warm=warm, rng=rng)
        for column, size in enumerate(SHAPE):
            ours, theirs = (
                np.bincount(each[:, column], minlength=size) / 4000
                for each in (pair.at(weight), solved)
            )
            assert np.abs(ours - theirs).max() < 0.05


def test_weights_reach_the_share_that_is_asked():
    free, held = np.zeros((10, 1), np.int64), np.ones((10, 1), np.int64)
    pair = Split(free, held, np.array([0, 0, 1, 2, 3, 4, 5, 6, np.inf, np.inf]))
    assert [pair.weight(share) for share in (0.0, 0.2, 0.3, 0.8, 1.0)] == [0, 0, 1, 6, 6]
    assert pair.at(1.0).sum() == 3
    assert pair.at(pair.weight(1.0)).sum() == 8
    assert Split(free, held, np.full(10, np.inf)).weight(0.5) == 0.0


def test_records_are_moved_into_a_conjunction():
    query = queries()["conjunction"]
    assert (query.evaluate(into(query, EVERY.copy())) == 1).all()
    impossible = History.empty((2,)).add_query(joined("all", [Condition(0, 0, 1, negated=True)]))
    assert (into(impossible, np.zeros((3, 1), np.int64)) == 0).all()
