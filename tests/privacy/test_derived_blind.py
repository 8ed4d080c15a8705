"""Derived columns, open questions, and forged shapes: what is never counted, released or believed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.privacy.test_numbers_blind import ASK, HEAD, LEVELS, Script, column, told
from tests.thorough import some
from tests.tools.both import stranger
from tests.tools.corpus import sealed, sha256
from tests.tools.forge import Draft
from understudy.constraints import Rule
from understudy.draft import confirm
from understudy.errors import BundleError, UnderstudyError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger
from understudy.releases import prepare
from understudy.releases import verify as ours
from understudy.schema import Schema

SHOP = (
    column("price", "integer", "lower = 0", "upper = 100000", "special = [99999]")
    + column("fee", "integer", "lower = 0", "upper = 9", "nullable = true")
    + column("total", "integer", "nullable = true")
    + column("weight", "number", "nullable = true")
    + column("zip", "category", 'values = ["1", "2", "3"]')
    + column("city", "category", 'values = ["A", "B"]')
)
RULES = """
[[rule]]
says = "total = price + fee"
[[rule]]
says = "zip determines city"
derived = true
mapping = {"1" = "A", "2" = "B", "3" = "B"}
"""


def shop(rows: int = 1500) -> pa.Table:
    rng = np.random.default_rng(0)
    price = np.where(rng.random(rows) < 0.1, 99999, np.round(rng.lognormal(5, 1, rows)))
    fee, code = rng.integers(0, 10, rows), rng.integers(1, 4, rows)
    return pa.table(
        {
            "price": price.astype(int),
            "fee": fee,
            "total": (price + fee).astype(int),
            "weight": rng.lognormal(0, 1, rows),
            "zip": code.astype(str),
            "city": np.where(code == 1, "A", "B"),
        }
    )


# --- derived columns are never counted ----------------------------------------------------------


def garbled(table: pa.Table) -> pa.Table:
    """Any values in the derived columns."""
    rows = table.num_rows
    total = pa.array([None, 2**60, -5] * rows, pa.int64())[:rows]
    city = pa.array(["A", "nowhere", "B", "secret"] * rows, pa.string())[:rows]
    return table.set_column(2, "total", total).set_column(5, "city", city)


def test_a_derived_column_moves_no_count():
    """No exact answer depends on it, so neither does anything that is released."""
    schema = Schema.loads(HEAD + SHOP + RULES)
    noise, other = Script(), Script()
    first = us.release(shop(), schema, noise=noise, **ASK)
    again = us.release(garbled(shop()), schema, noise=other, **ASK)
    for one, two in zip(noise.asked, other.asked, strict=True):
        np.testing.assert_array_equal(one, two)
    assert told(again) == told(first)
    assert "nowhere" not in again.rows["city"].to_pylist()


def test_a_derived_column_costs_nothing():
    """Two open columns, not three; four one-way tables, not six; and both rules hold in every row."""
    schema = Schema.loads(HEAD + SHOP + RULES)
    noise = Script()
    made = us.release(shop(), schema, noise=noise, **ASK)
    assert [made.plan[name].event.changes for name in LEVELS] == [2] * 5
    assert made.plan["one-way marginals"].event.changes == 4
    # Once per modelled column and row, in every level and in the tables of the method.
    assert [int(level.sum()) for level in noise.asked[:5]] == [2 * 1500] * 5
    assert int(noise.asked[7].sum()) == 4 * 1500
    rows = made.rows.to_pylist()
    known = [row for row in rows if row["price"] != 99999 and row["fee"] is not None]
    assert len(known) > 500
    assert all(row["total"] == row["price"] + row["fee"] for row in known)
    assert all(row["city"] == {"1": "A", "2": "B", "3": "B"}[row["zip"]] for row in rows)


# --- refused before anything is spent -----------------------------------------------------------


class Untouched:
    """A table that nobody may read."""

    columns, native, typed = ("id", "x"), "arrow", True

    def describe(self) -> str:
        return "a table"

    def frame(self, rows: Any) -> Any:
        raise AssertionError("read")

    def bind(self, schema: Schema) -> Any:
        raise AssertionError("read")


def refused(tmp_path: Path, schema: Schema) -> str:
    """The message; neither rows nor account have been touched."""
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("t", Budget.of(9, "1e-4"))
    before = (tmp_path / "l").read_bytes()
    for choices in ({"ledger": tmp_path / "l", "dataset": "t"}, {"checkpoint": tmp_path / "c"}):
        with pytest.raises(UnderstudyError) as caught:
            us.release(Untouched(), schema, **ASK, **choices)
    with pytest.raises(UnderstudyError):
        prepare(schema, **ASK)
    assert (tmp_path / "l").read_bytes() == before
    assert not (tmp_path / "c").exists()
    return str(caught.value)


@pytest.mark.parametrize(
    "text", [column("x", "integer"), column("x", "integer", "upper = 5", "lower = 0")]
)
def test_a_release_needs_to_know_whom_it_protects(tmp_path, text):
    schema = Schema.loads(HEAD + 'unit = "?"\n' + column("id", "identifier") + text)
    said = refused(tmp_path, schema)
    assert "id" in said
    assert "max_rows" in said or "max-rows" in said
    assert "row" in said
    # Confirming all the rest answers nothing; each of the two answers does.
    assert "id" in refused_again(confirm(schema))
    assert prepare(confirm(schema, unit="row"), **ASK).schema.unit is None
    unit = prepare(confirm(schema, unit="id", max_rows=3), **ASK).schema.unit
    assert unit is not None
    assert (unit.column, unit.max_rows) == ("id", 3)


def refused_again(schema: Schema) -> str:
    with pytest.raises(UnderstudyError) as caught:
        prepare(schema, **ASK)
    return str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        Rule("total = price + fee", read_from_rows=True),
        Rule("fee <= price", read_from_rows=True),
        Rule(
            "zip determines city",
            (("1", "A"), ("2", "B"), ("3", "B")),
            derived=True,
            read_from_rows=True,
        ),
    ],
    ids=lambda rule: rule.says,
)
def test_a_rule_that_was_read_from_rows_is_not_released(tmp_path, rule):
    schema = Schema(Schema.loads(HEAD + SHOP).columns, rules=(rule,))
    assert rule.says in refused(tmp_path, schema)
    assert Schema.loads(schema.dumps()).rules[0].read_from_rows  # nor by way of a file
    kept = prepare(confirm(schema), **ASK).schema.rules
    assert [each.says for each in kept] == [rule.says]


# --- forged -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    schema = Schema.loads(HEAD + SHOP + RULES)
    made = us.release(shop(), schema, **{**ASK, "epsilon": 6}, rows=300)
    return made.save(tmp_path_factory.mktemp("shop") / "good")


def problems(folder: Path) -> list[list[str]]:
    """What each verifier has against it."""
    try:
        checks = ours.verify(folder).checks
        mine = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    except BundleError as error:
        mine = [str(error)]
    return [mine, stranger.verify(folder)]


def test_both_verifiers_accept_the_genuine_release(good):
    assert problems(good) == [[], []]


def restated(draft: Draft, text: str) -> None:
    """Another schema was found, says the ledger too."""
    draft.files["schema.toml"] = text.encode()
    plain = text[text.index("[understudy]\n") :].encode()
    for entry in draft.manifest["ledger"]["entries"]:
        if entry["kind"] == "refine":
            entry["body"]["facts"]["schema"] = hashlib.sha256(plain).hexdigest()


def price_list(text: str, key: str) -> tuple[int, int, list[str]]:
    """Where the first list of this name is, and what it holds; that of the price."""
    found = re.search(rf"\b{key} = \[([^\]]*)\]", text)
    assert found is not None
    return *found.span(1), [part.strip() for part in found[1].split(",") if part.strip()]


def altered(key: str, change: Callable[[list[str], str], None]) -> Callable[[Draft], None]:
    def make(draft: Draft) -> None:
        text = draft.files["schema.toml"].decode()
        start, end, items = price_list(text, key)
        change(items, text)
        restated(draft, text[:start] + ", ".join(items) + text[end:])

    return make


def heaviest(text: str) -> int:
    """The place of the largest weight."""
    weights = [int(each) for each in price_list(text, "weights")[2]]
    return int(np.argmax(weights))


def _wider_bin(edges: list[str], text: str) -> None:
    """An inner edge goes up by one leaf."""
    leaves = price_list(text, "leaves")[2]
    middle = len(edges) // 2
    edges[middle] = leaves[leaves.index(edges[middle]) + 1]


def _cut_leaf(edges: list[str], text: str) -> None:
    edges[1] = str(int(edges[1]) + 1)


def _fewer_bins(edges: list[str], text: str) -> None:
    del edges[1]


def _wider_bounds(edges: list[str], text: str) -> None:
    edges[-1] = str(2 * int(edges[-1]))


def _moved_leaf(leaves: list[str], text: str) -> None:
    """The beginning of the heaviest leaf that is no edge, by one."""
    edges = set(price_list(text, "edges")[2])
    weights = [int(each) for each in price_list(text, "weights")[2]]
    for at in np.argsort(weights)[::-1]:
        if leaves[at] not in edges and int(leaves[at + 1]) - int(leaves[at]) > 2:
            leaves[at] = str(int(leaves[at]) + 1)
            return
    raise AssertionError("no leaf to move")


def _other_weight(weights: list[str], text: str) -> None:
    at = heaviest(text)
    weights[at] = str(int(weights[at]) // 5)


def _more_weight(weights: list[str], text: str) -> None:
    at = next(i for i, each in enumerate(weights) if each == "0")
    weights[at] = weights[heaviest(text)]


def _negative_weight(weights: list[str], text: str) -> None:
    weights[heaviest(text)] = "-1"


def _no_weight(weights: list[str], text: str) -> None:
    weights[:] = ["0"] * len(weights)


def _rounder(roundness: list[str], text: str) -> None:
    """The largest class of round values trades places with another of its decade."""
    steps = len(price_list(text, "steps")[2]) + 1
    at = int(np.argmax([int(each) for each in roundness]))
    other = at - 1 if at % steps else at + 1
    roundness[at], roundness[other] = roundness[other], roundness[at]


def _one_class_less(roundness: list[str], text: str) -> None:
    del roundness[-1]


def _dropped(purpose: str) -> Callable[[Draft], None]:
    return lambda draft: draft.drop([purpose])


def _uncharged(purpose: str) -> Callable[[Draft], None]:
    return lambda draft: draft.strike(draft.charges(purpose))


def _events(purpose: str, **fields: Any) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        for event in draft.events(purpose):
            event.update({k: v(event[k]) if callable(v) else v for k, v in fields.items()})

    return change


def _charged_louder(draft: Draft) -> None:
    """Planned as it was, charged with more noise."""
    for entry in draft.charges(LEVELS[3]):
        entry["body"]["event"]["sigma"] *= 2


def _traded(draft: Draft) -> None:
    """Two levels exchange their noise: as dear together."""
    one, two = draft.events(LEVELS[0])[0]["sigma"], draft.events(LEVELS[4])[0]["sigma"]
    _events(LEVELS[0], sigma=two)(draft)
    _events(LEVELS[4], sigma=one)(draft)


def _twice(draft: Draft) -> None:
    """One level was drawn twice."""
    entries = draft.manifest["ledger"]["entries"]
    at = entries.index(draft.charges(LEVELS[1])[0])
    entries.insert(at, {**entries[at], "body": {**entries[at]["body"], "writer": "0" * 16}})


def _other_order(draft: Draft) -> None:
    entries = draft.manifest["ledger"]["entries"]
    one, two = (entries.index(draft.charges(name)[0]) for name in (LEVELS[0], LEVELS[4]))
    entries[one], entries[two] = entries[two], entries[one]


def _other_declared(old: str, new: str) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        declared = draft.reserve["facts"]["declared"]
        assert old in declared
        text = declared.replace(old, new, 1)
        draft.reserve["facts"].update(declared=text, schema=Schema.loads(text).digest())

    return change


def _beyond_declared(draft: Draft) -> None:
    """The last cell, into which nothing may have been drawn, ends where nobody declared it."""
    text = draft.files["schema.toml"].decode()
    for key, end in (("leaves", "200001"), ("edges", "200000")):
        start, stop, items = price_list(text, key)
        text = text[:start] + ", ".join([*items[:-1], end]) + text[stop:]
    restated(draft, text)


def _refined_early(draft: Draft) -> None:
    """The ledger states what was found before the last table that it follows from is charged."""
    entries = draft.manifest["ledger"]["entries"]
    at = [entry["kind"] for entry in entries].index("refine")
    entries[at - 1], entries[at] = entries[at], entries[at - 1]


def _other_special(draft: Draft) -> None:
    text = draft.files["schema.toml"].decode()
    assert "99999]" in text
    restated(draft, text.replace("special = [99999]", "special = [99998]"))


def _underived(draft: Draft) -> None:
    text = draft.files["schema.toml"].decode()
    assert "derived = true\n" in text
    restated(draft, text.replace("derived = true\n", ""))


def _cell(name: str, value: Any) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        rows = draft.rows()
        values = rows[name].to_pylist()
        values[7] = value(values[7])
        at = rows.column_names.index(name)
        field = rows.schema.field(name)
        draft.put(rows.set_column(at, field, pa.array(values, field.type)))

    return change


FORGED = {
    "a wider bin": altered("edges", _wider_bin),
    "a bin that cuts a leaf": altered("edges", _cut_leaf),
    "a bin less": altered("edges", _fewer_bins),
    "wider bounds": altered("edges", _wider_bounds),
    "a moved leaf": altered("leaves", _moved_leaf),
    "a smaller weight": altered("weights", _other_weight),
    "a larger weight": altered("weights", _more_weight),
    "a negative weight": altered("weights", _negative_weight),
    "no weights": altered("weights", _no_weight),
    "other round values": altered("roundness", _rounder),
    "a class less": altered("roundness", _one_class_less),
    "no first level": _dropped(LEVELS[0]),
    "no last level": _dropped(LEVELS[4]),
    "no round values": _dropped("round values"),
    "a level that was not charged": _uncharged(LEVELS[2]),
    "round values that were not charged": _uncharged("round values"),
    "a level with more noise": _events(LEVELS[2], sigma=lambda sigma: 2 * sigma),
    "a level with a little more noise": _events(LEVELS[2], sigma=lambda sigma: 1.01 * sigma),
    "round values with more noise": _events("round values", sigma=lambda sigma: 10 * sigma),
    "a charge with more noise": _charged_louder,
    "levels that trade their noise": _traded,
    "a level that counts one column": _events(LEVELS[1], changes=1),
    "a level drawn twice": _twice,
    "cells beyond the declared bounds": _beyond_declared,
    "declared narrower": _other_declared("upper = 100000", "upper = 50000"),
    "declared with edges": _other_declared('bins = "shape"', "bins = 8"),
    "another special value": _other_special,
    "a derived column that is none": _underived,
    "a wrong sum": _cell("total", lambda value: (value or 0) + 1),
    "a sum that is missing": _cell("total", lambda value: None if value else 3),
    "a wrong place": _cell("city", lambda value: "A" if value == "B" else "B"),
    "another price": _cell("price", lambda value: 99999 if value != 99999 else 3),
}


def _refined_late(draft: Draft) -> None:
    """The first charge of the later plan comes before that plan."""
    entries = draft.manifest["ledger"]["entries"]
    at = [entry["kind"] for entry in entries].index("refine")
    entries[at + 1], entries[at] = entries[at], entries[at + 1]


DISORDER = {
    "levels in another order": _other_order,
    "found before it was asked": _refined_early,
    "charged before it was planned": _refined_late,
}
"""Ledgers that say that something was drawn before it was charged."""


@pytest.mark.parametrize("lie", some(FORGED, 2))
def test_both_verifiers_refuse(good, tmp_path, lie):
    refuses(good, tmp_path / "bad", FORGED[lie])


@pytest.mark.parametrize("lie", DISORDER)
def test_both_verifiers_refuse_what_was_charged_too_late(good, tmp_path, lie):
    """Level 5 has cells that follow from levels 1 to 4, and the schema follows from all of them."""
    refuses(good, tmp_path / "bad", DISORDER[lie])


def refuses(good: Path, bad: Path, change: Callable[[Draft], None]) -> None:
    draft = Draft(good)
    change(draft)
    try:
        draft.seal(bad)
    except UnderstudyError:  # a schema that cannot be read: the forger gives up on the words
        seal_unread(draft, bad)
    mine, theirs = problems(bad)
    assert mine, "the library accepts it"
    assert theirs, "the second verifier accepts it"


def seal_unread(draft: Draft, folder: Path) -> None:
    kept = draft.files["schema.toml"]
    draft.files["schema.toml"] = (draft.folder / "schema.toml").read_bytes()
    draft.seal(folder)
    (folder / "schema.toml").write_bytes(kept)
    draft.manifest["files"]["schema.toml"] = {"bytes": len(kept), "sha256": sha256(kept)}
    (folder / "release.json").write_bytes(sealed(draft.manifest))
