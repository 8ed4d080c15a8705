"""What a release that finds the shape of numbers may charge, ask and tell, written from its definition.

Nothing here knows how levels are chosen or what is made of them. A level is a table of counts over
cells that cover the column without overlap, so one row moves one count (two where it is replaced), and
its noise of standard deviation σ costs ρ = m/(2σ²) for m columns. ρ_c = 5 % of ρ for a column, at most
20 % for all; the five levels and the table of round values get 30, 22, 16, 12, 10 and 10 % of it.
"""

from __future__ import annotations

import datetime
import math
import tomllib
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.thorough import slow
from understudy.errors import LedgerError, SchemaError
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Discovery, Gaussian, Plan, Zcdp
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import Noise
from understudy.privacy.relation import Relation
from understudy.releases import facts, prepare
from understudy.releases.run import reserve
from understudy.schema import Schema
from understudy.source import read
from understudy.testing import SeededNoise
from understudy.testing.stand_ins import StrictCharges

HEAD = "[understudy]\nversion = 1\n"
SHARES = (0.30, 0.22, 0.16, 0.12, 0.10)
ROUND = 0.10
LEVELS = tuple(f"shapes, level {i} of 5" for i in range(1, 6))


def column(name: str, kind: str, *lines: str) -> str:
    return f'\n[[column]]\nname = "{name}"\ntype = "{kind}"\n' + "".join(f"{x}\n" for x in lines)


class Stop(BaseException):
    """The process dies here."""


class Script(Noise):
    """Seeded noise, or `answers` whatever the exact values; keeps what it was asked. NOT PRIVATE."""

    private = False

    def __init__(self, answers: Sequence[Any] | None = None, stop: int | None = None) -> None:
        self.seeded, self.answers, self.stop = SeededNoise(1), answers, stop
        self.asked: list[np.ndarray] = []
        self.scales: list[float] = []
        self.released: list[np.ndarray] = []

    def before(self, scale: float) -> None:
        """A look around before a draw."""

    def _draw(self, values: Any, scale: float, law: Any) -> np.ndarray:
        self.before(scale)
        if len(self.asked) == self.stop:
            raise Stop
        self.asked.append(np.array(values))
        self.scales.append(scale)
        at = len(self.released)
        given = law(values, scale) if self.answers is None else self.answers[at]
        self.released.append(np.array(given, np.int64))
        return self.released[-1].reshape(np.shape(values))

    def gaussian(self, values: Any, sigma: float) -> np.ndarray:
        return self._draw(values, sigma, self.seeded.gaussian)

    def laplace(self, values: Any, scale: float) -> np.ndarray:
        return self._draw(values, scale, self.seeded.laplace)

    def top_k(self, scores: Any, scale: float, k: int) -> tuple[int, ...]:
        raise AssertionError("nothing is selected here")

    def below(self, number: int) -> int:
        raise AssertionError("nothing is drawn uniformly here")


# --- the plan -----------------------------------------------------------------------------------


def converted(rho: float, delta: float) -> float:
    """inf over a > 1 of the ε at which ρ-zCDP gives δ (Canonne, Kamath and Steinke 2020)."""
    a = 1 + np.exp(np.linspace(-8, 12, 200_001))
    return float(np.min(a * rho + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)))


def cost(event: Any) -> float:
    """ρ of one row, or of one unit where the event speaks of units."""
    if isinstance(event, Zcdp):
        return event.rho
    if isinstance(event, Discovery):
        return event.sides * event.values / (2 * event.sigma**2)
    assert isinstance(event, Gaussian)
    return event.changes * event.step**2 / (2 * event.sigma**2)


def numbers(count: int, kind: str = "integer") -> str:
    return "".join(column(f"x{i}", kind) for i in range(count))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("columns", [1, 3, 6])
def test_levels_and_round_values_have_their_shares(relation, rows, columns):
    who = f'unit = "id"\nmax_rows = {rows}\n' if rows > 1 else ""
    text = HEAD + who + column("id", "identifier") + numbers(columns) + column("s", "boolean")
    choices = {"neighbours": relation, "rows_public": 5000} if relation == "replace" else {}
    plan = prepare(Schema.loads(text), epsilon=1, delta="1e-9", **choices).plan
    events = {charge.purpose: charge.event for charge in plan}
    assert all(charge.times == 1 for charge in plan)
    assert set(events) == {*LEVELS, "round values", facts.REST}
    rho = sum(map(cost, events.values()))
    each = min(0.05, 0.20 / columns) * rho
    sides = 2 if relation == "replace" else 1
    for purpose, share in zip((*LEVELS, "round values"), (*SHARES, ROUND), strict=True):
        event = events[purpose]
        assert isinstance(event, Gaussian)
        # m tables: a row is in one cell of each, on both sides of a replacement.
        assert (event.changes, event.step) == (columns * sides, 1)
        assert cost(event) == pytest.approx(columns * share * each, rel=1e-6)
        assert event.sigma == pytest.approx(math.sqrt(sides / (2 * share * each)), rel=1e-6)
    # k rows of one unit cost k² times as much, and all of it is inside (ε, δ).
    assert 0.99 < converted(rows**2 * rho, 1e-9) <= 1 + 1e-9


def test_a_unit_of_k_rows_gets_k_times_the_noise_and_a_replacement_root_two():
    def sigmas(head="", **choices):
        text = HEAD + head + column("id", "identifier") + numbers(2)
        plan = prepare(Schema.loads(text), epsilon=1, delta="1e-9", rows_public=900, **choices).plan
        return np.array([plan[name].event.sigma for name in (*LEVELS, "round values")])

    one = sigmas()
    np.testing.assert_allclose(sigmas('unit = "id"\nmax_rows = 4\n'), 4 * one, rtol=1e-6)
    np.testing.assert_allclose(sigmas(neighbours="replace"), math.sqrt(2) * one, rtol=1e-6)


@pytest.mark.parametrize(("numeric", "towns"), [(1, 1), (1, 6), (4, 4), (12, 1)])
def test_open_columns_of_all_kinds_share_a_fifth(numeric, towns):
    found = "".join(column(f"t{i}", "category", 'values = "discover"') for i in range(towns))
    quantiles = column("q", "integer", "lower = 0", "upper = 9999", "bins = {quantiles = 4}")
    ready = prepare(Schema.loads(HEAD + numbers(numeric) + found + quantiles), epsilon=1)
    events = {charge.purpose: charge.event for charge in ready.plan}
    rho = sum(map(cost, events.values()))
    spent = [cost(event) for name, event in events.items() if name != facts.REST]
    assert sum(spent) <= 0.20 * rho * (1 + 1e-9)
    levels = [cost(events[name]) for name in (*LEVELS, "round values")]
    assert sum(levels) <= numeric * 0.05 * rho * (1 + 1e-9)
    np.testing.assert_allclose(np.array(levels) / sum(levels), (*SHARES, ROUND), rtol=1e-6)
    # What a discovery costs beside ρ comes off δ; the rest converts to ε.
    delta = sum(event.delta for event in events.values() if isinstance(event, Discovery))
    assert delta <= float(ready.budget.delta) / 10
    assert converted(rho, float(ready.budget.delta) - delta) <= 1 + 1e-9


def test_columns_that_have_no_round_values_are_not_charged_for_them():
    """What is not asked is not charged, and what is not charged is left for the release."""
    plan = prepare(Schema.loads(HEAD + numbers(2, "number")), epsilon=1).plan
    events = {charge.purpose: charge.event for charge in plan}
    rho = sum(map(cost, events.values()))
    for name, share in zip(LEVELS, SHARES, strict=True):
        assert cost(events[name]) == pytest.approx(2 * 0.05 * share * rho, rel=1e-6)
    if "round values" in events:
        assert cost(events["round values"]) <= 2 * 0.05 * ROUND * rho * (1 + 1e-6)


# --- charge first, then draw --------------------------------------------------------------------

PAID = (
    column("paid", "number", "nullable = true", "decimals = 2", "lower = 0", "upper = 100000")
    + column("year", "integer")
    + column("ill", "boolean")
)
ASK = {"epsilon": 3, "delta": "1e-6", "method": "independent", "key": 1}


def payments(rows: int = 800, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    paid = np.round(rng.lognormal(4, 1, rows), 2)
    return pa.table(
        {
            "paid": pa.array(np.where(rng.random(rows) < 0.1, 50.0, paid), mask=paid > 900),
            "year": 1950 + np.minimum(70, rng.poisson(30, rows)),
            "ill": rng.random(rows) < 0.3,
        }
    )


@pytest.fixture
def account(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "l") as opened:
        opened.open_dataset("t", Budget.of(9, "1e-4"))
    return tmp_path / "l"


def entries(path: Path) -> list[Any]:
    with Ledger(path) as ledger:
        ledger.verify("t")
        return list(ledger.entries("t"))


def test_every_draw_finds_its_charge_in_the_ledger(account):
    class Checked(Script):
        def before(self, scale):
            known = entries(account)
            kinds = [entry.kind for entry in known]
            charged = [entry.body for entry in known if entry.kind == "charge"]
            assert kinds[:2] == ["open", "reserve"]
            planned = known[1].body["plan"]
            # The draw at hand has the newest entry, and all draws before it had one each.
            assert kinds[-1] == "charge"
            assert len(charged) == len(self.asked) + 1
            event = charged[-1]["event"]
            assert scale == event.get("sigma", event.get("scale"))
            assert "refine" not in kinds or kinds.index("refine") == 8
            if len(charged) <= 6:
                slot = planned[len(charged) - 1]
                assert (slot["purpose"], slot["event"]) == (charged[-1]["purpose"], event)
                assert "refine" not in kinds
            else:
                inner = known[8].body["plan"]
                assert {"purpose": charged[-1]["purpose"], "event": event, "times": 1} in inner

    noise = Checked()
    us.release(
        payments(), Schema.loads(HEAD + PAID), ledger=account, dataset="t", noise=noise, **ASK
    )
    assert [entry.body["purpose"] for entry in entries(account) if entry.kind == "charge"] == [
        *LEVELS, "round values", "number of rows", "one-way marginals", "certificate",
    ]  # fmt: skip
    assert len(noise.asked) == 9


# --- one row, one cell --------------------------------------------------------------------------


@cache
def prepared(text: str, relation: str) -> Plan:
    choices = {"neighbours": relation, "rows_public": 900} if relation == "replace" else {}
    return prepare(Schema.loads(text), **ASK, **choices).plan


def asked(schema: Schema, table: pa.Table, noise: Script, relation: str = "add-remove") -> Schema:
    """Ask what is asked before domains are known, by the release's own plan and gate."""
    plan = prepared(schema.dumps(), relation)
    charges = StrictCharges(plan, Relation(relation))
    charges.unit = schema.unit
    looked = facts.look(read(table), schema)
    return facts.found(
        schema, looked, lambda counts: Gate(counts, charges, Relation(relation), noise)
    )


AWKWARD = [
    0.0, -0.0, 1.0, 2.0, 5.0, 9.0, 10.0, 99.0, 100.0, 999.0, -1.0, -9.0, -99.0, 0.1, 1e-4, 1e-9,
    math.nextafter(5.0, 0), math.nextafter(5.0, 9), 1e10, 1e12, math.nextafter(1e12, math.inf), 1e300,
    -1e300, 5e-324, math.inf, -math.inf, math.nan, None, 62.5, 1000.0,
]  # fmt: skip
WHOLE = [0, 1, 2, 5, 9, 10, 99, 100, 999, -1, -9, 2**62, -(2**62), 10**12, 10**12 + 1, None, 2000]
DAYS = [
    datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1970, 1, 1),
    datetime.date(1969, 12, 31), datetime.date(2000, 2, 29), datetime.date(1740, 1, 1),
    datetime.date(1739, 12, 31), datetime.date(2200, 1, 1), datetime.date(2001, 1, 1), None,
]  # fmt: skip
TEXTS = [
    "N",
    "999",
    " N ",
    "n",
    "",
    "abc",
    "1e400",
    "inf",
    "nan",
    "-0",
    "0x10",
    "7",
    "7.0",
    "1,5",
    None,
]
CASES = {
    "any number": (column("x", "number", "nullable = true"), pa.float64(), AWKWARD),
    "no nulls": (column("x", "number"), pa.float64(), AWKWARD),
    "cents": (
        column("x", "number", "decimals = 2", "lower = 0", "upper = 1000", "special = [999]"),
        pa.float64(),
        [*AWKWARD, 0.01, 0.005, 0.29, 1000.01, 999.01],
    ),
    "integers": (column("x", "integer", "nullable = true", "special = [99]"), pa.int64(), WHOLE),
    "shares": (column("x", "number", "lower = 0", "upper = 1"), pa.float64(), AWKWARD),
    "bounded": (column("x", "integer", "lower = -50", "upper = 5000"), pa.int64(), WHOLE),
    "days": (column("x", "date", "nullable = true"), pa.date32(), DAYS),
    "texts": (column("x", "number", "nullable = true", 'special = ["N", 999]'), pa.string(), TEXTS),
}


def rich(kind: pa.DataType, rows: int = 3000) -> list[Any]:
    rng = np.random.default_rng(7)
    values = np.where(rng.random(rows) < 0.2, 5, np.round(rng.lognormal(4, 1.2, rows)))
    if pa.types.is_date(kind):
        return [datetime.date(1990, 1, 1) + datetime.timedelta(int(v)) for v in values]
    if pa.types.is_string(kind):
        return [f"{int(v)}" for v in values]
    return [v.item() for v in values.astype(np.int64 if kind == pa.int64() else float)]


def edges_of(schema: Schema, kind: pa.DataType) -> list[Any]:
    """Some of the edges that came out, with the values next to them."""
    (found,) = tomllib.loads(schema.dumps())["column"]
    leaves = found["shape"]["leaves"]
    some = leaves[:: max(1, len(leaves) // 8)]
    if pa.types.is_date(kind):
        epoch = datetime.date(1970, 1, 1)
        return [epoch + datetime.timedelta(v + step) for v in some for step in (-1, 0, 1)]
    if kind == pa.int64():
        return [v + step for v in some for step in (-1, 0, 1)]
    near = [w for v in some for w in (math.nextafter(v, -math.inf), v, math.nextafter(v, math.inf))]
    return [repr(v) for v in near] if pa.types.is_string(kind) else near


@pytest.mark.parametrize("case", CASES)
def test_a_row_is_in_exactly_one_cell_of_every_level(case):
    """Six values are looked at together: the i-th is in 3^i rows, so that the digits of every count in
    base 3 say how often each of them was counted there. A row is counted once in each level, in one
    cell, and at most once among round values; so neighbours differ in L2² by 1, or 2 where replaced.
    """
    text, kind, awkward = CASES[case]
    schema = Schema.loads(HEAD + text)
    some = rich(kind)
    first = Script()
    resolved = asked(schema, pa.table({"x": pa.array(some, kind)}), first)

    def counts(values):
        noise = Script(first.released)
        assert asked(schema, pa.table({"x": pa.array(values, kind)}), noise) == resolved
        return noise.asked

    values = [*awkward, *edges_of(resolved, kind)]
    for at in range(0, len(values), 6):
        few = values[at : at + 6]
        held = [value for i, value in enumerate(few) for _ in range(3**i)]
        for level, told in enumerate(counts(held)):
            for i, value in enumerate(few):
                digits = told // 3**i % 3
                assert digits.max() <= 1, (value, level)
                assert digits.sum() == 1 or (level == 5 and digits.sum() == 0), (value, level)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_neighbours_move_what_was_charged_for(relation):
    """Three columns: a row moves three counts of a level by one, six where it is replaced."""
    schema = Schema.loads(HEAD + PAID + column("day", "date"))
    table = payments(900).append_column("day", pa.array(rich(pa.date32(), 900)))
    noise = Script()
    asked(schema, table, noise, relation)
    other = payments(1, seed=5).append_column("day", pa.array([datetime.date(1, 1, 1)]))
    less = table.slice(1)
    near = pa.concat_tables([other.cast(less.schema), less]) if relation == "replace" else less
    again = Script(noise.released)
    asked(schema, near, again, relation)
    sides = 2 if relation == "replace" else 1
    moved = [((old - new) ** 2).sum() for old, new in zip(noise.asked, again.asked, strict=True)]
    assert 0 < max(moved) <= 3 * sides
    events = [prepared(schema.dumps(), relation)[name].event for name in (*LEVELS, "round values")]
    assert [event.changes for event in events[:5]] == [3 * sides] * 5
    assert moved[5] <= events[5].changes
    assert noise.scales == [event.sigma for event in events]


def test_a_unit_moves_k_counts_of_a_level_and_nobody_elses():
    head = HEAD + 'unit = "id"\nmax_rows = 2\n'
    schema = Schema.loads(head + column("id", "identifier") + column("x", "integer"))
    rng = np.random.default_rng(2)
    names = [f"p{i}" for i in rng.integers(0, 120, 700)] + ["busy"] * 60
    table = pa.table({"id": names, "x": np.round(rng.lognormal(4, 1, 760)).astype(int)})
    noise = Script()
    asked(schema, table, noise)
    kept = int(noise.asked[0].sum())
    assert kept <= 2 * 121  # two rows of everybody at most
    for person in ("busy", "p7"):
        again = Script(noise.released)
        asked(schema, table.filter(pa.array([name != person for name in names])), again)
        for old, new in zip(noise.asked, again.asked, strict=True):
            assert ((old - new) >= 0).all()
            assert (old - new).sum() <= 2
            assert ((old - new) ** 2).sum() <= 4  # k², if both rows are alike


# --- what is asked next follows from what was released ------------------------------------------


def told(release: us.Release) -> tuple[Any, ...]:
    """All that a reader has, but for random names."""
    plain = [
        (e.kind, {k: v for k, v in e.body.items() if k not in ("writer", "reservation", "time")})
        for e in release.entries
    ]
    return plain, release.schema.dumps(), release.rows, release.certificate.bound


def others(table: pa.Table) -> list[pa.Table]:
    """Tables that have nothing in common with it but their types."""
    wild = {
        "paid": pa.array([None, math.nan, math.inf, -1e308, 0.0] * 9, pa.float64()),
        "year": pa.array([2**62, -(2**62), 0, None, 99] * 9, pa.int64()),
        "ill": pa.array([None, True, False, None, True] * 9, pa.bool_()),
    }
    return [
        table.slice(1),
        table.slice(0, 0),
        table.slice(0, 1),
        payments(40, seed=9),
        pa.table(wild),
    ]


def test_all_that_is_released_follows_from_the_answers():
    """Whatever the rows: the same answers make the same questions, schema, entries and rows."""
    schema, table = Schema.loads(HEAD + PAID), payments()
    ready = prepare(schema, **ASK)
    noise = Script()
    with reserve(ready, table, noise=noise) as held:
        first = told(held.run())
    for other in others(table):
        again = Script(noise.released)
        with reserve(ready, other, noise=again) as held:
            assert told(held.run()) == first
        assert [a.shape for a in again.asked] == [a.shape for a in noise.asked]
        assert again.scales == noise.scales


class Forced(Script):
    """Answers of any size, made up without a look at the exact values."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.style, self.rng = style, np.random.default_rng(5)

    def _draw(self, values, scale, law):
        size = np.size(values)
        made = {
            "nothing": np.zeros(size),
            "less than nothing": np.full(size, -1000),
            "everything": np.full(size, 10**6),
            "one heap": 10**6 * (np.arange(size) == size // 2),
            "at the ends": 10**6 * np.isin(np.arange(size), (0, size - 1)),
            "any": self.rng.integers(-500, 5000, size),
        }[self.style]
        return super()._draw(values, scale, lambda *_: made)


MANY = (
    column("paid", "number", "decimals = 2", "lower = 0", "upper = 100000")
    + column("share", "number", "lower = 0", "upper = 1")
    + column("size", "number", "nullable = true")
    + column("year", "integer", "lower = 1900", "upper = 2100", 'bins = "shape"')
    + column("code", "integer", "lower = 0", "upper = 100000", "special = [999]")
    + column("day", "date")
)


def many(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3000, rows)
    return pa.table(
        {
            "paid": np.round(rng.lognormal(4, 1, rows), 2),
            "share": rng.beta(2, 5, rows),
            "size": rng.standard_cauchy(rows),
            "year": 1950 + rng.poisson(30, rows),
            "code": np.where(rng.random(rows) < 0.3, 999, code),
            "day": pa.array(rich(pa.date32(), rows)),
        }
    )


@pytest.mark.parametrize(
    "style",
    [
        "nothing",
        *map(slow, ["less than nothing", "one heap", "at the ends"]),
        "everything",
        "any",
        "",
    ],
)
def test_answers_of_any_size_make_one_schema(style):
    """Noise can give anything. What follows is the same for every table, is a schema that can be read
    again, and has a value for every cell, which is in that cell.
    """
    schema, outcomes = Schema.loads(HEAD + MANY), []
    answers = None
    for rows in (many(300, 0), many(3, 1)):
        noise = Forced(style) if style else Script(answers)
        found = asked(schema, rows, noise)
        answers = noise.released
        outcomes.append((found.dumps(), [a.shape for a in noise.asked]))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][1]) == 6
    assert Schema.loads(found.dumps()) == found
    for i, cells in enumerate(found.shape):
        codes = [np.zeros(10 * cells, np.int64) for _ in found.shape]
        codes[i] = np.repeat(np.arange(cells), 10)
        drawn = found.decode(codes, np.random.default_rng(2))
        assert found.illegal(drawn) == []
        np.testing.assert_array_equal(found.encode(drawn)[i], codes[i])


def test_texts_that_are_no_numbers_change_no_question():
    schema = Schema.loads(HEAD + CASES["texts"][0])
    clean = pa.table({"x": pa.array(rich(pa.string(), 400))})
    noise = Script()
    resolved = asked(schema, clean, noise)
    for texts in (TEXTS * 3, ["?"] * 50, [None] * 5, ["N"] * 7, []):
        again = Script(noise.released)
        assert asked(schema, pa.table({"x": pa.array(texts, pa.string())}), again) == resolved
        assert [a.shape for a in again.asked] == [a.shape for a in noise.asked]


# --- killed between two levels ------------------------------------------------------------------


@pytest.mark.parametrize("answered", [1, 3, 5, 6])
def test_a_release_killed_between_levels_draws_nothing_twice(
    tmp_path, account, monkeypatch, answered
):
    schema, table = Schema.loads(HEAD + PAID), payments()
    whole = Script()
    first = us.release(table, schema, noise=whole, **ASK)
    kept = {"ledger": account, "dataset": "t", "checkpoint": tmp_path / "c", **ASK}
    ask, calls = Gate.ask, []

    def dying(self, purpose, question, event=None):
        if len(calls) == answered:
            raise Stop
        calls.append(purpose)
        return ask(self, purpose, question, event)

    killed = Script(whole.released)
    with monkeypatch.context() as patch:
        patch.setattr(Gate, "ask", dying)
        with pytest.raises(Stop):
            us.release(table, schema, noise=killed, **kept)
    assert len(killed.asked) == answered
    before = entries(account)
    assert [e.body["purpose"] for e in before if e.kind == "charge"] == calls
    rest = Script(whole.released[answered:])
    made = us.release(table, schema, noise=rest, **kept)
    after = entries(account)
    assert [e.hash for e in after[: len(before)]] == [e.hash for e in before]
    charged = [e.body["purpose"] for e in after if e.kind == "charge"]
    assert len(charged) == len(set(charged)) == answered + len(rest.asked) == 9
    assert [*killed.scales, *rest.scales] == whole.scales
    assert made.schema == first.schema
    assert made.rows == first.rows


def test_a_release_killed_after_a_charge_and_before_its_draw_is_not_drawn_again(tmp_path, account):
    schema, table = Schema.loads(HEAD + PAID), payments()
    kept = {"ledger": account, "dataset": "t", "checkpoint": tmp_path / "c", **ASK}
    with pytest.raises(Stop):
        us.release(table, schema, noise=Script(stop=3), **kept)
    assert sum(entry.kind == "charge" for entry in entries(account)) == 4
    noise = Script()
    with pytest.raises(LedgerError, match="4 draws were charged and 3 kept"):
        us.release(table, schema, noise=noise, **kept)
    assert noise.asked == []


# --- found on the way ---------------------------------------------------------------------------


def test_times_are_drawn_without_a_warning():
    schema = Schema.loads(HEAD + column("x", "datetime"))
    rows = pa.array([datetime.datetime(2000, 1, 1)] * 5, pa.timestamp("us"))
    found = asked(schema, pa.table({"x": rows}), Script())
    codes = [np.repeat(np.arange(found.shape[0]), 20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.decode(codes, np.random.default_rng(1))


def test_a_special_value_that_the_type_cannot_hold_is_named():
    text = column("x", "integer", 'dtype = "uint8"', "special = [999]", 'bins = "shape"')
    with pytest.raises(SchemaError, match="999"):
        Schema.loads(HEAD + text)
