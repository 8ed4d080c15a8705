"""`understudy report`, and the page beside every release that the command line makes."""

from __future__ import annotations

import json

import pytest
from pyarrow import csv
from typer.testing import CliRunner

from tests.report.conftest import TOML, Page, people
from understudy.cli import app


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    csv.write_csv(people(400), folder / "people.csv")
    (folder / "people.toml").write_text(TOML)
    done = run("release", folder / "people.csv", "--schema", folder / "people.toml", "--epsilon", 1,
               "--method", "independent", "--out", folder / "people.release")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "people.release/report.html" in done.stdout.replace("\n", "")
    return folder


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_release_has_its_report_and_both_verifiers_accept_it(made):
    page = made / "people.release" / "report.html"
    assert "people.release" in Page(page.read_text()).text
    assert run("verify", made / "people.release").exit_code == 0


def test_it_is_made_again_beside_the_release_without_the_table(made):
    inside = (made / "people.release" / "report.html").read_bytes()
    (made / "people.csv").rename(made / "gone.csv")
    done = run("report", made / "people.release")
    (made / "gone.csv").rename(made / "people.csv")
    assert done.exit_code == 0
    assert "wrote" in done.stdout
    page = made / "people.release.html"
    digest = json.loads((made / "people.release" / "release.json").read_bytes())["digest"]
    assert digest in page.read_text()
    page.unlink()
    assert (made / "people.release" / "report.html").read_bytes() == inside
    assert run("verify", made / "people.release").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "is not a release: there is no such folder"),
        (("{release}", "--out", "{release}/synthetic.parquet"), "must end in .html"),
        (("{release}", "--out", "{release}/other.html"), "lies in a release"),
        (("{release}", "--out", "{release}/report.html"), "lies in a release"),
        (("{release}", "--out", "{folder}/no/where.html"), "could not be written"),
        (("{release}", "--audit", "{folder}"), "has no audit.json"),
    ],
)
def test_bad_input_is_told(made, words, message):
    places = {"release": made / "people.release", "folder": made}
    before = (made / "people.release" / "synthetic.parquet").read_bytes()
    done = run("report", *(word.format(**places) for word in words))
    assert done.exit_code in (1, 2)
    assert message in " ".join(done.stderr.split())
    assert (made / "people.release" / "synthetic.parquet").read_bytes() == before
    assert sorted(p.name for p in made.iterdir()) == ["people.csv", "people.release", "people.toml"]


def test_a_title_and_an_owner_are_said(made):
    done = run("report", made / "people.release", "--title", "People, 2024", "--owner", "A <City>",
               "--out", made / "titled.html")  # fmt: skip
    assert done.exit_code == 0, done.output
    page = Page((made / "titled.html").read_text()).text
    top = page[: page.index("Contents")]
    assert "People, 2024" in top
    assert "A <City>" in top
