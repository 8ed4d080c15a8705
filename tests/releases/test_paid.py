"""What a release remembers of its measurements: what was charged, and nothing else."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import understudy as us
from understudy.models.measured import merge
from understudy.testing import SeededNoise


def release(table, schema, method, workload="marginals:2", **parameters):
    return us.release(
        table, schema, epsilon=1, workload=workload, method=method, parameters=parameters,
        noise=SeededNoise(3), key=0,
    )  # fmt: skip


def test_columns_are_kept_with_the_noise_that_was_charged(table, schema):
    made = release(table, schema, "independent")
    assert [m.clique for m in made.measurements] == [(0,), (1,), (2,), (3,)]
    codes = schema.encode(table)
    sigmas = {c.event.sigma for c in made.plan if c.purpose not in ("certificate",)}
    for m in made.measurements:
        assert m.kind == "table"
        assert m.sigma in sigmas
        assert m.table is not None
        exact = np.bincount(codes[m.clique[0]], minlength=schema.shape[m.clique[0]])
        off = m.table.values - exact
        assert 0 < np.abs(off).max() < 6 * m.sigma  # the seeded draw: noisy, and within its band


def test_pairs_are_kept_as_well(table, schema):
    made = release(table, schema, "maxent", records=2000)
    pairs = [m for m in made.measurements if len(m.clique) == 2]
    assert {m.clique for m in pairs} == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert [t.clique for t in made.tables] == [m.clique for m in made.measurements]
    codes = schema.encode(table)
    for t in made.tables:
        shape = tuple(schema.shape[i] for i in t.clique)
        flat = np.ravel_multi_index([codes[i] for i in t.clique], shape)
        exact = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        if t.labels is not None:  # ordered columns are measured in runs of their values
            exact = merge(exact, t.labels)
        assert t.values.shape == exact.shape
        off = t.values - exact
        assert 0 < np.abs(off).max() < 7 * t.sigma  # the seeded draw


@pytest.mark.parametrize(("method", "kind"), [("mwem", "cells"), ("fem", "queries")])
def test_methods_that_measure_no_table_say_what_they_looked_at(table, schema, method, kind):
    made = release(table, schema, method, "marginals:1")
    assert {m.kind for m in made.measurements} == {kind}
    assert all((m.sigma is None) == (kind == "queries") for m in made.measurements)
    rounds = sum(m.times for m in made.measurements)
    assert rounds > len(made.measurements)  # what is alike is counted, not listed


def test_the_bundle_keeps_them(made, tmp_path):
    folder = made.save(tmp_path / "r.release")
    names = [column.name for column in made.schema.modelled]
    again = us.Release.load(folder).measurements
    assert [m.to_json(names) for m in again] == [m.to_json(names) for m in made.measurements]
    stated = json.loads((folder / "release.json").read_bytes())["measurements"]
    assert stated[0]["columns"] == ["age"]
    assert us.verify(folder).passed


def test_a_bundle_without_them_is_an_older_one(made, tmp_path):
    from understudy.releases.bundle import digest, manifest_bytes

    folder = made.save(tmp_path / "r.release")
    manifest = json.loads((folder / "release.json").read_bytes())
    del manifest["measurements"], manifest["files"]["measurements.npz"]
    (folder / "measurements.npz").unlink()
    manifest["digest"] = digest(manifest)
    (folder / "release.json").write_bytes(manifest_bytes(manifest))
    assert us.Release.load(folder).measurements == us.Release.load(folder).tables == ()
    (failed,) = (check for check in us.verify(folder).checks if not check.passed)
    assert "does not say what was measured" in failed.detail
