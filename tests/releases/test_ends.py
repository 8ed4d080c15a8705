"""Ends that a release finds privately are named, and estimates allow for what lies beyond."""

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.cli.cli_cases import run
from understudy.releases.ends import found_in_words, sought, sought_in_words
from understudy.report import save
from understudy.schema import Integer, Schema
from understudy.testing import SeededNoise

OPEN = Schema.loads("""
[understudy]
version = 1
unit = "row"

[[column]]
name = "visits"
type = "integer"
bins = "shape"

[[column]]
name = "paid"
type = "integer"
lower = 0
bins = "shape"

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 120

[[column]]
name = "ill"
type = "boolean"
""")
ROWS = 5000


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    visits = rng.geometric(0.4, ROWS) - 1
    return pa.table(
        {
            "visits": visits,
            "paid": np.floor(np.exp(rng.normal(3, 1, ROWS))).astype(int),
            "age": np.clip(np.rint(rng.normal(50, 15, ROWS)), 18, 90).astype(int),
            "ill": rng.random(ROWS) < 0.2 + 0.05 * np.minimum(visits, 5),
        }
    )


def released(seed: int, epsilon: float = 1.0) -> us.Release:
    noise = SeededNoise(seed)
    return us.release(
        table(seed), OPEN, epsilon=epsilon, workload="marginals:2", rows_public=ROWS, noise=noise,
        key=seed,
    )  # fmt: skip


@pytest.fixture(scope="module")
def release():
    return released(1)


def test_plans_name_the_ends_that_are_sought():
    assert sought(OPEN) == {"visits": (True, True), "paid": (False, True)}
    told = sought_in_words(OPEN)
    assert told is not None
    assert told.startswith("of visits, paid will be found privately")
    closed = {"visits": Integer("visits", 0, 60), "paid": Integer("paid", 0, 900)}
    assert sought_in_words(OPEN.resolved(closed)) is None
    narrow = Schema.loads(
        '[understudy]\nversion = 1\n[[column]]\nname = "x"\ntype = "integer"\ndtype = "int16"\n'
    )
    assert sought(narrow) == {}  # the type is a bound


def test_releases_and_reports_name_the_ends_that_were_found(release, tmp_path):
    visits, paid = (release.schema.column(name).edges for name in ("visits", "paid"))
    told = found_in_words(release)
    assert told.startswith(
        f"of visits ({visits[0]} to {visits[-1]}), paid (up to {paid[-1]}) were found privately"
    )
    folder = save(release, tmp_path / "r")
    again = us.Release.load(folder)
    assert found_in_words(again) == told
    assert f"Bounds {told}." in (folder / "report.html").read_text()
    shown = " ".join(run("estimate", folder, "mean(paid) by ill").err.split())
    assert " paid ends at " in f" {shown}".lower(), shown
    assert "mean(paid) where ill" not in shown, "of both groups, which need no names"


def test_estimates_say_which_end_was_found(release):
    end = release.schema.column("paid").edges[-1]
    for asked in ("mean(paid)", "sum(paid)", "gini(paid)", "mean(paid) where ill"):
        told = release.estimate(asked).warning
        assert f"paid ends at {end}, found privately" in told, asked
        assert "narrower bins" not in told
    for asked in ("mean(age)", "share(ill)", "median(paid)", "mean(age) where ill"):
        assert "found privately" not in (release.estimate(asked).warning or ""), asked
    assert "found privately" in release.estimate("quantile(paid, 0.9999)").warning


def test_means_hold_though_ends_are_found():
    """Of 12 releases at least 10: with 95 % each, fewer have a chance of 2 % (noise is seeded)."""
    held = {"visits": 0, "paid": 0}
    for seed in range(12):
        release, rows = released(seed, 0.5), table(seed)
        for name in held:
            told = release.estimate(f"mean({name})", target="table")
            held[name] += told.low <= rows[name].to_numpy().mean() <= told.high
    assert min(held.values()) >= 10, held


def test_rows_beyond_an_end_widen_the_interval_towards_them():
    """Of 5,000 rows 51 lie beyond the end that was found: the interval reaches further that way."""
    release, visits = released(0, 0.1), table(0)["visits"].to_numpy()
    assert (visits > release.schema.column("visits").edges[-1]).sum() == 51
    told = release.estimate("mean(visits)", target="table")
    assert told.low <= visits.mean() <= told.high
    assert told.high - told.value > 1.5 * (told.value - told.low)
