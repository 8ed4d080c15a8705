"""What objects show in a notebook, and progress in its cell."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import understudy as us
from understudy.progress import silent
from understudy.releases.notebook import InCell, progress_here
from understudy.schema import Category, Schema
from understudy.testing import SeededNoise
from understudy.wording import bound


class Text(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.text, self.tags = "", []
        self.feed(html)

    def handle_data(self, data):
        self.text += data

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


def shown(thing):
    return Text(thing._repr_html_())


def test_a_schema_shows_its_columns(schema):
    seen = shown(schema)
    for said in ("age", "integer", "F, M", "smoker", "private"):
        assert said in seen.text
    assert "table" in seen.tags
    assert "to confirm" not in seen.text
    marked = Category("city", ("A", "B"), read_from_rows=("values",))
    assert "to confirm" in shown(Schema((marked,))).text


def test_a_plan_shows_its_charges_and_reads_nothing(schema):
    seen = shown(us.prepare(schema, epsilon=1))
    assert "nothing is spent" in seen.text
    assert "certificate" in seen.text
    assert "ε = 0.99" in seen.text
    assert "of 10,000 rows (assumed)" in seen.text
    assert "of 5,000 rows (assumed)" in shown(us.prepare(schema, epsilon=1, rows=5_000)).text


def test_a_release_and_its_certificate(made):
    seen = shown(made)
    assert made.promise in seen.text
    assert str(made.certificate) in seen.text
    assert "first synthetic rows" in seen.text
    alone = shown(made.certificate)
    assert bound(made.certificate.bound) in alone.text
    assert "99.99 %" in alone.text
    asked = made.answer("age >= 40")
    told = shown(asked)
    for said in ("age >= 40", str(asked), *asked.by):
        assert said in told.text


def test_names_are_escaped():
    evil = "<script>x</script>"
    schema = Schema((Category(evil, (evil, "b")),))
    made = us.release(
        pa.table({evil: [evil, "b"] * 20}), schema, epsilon=1, noise=SeededNoise(0), key=0
    )  # fmt: skip
    for thing in (schema, made):
        assert "script" not in shown(thing).tags
        assert evil in shown(thing).text


class Cell:
    """Stands in for IPython's display: keeps what the one output shows."""

    def __init__(self):
        self.made, self.states = 0, []

    def __call__(self, html, display_id):
        assert display_id
        self.made += 1
        self.states.append(html)
        return types.SimpleNamespace(update=self.states.append)


def test_progress_is_one_output_that_is_updated(table, schema, monkeypatch):
    monkeypatch.setattr("understudy.releases.notebook._SOON", -1)
    cell = Cell()
    us.release(
        table, schema, epsilon=1, method="mwem", workload="marginals:1", progress=InCell(cell),
        noise=SeededNoise(0), key=0,
    )  # fmt: skip
    assert cell.made == 1
    assert any(
        "<progress" in state and "measuring and fitting, round 1 of" in state
        for state in cell.states
    )
    last = Text(cell.states[-1])
    assert last.text.count("✓") == 4
    assert "progress" not in last.tags


def test_rows_that_stay_where_they_are_are_counted_with_progress(
    table, schema, tmp_path, monkeypatch
):
    monkeypatch.setattr("understudy.source.duckdb.BATCH_ROWS", 2048)
    monkeypatch.setattr("understudy.releases.notebook._SOON", -1)
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    cell, stages = Cell(), []
    watch = InCell(cell)

    def progress(now):
        stages.append((now.stage, now.done, now.total))
        watch(now)

    us.release(
        us.read(tmp_path / "t.csv", engine="duckdb"), schema, epsilon=1, method="independent",
        noise=SeededNoise(0), key=0, progress=progress,
    )  # fmt: skip
    shares = [done for stage, done, total in stages if stage == "counting" and total == 100]
    assert shares == list(range(1, 101))  # the number of rows, tables and certificate: one scan
    assert any("% of the table" in state for state in cell.states)
    last = Text(cell.states[-1])
    assert last.text.count("✓") == 4
    assert "counted" not in last.text


CELLS = (
    "import understudy as us\nfrom understudy import demo\nschema = demo.schema()\nschema",
    "us.prepare(schema, epsilon=1, method='independent')",
    "made = us.release(demo.city_health_survey(500), schema, epsilon=1, method='independent',"
    " workload='marginals:1')\nmade",
    "made.certificate",
    "made.answer('smoker')",
)
KERNEL = """
import json, sys
import nbformat
from nbclient import NotebookClient

book = nbformat.v4.new_notebook(cells=[
    nbformat.v4.new_code_cell(code) for code in json.loads(sys.stdin.read())
])
NotebookClient(book, timeout=300, kernel_name="python3").execute()
print(json.dumps([[dict(o) for o in cell.outputs] for cell in book.cells]))
"""
"""Runs cells as Jupyter does; in a process of its own, since it has threads and sockets."""


@pytest.mark.slow
def test_in_a_kernel_of_jupyter():
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    told = subprocess.run(
        [sys.executable, "-c", KERNEL], input=json.dumps(CELLS), capture_output=True, text=True,
        timeout=500,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr[-2000:]
    cells = json.loads(told.stdout.splitlines()[-1])
    assert all(output["output_type"] != "stream" for cell in cells for output in cell)
    cards = [Text(cell[-1]["data"]["text/html"]) for cell in cells]
    for card, title in zip(
        cards, ("Schema", "Plan", "Release", "Certificate", "Answer"), strict=True
    ):
        assert title in card.text
        assert "table" in card.tags
    progress, _ = cells[2]
    assert progress["output_type"] == "display_data"
    assert progress["data"]["text/html"].count("✓") == 4


def test_outside_a_notebook_there_is_none(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert progress_here() is silent
    terminal = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert progress_here() is silent


def test_in_a_notebook_it_is_shown_by_itself(monkeypatch, table, schema):
    cell = Cell()
    kernel = types.SimpleNamespace(kernel=object())
    ipython = types.SimpleNamespace(
        get_ipython=lambda: kernel, display=types.SimpleNamespace(display=cell)
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    us.release(table, schema, epsilon=1, method="independent", noise=SeededNoise(0), key=0)
    assert cell.made == 1
