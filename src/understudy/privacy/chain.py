"""The hash chain of a ledger, as pure functions: what a stranger needs to check one.

Canonical JSON is UTF-8 with sorted keys, no spaces and no NaN. Each entry has
`digest = sha256(canonical({"body": body, "kind": kind}))` and
`hash = sha256(canonical({"digest": digest, "prev": prev, "seq": seq}))`; `prev` is the hash of the
entry before it, and `GENESIS` for the first. An entry whose body is withheld (another release's)
keeps its digest, so the chain can still be checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.errors import ChainBroken

GENESIS = hashlib.sha256(b"understudy ledger, version 1").hexdigest()


def canonical(value: Any) -> bytes:
    """The one byte string that stands for a JSON value."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8")


def digest_of(kind: str, body: Mapping[str, Any]) -> str:
    """What an entry says, as a hash."""
    return hashlib.sha256(canonical({"kind": kind, "body": dict(body)})).hexdigest()


def link(seq: int, prev: str, digest: str) -> str:
    """Where an entry stands, as a hash."""
    return hashlib.sha256(canonical({"seq": seq, "prev": prev, "digest": digest})).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. `kind` and `body` are None where they are withheld."""

    seq: int
    kind: str | None
    body: Mapping[str, Any] | None
    digest: str
    prev: str
    hash: str

    @classmethod
    def make(cls, seq: int, kind: str, body: Mapping[str, Any], prev: str) -> Entry:
        """Chain a new entry onto `prev`."""
        digest = digest_of(kind, body)
        return cls(seq, kind, dict(body), digest, prev, link(seq, prev, digest))

    def withheld(self) -> Entry:
        """The same link without what it says."""
        return Entry(self.seq, None, None, self.digest, self.prev, self.hash)

    def to_json(self) -> dict[str, Any]:
        """For a bundle."""
        line = {"seq": self.seq, "digest": self.digest, "prev": self.prev, "hash": self.hash}
        if self.kind is None or self.body is None:
            return line
        return {**line, "kind": self.kind, "body": dict(self.body)}

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Entry:
        """Read what `to_json` wrote."""
        said = line.get("kind"), line.get("body")
        return cls(line["seq"], *said, line["digest"], line["prev"], line["hash"])


def entry_of(row: Sequence[Any]) -> Entry:
    """An entry as a store keeps it: (seq, kind, canonical body, digest, prev, hash)."""
    seq, kind, body, *links = row
    try:
        said = json.loads(body)
    except (TypeError, ValueError, RecursionError):
        raise ChainBroken(f"ledger entry {seq!r:.40}: its body cannot be read") from None
    texts = all(isinstance(text, str) for text in (kind, *links))
    if type(seq) is not int or not texts or not isinstance(said, dict):
        raise ChainBroken(f"ledger entry {seq!r:.40} cannot be read")
    return Entry(seq, kind, said, *links)


def as_json(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Entries for a bundle."""
    return [entry.to_json() for entry in entries]


def check_chain(entries: Sequence[Entry], *, whole: bool = True) -> None:
    """Raise `ChainBroken`, naming the entry, unless every link holds.

    `whole`: the first entry must be the ledger's first; otherwise a contiguous stretch is enough.
    """
    for position, entry in enumerate(entries):
        where = f"ledger entry {entry.seq}"
        if position == 0:
            if whole and (entry.seq != 0 or entry.prev != GENESIS):
                raise ChainBroken(f"{where}: the chain does not begin at its first entry")
        else:
            before = entries[position - 1]
            if entry.seq != before.seq + 1:
                raise ChainBroken(
                    f"{where} follows entry {before.seq}: an entry was dropped or reordered"
                )
            if entry.prev != before.hash:
                raise ChainBroken(f"{where} does not follow from entry {before.seq}")
        if (entry.kind is None) != (entry.body is None):
            raise ChainBroken(f"{where}: half of it is withheld")
        if entry.kind is not None and entry.body is not None:
            try:
                said = digest_of(entry.kind, entry.body)
            except (TypeError, ValueError, RecursionError):  # not what JSON can hold
                said = None
            if said != entry.digest:
                raise ChainBroken(f"{where}: its body was changed")
        if link(entry.seq, entry.prev, entry.digest) != entry.hash:
            raise ChainBroken(f"{where}: its link was changed")
