"""No private value in any message: tables full of marked values, broken in some 570 ways.

Through library, command line and page. Looked at are messages, tracebacks with everything that they
chain, warnings, logs, both streams of the process, its title, pages, and files left behind.
"""

import logging
import os
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import understudy as us
from tests.taint import marks
from tests.taint.doors import DOORS, PAGES, Seen, called
from tests.taint.marks import SCHEMA
from tests.taint.ways import Given, Way, all_ways, postgres_ways
from tests.web.conftest import Page, TestClient, app_here
from understudy.errors import SourceError
from understudy.schema import Schema

WAYS = all_ways()


class Listener(logging.Handler):
    """Every record of every logger, as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.words.append(self.format(record))


class Watch:
    """Goes through a door with a broken table, and looks at everything that was said and left."""

    def __init__(self, folder: Path, capfd: Any, page: Page) -> None:
        self._folder, self._capfd, self._page = folder, capfd, page
        self.outcomes: Counter[bool] = Counter()
        self.leaks: list[str] = []

    def through(self, way: Way, doors: dict[str, Any]) -> None:
        for number, (name, door) in enumerate(doors.items()):
            where = self._folder / f"{len(list(self._folder.iterdir()))}-{number}"
            inside, here, temporary = where / "given", where / "here", where / "tmp"
            for part in (inside, here, temporary):
                part.mkdir(parents=True)
            given = way.make(inside, Random(way.name))
            if name in PAGES and not (isinstance(given.data, Path) and given.data.is_file()):
                continue
            before = self._files(where)
            seen, more = self._seen(door, given, here, temporary, name in PAGES)
            self.outcomes[seen.well] += 1
            for what, words in (("said", seen.words), *more):
                if leak := marks.found(words):
                    self.leaks.append(f"{way.name} | {name}, {what}: …{leak}…")
            self.leaks += [
                f"{way.name} | {name}, left behind: {path.relative_to(where)}"
                for path in self._files(where) - before
                if path.name != "release.json" and marks.found(path.read_bytes().decode("latin-1"))
            ]

    def _seen(
        self, door: Any, given: Any, here: Path, temporary: Path, paged: bool
    ) -> tuple[Seen, list[tuple[str, str]]]:
        listener, kept = Listener(), os.getcwd()
        root = logging.getLogger()
        level = root.level
        root.addHandler(listener)
        root.setLevel(logging.DEBUG)
        os.chdir(here)
        tempfile.tempdir = str(temporary)
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                seen = door(given, self._page if paged else here)
        finally:
            tempfile.tempdir = None
            os.chdir(kept)
            root.removeHandler(listener)
            root.setLevel(level)
        streams = self._capfd.readouterr()
        title = Path("/proc/self/cmdline").read_bytes() + Path("/proc/self/comm").read_bytes()
        return seen, [
            ("printed", streams.out + streams.err),
            ("warned", "\n".join(str(w.message) for w in warned)),
            ("logged", "\n".join(listener.words)),
            ("the process's title", title.decode("latin-1")),
        ]

    def _files(self, where: Path) -> set[Path]:
        roots = (where, self._page.folder / "incoming")
        return {path for root in roots for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def watch(tmp_path, capfd):
    with TestClient(app_here(tmp_path / "desk")) as client:
        (tmp_path / "ways").mkdir()
        yield Watch(tmp_path / "ways", capfd, Page(client, tmp_path / "desk").enter())


def told(leaks: list[str]) -> str:
    ways = {leak.partition(" | ")[0] for leak in leaks}
    return f"{len(ways)} ways leak:\n" + "\n".join(leaks[:400])


def test_some_ways_through_some_doors_each(watch):
    """Every twelfth way, each through one of its doors in turn; all of both among the slow tests."""
    assert len(WAYS) >= 500
    for number, way in enumerate(WAYS[::12]):
        doors = list(DOORS[way.kind].items())
        name, door = doors[(5 * number) % len(doors)]
        watch.through(way, {name: door})
    assert not watch.leaks, told(watch.leaks)
    assert min(watch.outcomes[True], watch.outcomes[False]) >= 5, watch.outcomes


def enough(kind: str, outcomes: Counter[bool]) -> bool:
    """A good share of errors; lists of edges take nearly anything, and say nothing about it."""
    return outcomes[False] >= (0.05 if kind == "edges" else 0.2) * outcomes.total()


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({way.kind for way in WAYS}))
def test_every_way_through_every_door(watch, kind):
    for way in WAYS:
        if way.kind == kind:
            watch.through(way, DOORS[kind])
    assert not watch.leaks, told(watch.leaks)
    assert enough(kind, watch.outcomes), watch.outcomes


@pytest.mark.slow
def test_a_server_that_quotes_what_it_cannot_cast(watch):
    for way in postgres_ways():
        watch.through(way, DOORS["PostgreSQL"])
    assert not watch.leaks, told(watch.leaks)
    assert enough("PostgreSQL", watch.outcomes), watch.outcomes


def test_files_that_change_while_they_are_read(watch):
    def door(change, engine):
        def work(given, folder):
            def release():
                source = us.read(given.data, engine=engine)
                change(given.data)
                return us.release(source, Schema.loads(SCHEMA), epsilon=1, method="independent")

            return called(release, shows=False)

        return work

    changes = {
        "gone": Path.unlink,
        "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
        "other": lambda path: path.write_bytes(b"zqxv00,zqxv01\n"),
    }
    doors = {
        f"{name}, {engine}": door(change, engine)
        for name, change in changes.items()
        for engine in ("memory", "duckdb")
    }
    kept = ("schema: as it should be", "as it should be", "texts among numbers (.csv.gz, 1)")
    for way in WAYS:
        if way.name in kept:
            watch.through(way, doors)
    assert not watch.leaks, told(watch.leaks)
    assert watch.outcomes[False] >= 4, watch.outcomes


LEAKY = {
    "a message": lambda cell: raised(SourceError(f"cannot read {cell}")),
    "a part of a message": lambda cell: raised(SourceError(f"cannot read {cell[:8]!r} and more")),
    "a note": lambda cell: raised(noted(SourceError("cannot read it"), f"at {cell}")),
    "a cause": lambda cell: chained(cell),
    "a warning": lambda cell: warnings.warn(f"bad {cell}", stacklevel=2),
    "a log": lambda cell: logging.getLogger("duckdb").debug("row %s", cell),
    "a stream": lambda cell: os.write(2, f"row {cell}".encode()),
    "a file in the folder": lambda cell: Path("spilled.tmp").write_text(cell),
    "a temporary file": lambda cell: Path(tempfile.mkstemp()[1]).write_text(cell),
    "a result": lambda cell: cell,
}


def raised(error: Exception) -> None:
    raise error


def noted(error: Exception, note: str) -> Exception:
    error.add_note(note)
    return error


def chained(cell: str) -> None:
    try:
        float(f"{cell} of")
    except ValueError:
        raise SourceError("a cell is no number")  # noqa: B904 - that is what is looked for


@pytest.mark.parametrize("leak", LEAKY)
@pytest.mark.parametrize("cell", [marks.text, marks.number, marks.day])
def test_a_leak_is_seen(watch, leak, cell):
    private = f"{cell(Random(1))}"
    way = Way("leaky", leak, lambda folder, rng: Given(None))
    watch.through(way, {leak: lambda given, folder: called(lambda: LEAKY[leak](private))})
    assert watch.leaks


def test_nothing_is_seen_where_nothing_leaks(watch):
    way = Way("quiet", "quiet", lambda folder, rng: Given(None))
    watch.through(way, {"quiet": lambda given, folder: called(lambda: "f7d2c0 age 2391 7391")})
    assert not watch.leaks
