"""Noisy tables in a bundle: the same when they are read, and nothing else is read."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import understudy as us
from tests.tools.corpus import forged
from understudy.errors import BundleError
from understudy.models import Measured
from understudy.players.base import Cell, MeasuredCell, PickedQuery
from understudy.releases import form
from understudy.releases.bundle import _arrays_bytes
from understudy.releases.measurements import NAME, Measurement, arrays, measurements, with_tables
from understudy.testing import SeededNoise

SHAPE = (4, 3, 2)
NAMES = ("a", "b", "c")
GOLDEN = Path(__file__).parents[1] / "golden" / "v1"


def told() -> tuple:
    """A table, a merged one that is the mean of two draws, a cell twice and a query."""
    pair = np.array([[3, -1], [5, 0], [2, 7]]) / 2
    labels = (np.array([0, 1, 2, 1]), np.array([1, 0, 1]))
    cell = MeasuredCell((0,), Cell(0, (1,), 1), 3.0, 2.0)
    return (
        (Measured((2,), np.array([10, -2]), 3.0), cell),
        (Measured((0, 1), pair, 2.0 / 2**0.5, labels, 2), cell, PickedQuery((1,), None, 1)),
    )


def packed(tmp_path, found):
    path = tmp_path / NAME
    path.write_bytes(_arrays_bytes(found, 8))
    return path


def index(made):
    """What is read from release.json."""
    body = json.loads(json.dumps([each.to_json(NAMES) for each in made]))
    return tuple(Measurement.from_json(each, NAMES) for each in body)


def test_tables_are_read_as_they_were_drawn(tmp_path):
    made = measurements(told())
    assert [(m.kind, m.times, m.draws) for m in made] == [
        ("table", 1, 1), ("cells", 2, 1), ("table", 1, 2), ("queries", 1, 1)
    ]  # fmt: skip
    again = with_tables(index(made), SHAPE, packed(tmp_path, arrays(made)))
    for one, other in zip(made, again, strict=True):
        assert one.to_json(NAMES) == other.to_json(NAMES)
        if one.table is None:
            assert other.table is None
            continue
        np.testing.assert_array_equal(one.table.values, other.table.values)
        assert (one.table.sigma, one.table.draws) == (other.table.sigma, other.table.draws)
        assert (one.table.labels is None) == (other.table.labels is None)
        for a, b in zip(one.table.labels or (), other.table.labels or (), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda found: found | {"values": found["values"][1:]}, "its tables have 8"),
        (lambda found: found | {"labels": found["labels"][1:]}, "its tables have 7"),
        (lambda found: found | {"labels": found["labels"] * 2}, "leave out a number"),
        (lambda found: found | {"labels": found["labels"] - 1}, "leave out a number"),
        (lambda found: found | {"values": found["values"].astype(float)}, "is of float64"),
        (lambda found: found | {"values": found["values"][None]}, "2-way"),
        (lambda found: found | {"more": found["values"]}, "does not hold the arrays"),
    ],
)
def test_another_file_is_refused(tmp_path, change, why):
    made = measurements(told())
    with pytest.raises(BundleError, match=why):
        with_tables(index(made), SHAPE, packed(tmp_path, change(arrays(made))))


@pytest.mark.parametrize("sigma", [None, 0.0, 1e-300])
def test_a_table_without_noise_is_refused(tmp_path, sigma):
    """It would outweigh everything else in an estimate."""
    made = measurements(told())
    claimed = [replace(each, sigma=sigma) for each in index(made)]
    with pytest.raises(BundleError, match="without noise"):
        with_tables(claimed, SHAPE, packed(tmp_path, arrays(made)))


def test_too_many_cells_are_left_out(monkeypatch):
    made = measurements(told())
    monkeypatch.setattr(form, "MOST_KEPT", 8)
    assert arrays(made)
    monkeypatch.setattr(form, "MOST_KEPT", 7)
    assert arrays(made) == {}
    assert arrays(()) == {}


def test_nothing_is_unpacked_beyond_what_its_size_allows(tmp_path, monkeypatch):
    made = measurements(told())
    path = packed(tmp_path, arrays(made) | {"values": np.zeros(10**6, "<i8")})
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(form, "FREE_BYTES", 1000)
    with pytest.raises(BundleError, match="unpacks to 8,000"):
        with_tables(index(made), SHAPE, path)


def test_a_merged_release_is_whole_after_it_was_read(table, schema, tmp_path):
    made = us.release(
        table, schema, epsilon="0.02", workload="marginals:2", noise=SeededNoise(1), key=0
    )
    assert any(each.labels is not None for each in made.tables)
    assert any(each.draws > 1 for each in made.tables)
    again = us.Release.load(made.save(tmp_path / "r.release"))
    for one, other in zip(made.tables, again.tables, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        assert (one.clique, one.sigma, one.draws) == (other.clique, other.sigma, other.draws)


def test_an_older_bundle_has_the_counts_of_its_columns_and_no_tables(tmp_path):
    old = us.Release.load(GOLDEN)
    assert old.tables == ()
    columns = [m for m in old.measurements if m.table is not None]
    assert [m.clique for m in columns] == [(i,) for i in range(len(old.schema.shape))]
    for name, counts in {"none": [], "halves": [0.5, 1]}.items():
        change = lambda m, counts=counts: m["measurements"][0].update(counts=counts)  # noqa: E731
        forged(change)(GOLDEN, tmp_path / name)
        found = us.verify(tmp_path / name)
        assert [each.name for each in found.checks if not each.passed] == ["measurements"]


def test_a_bundle_without_its_file_says_so(made, tmp_path):
    folder = made.save(tmp_path / "r.release")
    (folder / NAME).unlink()
    with pytest.raises(BundleError, match=f"lacks {NAME}"):
        us.Release.load(folder)
    shutil.rmtree(folder)
