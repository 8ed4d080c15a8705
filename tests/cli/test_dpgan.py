"""`understudy release --method dpgan`: a release with its training; bad input costs nothing."""

from collections.abc import Callable

import pytest

import understudy as us
from tests.cli.cli_cases import SMALL, Case, run, small_rows


def settings(*each: str) -> list[object]:
    return [word for one in each for word in ("--set", one)]


FEW = ["--rows-public", 400, *settings("width=4", "latent=4", "critic_width=4", "fakes=8")]


@pytest.mark.slow
def test_a_release_by_the_critic_shows_how_training_went(case: Case):
    result = case.release(*FEW, *settings("steps=6", "rate=0.25"), epsilon=2, method="dpgan")
    assert result.code == 0, result.err
    assert case.kinds().count("charge") == 1 + 6 + 1  # columns, steps, the certificate
    assert run("verify", case.out).code == 0
    made = us.Release.load(case.out)
    assert made.rows.num_rows == 400
    assert us.Schema.loads(SMALL).illegal(made.rows) == []
    page = (case.out / "report.html").read_text(encoding="utf-8")
    section = page.partition('<h2 id="training">')[2].partition("<h2 ")[0]
    told = {
        "Loss": "generator: ",
        "Threshold of a row": "all weights: ",
        "Noise on a weight, its deviation": "at step 6",
        "ε spent": "2 was promised",
    }
    for title, words in told.items():
        start = section.index(f'aria-label="{title}')
        assert words in section[start : section.index(">", start)], title
    assert section.count("<svg") >= 4
    assert "{'step'" not in page  # no curve as a list of numbers among the parameters


GEOGRAPHY = """
[[geography]]
latitude = "age"
longitude = "income"
mask = "land.geojson"
"""
ISLAND = """{"type": "Polygon", "coordinates":
 [[[-120, -80], [-110, -80], [-110, -70], [-120, -70], [-120, -80]]]}"""


def _off_the_map(case: Case) -> None:
    (case.folder / "land.geojson").write_text(ISLAND)
    text = SMALL.replace(
        'type = "integer"\nlower = 0\nupper = 99', 'type = "number"\nlower = 0\nupper = 80'
    ).replace("upper = 1000", "upper = 100")
    case.schema.write_text(text + GEOGRAPHY)


def _unbounded(case: Case) -> None:
    case.schema.write_text(SMALL.replace("lower = 0\nupper = 1000\n", ""))


def _second_file(case: Case) -> None:
    (case.folder / "t2.csv").write_text(small_rows(10))


def _as_it_is(case: Case) -> None:
    pass


BAD: dict[str, tuple[Callable[[Case], None], list[object], list[str]]] = {
    "the private table as a public one": (
        _as_it_is,
        ["--public", "t.csv"],
        ["public", "is the private table", "remove them from"],
    ),
    "a link to it": (
        lambda case: (case.folder / "people.csv").symlink_to(case.data),
        ["--public", "people.csv"],
        ["public", "is the private table"],
    ),
    "a part of the private files": (
        _second_file,
        ["--public", "t*.csv"],
        ["public", "is a part of the private table"],
    ),
    "a holdout too small": (
        _as_it_is,
        settings("task=sex", "pick=1", "checkpoints=2", "holdout=0.01"),
        ["holdout = 0.01", "keeps about 4 rows", "Raise holdout"],
    ),
    "a mask that excludes the box": (
        _off_the_map,
        [],
        ["'age' and 'income'", "lies outside the columns' box"],
    ),
    "an unbounded number": (_unbounded, [], ["'income'", "lower is missing", "public bound"]),
    "a batch larger than the table": (
        _as_it_is,
        settings("batch=500"),
        ["batch = 500", "more than the 400 rows"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_before_training(case: Case, name: str, monkeypatch: pytest.MonkeyPatch):
    spoil, options, said = BAD[name]
    spoil(case)
    monkeypatch.chdir(case.folder)
    before = case.files()
    result = case.release(*FEW, *options, method="dpgan")
    assert result.code == 2, result.err
    for words in said:
        assert words in result.err
    assert case.kinds() == ["open"]
    assert case.files() == before
