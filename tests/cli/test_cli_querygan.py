"""`python -m bench querygan`: a small figure, kept runs, and what is refused."""

import json

import numpy as np
import pytest
from bench.published.querygan import Nets, draw, systems, tasks
from bench.published.tables import chains, generated

from tests.cli.cli_cases import run


def _bench(folder, *more):
    return (
        "bench", "querygan", "--demo", "--rows", 200, "--workload", "marginals:2:3@0", "--out",
        folder, "--systems", "querygan:exponential", "--epsilons", "1", "--rounds", "2", "--runs",
        1, *more,
    )  # fmt: skip


@pytest.mark.slow
def test_a_figure_every_run_beside_it_and_nothing_run_twice(tmp_path):
    done = run(*_bench(tmp_path))
    assert done.code == 0, done.err
    body = json.loads((tmp_path / "querygan.json").read_text())
    assert [(one["axis"], one["rounds"]) for one in body["runs"]] == [
        ("epsilon", None),
        ("rounds", 2),
    ]
    for one in body["runs"]:
        assert 0 < one["mean_total_variation"] <= 1
        assert 0 < one["max"] <= 1
        assert one["certificate"] > 0
        assert one["cpu"] > 0
        assert one["settings"]["oracle"] == "exponential"
    assert (tmp_path / "querygan.svg").stat().st_size > 1_000
    assert "querygan:exponential" in done.out
    again = run(*_bench(tmp_path))
    assert "2 runs are there already, 0 are left" in again.err
    assert json.loads((tmp_path / "querygan.json").read_text()) == body


def test_every_oracle_is_a_system_and_rounds_are_an_axis_of_their_own():
    known = systems()
    oracles = [name for name in known if name.startswith("querygan:")]
    assert oracles == [f"querygan:{o}" for o in ("moments", "exponential", "weights", "logistic")]
    planned = list(
        tasks(generated(50), "marginals:2", {"querygan:moments": {}}, ["0.1", "1"], [5, 9], "1", 2)
    )
    assert len({task.key for task in planned}) == len(planned) == 8
    along = [(task.axis, task.epsilon, task.rounds) for task in planned[:4]]
    assert along == [
        ("epsilon", "0.1", None), ("epsilon", "1", None), ("rounds", "1", 5), ("rounds", "1", 9),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--systems", "querygan:odo"), "systems = querygan:odo: choose from querygan:moments"),
        (("--epsilons", "0"), "epsilons = '0'"),
        (("--rounds", "many"), "rounds = 'many'"),
        (("--adult", "a.csv"), "--adult and --adult-domain go together"),
    ],
)
def test_wrong_use_is_said_before_anything_runs(change, message, tmp_path):
    done = run(*_bench(tmp_path, *change))
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []


def test_without_a_table_it_says_where_to_get_one(tmp_path):
    done = run("bench", "querygan", "--out", tmp_path)
    assert done.code == 2
    said = " ".join(done.err.split())
    assert "--adult" in said
    assert "archive.ics.uci.edu" in said
    assert "--loans" in said


def test_another_file_is_not_overwritten(tmp_path):
    path = tmp_path / "querygan.json"
    path.write_text('{"runs": [1]}')
    done = run(*_bench(tmp_path))
    assert done.code == 2
    assert path.read_text() == '{"runs": [1]}'


def test_the_links_of_a_chain_depend_on_their_neighbours():
    chain, again = chains(2_000, 3), chains(2_000, 3)
    assert chain.table.equals(again.table)
    assert not chain.table.equals(chains(2_000, 4).table)
    shape = chain.schema.shape
    for i in range(6):
        table = np.zeros((shape[i], shape[i + 1]))
        np.add.at(table, (chain.codes[i], chain.codes[i + 1]), 1 / 2_000)
        apart = np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2
        assert apart > 0.05


def test_a_bound_on_regret_is_a_number_or_says_nothing(tmp_path):
    results = Nets(tmp_path / "querygan.json")
    base = {
        "table": "T", "rows": 9, "system": "querygan:moments/critics=ftrl", "axis": "epsilon",
        "epsilon": "1", "rounds": None, "run": 0,
    }  # fmt: skip
    for bound in (0.25, "says nothing here"):
        told = {"regret_of_the_critics": 0.125, "bound_on_their_regret": bound}
        results.add({**base, "remarks": told})
    results.add({**base, "remarks": {}})
    assert [row[2:] for row in results.regrets()] == [
        ("0.1250", "0.2500"),
        ("0.1250", "says nothing here"),
    ]


def test_points_put_runs_together(tmp_path):
    results = Nets(tmp_path / "querygan.json")
    base = {
        "table": "T", "rows": 9, "system": "gem", "axis": "epsilon", "epsilon": "1", "rounds": None,
        "max": 0.2, "certificate": 0.3, "cpu": 2.0, "wasserstein": 0.01, "parity": 0.05,
    }  # fmt: skip
    for number, tv in enumerate((0.1, 0.3)):
        results.add({**base, "run": number, "mean_total_variation": tv})
    results.add({**base, "table": "U", "run": 0, "mean_total_variation": 0.5})
    first, other = Nets(results.path).points()
    assert (first.runs, first.tv, first.x) == (2, pytest.approx(0.2), 1.0)
    assert (other.table, other.runs, other.tv) == ("U", 1, 0.5)
    written = draw([first, other], "marginals:2", tmp_path)
    text = written[0].read_text()
    assert "T, marginals:2" in text
    assert "U, marginals:2" in text
