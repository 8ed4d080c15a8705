"""`python -m bench`: small figures on the generated survey and on files."""

import json
import math
import sys
from importlib import import_module
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from bench.__main__ import BENCHMARKS, WITH_FILES
from bench.published import Bench, LeftOut, Results, adult_of_15, figure_two, generated, load
from bench.published.game import sizes
from bench.published.matrix import expected_worst

import understudy as us
from tests.cli.cli_cases import run
from understudy import demo
from understudy.errors import InputError
from understudy.queries import counts, resolve
from understudy.schema import Integer, Schema


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A figure of 600 generated rows."""
    folder = tmp_path_factory.mktemp("bench") / "game"
    done = run(*_game(folder))
    assert done.code == 0, done.err
    return folder, done


def _game(folder, *more):
    return (
        "bench", "game", "--demo", "--rows", 600, "--out", folder, "--figure", "1", "--orders", "3",
        "--epsilons", "0.5,1", "--runs", 1, "--methods", "fem,mwem", *more,
    )  # fmt: skip


def test_a_figure_and_every_run_beside_it(small):
    folder, done = small
    body = json.loads((folder / "results.json").read_text())
    assert (folder / "figure.svg").stat().st_size < 300_000
    assert (folder / "figure.png").stat().st_size > 1000
    runs = {(one["panel"], one["method"], one["epsilon"]) for one in body["runs"]}
    assert runs == {
        (panel, method, epsilon)
        for panel, method in (
            ("SURVEY 3-way", "fem"), ("SURVEY six columns", "fem"), ("SURVEY six columns", "mwem")
        )
        for epsilon in ("0.5", "1")
    }  # fmt: skip
    for one in body["runs"]:
        assert 0 < one["max"] <= 1
        assert one["certificate"] > 0
        assert one["cpu"] > 0
        assert one["rounds"] >= 1
        assert one["delta"] == pytest.approx(1 / 600**2)
    assert {point["runs"] for point in body["points"]} == {1}
    assert "SURVEY, 64 3-way marginals" in done.out


def test_what_is_there_is_not_run_again(small):
    folder, _ = small
    before = json.loads((folder / "results.json").read_text())["runs"]
    done = run(*_game(folder))
    assert done.code == 0
    assert "6 runs are there already, 0 are left" in done.err
    assert json.loads((folder / "results.json").read_text())["runs"] == before


def test_interrupting_keeps_what_was_run(tmp_path, monkeypatch):
    from bench.published import game

    real, seen = game.run, []

    def stops(task):
        if seen:
            raise KeyboardInterrupt
        seen.append(task)
        return real(task)

    monkeypatch.setattr(game, "run", stops)
    done = run(*_game(tmp_path / "g"))
    assert done.code == 130
    assert "has 1 of the runs" in done.err
    assert len(Results(tmp_path / "g" / "results.json").runs) == 1


def test_methods_that_cannot_serve_are_left_out_with_the_reason(tmp_path):
    wide = {f"c{i}": np.zeros(20, np.int64) for i in range(3)}
    pa.csv.write_csv(pa.table(wide), tmp_path / "t.csv")
    (tmp_path / "t.json").write_text(json.dumps(dict.fromkeys(wide, 2000)))
    done = run(
        "bench", "game", "--loans", tmp_path / "t.csv", "--loans-domain", tmp_path / "t.json",
        "--out", tmp_path / "g", "--figure", "1", "--orders", "3", "--epsilons", "1", "--runs", 1,
        "--methods", "auto",
    )  # fmt: skip
    assert done.code == 0
    assert "auto is left out" in done.err
    assert "8,000,000,000 cells" in done.err
    body = json.loads((tmp_path / "g" / "results.json").read_text())
    [left] = body["left_out"]
    assert (left["panel"], left["method"]) == ("LOANS 3-way", "auto")
    assert "8,000,000,000 cells" in left["why"]
    assert Results(tmp_path / "g" / "results.json").left_out == [LeftOut(**left)]


def test_what_ran_after_all_is_not_left_out(small):
    folder, _ = small
    results = Results(folder / "results.json")
    [one, *_] = results.runs
    results.leave_out(LeftOut(one["panel"], one["method"], one["workload"], "no memory"))
    assert results.left_out == []
    results.leave_out(LeftOut(one["panel"], "hdmm", one["workload"], "no memory"))
    assert [left.method for left in results.left_out] == ["hdmm"]


def test_tables_are_written_from_the_runs(small):
    folder, _ = small
    told = (folder / "results.md").read_text()
    rows = {
        (cells[1], cells[2]): cells
        for line in told.splitlines()
        if line.startswith("| ") and len(cells := [cell.strip() for cell in line.split("|")]) > 5
    }
    for point in json.loads((folder / "results.json").read_text())["points"]:
        # A table is named in its first row alone.
        first = point["method"] == "fem"
        cells = rows[point["panel"] if first else "", f"`{point['method']}`"]
        column = cells[3] if point["epsilon"] == "0.5" else cells[4]
        assert float(column) == pytest.approx(point["mean"], abs=6e-4)
        assert cells[5] == "1"
    assert "where 5 % are expected" in told


def test_the_tables_and_the_picture_say_what_is_missing_and_where_one_run_must_do(small):
    from bench.published import figure_one
    from bench.published.figure import draw
    from bench.published.game_tables import markdown

    folder, _ = small
    results = Results(folder / "results.json")
    results.runs = [*results.runs, {**results.runs[0], "run": 1, "max": 0.5}]
    results.runs = [
        one | {"theorem": 1.0 if one["method"] == "fem" else None} for one in results.runs
    ]
    why = "method = hdmm measures every cell, 9e+07 of them; use method = fem"
    results.leave_out(LeftOut("SURVEY 3-way", "hdmm", "marginals:3:64@0", why))
    text = markdown(results)
    assert "| `hdmm` | SURVEY 3-way | measures every cell, 9e+07 of them |" in text
    assert "at their best: `fem` ≤ 100.00 percentage points, which says nothing here." in text
    (folder / "again").mkdir()
    panels = figure_one([generated(600)], [3], ["0.5", "1"])
    picture, _ = draw(panels, results, folder / "again")
    svg = picture.read_text()
    assert "SURVEY, 64 3-way marginals, no hdmm: measures every cell, 9e+07 of them." in svg
    assert "Means of 2 runs, bars from the least to the largest; hollow: one run." in svg


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--adult", "none.csv"), "--adult and --adult-domain go together"),
        (("--adult", "none.csv", "--adult-domain", "none.json"), "UCI Adult"),
        (("--loans", "none.csv", "--loans-domain", "none.json"), "LendingClub"),
        (("--demo", "--figure", "3"), "must be 1, 2 or both"),
        (("--demo", "--orders", "x"), "orders = 'x'"),
        (("--demo", "--orders", "99"), "from 1 to 14 columns"),
        (("--demo", "--epsilons", "-1"), "epsilons = '-1'"),
        (("--demo", "--methods", "magic"), "methods = magic"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = run("bench", "game", "--rows", 50, "--out", "g", *arguments)
    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "g").exists()


def test_a_results_file_of_something_else(tmp_path):
    (tmp_path / "results.json").write_text('{"runs": [1]}')
    done = run(*_game(tmp_path))
    assert done.code == 2
    assert "does not hold results" in done.err


def test_without_matplotlib_it_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run(*_game(tmp_path / "g"))
    assert done.code == 2
    assert ".[figures]" in done.err


def test_rounds(monkeypatch):
    done = run("bench", "rounds", "--marginals", "1", "--columns", "4")
    # 4 columns have 4 triples and not 100, which is said rather than measured
    assert done.code == 2
    assert "4" in done.err
    done = run("bench", "rounds", "--marginals", "1,2", "--columns", "10")
    assert done.code == 0, done.err
    assert "query player" in done.out
    assert "100,000" in done.out


def test_errors_are_those_of_whole_tables():
    rng = np.random.default_rng(0)
    schema = Schema(tuple(Integer(name, 0, 39) for name in "abcd"))
    tables = [
        pa.table({name: rng.integers(0, 40, rows) % (i + 2) for i, name in enumerate("abcd")})
        for rows in (300, 200)
    ]
    bench = Bench.of("T", schema, tables[0])
    cliques = [(0,), *combinations(range(4), 2), (0, 1, 2), (0, 1, 2, 3)]
    real, fake = (counts(schema.encode(t), schema.shape, cliques) for t in tables)
    gaps = [np.abs(r / 300 - f / 200) for r, f in zip(real, fake, strict=True)]
    worst, variation = bench.errors(tables[1], cliques)
    assert worst == pytest.approx(max(gap.max() for gap in gaps), abs=1e-12)
    assert variation == pytest.approx(np.mean([gap.sum() / 2 for gap in gaps]), abs=1e-12)
    assert bench.errors(tables[0], cliques) == (0.0, 0.0)


def test_columns_are_taken_in_the_order_of_the_domain(tmp_path):
    (tmp_path / "t.csv").write_text("b,a,other\n1,0,5\n0,2,5\n")
    (tmp_path / "t.json").write_text('{"a": 3, "b": 2}')
    bench = load("LOANS", tmp_path / "t.csv", tmp_path / "t.json")
    assert bench is not None
    assert [column.name for column in bench.schema.columns] == ["a", "b"]
    assert bench.table.column_names == ["a", "b"]
    assert bench.schema.shape == (3, 2)
    assert [list(column) for column in bench.codes] == [[0, 2], [1, 0]]


def test_the_sixty_four_marginals_are_those_of_the_experiments():
    """`RandomState(0).choice(286, 64)` over the triples of ADULT's thirteen columns."""
    shape = (9, 16, 7, 15, 6, 5, 2, 42, 2, 10, 13, 6, 10)
    schema = Schema(tuple(Integer(f"c{i}", 0, size - 1) for i, size in enumerate(shape)))
    every = list(combinations(range(13), 3))
    drawn = np.random.RandomState(0).choice(286, 64, replace=False)
    found = resolve("marginals:3:64@0", schema)
    assert set(found.cliques) == {every[i] for i in drawn}
    assert found.cells(shape) == 85_267


def test_workloads_grow_to_all():
    assert sizes(13, 3) == (64, 128, 256, 286)
    assert sizes(5, 3) == (10,)
    assert len(generated(20).schema.shape) == len(demo.schema().modelled)


def test_figure_two_has_a_panel_for_every_order():
    panels = figure_two([generated(20)], (3, 5), most=128)
    assert [panel.order for panel in panels] == [3, 5]
    for panel in panels:
        assert panel.workloads == tuple(f"marginals:{panel.order}:{n}@0" for n in (64, 128))


def test_the_matrix_mechanisms_line_is_that_of_gaussian_noise():
    """As if the 200 cells of one marginal had independent noise of their standard error."""
    schema = Schema((Integer("a", 0, 9), Integer("b", 0, 19)))
    codes = np.zeros(500, np.int64)
    bench = Bench.of("t", schema, pa.table({"a": codes, "b": codes}))
    settings = {"epsilon": "1", "delta": "1e-6", "workload": "marginals:2", "rows_public": 500}
    ready = us.prepare(schema, method="hdmm", **settings)
    (noise,) = ready.method.spread(ready.design, ready.game_plan)
    found = expected_worst(bench, "marginals:2", "1", "1e-6") * 500
    assert math.erf(found / noise / math.sqrt(2)) ** 200 == pytest.approx(0.5, rel=1e-6)
    assert expected_worst(bench, "marginals:2", "2", "1e-6") * 500 < 0.7 * found


def test_adult_has_fifteen_columns(tmp_path):
    names = [
        "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
        "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
        "native-country", "income",
    ]  # fmt: skip
    numbers = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    row = ["17" if name in numbers else "?" for name in names]
    row[4] = "16"
    path = tmp_path / "adult.csv"
    path.write_text(f"{','.join(names)}\n{','.join(row)}\n{','.join(row)}\n", encoding="utf-8")
    bench = adult_of_15(path)
    assert (bench.name, bench.rows, len(bench.schema.shape)) == ("ADULT-15", 2, 15)
    assert bench.schema.shape[0] == 10
    assert adult_of_15(None) is None
    path.write_text("age\n3\n", encoding="utf-8")
    with pytest.raises(InputError, match="lacks capital-gain"):
        adult_of_15(path)


def test_equal_runs_whose_mean_rounds_are_drawn(small, tmp_path):
    from bench.published import figure_one
    from bench.published.figure import draw

    folder, _ = small
    results = Results(folder / "results.json")
    one = next(one for one in results.runs if one["panel"] == "SURVEY 3-way")
    results.runs = [
        one | {"max": 0.1, "run": number} for number in range(3)
    ]  # 0.30000000000000004/3
    (point,) = results.points()
    assert point.mean != point.max
    panels = figure_one([generated(600)], [3], ["0.5", "1"])
    assert len(draw(panels, results, tmp_path)) == 2


@pytest.mark.parametrize(
    ("ticks", "kept"),
    [
        ((0.1, 0.15, 0.2, 0.25, 0.5, 1.0), [0.1, 0.15, 0.25, 0.5, 1.0]),
        ((64, 128, 256, 286), [64, 128, 286]),
        ((64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 17296), [64, 256, 1024, 4096, 17296]),
        ((1.0,), [1.0]),
    ],
)
def test_labels_of_an_axis_do_not_run_into_each_other(ticks, kept):
    from bench.published.figure import _apart

    assert _apart(ticks) == kept


def test_every_benchmark_can_be_imported():
    for name in (*BENCHMARKS, *WITH_FILES, "dpgan", "learn", "gpu"):
        assert callable(import_module(f"bench.{name}").main), name
