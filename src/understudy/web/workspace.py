"""The folder behind the page: plain files, each written whole or not at all.

    ledger.db            every charge ever made here
    tables/ID/           table.json · rows.csv or rows.parquet, private · schema.toml
                         · children.csv or children.parquet, private: of the parents in rows
                         · units.json, private: how many rows there are, and of one person
                         · changes.json, private: the schema before each change
                         · removed.json: a salted, slow fingerprint of rows that were here
    jobs/ID/             job.json · state.json · lock · journal/, what a killed release goes on from
    releases/ID/         bundles, as `understudy release` writes them
    checked/ID.json      what the check of an imported release found
    audits/ID/           audit.json and its figure
    published/ID.json    that analysts may see a release: who said so, and when
    secret, users.json   see `people`

Names in addresses are `ID`s, matched against one pattern before they touch a path: no address can
leave the folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from filecmp import cmp
from itertools import chain, count
from pathlib import Path
from typing import Any

from understudy import files
from understudy.errors import InputError, WorkError
from understudy.privacy.ledger import Ledger
from understudy.web.errors import Missing

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_VERSION = 1
_PARTS = ("tables", "jobs", "releases", "checked", "audits", "published", "incoming")
_LONGEST = 48
_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", ".pq")


def now() -> str:
    """The time, for people and for sorting."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_json(path: Path, value: Any) -> None:
    """Write a file whole or not at all."""
    files.write(path, json.dumps(value, ensure_ascii=False))


def read_json(path: Path) -> Any:
    """What `write_json` wrote; None where there is no such file, or no whole one."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Table:
    """A private table that was uploaded: its name and where its parts lie."""

    id: str
    name: str
    file: str
    """The name of the file with the rows, here; says the format and nothing else."""
    columns: int
    size: int
    """Bytes, as uploaded."""
    created: str
    folder: Path
    children: str = ""
    """The name of the file with the children of these rows, where there are two tables."""

    @property
    def files(self) -> tuple[Path, ...]:
        """All private rows: of one table, or of parents and children."""
        return tuple(self.folder / name for name in (self.file, self.children) if name)

    @property
    def rows(self) -> Path:
        """The private rows."""
        return self.folder / self.file

    @property
    def schema(self) -> Path:
        """The schema, drafted or confirmed."""
        return self.folder / "schema.toml"

    @property
    def units(self) -> Path:
        """How many rows there are and people have, for custodians alone."""
        return self.folder / "units.json"

    @property
    def changes(self) -> Path:
        """What was changed in the schema, and how it was before."""
        return self.folder / "changes.json"

    @property
    def removed(self) -> Path:
        """The fingerprint of rows that were removed."""
        return self.folder / "removed.json"

    @property
    def present(self) -> bool:
        """Whether the rows are still here; a custodian may remove them."""
        return self.rows.is_file()


class Workspace:
    """The folder of a page; made where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        try:
            if folder.exists() and not folder.is_dir():
                raise InputError(f"{folder} is a file; give a folder for the web app to work in")
            strange = folder.is_dir() and any(folder.iterdir()) and not self._mark.exists()
            if strange:
                raise InputError(
                    f"{folder} holds other files; give a new folder, or one that "
                    f"`understudy serve` made"
                )
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for part in _PARTS:
                (self.folder / part).mkdir(exist_ok=True, mode=0o700)
            if not self._mark.exists():
                write_json(self._mark, {"format": "understudy workspace", "version": _VERSION})
        except OSError as error:
            raise InputError(f"{folder} cannot be used: {error.strerror}") from None
        mark = read_json(self._mark)
        if not isinstance(mark, dict) or mark.get("version") != _VERSION:
            raise InputError(
                f"{folder} was made by another version of understudy; use that, or a new folder"
            )

    def sweep(self) -> None:
        """Remove uploads that a killed server left half done; for a server that starts."""
        for left in (self.folder / "incoming").iterdir():
            shutil.rmtree(left, ignore_errors=True)

    @property
    def _mark(self) -> Path:
        return self.folder / "workspace.json"

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """The ledger, opened for this one use: connections stay in their thread."""
        with Ledger(self.folder / "ledger.db") as ledger:
            yield ledger

    def path(self, part: str, identity: str) -> Path:
        """The folder of a thing that is there; `Missing` for any other name."""
        if _ID.fullmatch(identity):
            folder = self.folder / part / identity
            if folder.is_dir():
                return folder
        raise Missing(f"there is no such {part.removesuffix('s')} here; it may have been removed")

    def published(self, identity: str) -> dict[str, str]:
        """Which custodian has opened a release to analysts, and when; empty if none has."""
        return (_ID.fullmatch(identity) and read_json(self._publication(identity))) or {}

    def publish(self, identity: str, who: str) -> None:
        """Open a release to analysts; what they have seen cannot be taken back."""
        self.path("releases", identity)
        write_json(self._publication(identity), {"by": who, "at": now()})

    def _publication(self, identity: str) -> Path:
        return self.folder / "published" / f"{identity}.json"

    def identities(self, part: str) -> list[str]:
        """The names of everything of a kind, sorted."""
        return sorted(p.name for p in (self.folder / part).iterdir() if _ID.fullmatch(p.name))

    def new_identity(self, name: str, *parts: str) -> str:
        """A readable name for an address that nothing in `parts` has yet."""
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST].strip("-") or "table"
        numbered = (f"{base}-{number}" for number in count(2))
        return next(
            identity
            for identity in chain([base], numbered)
            if not any((self.folder / part / identity).exists() for part in parts)
        )

    # -- tables ----------------------------------------------------------------------------------

    @contextmanager
    def incoming(self) -> Iterator[Path]:
        """A folder for what is being uploaded; it is gone afterwards, whatever happened."""
        folder = self.folder / "incoming" / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def twin(self, files: Sequence[Path]) -> Table | None:
        """The table here that has these files, byte for byte; or had them, and has spent on them."""

        def same(theirs: Sequence[Path]) -> bool:
            alike = (any(cmp(mine, file, shallow=False) for mine in files) for file in theirs)
            return len(theirs) == len(files) and all(alike)

        tables = self.tables()
        here = next((t for t in tables if t.present and same(t.files)), None)
        gone = [] if here else [t for t in tables if t.removed.is_file()]
        return here or next((t for t in gone if _known(read_json(t.removed), files)), None)

    def add_table(
        self,
        name: str,
        rows: Path,
        schema: str,
        columns: int,
        units: Mapping[str, Any] | None = None,
        children: Path | None = None,
        again: Table | None = None,
    ) -> Table:
        """Take over an uploaded file, or parents and children, whose schema has been drafted.

        `again` is the table whose rows they were before they were removed: it goes on.
        """
        with self.ledger() as ledger:
            taken = set(ledger.datasets())
        identity = self.new_identity(name, "tables")
        while identity in taken:  # a budget is never handed to another table
            identity = self.new_identity(f"{name} {secrets.token_hex(2)}", "tables")
        staging = rows.parent / "table"
        staging.mkdir(mode=0o700)
        given = {"file": ("rows", rows)}
        if children is not None:
            given["children"] = ("children", children)
        called = again.name if again else unused(name, [table.name for table in self.tables()])
        facts: dict[str, Any] = {"name": called, "columns": columns, "size": 0}
        for key, (stem, path) in given.items():
            facts["size"] += path.stat().st_size
            facts[key] = f"{stem}{suffix_of(path.name) or ''}"
            path.rename(staging / facts[key])
        (staging / "schema.toml").write_text(schema, encoding="utf-8")
        write_json(staging / "table.json", {**facts, "created": now()})
        if units is not None:
            write_json(staging / "units.json", units)
        if again is not None:
            for part in staging.iterdir():
                part.replace(again.folder / part.name)
            again.removed.unlink(missing_ok=True)
            return self.table(again.id)
        try:
            staging.rename(self.folder / "tables" / identity)
        except OSError:
            raise WorkError(f"table {name!r} was added twice at once; try again") from None
        return self.table(identity)

    def table(self, identity: str) -> Table:
        """A table by its name in addresses."""
        folder = self.path("tables", identity)
        facts = read_json(folder / "table.json")
        if not isinstance(facts, Mapping):
            raise Missing(f"table {identity} is damaged: its facts cannot be read")
        return Table(identity, **facts, folder=folder)

    def tables(self) -> list[Table]:
        """Every table that can be read, by name."""
        readable: list[Table] = []
        for identity in self.identities("tables"):
            with suppress(Missing):
                readable.append(self.table(identity))
        return readable

    def remove_rows(self, table: Table) -> None:
        """Delete the private rows, and what may hold facts from them.

        The account stays: what was spent on these people remains spent. So does, where something is
        spent, a fingerprint, by which the same files are known again.
        """
        with self.ledger() as ledger:
            spent = table.id in ledger.datasets() and ledger.spent(table.id).epsilon
        if spent:
            write_json(table.removed, _fingerprint(table.files, secrets.token_hex(16)))
        for part in (*table.files, table.schema, table.units, table.changes):
            part.unlink(missing_ok=True)


def _known(kept: Any, files: Sequence[Path]) -> bool:
    """Whether a fingerprint is of these files."""
    return isinstance(kept, dict) and kept == _fingerprint(files, kept["salt"])


def _fingerprint(files: Sequence[Path], salt: str) -> dict[str, str]:
    """What tells files from others, in whatever order they come.

    Whoever reads it and knows all of a file but one row can test guesses at that row. Each takes a
    memory-hard hash with a salt of its own, so that many cannot be tested, nor in advance.
    """
    found: list[bytes] = []
    for path in files:
        with path.open("rb") as file:
            found.append(hashlib.file_digest(file, "sha256").digest())
    joined = b"".join(sorted(found))
    slow = hashlib.scrypt(joined, salt=bytes.fromhex(salt), n=2**16, r=8, p=1, maxmem=2**27)
    return {"salt": salt, "scrypt": slow.hex()}


def unused(name: str, taken: Collection[str]) -> str:
    """The name, with a number where others have it."""
    numbered = (f"{name} ({number})" for number in count(2))
    return next(each for each in chain([name], numbered) if each not in taken)


def suffix_of(name: str) -> str | None:
    """The format that a file's name promises, or None."""
    lowered = name.lower()
    return next((s for s in sorted(_SUFFIXES, key=len, reverse=True) if lowered.endswith(s)), None)


def without_paths(message: str, root: Path) -> str:
    """A message without the place of the workspace: a file's own name is enough."""
    place = re.escape(str(root.resolve()))
    return re.sub(
        rf"{place}(?:/[^\s'\",;:()]*)?", lambda m: m[0].rpartition("/")[2] or "here", message
    )
