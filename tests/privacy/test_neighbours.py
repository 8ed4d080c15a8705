"""Every question: no neighbour moves its exact integers by more than the event it is charged for.

Tables are tiny and random, under both relations, with a public and a private number of rows. What a
neighbour may move is worked out in `neighbour_cases`, and each test can fail: some neighbour moves all
that is charged, and twins that count double or claim half are caught.
"""

import importlib
import pkgutil
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.neighbour_cases import (
    CASES,
    Case,
    CoinNoise,
    Holding,
    bound,
    gate_of,
    ranged,
    world,
)
from tests.thorough import examples
from understudy.errors import PrivacyError
from understudy.privacy import questions
from understudy.privacy.cost import (
    Discovery,
    Gaussian,
    Laplace,
    Perturbation,
    SampledGaussian,
    SampledGroups,
    SampledSelection,
    Selection,
)
from understudy.privacy.mechanisms import Buckets, Grouped
from understudy.privacy.mechanisms import Held as HeldCounts
from understudy.privacy.objective import Sides
from understudy.privacy.questions import PickedCells, PickedQueries, RowCount
from understudy.privacy.relation import Relation

SEEDS = st.integers(0, 2**32 - 1)
EVERY_CASE = pytest.mark.parametrize("name", CASES)
KINDS = (
    Discovery(2.0, 9),
    Gaussian(2.0),
    Laplace(2.0),
    Perturbation(2.0, 1, 1, 1.0, 1, 2.0, 1),
    SampledGaussian(2.0, 1, 1),
    SampledGroups((2.0,), 1),
    SampledSelection(2.0, 1, 1.0),
    Selection(2.0),
)


def fuzz(case: Case, times: int) -> None:
    @settings(max_examples=times, derandomize=True, deadline=None, database=None)
    @given(SEEDS)
    def check(seed: int) -> None:
        case.trial(seed, neighbours=1)

    check()


@EVERY_CASE
def test_no_neighbour_moves_more_than_is_charged(name):
    fuzz(CASES[name], examples(30, 240))


@pytest.mark.slow
@EVERY_CASE
def test_no_neighbour_of_many_moves_more_than_is_charged(name):
    for seed in range(3_000):
        CASES[name].trial(seed, neighbours=4)


@pytest.mark.slow
@pytest.mark.parametrize("asks", [PickedCells, PickedQueries])
def test_the_law_of_two_picks_is_within_what_two_are_charged(asks):
    for case in (each for each in CASES.values() if each.asks is asks):
        twice = replace(case, request=lambda rng, table, case=case: two(*case.request(rng, table)))
        assert twice.measure is ranged
        for seed in range(60):
            twice.trial(seed, neighbours=1)


def two(question, event):
    return question, replace(event, k=2)


@EVERY_CASE
@pytest.mark.parametrize("relation", Relation)
def test_some_neighbour_moves_what_is_charged(name, relation):
    """A claim that is too generous would be noticed here."""
    case = CASES[name]
    if case.asks is RowCount and relation is Relation.REPLACE:
        return  # the number of rows is the same; one event serves both relations
    found = 0.0
    for seed in range(2_000):
        if case.table(Random(seed)).relation is relation:
            found = max(found, case.trial(seed))
        if found >= case.reach:
            return
    pytest.fail(f"of what is charged for {name}, {found:.6f} at most was seen to move")


# --- what does not cover is refused -------------------------------------------------------------


def less(event, field):
    """The event with one unit less; None where there is no such event."""
    value = getattr(event, field)
    try:
        return replace(event, **{field: value[:-1] if isinstance(value, tuple) else value - 1})
    except PrivacyError:
        return None


def refused(table, question, event):
    noise = CoinNoise(())
    gate, charges = gate_of(table, event, noise)
    with pytest.raises(PrivacyError, match="nothing was charged or drawn"):
        gate.ask("slot", bound(table, question))
    assert charges.charged == []
    assert noise.asked == []


@EVERY_CASE
def test_an_event_one_unit_short_is_refused_before_anything_is_charged(name):
    case, tried = CASES[name], set()
    for seed in range(40):
        rng = Random(seed)
        table = case.table(rng)
        question, event = case.request(rng, table)
        for field in case.least:
            if (short := less(event, field)) is not None:
                refused(table, question, short)
                tried.add(field)
    # Nothing is below one row.
    assert tried == {field for field in case.least if case.asks is not RowCount}


@EVERY_CASE
def test_an_event_of_another_kind_is_refused_before_anything_is_charged(name):
    rng = Random(1)
    table = CASES[name].table(rng)
    question, event = CASES[name].request(rng, table)
    kinds = question.need(gate_of(table, event, CoinNoise(()))[0].facts).kinds
    others = [each for each in KINDS if not isinstance(each, kinds)]
    assert len(others) >= len(KINDS) - 3
    for other in others:
        refused(table, question, other)


# --- no question is left out, and the test can fail ---------------------------------------------


def every_question():
    """Classes of all modules of questions that have what a question has."""
    parts = ("mechanism", "need", "exact", "decode")
    for module in pkgutil.iter_modules(questions.__path__, questions.__name__ + "."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, type) and all(part in dir(each) for part in parts):
                yield each


def test_every_question_has_a_neighbour_test():
    found = set(every_question())
    assert len(found) >= 23
    assert found == {case.asks for case in CASES.values()}


def doubled(exact):
    if isinstance(exact, np.ndarray):
        return 2 * exact
    if isinstance(exact, Grouped):
        return replace(exact, sums=2 * exact.sums)
    if isinstance(exact, HeldCounts):
        return replace(exact, counts=2 * exact.counts)
    if isinstance(exact, Sides):
        return replace(exact, rows=(exact.rows[0], 2 * exact.rows[1]))
    assert isinstance(exact, Buckets)
    return replace(exact, candidates=replace(exact.candidates, scores=2 * exact.candidates.scores))


def caught(case):
    with pytest.raises(AssertionError):
        max(case.trial(seed) for seed in range(300))


@EVERY_CASE
def test_a_question_that_counts_double_is_caught(name, monkeypatch):
    asks, exact = CASES[name].asks, CASES[name].asks.exact
    monkeypatch.setattr(asks, "exact", lambda *args: doubled(exact(*args)))
    caught(CASES[name])


def halved(event):
    """The event with half of what it says that a neighbour moves, where that can be said."""
    for field in ("changes", "step", "values", "sides", "l1", "sensitivity", "l2"):
        if field in event.__dataclass_fields__ and (value := getattr(event, field)) > 1:
            return replace(event, **{field: value // 2})
    return event


# These take their unit from the event: no event says half of it.
OWN_UNIT = {"worst error", "worst query error", "worst error of rows", "linear gradient"}
# And these have a fixed one.
FIXED = {"row count", *(name for name in CASES if name.startswith("network"))}


@pytest.mark.parametrize("name", [each for each in CASES if each not in OWN_UNIT | FIXED])
def test_a_question_that_claims_half_is_caught(name, monkeypatch):
    case, need = CASES[name], CASES[name].asks.need
    monkeypatch.setattr(
        case.asks, "need", lambda *args: replace(need(*args), covers=lambda event: True)
    )

    def request(rng, table):
        question, event = case.request(rng, table)
        return question, halved(event)

    caught(replace(case, request=request))


def test_a_row_that_is_added_is_a_row_that_was_removed():
    """The tables of these tests: neighbours differ in one row and keep the others' coins."""
    for seed in range(50):
        rng = Random(seed)
        table = world(rng, Holding) if seed % 2 else world(rng)
        fewer = table.without(0)
        assert (fewer.rows, fewer.words) == (table.rows[1:], table.words[1:])
        other = table.exchanged(0, table.row(rng))
        assert other.words == table.words
        assert other.rows[1:] == table.rows[1:]
