"""Models as weighted cells of a few columns."""

import numpy as np
import pytest

from tests.estimates import tiny
from understudy.estimates import points
from understudy.estimates.points import collapsed
from understudy.models import Decomposable, Empirical, Weighted


def test_small_tables_are_whole():
    shares = tiny.truth()
    found = collapsed(tiny.model(shares), (0, 2), tiny.SHAPE, (0.0, 0.01))
    pair = shares.sum(axis=1)
    assert len(found) == pair.size
    assert found.shares == pytest.approx(pair.reshape(-1), abs=1e-6)
    product = np.outer(pair.sum(1), pair.sum(0)).reshape(-1)
    floored = np.outer(pair.sum(1), pair.sum(0) + 0.01).reshape(-1)
    wanted = 0.95 * found.shares + 0.05 * product + (floored - product)
    assert found.spread == pytest.approx(wanted, abs=1e-6)
    assert found.spread.sum() == pytest.approx(1.05)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(points, "DENSE", 1)
    monkeypatch.setattr(points, "APART", 50)


@pytest.mark.usefixtures("small")
def test_records_are_collapsed_to_distinct_cells():
    codes = np.array([0, 0, 1, 2]), np.array([1, 1, 0, 0]), np.array([3, 4, 0, 0])
    model = Weighted(tiny.SHAPE, codes, np.array([1, 2, 3, 4], np.float32))
    found = collapsed(model, (0, 1), tiny.SHAPE, (0.0, 0.0))
    assert [c[:3].tolist() for c in found.codes] == [[0, 1, 2], [1, 0, 0]]
    assert found.shares[:3] == pytest.approx([0.3, 0.3, 0.4])
    assert found.drawn == 0
    assert not found.shares[3:].any()
    assert (found.shares.sum(), found.spread.sum()) == (pytest.approx(1), pytest.approx(1))
    equal = collapsed(Empirical(tiny.SHAPE, codes), (0, 1), tiny.SHAPE, (0.0, 0.0))
    assert equal.shares[:3] == pytest.approx([0.5, 0.25, 0.25])
    wide = collapsed(model, (0, 1), tiny.SHAPE, (0.1, 0.2))
    # 3 and 2 values: Π (1 + size·u), of which 50 drawn cells give all but .95, up to their own noise.
    assert wide.spread.sum() == pytest.approx(1.3 * 1.4, rel=0.1)


@pytest.mark.usefixtures("small")
def test_many_cells_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr(points, "MOST", 200)
    rng = np.random.default_rng(0)
    shape, shares = (30, 30), rng.random(900)
    codes = tuple(np.indices(shape).reshape(2, -1))
    found = collapsed(Weighted(shape, codes, shares.astype(np.float32)), (0, 1), shape, (0.0, 0.0))
    held = found.shares > 0
    assert held.sum() <= 200
    rows = np.bincount(found.codes[0], found.shares, 30)
    assert rows == pytest.approx(shares.reshape(shape).sum(1) / shares.sum(), abs=1.1 / 200)
    # Means of any function are off by at most 1/√200 of its deviations, on average.
    functions = rng.normal(size=(900, 400))
    off = found.shares @ functions[np.ravel_multi_index(found.codes, shape)]
    off -= shares @ functions / shares.sum()
    assert found.drawn == 200
    assert 0.3 < np.sqrt(200 * np.mean(off**2)) < 1.1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("most", [10**6, 1])
def test_models_without_records(monkeypatch, most):
    monkeypatch.setattr(points, "TABULATED", most)
    table = tiny.truth()
    model = Decomposable(tiny.SHAPE, ((0, 1, 2),), (table,))
    found = collapsed(model, (0, 1), tiny.SHAPE, (0.0, 0.0))
    shares = np.zeros((3, 2))
    np.add.at(shares, found.codes, found.shares)
    near = 1e-9 if most > 1 else 5 * 0.5 / np.sqrt(4 * points.MOST)
    assert shares == pytest.approx(table.sum(axis=2), abs=near)
