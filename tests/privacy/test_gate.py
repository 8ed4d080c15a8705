"""The gate charges first, draws at the charged scale, and lets nothing exact out."""

import itertools
import math
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.exact_privacy import (
    ChoosingNoise,
    PrivacyViolation,
    check,
    enumerate_transcripts,
    neighbours,
)
from tests.privacy.privacy_fakes import (
    FakeTables,
    HalfNoise,
    LeakyNoise,
    LoggedCharges,
    LoggedNoise,
)
from understudy.errors import PrivacyError, RelationError, UnderstudyError
from understudy.privacy import accounting
from understudy.privacy import exact as exact_module
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan, SampledGroups, Selection, Zcdp
from understudy.privacy.gate import Gate, Need
from understudy.privacy.ledger import Ledger
from understudy.privacy.mechanisms import added
from understudy.privacy.questions import (
    GRID,
    VARIATION_GRID,
    Marginals,
    RowCount,
    TotalVariations,
    WorstCell,
    WorstError,
    WorstMarginals,
    variation_step,
)
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing import SeededNoise
from understudy.testing.stand_ins import TinyCounts, table_of

SHAPE = (2, 2)
UNIVERSE = tuple(itertools.product((0, 1), repeat=2))
CLIQUES = ((0,), (1,), (0, 1))
N = 3
CASES = [
    pytest.param(Relation.REPLACE, N, id="replace"),
    pytest.param(Relation.ADD_REMOVE, N, id="add-remove-public-n"),
    pytest.param(Relation.ADD_REMOVE, None, id="add-remove-private-n"),
]


def unordered(relation):
    """All neighbours, each pair of multisets once: counts do not see the order of rows."""
    every = neighbours(UNIVERSE, N, relation.value)
    return list(dict.fromkeys((tuple(sorted(a)), tuple(sorted(b))) for a, b in every))


PAIRS = {relation: unordered(relation) for relation in Relation}
DATA = ((0, 0), (0, 1), (1, 1))
SYNTHETIC = ((0, 1), (0, 1))


def tables(rows):
    return tuple(table_of(rows, SHAPE, clique) for clique in CLIQUES)


def references(value=0.5):
    return tuple(np.full((2,) * len(clique), value) for clique in CLIQUES)


def selection(relation, less=0, k=1):
    return Selection(100.0, sensitivity=GRID * relation.multiplicity - less, k=k)


def covering(relation, rows_public):
    """For every question: an event that just covers the request, and the request."""
    step = variation_step(relation, rows_public=rows_public is not None)
    fake, size = tables(SYNTHETIC), len(SYNTHETIC)
    return {
        "Marginals": (
            Gaussian(5.5, changes=len(CLIQUES) * relation.multiplicity),
            lambda c: c.ask("slot", Marginals(CLIQUES)),
        ),
        "RowCount": (Gaussian(6.5), lambda c: c.ask("slot", RowCount())),
        "WorstMarginals": (
            selection(relation, k=2),
            lambda c: c.ask("slot", WorstMarginals(CLIQUES, references(), (0.0, 0.5, 1.0))),
        ),
        "WorstCell": (
            Selection(100.0, sensitivity=GRID),
            lambda c: c.ask("slot", WorstCell(CLIQUES, references(), False)),
        ),
        "WorstCell signed": (
            Selection(100.0, sensitivity=GRID),
            lambda c: c.ask("slot", WorstCell(CLIQUES, references(), True)),
        ),
        "WorstError": (
            Laplace(320.5, l1=16),
            lambda c: c.ask("slot", WorstError(CLIQUES, fake, size)),
        ),
        "TotalVariations": (
            Gaussian(70.5, step=step, changes=len(CLIQUES)),
            lambda c: c.ask("slot", TotalVariations(CLIQUES, fake, size)),
        ),
    }


METHODS = list(covering(Relation.ADD_REMOVE, None))


def gate_of(rows, event, relation, rows_public, noise=None, log=None):
    charges = LoggedCharges(log, slot=event, relation=relation)
    return Gate(TinyCounts(SHAPE, rows), charges, relation, noise or LoggedNoise(log), rows_public)


# --- charge first -------------------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "public"), CASES)
@pytest.mark.parametrize("method", METHODS)
def test_charges_then_opens_then_draws_at_the_charged_scale(method, relation, public, monkeypatch):
    event, ask = covering(relation, public)[method]
    log = []
    opened = exact_module.reveal

    def reveal(sealed):
        log.append(("reveal",))
        return opened(sealed)

    monkeypatch.setattr(exact_module, "reveal", reveal)
    ask(gate_of(DATA, event, relation, public, log=log))
    scale = event.sigma if isinstance(event, Gaussian) else event.scale
    kind = {Gaussian: "gaussian", Laplace: "laplace", Selection: "top_k"}[type(event)]
    draw = (kind, scale, event.k) if kind == "top_k" else (kind, scale)
    assert log[0] == ("charge", "slot"), "something exact was opened before the charge"
    assert log.count(("charge", "slot")) == 1
    draws = [entry for entry in log if entry[0] not in {"charge", "reveal"}]
    assert draws
    assert set(draws) == {draw}
    assert ("reveal",) in log


@pytest.mark.parametrize("method", METHODS)
def test_the_charge_is_durable_before_the_draw(method, tmp_path):
    """A second connection, asked from inside the sampler, already sees the charge."""
    path, relation = tmp_path / "ledger.sqlite", Relation.ADD_REMOVE
    event, ask = covering(relation, None)[method]
    seen = []

    class Watching(LoggedNoise):
        def _record(self, *args):
            with Ledger(path) as other:
                seen.append([entry.kind for entry in other.entries("people")])
            return super()._record(*args)

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


@pytest.mark.parametrize("relation", Relation)
def test_questions_under_another_relation_than_the_accounts_are_refused(relation, tmp_path):
    (other,) = set(Relation) - {relation}
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.open_dataset("people", Budget.of(9, "1e-9"), relation, rows_public=len(DATA))
        plan = Plan((Charge("slot", Gaussian(5.0, changes=3)),))
        with ledger.reserve("people", Budget.of(5, "1e-9"), plan, relation=relation) as charges:
            assert charges.relation is relation
            with pytest.raises(RelationError, match="nothing was charged or drawn"):
                Gate(TinyCounts(SHAPE, DATA), charges, other, LoggedNoise(), None)
            Gate(TinyCounts(SHAPE, DATA), charges, relation, LoggedNoise(), None)
        assert "charge" not in [entry.kind for entry in ledger.entries("people")]


@pytest.mark.parametrize("method", METHODS)
def test_a_slot_that_does_not_exist_gives_nothing(method):
    _, ask = covering(Relation.ADD_REMOVE, None)[method]
    log = []
    charges = LoggedCharges(log, other=Gaussian(5.0))
    gate = Gate(TinyCounts(SHAPE, DATA), charges, Relation.ADD_REMOVE, LoggedNoise(log), None)
    with pytest.raises(PrivacyError):
        ask(gate)
    assert not log


# --- refused before charging --------------------------------------------------------------------


def uncovered(relation, rows_public):
    step = variation_step(relation, rows_public=rows_public is not None)
    tables_moved = len(CLIQUES) * relation.multiplicity
    out = [
        ("Marginals", Gaussian(5.0, changes=tables_moved - 1)),
        ("WorstMarginals", selection(relation, less=1)),
        ("WorstCell", Selection(100.0, sensitivity=GRID - 1)),
        ("WorstCell signed", Selection(100.0, sensitivity=GRID - 1)),
        ("TotalVariations", Gaussian(70.0, step=step - 1, changes=len(CLIQUES))),
        ("TotalVariations", Gaussian(70.0, step=step, changes=len(CLIQUES) - 1)),
    ]
    wrong_kind = {
        "Marginals": Laplace(9.0, l1=99),
        "RowCount": Laplace(9.0, l1=99),
        "WorstMarginals": Gaussian(9.0, step=99, changes=99),
        "WorstCell": Laplace(9.0, l1=99),
        "WorstCell signed": Gaussian(9.0, step=99, changes=99),
        "WorstError": Gaussian(9.0, step=99, changes=99),
        "TotalVariations": Laplace(9.0, l1=99),
    }
    return out + list(wrong_kind.items())


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_what_the_slot_does_not_cover_is_refused_before_charging(relation, public):
    for method, event in uncovered(relation, public):
        _, ask = covering(relation, public)[method]
        log = []
        with pytest.raises(UnderstudyError):
            ask(gate_of(DATA, event, relation, public, log=log))
        assert not log, f"{method} charged or drew with {event}"


def test_more_picks_than_candidates_are_refused_before_charging():
    log = []
    event = selection(Relation.ADD_REMOVE, k=len(CLIQUES) + 1)
    gate = gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log)
    with pytest.raises(UnderstudyError):
        gate.ask("slot", WorstMarginals(CLIQUES, references(), (0.0, 0.0, 0.0)))
    assert not log


def test_uncovered_sensitivity_is_a_privacy_error():
    _, ask = covering(Relation.REPLACE, N)["Marginals"]
    with pytest.raises(PrivacyError):
        ask(gate_of(DATA, Gaussian(5.0, changes=3), Relation.REPLACE, N))


def test_add_remove_events_do_not_cover_replace():
    for method in ("Marginals", "WorstMarginals", "TotalVariations"):
        event, _ = covering(Relation.ADD_REMOVE, N)[method]
        _, ask = covering(Relation.REPLACE, N)[method]
        log = []
        with pytest.raises(PrivacyError):
            ask(gate_of(DATA, event, Relation.REPLACE, N, log=log))
        assert not log


def test_public_n_events_do_not_cover_private_n():
    event, _ = covering(Relation.ADD_REMOVE, N)["TotalVariations"]
    _, ask = covering(Relation.ADD_REMOVE, None)["TotalVariations"]
    log = []
    with pytest.raises(PrivacyError):
        ask(gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log))
    assert not log


CERTIFICATES = {"WorstError": WorstError, "TotalVariations": TotalVariations}
BAD_SYNTHETIC = {
    "cell above size": (np.array([4, -2]), np.array([1, 1]), np.array([[1, 0], [1, 0]])),
    "wrong total": (np.array([2, 1]), np.array([2, 1]), np.array([[1, 1], [1, 0]])),
    "wrong shape": (np.array([2]), np.array([1, 1]), np.array([[1, 0], [1, 0]])),
    "too few tables": (np.array([1, 1]),),
    "floats": (np.array([0.5, 1.5]), np.array([1.0, 1.0]), np.array([[0.5, 0.5], [0.5, 0.5]])),
}


@pytest.mark.parametrize("method", CERTIFICATES)
@pytest.mark.parametrize("synthetic", BAD_SYNTHETIC.values(), ids=BAD_SYNTHETIC)
def test_synthetic_tables_that_are_no_counts_of_that_size_are_refused(method, synthetic):
    """The lattice bound needs 0 <= c_hat and a total of M; otherwise a neighbour moves it by more."""
    event, _ = covering(Relation.ADD_REMOVE, None)[method]
    log = []
    gate = gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log)
    with pytest.raises((UnderstudyError, TypeError, ValueError)):
        gate.ask("slot", CERTIFICATES[method](CLIQUES, synthetic, 2))
    assert not log


@pytest.mark.parametrize("method", CERTIFICATES)
@pytest.mark.parametrize("size", [0, -1])
def test_synthetic_sizes_must_be_positive(method, size):
    event, _ = covering(Relation.ADD_REMOVE, None)[method]
    log = []
    gate = gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log)
    with pytest.raises((UnderstudyError, ValueError)):
        gate.ask("slot", CERTIFICATES[method](CLIQUES, tables(()), size))
    assert not log


@pytest.mark.parametrize("method", CERTIFICATES)
@pytest.mark.parametrize("size", [2.0, np.int64(2), np.float64(2), "2"])
def test_synthetic_sizes_must_be_whole_numbers_of_python(method, size):
    """Others wrap or fail where a number passes 64 bits, after the charge and by what is private."""
    event, _ = covering(Relation.ADD_REMOVE, None)[method]
    log = []
    gate = gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log)
    with pytest.raises(PrivacyError, match="1 to 2\\^38 synthetic rows"):
        gate.ask("slot", CERTIFICATES[method](CLIQUES, tables(SYNTHETIC), size))
    assert not log


def test_a_table_that_is_no_count_would_break_the_bound():
    """Why they are refused: with ĉ = (-8, 10) and M = 2 one row moves K/M by 5, charged as 1."""
    synthetic = (np.array([-8, 10]), np.array([1, 1]), np.array([[1, 0], [1, 0]]))
    answers = []
    for rows in (DATA, (*DATA, (0, 0))):
        gate = gate_of(rows, Laplace(9.0, l1=1), Relation.ADD_REMOVE, None)
        try:
            answers.append(gate.ask("slot", WorstError(CLIQUES, synthetic, 2)))
        except UnderstudyError:
            return
    assert abs(answers[0] - answers[1]) <= 1


@pytest.mark.parametrize("huge", [2.0**58, 2.0**59, -(2.0**59) + 1, 1e17, 1e300])
def test_huge_references_are_refused_or_harmless(huge):
    """No overflow of the integer scores may turn one row into a jump."""
    relation = Relation.ADD_REMOVE
    event = Selection(100.0, sensitivity=GRID)
    requests = [
        lambda c: c.ask("slot", WorstCell(CLIQUES, references(huge), True)),
        lambda c: c.ask("slot", WorstMarginals(CLIQUES, references(huge), (0.0, 0.0, 0.0))),
        lambda c: c.ask("slot", WorstMarginals(CLIQUES, references(0.0), (huge, -huge, 0.0))),
    ]
    for ask in requests:
        seen = []
        for rows in (DATA, (*DATA, (0, 0)), (*DATA, (0, 0), (0, 0))):
            noise, log = LoggedNoise(), []
            try:
                ask(gate_of(rows, event, relation, None, noise, log))
            except UnderstudyError:
                assert not log
                break
            seen.append(noise.values[0].astype(object))
        for a, b in itertools.pairwise(seen):
            assert max(abs(a - b)) <= event.sensitivity


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_references_and_penalties_must_be_finite(bad):
    relation = Relation.ADD_REMOVE
    refs = references()
    refs[2][0, 0] = bad
    requests = [
        (selection(relation), lambda c: c.ask("slot", WorstMarginals(CLIQUES, refs, (0, 0, 0)))),
        (
            selection(relation),
            lambda c: c.ask("slot", WorstMarginals(CLIQUES, references(), (0.0, bad, 0.0))),
        ),
        (selection(relation), lambda c: c.ask("slot", WorstCell(CLIQUES, refs, True))),
    ]
    for event, ask in requests:
        log = []
        with pytest.raises((UnderstudyError, ValueError)):
            ask(gate_of(DATA, event, relation, None, log=log))
        assert not log


@pytest.mark.parametrize("cliques", [((0, 0),), ((1, 0),), ((0, 2),), ((-1,),)])
def test_impossible_cliques_are_refused(cliques):
    log = []
    gate = gate_of(DATA, Gaussian(5.0, changes=9), Relation.ADD_REMOVE, None, log=log)
    with pytest.raises(UnderstudyError):
        gate.ask("slot", Marginals(cliques))
    assert not log


def test_filters_take_the_event_of_the_request(tmp_path):
    relation = Relation.ADD_REMOVE
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.open_dataset("people", Budget.of(100, "1e-9"), relation)
        plan = Plan((Charge("slot", Zcdp(1.0)),))
        with ledger.reserve("people", Budget.of(50, "1e-9"), plan, relation=relation) as charges:
            noise = LoggedNoise()
            gate = Gate(TinyCounts(SHAPE, DATA), charges, relation, noise, None)
            event = Gaussian(2.0, changes=3)  # rho 3/8
            gate.ask("slot", Marginals(CLIQUES), event)
            gate.ask("slot", Marginals(CLIQUES), event)
            with pytest.raises(PrivacyError):
                gate.ask("slot", Marginals(CLIQUES), event)
            with pytest.raises(PrivacyError):  # three tables, charged as one
                gate.ask("slot", Marginals(CLIQUES), Gaussian(20.0, changes=1))
            with pytest.raises(PrivacyError):  # a filter names no scale of its own
                gate.ask("slot", Marginals(CLIQUES))
            assert {entry[1] for entry in noise.log} == {2.0}
        kinds = [entry.kind for entry in ledger.entries("people")]
        assert kinds.count("charge") == 2


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_measure_hands_back_each_table(relation, public):
    event, ask = covering(relation, public)["Marginals"]
    for got, expected in zip(
        ask(gate_of(DATA, event, relation, public)), tables(DATA), strict=True
    ):
        assert got.dtype == np.int64
        assert np.array_equal(got, expected)


def test_rows_hands_back_the_count():
    event, ask = covering(Relation.ADD_REMOVE, None)["RowCount"]
    assert ask(gate_of(DATA, event, Relation.ADD_REMOVE, None)) == 3
    assert ask(gate_of((), event, Relation.ADD_REMOVE, None)) == 0


def test_measure_draws_fresh_noise_for_every_cell():
    event = Gaussian(50.0, changes=3)
    noise = SeededNoise(5)
    gate = Gate(
        FakeTables(np.zeros((20, 20))), LoggedCharges(slot=event), Relation.ADD_REMOVE, noise, None
    )
    a, b, c = gate.ask("slot", Marginals(((0, 1), (0,), (1,))))
    assert len(set(a.ravel().tolist())) > 100
    assert not np.array_equal(b, c)
    again, _, _ = gate.ask("slot", Marginals(((0, 1), (0,), (1,))))
    assert not np.array_equal(a, again)


def lattice(rows, n, synthetic):
    size = len(synthetic)
    return [np.abs(size * t - n * s) for t, s in zip(tables(rows), tables(synthetic), strict=True)]


SYNTHETICS = [
    rows for size in (1, 2, 3) for rows in itertools.combinations_with_replacement(UNIVERSE, size)
]


@pytest.mark.parametrize(("relation", "public"), CASES)
@pytest.mark.parametrize("l1", [1, 7, 16])
def test_worst_error_is_the_lattice_maximum(relation, public, l1):
    for synthetic in SYNTHETICS:
        for rows in (DATA, (UNIVERSE[0],) * 3, UNIVERSE[:3]):
            gate = gate_of(rows, Laplace(9.0, l1=l1), relation, public)
            got = gate.ask("slot", WorstError(CLIQUES, tables(synthetic), len(synthetic)))
            worst = max(int(t.max()) for t in lattice(rows, public or len(rows), synthetic))
            assert got == math.ceil(l1 * worst / len(synthetic))
            assert type(got) is int


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_total_variations_are_the_lattice_sums(relation, public):
    event, _ = covering(relation, public)["TotalVariations"]
    for synthetic in SYNTHETICS:
        gate = gate_of(DATA, event, relation, public)
        got = gate.ask("slot", TotalVariations(CLIQUES, tables(synthetic), len(synthetic)))
        sums = [int(t.sum()) for t in lattice(DATA, public or len(DATA), synthetic)]
        per_row = variation_step(Relation.ADD_REMOVE, rows_public=True)
        assert got.tolist() == [math.ceil(per_row * s / len(synthetic)) for s in sums]


def test_a_public_number_of_rows_is_used_instead_of_the_exact_one():
    gate = gate_of((UNIVERSE[0],) * 5, Laplace(9.0, l1=1), Relation.ADD_REMOVE, 3)
    got = gate.ask("slot", WorstError(CLIQUES, tables((UNIVERSE[0],)), 1))
    assert got == 2  # |1 * 5 - 3 * 1|


def test_a_perfect_copy_has_no_error():
    for relation, public in ((Relation.REPLACE, N), (Relation.ADD_REMOVE, None)):
        gate = gate_of(DATA, Laplace(9.0, l1=16), relation, public)
        assert gate.ask("slot", WorstError(CLIQUES, tables(DATA * 4), 12)) == 0


@pytest.mark.parametrize("rows", [10**9, 2 * 10**9])
def test_large_counts_do_not_overflow(rows):
    """M c and n c_hat reach 10^18 and more, before they are scaled by the lattice."""
    exact = FakeTables(np.array([rows, 0]))
    wrong = (np.array([0, rows], dtype=np.int64),)
    gate = Gate(
        exact, LoggedCharges(slot=Laplace(9.0, l1=16)), Relation.ADD_REMOVE, LoggedNoise(), None
    )
    assert gate.ask("slot", WorstError(((0,),), wrong, rows)) == 16 * rows
    event = Gaussian(9.0, step=16)
    gate = Gate(exact, LoggedCharges(slot=event), Relation.ADD_REMOVE, LoggedNoise(), None)
    assert gate.ask("slot", TotalVariations(((0,),), wrong, rows)).tolist() == [
        2 * VARIATION_GRID * rows
    ]


def test_select_marginals_takes_the_farthest_after_penalties():
    relation = Relation.ADD_REMOVE
    event = selection(relation, k=3)
    # L1 distances of DATA to zero references are 3, 3, 3.
    gate = gate_of(DATA, event, relation, None)
    assert gate.ask("slot", WorstMarginals(CLIQUES, references(0.0), (2.0, 0.0, 1.0))) == (1, 2, 0)
    refs = (np.array([2.0, 1.0]), np.array([0.0, 0.0]), np.array([[1.0, 1.0], [0.0, 0.0]]))
    gate = gate_of(DATA, selection(relation, k=2), relation, None)
    assert gate.ask("slot", WorstMarginals(CLIQUES, refs, (0.0, 0.0, 0.0))) == (1, 2)


WEIGHTS = (1, 3, 2)


def weighted(relation, less=0, scale=100.0):
    return Selection(scale, sensitivity=3 * GRID * relation.multiplicity - less)


def ask_weighted(gate, weights=WEIGHTS, refs=None, penalties=(0.0, 0.5, 1.0)):
    refs = references() if refs is None else refs
    return gate.ask("slot", WorstMarginals(CLIQUES, refs, penalties, weights=weights))


def test_weights_multiply_error_and_penalty():
    relation, event = Relation.ADD_REMOVE, Selection(100.0, sensitivity=3 * GRID, k=3)
    noise = LoggedNoise()
    gate = gate_of(DATA, event, relation, None, noise)
    ask_weighted(gate, refs=references(0.0), penalties=(2.0, 2.5, 0.0))
    assert noise.values[0].tolist() == [GRID * 1, GRID * 3 // 2, GRID * 6]


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_the_largest_weight_is_what_must_be_covered(relation):
    public = N if relation is Relation.REPLACE else None
    ask_weighted(gate_of(DATA, weighted(relation), relation, public))
    log = []
    with pytest.raises(PrivacyError, match="does not cover"):
        ask_weighted(gate_of(DATA, weighted(relation, less=1), relation, public, log=log))
    assert not log


@pytest.mark.parametrize("bad", [(1, 2), (0, 1, 1), (1, -1, 1), (1, 1.5, 1), (1, 1, 4097)])
def test_weights_that_are_no_small_whole_numbers_are_refused(bad):
    log, event = [], Selection(1.0, sensitivity=10**6)
    gate = gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log)
    with pytest.raises(PrivacyError, match="weights"):
        ask_weighted(gate, weights=bad)
    assert not log


def test_weighted_references_must_fit_the_integers():
    log, event = [], Selection(1.0, sensitivity=10**6)
    gate = gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log)
    with pytest.raises(PrivacyError, match="too large"):
        ask_weighted(gate, weights=(1, 4096, 1), refs=references(2.0**45))
    assert not log


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_weighted_selections_keep_what_is_charged_and_no_less_noise_does(relation, public):
    """ε0 = 2·max w·Δ/scale; half of it, as for scores that only rise, is not what it costs."""
    event = weighted(relation, scale=3.0 * GRID * relation.multiplicity)
    refs = (np.array([1.0, 1.0]), np.array([1.5, 1.5]), np.full((2, 2), 0.75))

    def ask(gate):
        return ask_weighted(gate, refs=refs)

    pure, rho = float(accounting.pure(event)), float(accounting.rho(event))
    pairs = PAIRS[relation]
    check(selecting(relation, public, event, ask), pairs, pure=pure, rho=rho, bounded_range=pure)
    with pytest.raises(PrivacyViolation):
        check(selecting(relation, public, event, ask, HalfNoise), pairs, bounded_range=pure)
    with pytest.raises(PrivacyViolation):
        check(selecting(relation, public, event, ask), pairs, bounded_range=pure / 2)


def test_select_cell_takes_cell_and_side():
    relation = Relation.ADD_REMOVE
    event = Selection(100.0, sensitivity=GRID)
    refs = tuple(t.astype(float) for t in tables(DATA))
    refs[2][1, 0] += 2.25
    refs[0][0] -= 1.5
    for signed, sign in ((True, -1), (False, 0)):
        cell = gate_of(DATA, event, relation, None).ask("slot", WorstCell(CLIQUES, refs, signed))
        assert cell.marginal == 2
        assert tuple(cell.index) == (1, 0)
        assert cell.sign == sign
    refs[2][1, 0] -= 2.25
    cell = gate_of(DATA, event, relation, None).ask("slot", WorstCell(CLIQUES, refs, True))
    assert (cell.marginal, tuple(cell.index), cell.sign) == (0, (0,), 1)


# --- sensitivity of what reaches the sampler, over all neighbours -------------------------------


def reaching(method, rows, relation, public, event=None, ask=None):
    default_event, default_ask = covering(relation, public)[method]
    noise = LoggedNoise()
    (ask or default_ask)(gate_of(rows, event or default_event, relation, public, noise))
    return np.concatenate([np.ravel(values) for values in noise.values])


def largest_move(relation, vector):
    cache = {}

    def at(rows):
        if rows not in cache:
            cache[rows] = vector(rows)
        return cache[rows]

    return [np.abs(at(a) - at(b)) for a, b in PAIRS[relation]]


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_measured_tables_move_by_what_is_charged(relation, public):
    event, _ = covering(relation, public)["Marginals"]
    moves = largest_move(relation, lambda rows: reaching("Marginals", rows, relation, public))
    assert max(m.max() for m in moves) == event.step
    assert max((m > 0).sum() for m in moves) == event.changes


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_total_variations_move_by_what_is_charged(relation, public):
    event, _ = covering(relation, public)["TotalVariations"]
    worst = 0
    for synthetic in SYNTHETICS:
        fake, size = tables(synthetic), len(synthetic)
        moves = largest_move(
            relation,
            lambda rows, fake=fake, size=size: reaching(
                "TotalVariations",
                rows,
                relation,
                public,
                ask=lambda c: c.ask("slot", TotalVariations(CLIQUES, fake, size)),
            ),
        )
        worst = max(worst, *(int(m.max()) for m in moves))
    assert worst == event.step


def rough(rng, size):
    """References that sit on and around the rounding points of a 1/16 grid, small and large."""
    base = rng.integers(-40, 80, size=size) / 32 + rng.choice([0, 1e-12, -1e-12, 1 / 3], size=size)
    return base + rng.choice([0, 0, 1e6], size=size)


@pytest.mark.parametrize(("relation", "public"), CASES)
@pytest.mark.parametrize("method", ["WorstMarginals", "WorstCell", "WorstCell signed"])
def test_scores_move_by_what_is_charged_for_any_reference(relation, public, method):
    """Rounding to the grid must not add to the sensitivity, wherever the references lie."""
    rng = np.random.default_rng(11)
    event, _ = covering(relation, public)[method]
    for _ in range(10):
        refs = tuple(rough(rng, (2,) * len(clique)) for clique in CLIQUES)
        penalties = tuple(rough(rng, 3))

        def ask(gate, refs=refs, penalties=penalties):
            if method == "WorstMarginals":
                return gate.ask("slot", WorstMarginals(CLIQUES, refs, penalties))
            return gate.ask("slot", WorstCell(CLIQUES, refs, method.endswith("signed")))

        moves = largest_move(
            relation, lambda rows, ask=ask: reaching(method, rows, relation, public, ask=ask)
        )
        assert max(m.max() for m in moves) <= event.sensitivity


# --- exact privacy through the real gate --------------------------------------------------------


def selecting(relation, public, event, ask, noise=ChoosingNoise):
    def mechanism(rows):
        def run(chooser):
            return repr(ask(gate_of(rows, event, relation, public, noise(chooser))))

        return enumerate_transcripts(run)

    return mechanism


SELECTIONS = ["WorstMarginals", "WorstCell", "WorstCell signed"]


@pytest.mark.parametrize(("relation", "public"), CASES[::2])
@pytest.mark.parametrize("method", SELECTIONS)
def test_selections_keep_what_is_charged_on_every_neighbour(relation, public, method):
    _, ask = covering(relation, public)[method]
    k = 2 if method == "WorstMarginals" else 1
    event = Selection(20.0, sensitivity=GRID * (relation.multiplicity if k == 2 else 1), k=k)
    pure, rho = float(accounting.pure(event)), float(accounting.rho(event))
    pairs = PAIRS[relation]
    check(selecting(relation, public, event, ask), pairs, pure=pure, rho=rho)


def test_selection_with_half_the_noise_is_caught():
    relation, event = Relation.REPLACE, Selection(20.0, sensitivity=GRID)
    _, ask = covering(relation, N)["WorstCell signed"]
    eps0 = float(accounting.pure(event))
    pairs = PAIRS[relation]
    check(selecting(relation, N, event, ask), pairs, bounded_range=eps0)
    with pytest.raises(PrivacyViolation):
        check(selecting(relation, N, event, ask, HalfNoise), pairs, bounded_range=eps0)


# --- nothing exact gets out ---------------------------------------------------------------------

SECRET = 48151623
BIG = FakeTables(np.array([[SECRET, 1], [2, 3]]))


def big_request(method):
    size = SECRET + 6
    fake = tuple(
        np.array([[size, 0], [0, 0]]).sum(axis=tuple(a for a in (0, 1) if a not in c))
        for c in CLIQUES
    )
    requests = {
        "WorstError": lambda c: c.ask("slot", WorstError(CLIQUES, fake, size)),
        "TotalVariations": lambda c: c.ask("slot", TotalVariations(CLIQUES, fake, size)),
    }
    return requests.get(method, covering(Relation.ADD_REMOVE, None)[method][1])


@pytest.mark.parametrize("method", METHODS)
def test_a_failing_sampler_shows_nothing_exact(method):
    event, _ = covering(Relation.ADD_REMOVE, None)[method]
    gate = Gate(BIG, LoggedCharges(slot=event), Relation.ADD_REMOVE, LeakyNoise(), None)
    with pytest.raises(Exception) as caught:
        big_request(method)(gate)
    text = "".join(traceback.format_exception(caught.value))
    assert "LEAK" not in text
    assert str(SECRET) not in text
    assert isinstance(caught.value, UnderstudyError)


def test_the_gate_itself_shows_nothing_exact():
    """What it keeps between questions stays sealed, for instance in a crash report's variables."""
    shown = ""
    for method in METHODS:
        event, _ = covering(Relation.ADD_REMOVE, None)[method]
        gate = Gate(BIG, LoggedCharges(slot=event), Relation.ADD_REMOVE, SeededNoise(1), None)
        big_request(method)(gate)
        shown += f"{gate!r} {gate} {vars(gate)} {gate._rows!r} {vars(gate._rows)}"
    assert str(SECRET) not in shown


def test_refusals_show_nothing_exact():
    for method, event in uncovered(Relation.ADD_REMOVE, None):
        gate = Gate(BIG, LoggedCharges(slot=event), Relation.ADD_REMOVE, LoggedNoise(), None)
        with pytest.raises(UnderstudyError) as caught:
            big_request(method)(gate)
        assert str(SECRET) not in "".join(traceback.format_exception(caught.value))


# --- questions that lie -------------------------------------------------------------------------


@dataclass(frozen=True)
class Lying:
    """Declares two integers, and gives what it likes."""

    gives: Any
    shape: tuple[int, ...] | None = (2,)
    mechanism: Any = added

    def need(self, facts):
        return Need((Gaussian, SampledGroups), lambda e: True, "two numbers", self.shape)

    def exact(self, rows, event):
        return self.gives

    def decode(self, drawn, facts):
        return drawn


LIES = {
    "too many": np.array([SECRET] * 3),
    "too few": np.array([SECRET]),
    "another shape": np.array([[SECRET, SECRET]]),
    "none": np.zeros(0, np.int64),
    "floats": np.array([float(SECRET), 0.0]),
    "halves": np.array([SECRET + 0.5, 0.0]),
    "shorter integers": np.array([SECRET, 0], np.int32),
    "without a sign": np.array([SECRET, 0], np.uint64),
    "objects": np.array([SECRET, "x"], object),
    "a list": [SECRET, SECRET],
    "a number": SECRET,
    "text": str(SECRET),
    "nothing": None,
    "a sealed value": Sensitive(np.array([SECRET, SECRET])),
}


def refused_after_the_charge(question, event):
    """The text of all that an outsider sees of the refusal."""
    log = []
    gate = Gate(
        TinyCounts(SHAPE, DATA),
        LoggedCharges(log, slot=event, relation=Relation.REPLACE),
        Relation.REPLACE,
        LoggedNoise(log),
    )
    with pytest.raises(PrivacyError) as caught:
        gate.ask("slot", question)
    assert log == [("charge", "slot")], "nothing may be drawn"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)


@pytest.mark.parametrize("gives", LIES.values(), ids=LIES)
@pytest.mark.parametrize("shape", [(2,), None], ids=["declared", "undeclared"])
def test_a_question_that_lies_about_its_answer_is_refused_before_noise(gives, shape):
    """A charge for two integers is one for nothing else, and for no number of them at all."""
    text = refused_after_the_charge(Lying(gives, shape), Gaussian(2.0, changes=2))
    assert "another answer than it declared" in text
    assert str(SECRET) not in text


def test_undeclared_integers_are_no_way_round_the_shape():
    """Only what a mechanism itself bounds may come without a shape."""
    text = refused_after_the_charge(
        Lying(np.array([SECRET, SECRET]), None), Gaussian(2.0, changes=2)
    )
    assert str(SECRET) not in text


def test_one_that_does_not_lie_is_answered():
    gate = gate_of(DATA, Gaussian(2.0, changes=2), Relation.REPLACE, N)
    assert gate.ask("slot", Lying(np.array([7, 8]))).tolist() == [7, 8]


# --- the same order check catches a gate that forgets to charge ---------------------------------


def draws_without_a_charge(log):
    """How many draws came before a charge of their own."""
    balance = missing = 0
    for entry in log:
        balance += 1 if entry[0] == "charge" else -1
        missing = max(missing, -balance)
    return missing


def test_a_forgotten_charge_is_caught():
    event, ask = covering(Relation.ADD_REMOVE, None)["RowCount"]
    log = []
    ask(gate_of(DATA, event, Relation.ADD_REMOVE, None, log=log))
    assert draws_without_a_charge(log) == 0

    class Forgetful(LoggedCharges):
        def charge(self, purpose, event=None):
            return self.plan[purpose].event

    twin = []
    ask(
        Gate(
            TinyCounts(SHAPE, DATA),
            Forgetful(twin, slot=event),
            Relation.ADD_REMOVE,
            LoggedNoise(twin),
            None,
        )
    )
    assert draws_without_a_charge(twin) == 1
