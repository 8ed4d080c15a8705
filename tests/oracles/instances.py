"""Small random problems, as hypothesis strategies."""

import numpy as np
from bench.oracle import Given
from hypothesis import strategies as st

from understudy.oracles import History, objective
from understudy.privacy.products import Rule
from understudy.queries.classes import Condition, Query

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)
weights = st.sampled_from([1.0, 1.0, 1.0, 0.5, 2.0, -1.5, 0.25])


def joined(rule, literals, least=0):
    return Query(Rule(rule), tuple(literals), least)


@st.composite
def cells(draw, shape):
    size = draw(st.integers(1, min(3, len(shape))))
    clique = sorted(draw(st.permutations(range(len(shape))))[:size])
    return clique, [draw(st.integers(0, shape[a] - 1)) for a in clique]


@st.composite
def literals(draw, shape):
    clique, _ = draw(cells(shape))
    result = []
    for a in clique:
        low = draw(st.integers(0, shape[a] - 1))
        high = draw(st.integers(low, shape[a] - 1))
        result.append(Condition(a, low, high, draw(st.booleans())))
    return result


@st.composite
def histories(draw, general):
    """Cells and complements with duplicates; `general`: also intervals, negations, other classes."""
    shape = draw(shapes)
    history = History.empty(shape)
    for _ in range(draw(st.integers(0, 12))):
        weight = draw(weights)
        if general and draw(st.booleans()):
            rule = draw(st.sampled_from(["all", "any", "odd"]))
            history = history.add_query(joined(rule, draw(literals(shape))), weight)
        else:
            clique, cell = draw(cells(shape))
            for _ in range(draw(st.integers(1, 2))):
                history = history.add(clique, cell, weight, complement=draw(st.booleans()))
    return history


def solve(oracle, history, noise, **given):
    """The records of an oracle, for noise by its law or as it was drawn."""
    known = Given.of(noise) if isinstance(noise, np.ndarray) else noise
    return oracle.best(history, known, **given)[0]


def universe(shape):
    return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)


def brute_force(history, noise):
    """The best record of every perturbation, by trying all."""
    records = universe(history.shape)
    tried = [objective(history, np.tile(row, (len(records), 1)), records) for row in noise]
    return records[[values.argmax() for values in tried]]


def random_history(rng, shape, terms, general=False):
    history = History.empty(shape)
    for _ in range(terms):
        clique = np.sort(rng.choice(len(shape), rng.integers(1, min(3, len(shape)) + 1), False))
        cell = [int(rng.integers(shape[a])) for a in clique]
        weight = float(rng.choice([1.0, 1.0, 1.0, 0.5, 2.0, rng.normal()]))
        if general and rng.random() < 0.5:
            parts = [
                Condition(int(a), low, int(rng.integers(low, shape[a])), bool(rng.random() < 0.3))
                for a, low in zip(clique, cell, strict=True)
            ]
            history = history.add_query(joined("all", parts), weight)
        else:
            history = history.add(clique, cell, weight, complement=bool(rng.random() < 0.4))
    return history
