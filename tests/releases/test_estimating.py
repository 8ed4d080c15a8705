"""Estimates of real releases: what they are made of, and how they stand beside certified answers."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.releases.conftest import TOML, people
from tests.thorough import slow
from understudy.errors import InputError
from understudy.releases.certificate import ROWS
from understudy.schema import Schema
from understudy.testing import SeededNoise


@pytest.fixture(scope="module")
def release():
    return us.release(
        people(2000), Schema.loads(TOML), epsilon=5, workload="marginals:2", key=1, variations=True
    )


def test_what_a_release_tells(release):
    known = release._known
    assert known.rows == release.rows_estimate
    assert known.rows_sigma == release.plan[ROWS].event.sigma > 0
    assert (known.alike, known.searches, len(known.tables)) == (1, {}, len(release.tables))


def test_it_is_the_same_after_a_journey(release, tmp_path):
    again = us.Release.load(release.save(tmp_path / "r"))
    column = release.schema.modelled[0].name
    asked = f"share({column} is not null)"
    assert again.estimate(asked).to_json() == release.estimate(asked).to_json()


def test_estimates_lie_in_certified_bounds(release):
    """Both are about the table; the certified interval is wider and has another name."""
    column = next(c for c in release.schema.modelled if c.kind == "category")
    text = f"{column.name} = '{column.values[0]}'"
    told, certified = release.estimate(f"share({text})", target="table"), release.answer(text)
    assert certified.low <= told.value <= certified.high
    assert "certified" in str(certified)
    assert "estimated" in str(told)
    assert "certified" not in str(told)


def test_a_certified_marginal_bounds_what_no_table_shows(release):
    names = [c.name for c in release.schema.modelled]
    sizes = release.schema.shape
    pair = (0, 1)
    rest = np.random.default_rng(0).normal(size=sizes[0] * sizes[1])
    bound = release._known.certified(pair, rest)
    at = next(k for k, f in enumerate(release.workload.families) if f.clique == pair)
    by_cell = release.certificate.bound * np.abs(rest - np.median(rest)).sum()
    assert bound >= min(np.ptp(rest) * release.certificate.variations[at], by_cell)
    assert len(names) > 2
    assert release._known.certified((0, 1, 2), np.zeros(np.prod(sizes[:3]))) is None
    assert release._known.certified(pair, rest[:-1]) is None  # not over all cells


def test_releases_without_tables_say_so(release):
    with pytest.raises(InputError, match=r"no noisy tables.*default method"):
        replace(release, measurements=()).estimate("mean(age)")


def bits(rows, seed):
    """Five columns; of e1, e2 and e3 pairs show nothing, all three together have an even sum."""
    rng = np.random.default_rng(seed)
    e = rng.integers(0, 2, (5, rows)).astype(bool)
    e[2] = e[0] ^ e[1] ^ (rng.random(rows) < 0.1)
    return pa.table({f"e{k + 1}": each for k, each in enumerate(e)})


BITS = "[understudy]\nversion = 1\n" + "".join(
    f'[[column]]\nname = "e{k}"\ntype = "boolean"\n' for k in range(1, 6)
)
PARITY = "share(e1 and e2 and e3)"
ALL_THREE = 0.25 * 0.1  # e1 and e2, and then e3 by the flip alone; pairs say 1/8


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_parity_is_covered_where_a_certified_marginal_holds_its_columns(seed):
    """And flagged, with an interval that does not hold, where none does."""
    table = bits(2000, seed)
    choices = {"epsilon": 1, "key": 1, "rows_public": 2000}
    held, not_held = (
        us.release(
            table,
            Schema.loads(BITS),
            workload=workload,
            noise=SeededNoise(seed),
            parameters={"interactions": interactions},
            **choices,
        )
        for workload, interactions in (("marginals:3", True), ("marginals:2", False))
    )
    told, wrong = (each.estimate(PARITY) for each in (held, not_held))
    assert told.low <= ALL_THREE <= told.high < 1 / 8
    assert "three or more columns" in wrong.warning
    assert wrong.reliance > told.reliance
    assert not wrong.low <= ALL_THREE <= wrong.high


def test_a_certificate_alone_covers_a_parity():
    """Where the triple itself was not measured: its marginal's certificate bounds what is left."""
    made = us.release(
        bits(2000, 4),
        Schema.loads(BITS),
        epsilon=1,
        workload="marginals:3",
        key=1,
        rows_public=2000,
        noise=SeededNoise(4),
    )
    three = (0, 1, 2)
    kept = tuple(each for each in made.measurements if not {*three} <= {*each.clique})
    assert len(kept) < len(made.measurements)
    told = replace(made, measurements=kept).estimate(PARITY)
    assert told.low <= ALL_THREE <= told.high
    assert told.reliance > 0.1
    rest = told.parts.model
    assert rest >= 0.9 * made.certificate.bound  # one cell, most of it in what only three show


@pytest.mark.parametrize("method", ["gaussian", "hdmm", "mst", slow("aim"), slow("gem")])
def test_methods_that_keep_tables_have_estimates(method):
    """Intervals that miss with probability 1e-10 hold the table's share."""
    table = people(800)
    made = us.release(
        table, Schema.loads(TOML), epsilon=5, workload="marginals:2", key=1, method=method
    )
    told = made.estimate("share(sex = 'F')", target="table", level=1 - 1e-10)
    truth = np.mean(np.array(table["sex"].to_pylist()) == "F")
    assert told.low <= truth <= told.high
    assert told.high - told.low < 0.5
    assert made.estimate("correlation(age, visits)").determined


def test_methods_that_measure_no_tables_say_so():
    made = us.release(
        people(300), Schema.loads(TOML), epsilon=5, workload="marginals:2", key=1, method="mwem"
    )
    with pytest.raises(InputError, match=r"method that measures none.*default method"):
        made.estimate("mean(age)")
