"""`python -m bench tables`: what it finds in a folder, and that its errors are those of the rows."""

from __future__ import annotations

import argparse
import json
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from bench import tables
from bench.kinds import KINDS, drawn
from pyarrow import csv, parquet


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a domain, and one without anything beside it."""
    where = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, size, 300) for name, size in (("a", 3), ("b", 4), ("c", 2))}
    csv.write_csv(pa.table(codes), where / "coded.csv")
    (where / "coded-domain.json").write_text(json.dumps({"a": 3, "b": 4, "c": 2}))
    words = pa.table({"kind": ["x", "y"] * 150, "size": codes["b"]})
    parquet.write_table(words, where / "words.parquet")
    return where


def test_one_run_writes_a_table_its_numbers_and_a_figure(folder, tmp_path, capsys):
    asked = [str(folder), "--only", "coded", "--methods", "maxent,unheard", "--target", "coded=c"]
    tables.main([*asked, "--by", "a", "--out", str(tmp_path)])
    done, refused = json.loads((tmp_path / "results.json").read_text())
    assert "unheard" in refused["refused"]
    assert 200 < done["rows"] < 300  # a fifth is held out
    assert 0 < done["worst"] <= done["worst_variation"] <= 1
    assert done["score2"] != pytest.approx(1000 * (1 - done["tv2"]))  # inside the groups of a
    assert 0 < done["after"]["worst_low"] <= done["after"]["worst"] <= done["after"]["worst_high"]
    assert all(0.2 < done[name] < 0.8 for name in ("auc", "auc_real"))
    assert all(done[name] > least for name, least in (("cpu", 0.1), ("mb", 50)))
    lines = (tmp_path / "results.md").read_text().splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {14}
    assert capsys.readouterr().err == "coded: maxent, ε = 1\ncoded: unheard, ε = 1\n"
    tables.main([*asked, "--by", "a", "--out", str(tmp_path)])
    assert capsys.readouterr() == ("", "")  # nothing is measured again


def test_a_table_of_which_nothing_is_stated_is_named_before_the_wait(
    folder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(tables, "_apart", lambda job: {"refused": "not now"})
    monkeypatch.setattr(tables, "draw", lambda runs, folder: [])
    tables.main([str(folder), "--only", "words", "--methods", "mst", "--out", str(tmp_path)])
    said = capsys.readouterr().err
    assert said.startswith("words: mst, ε = 1; all columns that a draft finds are released")
    assert "words-domain.json or words.toml" in said


def test_a_table_without_facts_is_drafted(folder):
    found = tables.tables(folder)
    assert list(found) == ["coded", "words"]
    job = tables.Job("words", str(found["words"]), "maxent", "1", "marginals:2", 0)
    table, schema = tables._read(job)
    schema.require_confirmed()
    assert schema.encode(table)[0].size == 300


def test_a_name_that_is_not_there_is_refused(folder):
    asked = argparse.Namespace(folder=folder, only=["nobody"], generated=[], target=[])
    with pytest.raises(SystemExit, match="no table nobody; it has coded, words"):
        list(tables.jobs(asked))


def test_distances_and_scores_against_brute_force():
    rng, shape = np.random.default_rng(1), (3, 40, 5)
    real = [rng.integers(0, size, 200) for size in shape]
    fake = [rng.integers(0, size, 150) for size in shape]
    cliques = [*combinations(range(3), 2), (0, 1, 2)]
    for clique, (variation, worst) in zip(
        cliques, tables._distances(real, fake, shape, cliques), strict=True
    ):
        gap = np.zeros([shape[i] for i in clique])
        np.add.at(gap, tuple(real[i] for i in clique), 1 / 200)
        np.add.at(gap, tuple(fake[i] for i in clique), -1 / 150)
        assert variation == pytest.approx(np.abs(gap).sum() / 2)
        assert worst == pytest.approx(np.abs(gap).max())
    whole, score = tables._scores(real, fake, shape, 2, None)
    assert score == pytest.approx(1000 * (2 - 2 * whole) / 2)
    fake[0][:] = 0  # two of three groups have no rows at all
    _, inside = tables._scores(real, fake, shape, 2, 0)
    own = [c[real[0] == 0] for c in real], [c[fake[0] == 0] for c in fake]
    alone = tables._distances(*own, shape, [(1, 2)])[0, 0]
    assert inside == pytest.approx(1000 * (1 - (alone + 2) / 3))


@pytest.mark.parametrize("kind", KINDS)
def test_a_generated_table_is_the_same_again_and_fits_its_schema(kind):
    made, again = drawn(kind, 3, 500, 7), drawn(kind, 3, 500, 7)
    assert made.table.equals(again.table)
    assert not made.table.equals(drawn(kind, 4, 500, 7).table)
    assert made.schema.illegal(made.table) == []
    assert (made.rows, len(made.codes)) == (500, 7)
