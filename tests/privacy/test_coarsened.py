"""Coarsened tables and thresholded errors: what a neighbour moves, is charged, and is refused."""

import itertools
import math
import traceback
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.exact_privacy import (
    ChoosingNoise,
    PrivacyViolation,
    check,
    discrete_gaussian_law,
    enumerate_transcripts,
    neighbours,
)
from tests.privacy.privacy_fakes import FakeTables, LeakyNoise, LoggedCharges, LoggedNoise
from tests.thorough import examples
from understudy.errors import PrivacyError, UnderstudyError
from understudy.privacy import accounting
from understudy.privacy import exact as exact_module
from understudy.privacy.budget import Budget
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan, Selection, Zcdp
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger
from understudy.privacy.questions import Marginals, ThresholdedErrors
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise
from understudy.testing.stand_ins import TinyCounts, table_of

REFUSED = (UnderstudyError, TypeError, ValueError)


def codes(*values):
    return np.array(values, dtype=np.int64)


SHAPE = (2, 3)
UNIVERSE = tuple(itertools.product(range(2), range(3)))
ENDS = Coarsened(
    (0, 1), (codes(0, 1), codes(0, 1, 0))
)  # 2 × 2: the outer values of column 1 joined
FLIPPED = Coarsened((1,), (codes(1, 0, 0),))
ONE_ROW = Coarsened((0, 1), (codes(0, 0), codes(2, 0, 1)))  # 1 × 3
ALL_ONE = Coarsened((0, 1), (codes(0, 0), codes(0, 0, 0)))  # 1 × 1
SAME = Coarsened((0, 1), (codes(0, 1), codes(0, 1, 2)))  # merges nothing
REQUESTS = {
    "one full table": ((0, 1),),
    "one merged table": (ENDS,),
    "full and merged": ((0,), ENDS, (0, 1), FLIPPED),
    "repeated": ((1,), (1,), ENDS, ENDS, ENDS),
    "merged to one row, to one cell, not at all": (ONE_ROW, ALL_ONE, SAME),
}
TABLES = REQUESTS["full and merged"]
DATA = ((0, 0), (0, 2), (1, 1))
RELATIONS = list(Relation)
MOST = {Relation.REPLACE: 3, Relation.ADD_REMOVE: 2}  # all tables have at most 3 rows


def unordered(universe, n, relation):
    every = neighbours(universe, n, relation.value)
    return list(dict.fromkeys((tuple(sorted(a)), tuple(sorted(b))) for a, b in every))


PAIRS = {relation: unordered(UNIVERSE, MOST[relation], relation) for relation in Relation}


def exact_table(rows, table, shape=SHAPE):
    """Counted row by row, after recoding each row."""
    if not isinstance(table, Coarsened):
        return table_of(rows, shape, table)
    out = np.zeros(tuple(int(labels.max()) + 1 for labels in table.labels), dtype=np.int64)
    for row in rows:
        cell = (labels[row[i]] for i, labels in zip(table.clique, table.labels, strict=True))
        out[tuple(cell)] += 1
    return out


def excess_of(counts, reference, threshold):
    """The definition, in Python's integers: `round` goes to even, as `rint` does."""
    edge = round(16 * float(threshold))
    cells = zip(np.ravel(counts).tolist(), np.ravel(reference).tolist(), strict=True)
    return sum(max(abs(16 * int(c) - round(16 * r)) - edge, 0) for c, r in cells) // 16


def sizes(table):
    return table.shape if isinstance(table, Coarsened) else tuple(SHAPE[i] for i in table)


def flat_references(tables, value=0.4):
    return tuple(np.full(sizes(table), value) for table in tables)


def rough(rng, size):
    """References on and around the rounding points of the grid, far off it, and large."""
    base = rng.integers(-20, 120, size=size) / 32 + rng.choice([0, 1e-12, -1e-12, 1 / 3], size=size)
    return base + rng.choice([0, 0, 0, 1e6], size=size)


def covering(method, relation, tables):
    """The event that just covers a request."""
    if method == "measure":
        return Gaussian(5.5, changes=len(tables) * relation.multiplicity)
    return Gaussian(6.5, step=relation.marginal_l1(), changes=len(tables))


def asking(method, tables, references=None, thresholds=None, event=None):
    """The request, as a function of a gate."""
    if method == "measure":
        return lambda c: c.ask("slot", Marginals(tables), event)
    refs = flat_references(tables) if references is None else references
    edges = (0.5,) * len(tables) if thresholds is None else thresholds
    return lambda c: c.ask("slot", ThresholdedErrors(tables, refs, edges), event)


def gate_of(rows, event, relation, noise=None, log=None, shape=SHAPE):
    public = len(rows) if relation is Relation.REPLACE else None
    charges = LoggedCharges(log, slot=event, relation=relation)
    return Gate(TinyCounts(shape, rows), charges, relation, noise or LoggedNoise(log), public)


def large_gate(table, event, noise=None, log=None, relation=Relation.ADD_REMOVE):
    charges = LoggedCharges(log, slot=event, relation=relation)
    public = int(np.sum(table)) if relation is Relation.REPLACE else None
    return Gate(FakeTables(table), charges, relation, noise or LoggedNoise(log), public)


def refused(ask, event, relation=Relation.ADD_REMOVE, error=PrivacyError):
    """Asks; nothing may be charged or drawn."""
    log = []
    with pytest.raises(error):
        ask(gate_of(DATA, event, relation, log=log))
    assert not log


def reaching(ask, rows, event, relation):
    """Every exact number that reaches the sampler."""
    noise = LoggedNoise()
    ask(gate_of(rows, event, relation, noise))
    return np.concatenate([np.ravel(values) for values in noise.values])


def moves(ask, event, relation):
    at = cache(lambda rows: reaching(ask, rows, event, relation))
    return [np.abs(at(a) - at(b)) for a, b in PAIRS[relation]]


METHODS = ["measure", "thresholded_errors"]
both_relations = pytest.mark.parametrize("relation", RELATIONS, ids=str)
both_methods = pytest.mark.parametrize("method", METHODS)
each_request = pytest.mark.parametrize("tables", REQUESTS.values(), ids=REQUESTS)


# --- coarsened -------------------------------------------------------------------------------------


def test_shape_and_domain():
    assert ENDS.clique == (0, 1)
    assert tuple(ENDS.shape) == (2, 2)
    assert tuple(ENDS.domain) == (2, 3)
    assert tuple(ALL_ONE.shape) == (1, 1)
    assert tuple(SAME.shape) == tuple(SAME.domain) == (2, 3)
    assert tuple(FLIPPED.shape) == (2,)
    assert tuple(FLIPPED.domain) == (3,)


def test_compared_by_identity():
    twin = Coarsened(ENDS.clique, ENDS.labels)
    assert twin != ENDS
    assert len({twin, ENDS, ENDS}) == 2


@pytest.mark.parametrize("name", ["clique", "labels", "shape", "domain", "table"])
def test_attributes_cannot_be_set(name):
    merged = Coarsened((0,), (codes(0, 1),))
    with pytest.raises((AttributeError, TypeError)):
        setattr(merged, name, (1,))


def test_labels_are_copies_that_cannot_be_written_to():
    mine = codes(0, 1, 0)
    seen = mine.view()
    seen.flags.writeable = False  # a locked view of an array that is still open
    for given_labels in (mine, seen):
        merged = Coarsened((1,), (given_labels,))
        mine[:] = 1
        assert merged.labels[0].tolist() == [0, 1, 0]
        assert tuple(merged.shape) == (2,)
        assert merged.table(codes(1, 2, 4)).tolist() == [5, 2]
        mine[:] = (0, 1, 0)
        assert merged.labels[0].dtype == np.int64
        assert not merged.labels[0].flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            merged.labels[0][0] = 1
        assert mine.flags.writeable, "the caller's array was locked"
        assert isinstance(merged.labels, tuple)


def test_a_list_that_changes_later_changes_nothing():
    clique, labels = [0, 1], [codes(0, 1), codes(0, 1, 0)]
    try:
        merged = Coarsened(clique, labels)
    except REFUSED:
        return
    clique[:] = [0]
    labels[1] = codes(5, 5, 5)
    assert tuple(merged.clique) == (0, 1)
    assert merged.labels[1].tolist() == [0, 1, 0]


BAD_LABELS = {
    "a value left out": codes(0, 2, 0),
    "zero left out": codes(1, 1, 2),
    "negative": codes(-1, 0, 1),
    "huge": codes(0, 1, 10**15),
    "beyond int64": np.array([0, 1, 2**64 - 1], dtype=np.uint64),
    "floats": np.array([0.0, 1.0, 0.0]),
    "fractions": np.array([0.0, 0.5, 1.0]),
    "truth values": np.array([False, True, False]),
    "objects": np.array([0, 1, 0], dtype=object),
    "text": np.array(["0", "1", "0"]),
    "two-dimensional": np.array([[0, 1, 0]], dtype=np.int64),
    "no dimension": np.array(0, dtype=np.int64),
}


@pytest.mark.parametrize("labels", BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_must_be_used_whole_numbers_from_zero(labels):
    with pytest.raises(PrivacyError):
        Coarsened((1,), (labels,))
    with pytest.raises(PrivacyError):
        Coarsened((0, 1), (codes(0, 1), labels))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint64])
def test_other_integers_are_refused_or_become_int64(dtype):
    try:
        merged = Coarsened((1,), (np.array([0, 1, 0], dtype=dtype),))
    except PrivacyError:
        return
    assert merged.labels[0].dtype == np.int64
    assert merged.table(codes(1, 2, 4)).tolist() == [5, 2]


@st.composite
def labellings(draw, size):
    """Some onto map of `size` values."""
    raw = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
    kept = sorted(set(raw))
    order = draw(st.permutations(range(len(kept))))
    return codes(*(order[kept.index(value)] for value in raw))


@st.composite
def merged_data(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    clique = tuple(
        sorted(draw(st.sets(st.sampled_from(range(len(shape))), min_size=1, max_size=len(shape))))
    )
    labels = tuple(draw(labellings(shape[i])) for i in clique)
    row = st.tuples(*(st.integers(0, size - 1) for size in shape))
    return shape, clique, labels, draw(st.lists(row, max_size=40))


@settings(max_examples=examples(15, 60), deadline=None, derandomize=True)
@given(merged_data())
def test_a_merged_table_counts_the_merged_codes(case):
    shape, clique, labels, rows = case
    merged = Coarsened(clique, labels)
    sides = tuple(len(set(each.tolist())) for each in labels)
    columns = [labels[k][[row[i] for row in rows]] for k, i in enumerate(clique)] if rows else []
    flat = np.ravel_multi_index(columns, sides) if rows else codes()
    expected = np.bincount(flat, minlength=math.prod(sides)).reshape(sides)
    assert tuple(merged.shape) == sides
    assert tuple(merged.domain) == tuple(shape[i] for i in clique)

    full = table_of(rows, shape, clique)
    kept = full.copy()
    got = merged.table(full)
    assert got.dtype == np.int64
    assert got.shape == sides
    assert np.array_equal(got, expected)
    assert np.array_equal(full, kept)

    gate = gate_of(rows, Gaussian(3.0), Relation.ADD_REMOVE, shape=shape)
    (measured,) = gate.ask("slot", Marginals((merged,)))
    assert measured.dtype == np.int64
    assert np.array_equal(measured, expected)


@settings(max_examples=examples(15, 40), deadline=None, derandomize=True)
@given(st.data())
def test_sums_are_exact_beyond_what_floats_hold(data):
    labels = (data.draw(labellings(3)), data.draw(labellings(4)))
    cell = st.integers(-(2**59), 2**59)
    counts = np.array(data.draw(st.lists(cell, min_size=12, max_size=12)), dtype=np.int64)
    counts = counts.reshape(3, 4)
    got = Coarsened((0, 1), labels).table(counts)
    expected = {}
    for index in np.ndindex(3, 4):
        at = (int(labels[0][index[0]]), int(labels[1][index[1]]))
        expected[at] = expected.get(at, 0) + int(counts[index])
    # Twelve cells of 2^59 may leave int64; those sums are not asked for.
    assert all(int(got[at]) == value for at, value in expected.items() if abs(value) < 2**63)


def test_odd_counts_above_2_to_the_53():
    counts = np.array([[2**60 + 1, 2, 2**53 + 1], [1, 2**61 + 1, 3]], dtype=np.int64)
    merged = Coarsened((0, 1), (codes(0, 1), codes(0, 1, 0)))
    assert merged.table(counts).tolist() == [[2**60 + 2**53 + 2, 2], [4, 2**61 + 1]]
    assert SAME.table(counts).tolist() == counts.tolist()


# --- sensitivity of what reaches the sampler, over all neighbours -------------------------------


@both_relations
@each_request
def test_measured_tables_move_by_what_is_charged(tables, relation):
    event = covering("measure", relation, tables)
    ask = asking("measure", tables)
    found = moves(ask, event, relation)
    assert max(m.max() for m in found) <= 1
    assert max((m > 0).sum() for m in found) <= event.changes
    if not set(tables) & {ALL_ONE}:  # whose one cell does not move when a row is replaced
        assert max((m > 0).sum() for m in found) == event.changes


@both_relations
@each_request
def test_excesses_move_by_what_is_charged_for_any_reference(tables, relation):
    rng = np.random.default_rng(23)
    event = covering("thresholded_errors", relation, tables)
    largest = 0
    for _ in range(examples(2, 8)):
        refs = tuple(rough(rng, sizes(table)) for table in tables)
        edges = tuple(rng.choice([0.0, 1 / 32, 3 / 32, 0.3, 0.5, 1.0, 1.7, 40.0], len(tables)))
        ask = asking("thresholded_errors", tables, refs, edges)
        found = moves(ask, event, relation)
        largest = max(largest, *(int(m.max()) for m in found))
        assert all((m > 0).sum() <= event.changes for m in found)
    assert largest <= event.step


@both_relations
def test_the_bound_on_excesses_is_reached_in_all_tables_at_once(relation):
    """References of 0 below (rows added) and of many above (rows that are missing)."""
    tables = ((0, 1), SAME, (0,), (0,))
    refs = tuple(np.zeros(sizes(table)) for table in tables)
    for each in refs:
        each.reshape(-1)[-1] = 50.0
    event = covering("thresholded_errors", relation, tables)
    found = moves(asking("thresholded_errors", tables, refs, (0.0,) * 4), event, relation)
    assert max((m == event.step).sum() for m in found) == event.changes


@both_relations
@each_request
def test_excesses_are_the_definition(tables, relation):
    rng = np.random.default_rng(31)
    event = covering("thresholded_errors", relation, tables)
    for rows in (DATA, UNIVERSE[:3], (UNIVERSE[4],) * 3, UNIVERSE * 3):
        for _ in range(6):
            refs = tuple(rough(rng, sizes(table)) for table in tables)
            edges = tuple(rng.choice([0.0, 1 / 32, 3 / 32, 0.3, 1.0, 1.7], len(tables)))
            got = asking("thresholded_errors", tables, refs, edges)(gate_of(rows, event, relation))
            assert got.dtype == np.int64
            assert got.shape == (len(tables),)
            assert got.tolist() == [
                excess_of(exact_table(rows, table), ref, edge)
                for table, ref, edge in zip(tables, refs, edges, strict=True)
            ]


def test_an_excess_by_hand():
    # Counts (2, 0, 1) against (0.25, 1.5, 1): off by 28, 24 and 0 sixteenths of a row.
    rows, refs = ((0, 0), (1, 0), (1, 2)), (np.array([0.25, 1.5, 1.0]),)
    event = covering("thresholded_errors", Relation.ADD_REMOVE, ((1,),))
    for edge, expected in ((0.0, 3), (0.5, 2), (1.5, 0), (9.0, 0)):  # 52, 36, 4, 0 sixteenths
        gate = gate_of(rows, event, Relation.ADD_REMOVE)
        assert gate.ask("slot", ThresholdedErrors(((1,),), refs, (edge,))).tolist() == [expected]


@both_relations
@each_request
def test_measure_hands_back_each_table_in_order(tables, relation):
    got = asking("measure", tables)(gate_of(DATA, covering("measure", relation, tables), relation))
    assert len(got) == len(tables)
    for each, table in zip(got, tables, strict=True):
        assert each.dtype == np.int64
        assert np.array_equal(each, exact_table(DATA, table))


# --- charge first -------------------------------------------------------------------------------


@both_relations
@each_request
@both_methods
def test_charges_then_opens_then_draws_at_the_charged_scale(method, tables, relation, monkeypatch):
    log, opened = [], exact_module.reveal

    def reveal(sealed):
        log.append(("reveal",))
        return opened(sealed)

    monkeypatch.setattr(exact_module, "reveal", reveal)
    event = covering(method, relation, tables)
    asking(method, tables)(gate_of(DATA, event, relation, log=log))
    assert log[0] == ("charge", "slot"), "something exact was opened before the charge"
    assert log.count(("charge", "slot")) == 1
    assert ("reveal",) in log
    draws = [entry for entry in log if entry[0] not in {"charge", "reveal"}]
    assert set(draws) == {("gaussian", event.sigma)}


@both_methods
def test_the_charge_is_durable_before_the_draw(method, tmp_path):
    path, relation = tmp_path / "ledger.sqlite", Relation.ADD_REMOVE
    event, seen = covering(method, relation, TABLES), []

    class Watching(LoggedNoise):
        def _record(self, *args):
            with Ledger(path) as other:
                seen.append([entry.kind for entry in other.entries("people")])
            return super()._record(*args)

    ask = asking(method, TABLES)
    with Ledger(path) as ledger:
        ledger.open_dataset("people", Budget.of(100, "1e-9"), relation)
        plan = Plan((Charge("slot", event),))
        with ledger.reserve("people", Budget.of(50, "1e-9"), plan, relation=relation) as charges:
            gate = Gate(TinyCounts(SHAPE, DATA), charges, relation, Watching(), None)
            ask(gate)
            assert seen
            assert all(kinds == ["open", "reserve", "charge"] for kinds in seen)
            drawn = len(seen)
            with pytest.raises(PrivacyError):  # the slot is used up: no second draw
                ask(gate)
            assert len(seen) == drawn


@both_methods
def test_filters_take_the_event_of_the_request(method, tmp_path):
    relation = Relation.ADD_REMOVE
    event = Gaussian(2.0, changes=len(TABLES))  # rho 1/2
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.open_dataset("people", Budget.of(100, "1e-9"), relation)
        plan = Plan((Charge("slot", Zcdp(1.25)),))
        with ledger.reserve("people", Budget.of(50, "1e-9"), plan, relation=relation) as charges:
            noise = LoggedNoise()
            gate = Gate(TinyCounts(SHAPE, DATA), charges, relation, noise, None)
            asking(method, TABLES, event=event)(gate)
            asking(method, TABLES, event=event)(gate)
            with pytest.raises(PrivacyError):
                asking(method, TABLES, event=event)(gate)
            few = Gaussian(20.0, changes=len(TABLES) - 1)
            with pytest.raises(PrivacyError):
                asking(method, TABLES, event=few)(gate)
            with pytest.raises(PrivacyError):  # a filter names no scale of its own
                asking(method, TABLES)(gate)
            assert set(noise.log) == {("gaussian", 2.0)}
        assert [entry.kind for entry in ledger.entries("people")].count("charge") == 2


@both_methods
def test_a_slot_that_does_not_exist_gives_nothing(method):
    log = []
    charges = LoggedCharges(log, other=Gaussian(5.0, step=99, changes=99))
    noise = LoggedNoise(log)
    gate = Gate(TinyCounts(SHAPE, DATA), charges, Relation.ADD_REMOVE, noise, None)
    with pytest.raises(PrivacyError):
        asking(method, TABLES)(gate)
    assert not log


# --- refused before charging --------------------------------------------------------------------


@both_relations
@each_request
@both_methods
def test_too_few_changes_are_refused(method, tables, relation):
    event = covering(method, relation, tables)
    asking(method, tables)(gate_of(DATA, event, relation))
    if event.changes > 1:  # a larger step or more noise does not stand in for them
        few = Gaussian(100.0, step=event.step + 50, changes=event.changes - 1)
        refused(asking(method, tables), few, relation)
    with pytest.raises(PrivacyError):  # and so with one table more
        asking(method, (*tables, tables[0]))(gate_of(DATA, event, relation))


@each_request
def test_too_small_a_step_is_refused(tables):
    """A replacement moves an excess by two."""
    small = Gaussian(100.0, step=1, changes=10 * len(tables))
    refused(asking("thresholded_errors", tables), small, Relation.REPLACE)
    asking("thresholded_errors", tables)(gate_of(DATA, small, Relation.ADD_REMOVE))


@both_methods
def test_add_remove_events_do_not_cover_replace(method):
    for tables in REQUESTS.values():
        event = covering(method, Relation.ADD_REMOVE, tables)
        refused(asking(method, tables), event, Relation.REPLACE)


@both_methods
@pytest.mark.parametrize("event", [Laplace(9.0, l1=99), Selection(9.0, sensitivity=99, k=1)])
def test_other_mechanisms_are_refused(method, event):
    refused(asking(method, TABLES), event, error=UnderstudyError)


@both_methods
def test_an_uncovered_event_of_the_request_is_refused(method):
    """The event that comes with the request is held to the same rule as a planned one."""
    few = Gaussian(100.0, step=9, changes=len(TABLES) - 1)
    refused(asking(method, TABLES, event=few), Zcdp(100.0))
    refused(
        asking("thresholded_errors", TABLES, event=Gaussian(9.0, changes=99)),
        Zcdp(9.0),
        Relation.REPLACE,
    )


def make(clique, *labels):
    return lambda: Coarsened(clique, tuple(labels))


MISFITS = {
    "too few labels": make((0, 1), codes(0, 1), codes(0, 1)),
    "too many labels": make((0, 1), codes(0, 1), codes(0, 1, 0, 1)),
    "of the other column": make((0, 1), codes(0, 1, 0), codes(0, 1)),
    "as many cells in all": make((0, 1), codes(0, 1, 2, 3, 4, 5), codes(0)),
    "no values": make((1,), codes()),
}
NO_TABLES = {
    **MISFITS,
    "a column without labels": make((0, 1), codes(0, 1)),
    "labels without a column": make((1,), codes(0, 1, 0), codes(0, 1)),
    "columns turned round": make((1, 0), codes(0, 1, 0), codes(0, 1)),
    "a column twice": make((1, 1), codes(0, 1, 0), codes(0, 1, 0)),
    "a column that does not exist": make((0, 2), codes(0, 1), codes(0, 1, 0)),
    "a negative column": make((-1,), codes(0, 1, 0)),
}


@both_relations
@pytest.mark.parametrize("why", NO_TABLES)
@both_methods
def test_labels_that_do_not_fit_are_refused(method, why, relation):
    """By the constructor or by the gate, before anything is charged."""
    event = Gaussian(50.0, step=9, changes=99)

    def ask(gate):
        misfit = NO_TABLES[why]()
        tables = ((0,), misfit)
        refs = (np.zeros(2), np.zeros(misfit.shape))
        return asking(method, tables, refs)(gate)

    refused(ask, event, relation, PrivacyError if why in MISFITS else UnderstudyError)


class Generous(Coarsened):
    """One row moves ten."""

    def table(self, counts):
        return 10 * super().table(counts)


class Harmless(Coarsened):
    pass


class Lookalike:
    clique, labels, shape, domain = (1,), (codes(0, 1, 0),), (2,), (3,)

    def table(self, counts):
        return 10 * codes(1, 1)


@pytest.mark.parametrize("kind", [Generous, Harmless])
@both_methods
def test_subclasses_are_refused(method, kind):
    table = kind((1,), (codes(0, 1, 0),))
    event = Gaussian(50.0, step=9, changes=99)
    for tables in ((table,), ((0,), table)):
        refused(asking(method, tables, tuple(np.zeros(2) for _ in tables)), event)


@pytest.mark.parametrize(
    "table", [Lookalike(), None, 1, "01"], ids=["lookalike", "none", "number", "text"]
)
@both_methods
def test_what_is_neither_clique_nor_merged_is_refused(method, table):
    ask = asking(method, ((0,), table), (np.zeros(2), np.zeros(2)))
    refused(ask, Gaussian(50.0, step=9, changes=99), error=REFUSED)


def put(position, value):
    """The references of TABLES, one of them another."""
    refs = list(flat_references(TABLES))
    refs[position] = value
    return tuple(refs)


BAD_REFERENCES = {
    "too few": flat_references(TABLES)[:-1],
    "too many": (*flat_references(TABLES), np.zeros(2)),
    "none": (),
    "of the domain": put(1, np.zeros(ENDS.domain)),
    "turned round": put(2, np.zeros((3, 2))),
    "flat": put(1, np.zeros(4)),
    "a number": put(1, np.array(0.0)),
    "one cell": put(0, np.zeros(1)),
    "one dimension more": put(0, np.zeros((1, 2))),
    "not a number": put(1, np.array([[0.0, math.nan], [0.0, 0.0]])),
    "infinite": put(1, np.array([[0.0, math.inf], [0.0, 0.0]])),
    "infinite below": put(0, np.array([0.0, -math.inf])),
    "largest float": put(0, np.array([0.0, 1.7e308])),
    "1e300": put(1, np.array([[0.0, 1e300], [0.0, 0.0]])),
    "2^70": put(2, np.full((2, 3), 2.0**70)),
    "-2^70": put(2, np.full((2, 3), -(2.0**70))),
    "beyond int64 on the grid": put(0, np.array([0.0, 2.0**60])),
}


@both_relations
@pytest.mark.parametrize("refs", BAD_REFERENCES.values(), ids=BAD_REFERENCES)
def test_references_must_be_finite_tables_of_their_shape(refs, relation):
    event = covering("thresholded_errors", relation, TABLES)
    refused(asking("thresholded_errors", TABLES, refs), event, relation)


BAD_THRESHOLDS = {
    "too few": (0.5,) * 3,
    "too many": (0.5,) * 5,
    "none": (),
    "negative": (0.5, -1.0, 0.5, 0.5),
    "negative that rounds to zero": (0.5, -1e-3, 0.5, 0.5),
    "not a number": (0.5, 0.5, math.nan, 0.5),
    "infinite": (math.inf, 0.5, 0.5, 0.5),
    "infinite below": (0.5, 0.5, 0.5, -math.inf),
}


@both_relations
@pytest.mark.parametrize("edges", BAD_THRESHOLDS.values(), ids=BAD_THRESHOLDS)
def test_thresholds_must_be_finite_and_not_negative(edges, relation):
    event = covering("thresholded_errors", relation, TABLES)
    refused(asking("thresholded_errors", TABLES, None, edges), event, relation)


def refused_or_right(table, refs, edge):
    """No overflow of the integers may turn one row into a jump."""
    counts, log = np.asarray(table, dtype=np.int64), []
    clique = tuple(range(counts.ndim))
    try:
        gate = large_gate(counts, Gaussian(9.0), log=log)
        got = gate.ask("slot", ThresholdedErrors((clique,), (refs,), (edge,)))
    except PrivacyError:
        assert not log
        return False
    assert got.tolist() == [excess_of(counts, refs, edge)]
    return True


@pytest.mark.parametrize("power", [*range(36, 64, 2), 57, 59, 61, 63, 64, 100, 1000])
@pytest.mark.parametrize("sign", [1, -1])
def test_huge_references_are_refused_or_right(power, sign):
    for cells in (1, 2, 40):
        refused_or_right(np.arange(cells), np.full(cells, sign * 2.0**power), 0.0)
        alternating = sign * 2.0**power * (-1.0) ** np.arange(cells)
        refused_or_right(10**9 + np.arange(cells), alternating, 1.0)


@pytest.mark.parametrize("edge", [1e6, 2.0**40, 2.0**58, 2.0**59, 2.0**60, 1e18, 1e19, 1e300])
def test_huge_thresholds_are_refused_or_right(edge):
    refused_or_right([3, 10**9], np.array([1.5, 7.0]), edge)
    refused_or_right([3, 10**9], np.array([2.0**40, -(2.0**40)]), edge)


def test_counts_and_references_of_billions_are_answered():
    assert refused_or_right([10**10, 0, 7], np.array([0.0, 1e10, 7.3]), 0.0)
    assert refused_or_right([2 * 10**9] * 500, np.full(500, 0.125), 1.0)


# --- independent noise of the charged scale -----------------------------------------------------

SIGNIFICANCE = 1e-6


def fits(draws, sigma):
    """Whether draws follow the discrete Gaussian law, by chi-square; tails lumped."""
    law = discrete_gaussian_law(
        0, sigma, range(-math.floor(2.5 * sigma), math.floor(2.5 * sigma) + 1)
    )
    inner = [z for z in law if isinstance(z, int)]
    expected = [math.exp(law[z]) for z in inner]
    seen = [int((draws == z).sum()) for z in inner]
    expected, seen = [*expected, 1 - sum(expected)], [*seen, len(draws) - sum(seen)]
    expected = len(draws) * np.array(expected)
    assert expected.min() > 5
    statistic = ((seen - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, len(expected) - 1) > SIGNIFICANCE


def noise_of(method, sigma):
    """Ten thousand draws: what came out less what is exact."""
    noise = SeededNoise(17)
    if method == "measure":
        merged = Coarsened((0, 1), (np.arange(200) // 2, np.arange(100)))
        table = np.arange(200 * 100).reshape(200, 100) % 13
        (got,) = large_gate(table, Gaussian(sigma), noise).ask("slot", Marginals((merged,)))
        return (got - merged.table(table)).ravel()
    tables, refs = (FLIPPED,) * 250, (np.array([0.5, 1.0]),) * 250
    gate = gate_of(DATA, Gaussian(sigma, changes=250), Relation.ADD_REMOVE, noise)
    exact = excess_of(exact_table(DATA, FLIPPED), refs[0], 0.25)
    drawn = [gate.ask("slot", ThresholdedErrors(tables, refs, (0.25,) * 250)) for _ in range(40)]
    return np.concatenate(drawn) - exact


@pytest.mark.parametrize("sigma", [0.8, 3.7])
@both_methods
def test_noise_has_the_charged_scale(method, sigma):
    draws = noise_of(method, sigma)
    assert draws.size == 10_000
    assert fits(draws, sigma)
    assert not fits(draws, sigma * 0.9)
    assert not fits(draws, sigma * 1.1)
    if sigma > 2:
        assert abs(draws.mean()) < 5 * sigma / 100
        assert abs((draws.astype(float) ** 2).mean() / sigma**2 - 1) < 5 * math.sqrt(2 / 10_000)


def uncorrelated(a, b):
    return abs(np.corrcoef(np.ravel(a), np.ravel(b))[0, 1]) < 5 / math.sqrt(np.size(a))


def test_repeated_tables_need_more_changes_and_get_noise_of_their_own():
    same = Coarsened((0, 1), (np.arange(40), np.arange(50)))
    half = Coarsened((0, 1), (np.arange(40) // 2, np.arange(50)))
    table, log = np.ones((40, 50), dtype=np.int64), []
    few = large_gate(table, Gaussian(9.0, changes=2), log=log)
    few_to_replace = large_gate(table, Gaussian(9.0, changes=5), None, log, Relation.REPLACE)
    enough = large_gate(table, Gaussian(9.0, changes=3), SeededNoise(3))
    for tables in (((0, 1),) * 3, (same,) * 3, ((0, 1), same, (0, 1)), (half,) * 3):
        for gate in (few, few_to_replace):
            with pytest.raises(PrivacyError):
                gate.ask("slot", Marginals(tables))
        drawn = enough.ask("slot", Marginals(tables))
        assert len(drawn) == 3
        for a, b in itertools.combinations(drawn, 2):
            assert uncorrelated(a, b)
    assert not log


def test_repeated_excesses_need_more_changes_and_get_noise_of_their_own():
    tables, refs, edges = (ENDS,) * 3, (np.zeros((2, 2)),) * 3, (0.0,) * 3
    few = Gaussian(9.0, changes=2)
    refused(lambda c: c.ask("slot", ThresholdedErrors(tables, refs, edges)), few)
    gate = gate_of(DATA, Gaussian(9.0, changes=3), Relation.ADD_REMOVE, SeededNoise(4))
    drawn = np.array(
        [gate.ask("slot", ThresholdedErrors(tables, refs, edges)) for _ in range(1000)]
    )
    for a, b in itertools.combinations(drawn.T, 2):
        assert uncorrelated(a, b)


# --- exact privacy through the real gate --------------------------------------------------------

SMALL = (2, 2)
SMALL_UNIVERSE = ((0, 0), (0, 1), (1, 1))
JOINED = Coarsened((0, 1), (codes(0, 1), codes(0, 0)))
PRIVATE_ASKS = {
    "excess of a full table": (
        ((0, 1),),
        lambda c: c.ask(
            "slot", ThresholdedErrors(((0, 1),), (np.array([[0.3, 0.0], [0.07, 2.2]]),), (0.1,))
        ),
    ),
    "excess of a merged table": (
        (JOINED,),
        lambda c: c.ask("slot", ThresholdedErrors((JOINED,), (np.array([[0.3], [2.2]]),), (0.1,))),
    ),
}


@cache
def gaussian_branches(center, sigma, window):
    law = discrete_gaussian_law(center, sigma, window, tails="lumped")
    return (*window, window[0] - 1, window[-1] + 1), np.array(list(law.values()))


class Played(ChoosingNoise):
    """Every outcome of each Gaussian draw, on a window of the integers; the tails are lumped."""

    window, factor = range(0), 1.0

    def gaussian(self, values, sigma):
        out = []
        for value in np.ravel(values).tolist():
            outcomes, law = gaussian_branches(value, self.factor * sigma, self.window)
            out.append(outcomes[self._chooser.choose(law)])
        return np.array(out, dtype=np.int64).reshape(np.shape(values))


def played(ask, event, relation, window, factor=1.0):
    """The mechanism: rows to the law of what the gate hands back."""
    noise = type("Noise", (Played,), {"window": window, "factor": factor})

    def mechanism(rows):
        def run(chooser):
            answers = ask(gate_of(rows, event, relation, noise(chooser), shape=SMALL))
            return tuple(np.concatenate([np.ravel(each) for each in answers]).tolist())

        return enumerate_transcripts(run)

    return mechanism


@both_relations
@pytest.mark.parametrize("question", PRIVATE_ASKS)
def test_one_excess_keeps_its_charge_and_half_the_noise_is_caught(question, relation):
    tables, ask = PRIVATE_ASKS[question]
    event = Gaussian(2.0, step=relation.marginal_l1(), changes=len(tables))
    pairs = unordered(SMALL_UNIVERSE, 2 if relation is Relation.REPLACE else 1, relation)
    rho = float(accounting.rho(event))
    # Order 64 looks 64 shifts away; see `discrete_gaussian_law`.
    wide = range(-64 * event.step - 15, 64 * event.step + 20)
    report = check(played(ask, event, relation, wide), pairs, rho=rho)
    assert report.rho > 0.99 * rho  # the bound is reached: the check is not about nothing
    near = range(-15, 20)
    with pytest.raises(PrivacyViolation, match="Rényi"):
        check(played(ask, event, relation, near, factor=0.5), pairs, rho=rho)
    with pytest.raises(PrivacyViolation, match="Rényi"):
        check(played(ask, event, relation, near, factor=0.9), pairs, rho=rho)


TWICE = {
    "two thresholded_errors": lambda c: c.ask(
        "slot",
        ThresholdedErrors(
            ((0, 1), JOINED), (np.diag([0.0, 3.0]), np.array([[0.3], [3.2]])), (0.0, 0.1)
        ),
    ),
    "one merged table": lambda c: c.ask("slot", Marginals((JOINED,))),
}


@both_relations
@pytest.mark.parametrize("question", TWICE)
def test_two_numbers_keep_their_charge_and_half_the_noise_is_caught(question, relation):
    ask = TWICE[question]
    if question == "two thresholded_errors":
        event = Gaussian(1.3 * relation.marginal_l1(), step=relation.marginal_l1(), changes=2)
    else:
        event = Gaussian(1.3, changes=relation.multiplicity)
    pairs = unordered(SMALL_UNIVERSE, 2 if relation is Relation.REPLACE else 1, relation)
    rho, window = float(accounting.rho(event)), range(-4, 7)
    report = check(played(ask, event, relation, window), pairs, rho=rho)
    assert report.rho > 0.6 * rho
    with pytest.raises(PrivacyViolation, match="Rényi"):
        check(played(ask, event, relation, window, factor=0.5), pairs, rho=rho)


def test_two_excesses_charged_as_one_are_caught():
    """Why repetitions count: a plan with too few `changes` would promise what is not kept."""
    ask, relation = TWICE["two thresholded_errors"], Relation.ADD_REMOVE
    pairs = unordered(SMALL_UNIVERSE, 1, relation)
    two, one = Gaussian(1.3, changes=2), Gaussian(1.3, changes=1)
    with pytest.raises(PrivacyViolation, match="Rényi"):
        check(played(ask, two, relation, range(-4, 7)), pairs, rho=float(accounting.rho(one)))


# --- nothing exact gets out ---------------------------------------------------------------------

SECRET = 48151623
BIG = np.array([[SECRET, 1, 2], [3, 4, 5]])


@both_methods
def test_a_failing_sampler_shows_nothing_exact(method):
    event = covering(method, Relation.ADD_REMOVE, TABLES)
    with pytest.raises(UnderstudyError) as caught:
        asking(method, TABLES)(large_gate(BIG, event, LeakyNoise()))
    text = "".join(traceback.format_exception(caught.value))
    assert "LEAK" not in text
    assert str(SECRET) not in text


@both_methods
def test_refusals_and_the_gate_show_nothing_exact(method):
    event = covering(method, Relation.ADD_REMOVE, TABLES)
    gate = large_gate(BIG, event, SeededNoise(1))
    asking(method, TABLES)(gate)
    shown = f"{gate!r} {gate} {vars(gate)} {gate._rows!r} {vars(gate._rows)}"
    with pytest.raises(PrivacyError) as caught:
        asking(method, (*TABLES, ENDS))(gate)
    shown += "".join(traceback.format_exception(caught.value))
    assert str(SECRET) not in shown


# -- tables that do not fit at once --------------------------------------------------------------
