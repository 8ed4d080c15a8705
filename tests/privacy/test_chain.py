"""The chain of entries shows every edit, and anybody can recompute it."""

import hashlib
import json
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from tests.privacy.ledger.test_ledger import history
from tests.thorough import some
from understudy.errors import ChainBroken, InputError
from understudy.privacy.ledger import Ledger


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_entries_form_a_chain_that_anyone_can_recompute(ledger):
    history(ledger)
    entries = ledger.entries("people")
    assert [entry.seq for entry in entries] == list(range(entries[0].seq, entries[0].seq + 10))
    for before, after in pairwise(entries):
        assert after.prev == before.hash
    for entry in entries:
        link = {"seq": entry.seq, "prev": entry.prev, "digest": entry.digest}
        assert hashlib.sha256(canonical(link)).hexdigest() == entry.hash
    assert len({entry.hash for entry in entries}) == len(entries)
    ledger.verify("people")
    ledger.verify("places")


def test_two_datasets_do_not_share_a_first_link(ledger):
    history(ledger)
    assert ledger.entries("people")[0].hash != ledger.entries("places")[0].hash


def tampered(path, *statements):
    with closing(sqlite3.connect(path)) as raw:
        triggers = raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            raw.execute(f'DROP TRIGGER "{name}"')
        for statement in statements:
            raw.execute(statement)
        raw.commit()


def assert_broken(path, name="people"):
    with pytest.raises(ChainBroken), Ledger(path) as ledger:
        ledger.verify(name)


def columns(path):
    with closing(sqlite3.connect(path)) as raw:
        return [row[1] for row in raw.execute("PRAGMA table_info(entries)")]


@pytest.mark.parametrize("seq", some([0, 1, 2, 3, 8, 9], 3))
@pytest.mark.parametrize("column", ["kind", "body", "digest", "prev", "hash"])
def test_any_edited_field_breaks_the_chain(ledger, path, column, seq):
    history(ledger)
    ledger.close()
    assert column in columns(path)
    new = f"substr({column}, 2) || '0'"
    if column == "kind":
        new = "CASE kind WHEN 'charge' THEN 'settle' ELSE 'charge' END"
    if column == "body":  # a change of meaning, not of spacing
        with closing(sqlite3.connect(path)) as raw:
            query = "SELECT body FROM entries WHERE dataset = 'people' AND seq = ?"
            body = json.loads(raw.execute(query, (seq,)).fetchone()[0])
        body["note"] = "changed"
        new = "'" + canonical(body).decode().replace("'", "''") + "'"
    tampered(path, f"UPDATE entries SET {column} = {new} WHERE dataset = 'people' AND seq = {seq}")
    assert_broken(path)


def test_a_smaller_charge_breaks_the_chain(ledger, path):
    """The edit that pays: a restated budget, with everything else left as it was."""
    history(ledger)
    ledger.close()
    tampered(path, "UPDATE entries SET body = replace(body, '\"0.1\"', '\"0.01\"')")
    assert_broken(path)


@pytest.mark.parametrize("seq", [0, 1, 4, 8])
def test_a_deleted_entry_breaks_the_chain(ledger, path, seq):
    history(ledger)
    ledger.close()
    tampered(path, f"DELETE FROM entries WHERE dataset = 'people' AND seq = {seq}")
    assert_broken(path)


@pytest.mark.parametrize("seq", [1, 4, 8])
def test_a_deleted_entry_with_the_rest_renumbered_breaks_the_chain(ledger, path, seq):
    history(ledger)
    ledger.close()
    later = [
        f"UPDATE entries SET seq = {s - 1} WHERE dataset = 'people' AND seq = {s}"
        for s in range(seq + 1, 10)
    ]
    tampered(path, f"DELETE FROM entries WHERE dataset = 'people' AND seq = {seq}", *later)
    assert_broken(path)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 5), (3, 6)])
def test_swapped_entries_break_the_chain(ledger, path, a, b):
    history(ledger)
    ledger.close()
    move = "UPDATE entries SET seq = {} WHERE dataset = 'people' AND seq = {}"
    tampered(path, move.format(1000, a), move.format(a, b), move.format(b, 1000))
    assert_broken(path)


@pytest.mark.parametrize(("a", "b"), [(1, 4), (2, 5)])
def test_swapped_bodies_break_the_chain(ledger, path, a, b):
    history(ledger)
    ledger.close()
    with closing(sqlite3.connect(path)) as raw:
        query = "SELECT body FROM entries WHERE dataset = 'people' AND seq = ?"
        bodies = [raw.execute(query, (seq,)).fetchone()[0].replace("'", "''") for seq in (a, b)]
    put = "UPDATE entries SET body = '{}' WHERE dataset = 'people' AND seq = {}"
    tampered(path, put.format(bodies[1], a), put.format(bodies[0], b))
    assert_broken(path)


def test_an_entry_moved_to_another_dataset_breaks_a_chain(ledger, path):
    history(ledger)
    ledger.close()
    tampered(path, "UPDATE entries SET dataset = 'ghost' WHERE dataset = 'people' AND seq = 2")
    assert_broken(path)


def test_a_renamed_dataset_breaks_its_chain(ledger, path):
    """The whole chain under another name: a spent budget cannot be passed on."""
    history(ledger)
    ledger.close()
    tampered(path, "UPDATE entries SET dataset = 'ghost' WHERE dataset = 'people'")
    with pytest.raises((ChainBroken, InputError)), Ledger(path) as ledger:
        ledger.verify("ghost")
