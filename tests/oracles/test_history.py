import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.errors import InputError
from understudy.oracles import History
from understudy.queries.classes import Condition

from .instances import cells, joined, literals, shapes, universe, weights


def holds(literal, record):
    return (literal.low <= record[literal.column] <= literal.high) != literal.negated


NAIVE = {"all": all, "any": any, "odd": lambda truths: sum(truths) % 2 == 1}


@given(st.data())
@settings(max_examples=examples(15, 60), deadline=None)
def test_every_query_class_is_what_it_says(data):
    shape = data.draw(shapes)
    history, naive, records = History.empty(shape), 0.0, universe(shape)
    for _ in range(data.draw(st.integers(0, 6))):
        weight, kind = data.draw(weights), data.draw(st.sampled_from(sorted(NAIVE)))
        parts = data.draw(literals(shape))
        history = history.add_query(joined(kind, parts), weight)
        naive = naive + weight * np.array(
            [float(NAIVE[kind]([holds(part, record) for part in parts])) for record in records]
        )
    np.testing.assert_allclose(history.evaluate(records), naive + np.zeros(len(records)), atol=1e-9)


@pytest.mark.parametrize("least", [0, 1, 2, 3, 4])
def test_at_least_so_many_literals(least):
    shape = (2, 3, 4)
    parts = [Condition(0, 1, 1), Condition(1, 0, 0, True), Condition(2, 1, 2)]
    records = universe(shape)
    history = History.empty(shape).add_query(joined("least", parts, least), 0.5)
    naive = [0.5 * (sum(holds(part, record) for part in parts) >= least) for record in records]
    np.testing.assert_allclose(history.evaluate(records), naive, atol=1e-12)


@given(st.data())
@settings(max_examples=examples(15, 60), deadline=None)
def test_one_by_one_and_all_at_once_are_the_same(data):
    shape = data.draw(shapes)
    added = data.draw(st.lists(st.tuples(cells(shape), weights, st.booleans()), max_size=8))
    one = History.empty(shape)
    width = max((len(clique) for (clique, _), _, _ in added), default=0)
    columns = np.full((len(added), width), -1)
    codes = np.zeros((len(added), width), int)
    for i, ((clique, cell), weight, complement) in enumerate(added):
        one = one.add(clique, cell, weight, complement=complement)
        columns[i, : len(clique)], codes[i, : len(clique)] = clique, cell
    signs = np.array([c for _, _, c in added], bool)
    many = History.empty(shape).add_many(columns, codes, [w for _, w, _ in added], signs)
    np.testing.assert_array_equal(one.literals, many.literals)
    np.testing.assert_allclose(one.weights, many.weights, atol=1e-12)
    assert one.constant == pytest.approx(many.constant)


def test_a_cell_and_its_complement_collapse():
    history = (
        History.empty((3, 3)).add((0, 1), (2, 0), 2.0).add((1, 0), (0, 2), 0.5, complement=True)
    )
    assert history.terms == 1
    assert history.weights.tolist() == [1.5]
    assert history.constant == 0.5
    assert history.evaluate(np.array([[2, 0], [0, 0]])).tolist() == [2.0, 0.5]


def test_a_shorter_and_a_longer_cell_are_two_terms():
    history = (
        History.empty((3, 3)).add((0,), (0,), 1.0).add((0, 1), (0, 0), 1.0).add((0,), (0,), 1.0)
    )
    assert history.weights.tolist() == [2.0, 1.0]
    assert history.literals[:, :, 0].tolist() == [[0, -1], [0, 1]]


def test_adding_leaves_the_old_history_alone():
    old = History.empty((2, 2)).add((0,), (1,), 1.0)
    old.add((0,), (1,), 5.0)
    assert old.weights.tolist() == [1.0]


def test_the_empty_conjunction_is_a_constant():
    history = History.empty((2,)).add_query(joined("all", []), 3.0)
    assert (history.terms, history.constant) == (0, 3.0)


def test_a_query_of_many_literals_is_refused():
    with pytest.raises(InputError, match="at most 12"):
        History.empty((2, 3)).add_query(joined("odd", [Condition(0, 0, 0)] * 20))
