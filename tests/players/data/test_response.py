"""The best response to sampled queries."""

import itertools

import numpy as np

from understudy.players.base import MeasuredCell, Problem
from understudy.players.data.response import BestResponse
from understudy.privacy.questions import Cell

SHAPE = (2, 2)
CLIQUES = ((0,), (0, 1))
PROBLEM = Problem(SHAPE, CLIQUES, (1.0, 1.0), 2)
QUERIES = [
    (j, index, sign)
    for j, clique in enumerate(CLIQUES)
    for index in itertools.product(*(range(SHAPE[i]) for i in clique))
    for sign in (1, -1)
]


def answer(query, row):
    """q(x) of a cell or its complement."""
    j, index, sign = query
    inside = all(row[i] == v for i, v in zip(CLIQUES[j], index, strict=True))
    return inside if sign > 0 else not inside


def drawn_as(query):
    assert query.clique == CLIQUES[query.cell.marginal]
    return query.cell.marginal, query.cell.index, query.cell.sign


def query_of(j, index, sign):
    return MeasuredCell(CLIQUES[j], Cell(j, index, sign))


def test_the_response_is_best_and_ties_never_override_it():
    data = BestResponse(samples=3, records=6)
    rng = np.random.default_rng(0)
    for key in range(40):
        draw = np.random.default_rng(key)
        state = data.start(PROBLEM)
        for _ in range(4):
            picked = [QUERIES[i] for i in draw.integers(0, len(QUERIES), 3)]
            state = data.respond(PROBLEM, state, tuple(query_of(*q) for q in picked), rng)
            universe = list(itertools.product(*map(range, SHAPE)))
            best = max(sum(answer(q, x) for q in picked) for x in universe)
            for record in np.stack(state.newest, axis=1):
                assert sum(answer(q, record) for q in picked) == best


def test_more_answers_than_samples_are_cut_at_random():
    data = BestResponse(samples=2)
    answers = tuple(query_of(*q) for q in QUERIES)
    kept = set()
    for key in range(30):
        state = data.respond(PROBLEM, data.start(PROBLEM), answers, np.random.default_rng(key))
        assert len(state.latest[0]) == 2
        kept |= {drawn_as(query) for query in state.latest[0]}
    assert len(kept) > len(QUERIES) / 2


def test_the_records_of_all_rounds_are_released():
    data, rng = BestResponse(samples=2, records=3), np.random.default_rng(0)
    state = data.start(PROBLEM)
    for _ in range(7):
        state = data.respond(PROBLEM, state, (), rng)
    model = data.finish(PROBLEM, state)
    assert model.size == 3 * 7
    assert np.array_equal(np.stack(model.codes, axis=1), state.records)
