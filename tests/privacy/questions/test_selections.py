"""Picks and certificates over classes of 0/1 queries: exact sensitivity, exact law, what is refused."""

import itertools
import math

import numpy as np
import pytest

from tests.exact_privacy import (
    ChoosingNoise,
    PrivacyViolation,
    check,
    enumerate_transcripts,
    neighbours,
)
from tests.privacy.privacy_fakes import LoggedCharges, LoggedNoise
from tests.thorough import examples, some
from understudy.errors import PrivacyError
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Gaussian, Laplace, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.products import ProductQueries, Rule
from understudy.privacy.questions import Cell, PickedQueries, WorstError, WorstQueryError
from understudy.privacy.relation import Relation
from understudy.testing.stand_ins import TinyCounts, table_of

SHAPE = (2, 3)
UNIVERSE = tuple(itertools.product(range(2), range(3)))
N = 2
CASES = [
    pytest.param(Relation.REPLACE, N, id="replace"),
    pytest.param(Relation.ADD_REMOVE, N, id="add-remove-public-n"),
    pytest.param(Relation.ADD_REMOVE, None, id="add-remove-private-n"),
]
EYE = [np.eye(size, dtype=np.int64) for size in SHAPE]
EITHER = [np.concatenate([eye, 1 - eye]) for eye in EYE]
STEPS = [np.tril(np.ones((size, size), np.int64)) for size in SHAPE]
CLASSES = (
    ProductQueries((0, 1), tuple(EITHER), Rule.ALL),
    ProductQueries((0, 1), tuple(EITHER), Rule.ANY),
    ProductQueries((0, 1), tuple(EYE), Rule.ODD),
    ProductQueries((0, 1), tuple(STEPS), Rule.ALL),
    ProductQueries((1,), (STEPS[1],), Rule.ALL),
    ProductQueries((0, 1), tuple(EITHER), Rule.LEAST),
)


def unordered(relation, n):
    every = neighbours(UNIVERSE, n, relation.value)
    return list(dict.fromkeys((tuple(sorted(a)), tuple(sorted(b))) for a, b in every))


PAIRS = {relation: unordered(relation, N) for relation in Relation}
FEWER = {relation: unordered(relation, 1) for relation in Relation}


def references(classes, value=0.3):
    return [np.full(each.shape, value) for each in classes]


def gate_of(rows, event, relation, rows_public, noise=None, log=None):
    charges = LoggedCharges(log, slot=event, relation=relation)
    return Gate(TinyCounts(SHAPE, rows), charges, relation, noise or LoggedNoise(log), rows_public)


JOINED = {"all": all, "any": any, "odd": lambda held: sum(held) % 2 == 1}


def brute(each, rows):
    """The counts of all queries, row by row."""

    def holds(index, row):
        pairs = zip(each.literals, index, each.clique, strict=False)
        held = [bool(matrix[literal, row[i]]) for matrix, literal, i in pairs]
        return sum(held) > index[-1] if each.rule == "least" else JOINED[each.rule](held)

    return np.array([sum(holds(i, row) for row in rows) for i in np.ndindex(*each.shape)])


def exact_values(ask, rows, event, relation, public):
    """What the noise was put on."""
    noise = LoggedNoise()
    ask(gate_of(rows, event, relation, public, noise))
    return noise.values[0]


# -- sensitivity, exhaustively ---------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "public"), some(CASES, 3))
def test_the_worst_query_error_moves_by_at_most_the_lattice(relation, public):
    """All neighbours, sets of two synthetic rows: at most L, and L is reached."""
    event, most = Laplace(100.0, l1=16), 0
    fakes = [*itertools.combinations_with_replacement(UNIVERSE, 2)]
    for fake in fakes[:: examples(4, 1)]:
        tables = [table_of(fake, SHAPE, each.clique) for each in CLASSES]

        def ask(gate, tables=tables):
            return gate.ask("slot", WorstQueryError(CLASSES, tables, 2))

        values = {
            rows: int(exact_values(ask, rows, event, relation, public)[0])
            for rows in dict.fromkeys(itertools.chain.from_iterable(PAIRS[relation]))
        }
        most = max(most, *(abs(values[one] - values[other]) for one, other in PAIRS[relation]))
    assert most == event.l1


def test_the_worst_query_error_is_the_worst():
    rows, fake = ((0, 0), (1, 2)), ((0, 1), (0, 1), (1, 1))
    tables = [table_of(fake, SHAPE, each.clique) for each in CLASSES]

    def ask(gate):
        return gate.ask("slot", WorstQueryError(CLASSES, tables, 3))

    worst = max(np.abs(3 * brute(e, rows) - 2 * brute(e, fake)).max() for e in CLASSES)
    for public in (None, 2):
        found = exact_values(ask, rows, Laplace(9.0, l1=64), Relation.ADD_REMOVE, public)
        assert found[0] == math.ceil(64 * worst / 3)


def test_the_worst_query_error_of_cells_is_the_worst_error():
    rows, fake = ((0, 0), (1, 2)), ((0, 1), (0, 1), (1, 1))
    cells = [ProductQueries((0, 1), tuple(EYE)), ProductQueries((1,), (EYE[1],))]
    cliques = [each.clique for each in cells]
    tables = [table_of(fake, SHAPE, clique) for clique in cliques]
    event = Laplace(9.0, l1=64)
    values = [
        exact_values(ask, rows, event, Relation.ADD_REMOVE, None)[0]
        for ask in (
            lambda c: c.ask("slot", WorstQueryError(cells, tables, 3)),
            lambda c: c.ask("slot", WorstError(cliques, tables, 3)),
        )
    ]
    assert values[0] == values[1]


# -- the law of a pick, exactly --------------------------------------------------------------------


def pick_law(rows, event, relation, public, classes, signed):
    def run(chooser):
        gate = gate_of(rows, event, relation, public, ChoosingNoise(chooser))
        return gate.ask("slot", PickedQueries(classes, references(classes), signed))

    return enumerate_transcripts(run)


PICKS = itertools.product(
    [True, False], (case.values for case in CASES), [slice(0, 1), slice(1, 2), slice(2, 5)]
)


@pytest.mark.parametrize(("signed", "case", "which"), some(PICKS, 8))
def test_a_pick_costs_what_is_charged(which, case, signed):
    relation, public = case
    event = Selection(0.8 * SCORE_SENSITIVITY, sensitivity=SCORE_SENSITIVITY)

    less = Selection(event.scale / 2, sensitivity=SCORE_SENSITIVITY)

    def law(rows, event=event):
        return pick_law(rows, event, relation, public, CLASSES[which], signed)

    spent, pure = float(accounting.rho(event)), float(accounting.pure(event))
    check(law, FEWER[relation], rho=spent, pure=pure, bounded_range=pure)
    if signed:  # scores then move both ways, and nothing is left over
        with pytest.raises(PrivacyViolation):
            check(lambda rows: law(rows, less), FEWER[relation], bounded_range=pure)


def test_a_pick_follows_the_exponential_mechanism():
    rows, scale = ((0, 0), (1, 2)), 0.7 * UNIT
    event = Selection(scale, sensitivity=SCORE_SENSITIVITY)
    each = CLASSES[1]
    law = pick_law(rows, event, Relation.ADD_REMOVE, None, [each], True)
    score = brute(each, rows) - 0.3
    weights = {
        (Cell(0, tuple(int(i) for i in index), sign),): math.exp(sign * value * UNIT / scale)
        for sign in (1, -1)
        for index, value in zip(np.ndindex(*each.shape), score, strict=True)
    }
    total = sum(weights.values())
    assert law.keys() == weights.keys()
    for outcome, weight in weights.items():
        assert math.exp(law[outcome]) == pytest.approx(weight / total, rel=1e-3)


def test_without_noise_the_worst_query_is_picked_with_its_side():
    rows = ((1, 2), (1, 2), (1, 1))
    event = Selection(5.0, sensitivity=SCORE_SENSITIVITY)
    gate = gate_of(rows, event, Relation.ADD_REMOVE, None)
    expected = [each.answers(table_of(rows, SHAPE, each.clique)) for each in CLASSES]
    expected[3] = expected[3].copy()
    expected[3][1, 1] += 2.0
    assert gate.ask("slot", PickedQueries(CLASSES, expected)) == (Cell(3, (1, 1), -1),)
    expected[3][1, 1] -= 4.0
    assert gate.ask("slot", PickedQueries(CLASSES, expected)) == (Cell(3, (1, 1), 1),)


# -- charged first, and refused before it is charged -----------------------------------------------


GOOD = [table_of(((0, 0),), SHAPE, each.clique) for each in CLASSES]


@pytest.mark.parametrize(
    ("event", "ask"),
    [
        (
            Selection(7.0, sensitivity=SCORE_SENSITIVITY),
            lambda c: c.ask("slot", PickedQueries(CLASSES, references(CLASSES))),
        ),
        (Laplace(7.0, l1=3), lambda c: c.ask("slot", WorstQueryError(CLASSES, GOOD, 1))),
    ],
)
def test_charges_once_then_draws_at_the_charged_scale(event, ask):
    log = []
    ask(gate_of(((0, 1),), event, Relation.REPLACE, 1, log=log))
    assert log[0] == ("charge", "slot")
    assert log.count(("charge", "slot")) == 1
    assert {entry[1] for entry in log[1:]} == {7.0}


class Loud(ProductQueries):
    def answers(self, table):
        return 100 * super().answers(table)


PICK = Selection(7.0, sensitivity=SCORE_SENSITIVITY)


@pytest.mark.parametrize(
    ("event", "ask"),
    [
        (Selection(7.0, sensitivity=SCORE_SENSITIVITY - 1), references(CLASSES)),
        (Gaussian(3.0), references(CLASSES)),
        (PICK, references(CLASSES)[:-1]),
        (PICK, [*references(CLASSES)[:-1], np.zeros(2)]),
        (PICK, references(CLASSES, math.nan)),
        (PICK, references(CLASSES, math.inf)),
        (PICK, references(CLASSES, 2.0**41)),
    ],
)
def test_a_bad_reference_or_event_is_refused_before_the_charge(event, ask):
    log = []
    with pytest.raises(PrivacyError):
        gate_of(((0, 1),), event, Relation.REPLACE, 1, log=log).ask(
            "slot", PickedQueries(CLASSES, ask)
        )
    assert log == []


@pytest.mark.parametrize(
    "classes",
    [
        [],
        [object()],
        [Loud((0,), (EYE[0],))],
        [ProductQueries((0,), (EYE[1],))],
        [ProductQueries((2,), (EYE[1],))],
        [ProductQueries((0, 1), (EYE[1], EYE[0]))],
    ],
)
def test_queries_that_do_not_fit_are_refused_before_the_charge(classes):
    log = []
    shapes = [getattr(each, "shape", (1,)) for each in classes]
    gate = gate_of(((0, 1),), PICK, Relation.REPLACE, 1, log=log)
    with pytest.raises(PrivacyError):
        gate.ask("slot", PickedQueries(classes, [np.zeros(shape) for shape in shapes]))
    gate = gate_of(((0, 1),), Laplace(7.0), Relation.REPLACE, 1, log=log)
    with pytest.raises(PrivacyError):
        gate.ask("slot", WorstQueryError(classes, [np.ones(1, np.int64) for _ in classes], 1))
    assert log == []


@pytest.mark.parametrize(
    ("synthetic", "size"),
    [(GOOD, 2), (GOOD[:-1], 1), ([2 * t for t in GOOD], 1), ([t / 1 for t in GOOD], 1), (GOOD, 0)],
)
def test_synthetic_tables_must_be_counts_of_the_rows(synthetic, size):
    log = []
    gate = gate_of(((0, 1),), Laplace(7.0), Relation.REPLACE, 1, log=log)
    with pytest.raises(PrivacyError):
        gate.ask("slot", WorstQueryError(CLASSES, synthetic, size))
    assert log == []
