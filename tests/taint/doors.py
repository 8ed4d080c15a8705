"""The ways in: library, command line and page; each hands back what somebody would see of it."""

import io
import shutil
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import understudy as us
from tests.taint.ways import Given
from understudy.cli import main
from understudy.draft import check, draft
from understudy.schema import Schema


@dataclass(frozen=True)
class Seen:
    """Whether it went well, and every word that was said."""

    well: bool
    words: str


def called(work: Callable[[], Any], *, shows: bool = True) -> Seen:
    """A call of the library: what a person sees of its result, or of its traceback.

    `shows`: whether the result may be looked at; drafts and checks hold private facts on purpose.
    """
    try:
        made = work()
        return Seen(True, f"{made!r} {made}" if shows else "")
    except Exception as error:  # noqa: BLE001
        shown = traceback.format_exception(error)
        return Seen(False, "".join(shown) + repr(error) + str(error))


def typed(*arguments: object, shows: bool = True) -> Seen:
    """A command, as somebody types it."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Seen(code == 0, err.getvalue() + (out.getvalue() if shows else ""))


# Library


def release(given: Given, folder: Path) -> Seen:
    def work() -> Any:
        schema = Schema.loads(given.schema)
        source = us.read(given.data, table=given.table)
        source.describe()
        made = us.release(source, schema, epsilon=1, method="independent", workload="marginals:1")
        return made.certificate, made.promise, made.schema.dumps()

    return called(work)


def streamed(given: Given, folder: Path) -> Seen:
    def work() -> Any:
        schema = Schema.loads(given.schema)
        source = us.read(given.data, engine="duckdb", memory_limit="500MB")
        return us.release(source, schema, epsilon=1, method="independent").certificate

    return called(work)


def drafted(given: Given, folder: Path) -> Seen:
    return called(lambda: draft(given.data), shows=False)


def checked(given: Given, folder: Path) -> Seen:
    return called(lambda: check(Schema.loads(given.schema), given.data), shows=False)


def learned(given: Given, folder: Path) -> Seen:
    from understudy.learn import PrivateLasso, PrivateLogisticRegression

    rows, targets = given.data
    common = {"bounds": (0, 10), "neighbours": "replace", "steps": 10}
    lasso = PrivateLasso(1, target_bounds=(0, 1), **common)
    logistic = PrivateLogisticRegression(1, classes=(0, 1), **common)
    one = called(lambda: lasso.fit(rows, targets))
    other = called(lambda: logistic.fit(rows, targets))
    later = called(lambda: lasso.predict(rows), shows=False)
    return Seen(one.well and other.well, one.words + other.words + later.words)


def edges(given: Given, folder: Path) -> Seen:
    return called(lambda: us.release_graph(given.data, nodes=12, epsilon=1).certificate)


# Command line


def _where(given: Given) -> list[object]:
    return [given.data, *([] if given.table is None else ["--table", given.table])]


def _schema(given: Given, folder: Path) -> Path:
    (folder / "s.toml").write_text(given.schema)
    return folder / "s.toml"


def command_draft(given: Given, folder: Path) -> Seen:
    seen = typed("schema", "draft", *_where(given), "--out", folder / "d.toml", shows=False)
    (folder / "d.toml").unlink(missing_ok=True)
    return seen


def command_check(given: Given, folder: Path) -> Seen:
    schema = _schema(given, folder)
    where = [] if given.table is None else ["--table", given.table]
    return typed("schema", "check", schema, "--data", given.data, *where, shows=False)


def command_release(given: Given, folder: Path) -> Seen:
    out = folder / "t.release"
    return typed(
        "release",
        *_where(given),
        "--schema",
        _schema(given, folder),
        "--epsilon",
        1,
        "--method",
        "independent",
        "--workload",
        "marginals:1",
        "--out",
        out,
    )


def command_graph(given: Given, folder: Path) -> Seen:
    out = folder / "g.release"
    return typed("graph", "release", given.data, "--nodes", 12, "--epsilon", 1, "--out", out)


def command_swapped(given: Given, folder: Path) -> Seen:
    """The rows where a schema, nodes, a workload or public rows should be."""
    schema, out = _schema(given, folder), folder / "t.release"
    common = ("--epsilon", 1, "--out", out)
    seen = [
        typed("plan", "--schema", given.data, "--epsilon", 1),
        typed("release", given.data, "--schema", given.data, *common),
        typed("release", given.data, "--schema", schema, "--workload", given.data, *common),
        typed("graph", "release", given.data, "--nodes", given.data, *common),
        typed("schema", "confirm", given.data, "--all"),
        typed("schema", "check", given.data),
        typed("schema", "import", given.data, "--from", "sdv", "--out", folder / "i.toml"),
        typed("answer", given.data, "age > 3"),
        typed("verify", given.data),
    ]
    return Seen(False, "".join(one.words for one in seen))


# Page


def page_upload(given: Given, page: Any) -> Seen:
    response = page.upload(given.data.name, given.data.read_bytes())
    refused = response.status_code >= 400
    return Seen(not refused, response.text if refused else "")


def page_release(given: Given, page: Any) -> Seen:
    from understudy.privacy import Budget

    site = page.site
    with site.workspace.incoming() as folder:
        suffix = "".join(given.data.suffixes[-2:]) or ".csv"
        file = folder / f"rows{suffix}"
        file.write_bytes(given.data.read_bytes())
        table = site.workspace.add_table("people", file, given.schema, 6)
    with site.workspace.ledger() as ledger:
        ledger.open_dataset(table.id, Budget.of("3", "1e-8"))
    there = f"/tables/{table.id}"
    asked = page.post(
        f"{there}/releases", epsilon="1", method="independent", workload="marginals:1"
    )
    saved = page.post(f"{there}/schema/text", text=given.schema)
    pages = [page.client.get(path).text for path in (there, "/tables", "/releases", "/jobs")]
    states = [file.read_text() for file in (page.folder / "jobs").rglob("state.json")]
    finished = asked.status_code == 200 and '"finished"' in "".join(states)
    for part in ("jobs", "releases", "tables"):  # the next table finds nothing of this one
        for left in (page.folder / part).iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return Seen(finished, "".join([asked.text, saved.text, *pages, *states]))


FILES = {
    "release": release,
    "streamed": streamed,
    "draft": drafted,
    "check": checked,
    "$ draft": command_draft,
    "$ check": command_check,
    "$ release": command_release,
    "$ swapped": command_swapped,
}
PAGES = {"page: upload": page_upload, "page: release": page_release}
TABLES = {
    "release": release,
    "$ draft": command_draft,
    "$ check": command_check,
    "$ release": command_release,
}
DOORS: dict[str, dict[str, Any]] = {
    "text": {**FILES, **PAGES},
    "parquet": {**FILES, **PAGES},
    "place": {**FILES, **PAGES},
    "schema": {**FILES, "page: release": page_release},
    "frame": {"release": release, "draft": drafted, "check": checked},
    "DuckDB": TABLES,
    "PostgreSQL": TABLES,
    "learner": {"learned": learned},
    "edges": {"edges": edges, "$ graph": command_graph},
}
