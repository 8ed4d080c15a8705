"""Estimates of real releases: what they are made of, and how they stand beside certified answers."""

from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from tests.releases.conftest import TOML, people
from understudy.errors import InputError
from understudy.releases.certificate import ROWS
from understudy.schema import Schema


@pytest.fixture(scope="module")
def release():
    return us.release(
        people(2000), Schema.loads(TOML), epsilon=5, workload="marginals:2", key=1, variations=True
    )


def test_what_a_release_tells(release):
    known = release._known
    assert known.rows == release.rows_estimate
    assert known.rows_sigma == release.plan[ROWS].event.sigma > 0
    assert (known.alike, known.shape_sigma, len(known.tables)) == (1, 0.0, len(release.tables))


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
