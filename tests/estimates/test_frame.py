"""Conditions as shares of cells, and what cells hide."""

from dataclasses import replace

import numpy as np
import pytest

from tests.estimates import tiny
from understudy.errors import WorkloadError
from understudy.estimates import frame as frames
from understudy.estimates.frame import Frame, condition
from understudy.estimates.inner import inner
from understudy.estimates.points import collapsed


def frame(columns=(0, 1, 2), numbers=(2,)):
    model = tiny.model(tiny.truth())
    points = collapsed(model, columns, tiny.SHAPE, (0.0,) * len(columns))
    even = {i: inner(tiny.SCHEMA.modelled[i]) for i in numbers}
    return replace(Frame.of(points, tiny.SCHEMA, model, numbers, {}), numbers=even)


def test_conditions_cut_cells():
    whole = condition("x >= 4 and a = 'p'", tiny.SCHEMA)
    assert not whole.cut
    assert whole.share.tolist() == [[0, 0, 1, 1, 1], [0] * 5, [0] * 5]
    cut = condition("x >= 5", tiny.SCHEMA)
    assert cut.cut
    assert cut.share[[0, 1, 3, 4]].tolist() == [0, 0, 1, 1]
    assert cut.share[2] == pytest.approx(0.5, abs=5 * 0.5 / 64)  # 4,096 draws at least
    with pytest.raises(WorkloadError, match="unknown column 'y'"):
        condition("y > 3", tiny.SCHEMA)


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr(frames, "MOST_CELLS", 10)
    with pytest.raises(WorkloadError, match=r"2 columns \(a, x\).*name fewer"):
        condition("x >= 4 and a = 'p'", tiny.SCHEMA)


def test_numbers_and_shares_of_points():
    found, cut = frame(), condition("x >= 5", tiny.SCHEMA)
    assert np.array_equal(found.number(2), 2 * tiny.ALL[2] + 0.5)
    assert np.array_equal(found.variance(2), np.full(30, 0.25))
    assert found.there(2).all()
    assert np.array_equal(found.below(2, 4), np.array([1, 1, 0.5, 0, 0])[tiny.ALL[2]])
    assert np.array_equal(found.share(cut), cut.share[tiny.ALL[2]])


def test_sources_are_what_cells_hide():
    found, cut = frame(), condition("x >= 5", tiny.SCHEMA)
    number, share = found.sources((cut, condition("b", tiny.SCHEMA)))
    assert (number.key, share.key) == (2, cut)
    assert np.array_equal(found.moved(number, 2.0).number(2) - found.number(2), np.ones(30))
    moved = found.moved(share, 1.0).share(cut) - found.share(cut)
    assert moved == pytest.approx(np.array([0, 0, 0.5, 0, 0])[tiny.ALL[2]], abs=0.01)
    assert np.flatnonzero(share.bias).tolist() == [2]
    assert number.bias[:5].all()
    assert frame((0, 1), ()).sources(()) == []


def test_round_numbers_move_numbers_and_the_conditions_that_cut_them():
    cut = condition("x >= 5", tiny.SCHEMA)
    assert cut.heaped[2, 2].tolist() == [0, 0, 0, 1, 1]  # 4 is the even one of 4 and 5
    assert not condition("x >= 4", tiny.SCHEMA).heaped
    found = frame()
    assert found.heaped(tiny.SCHEMA, ())[0][0].rounded == (2, 2)
    moved = found.heaped(tiny.SCHEMA, (cut,))[0][0]
    much = found.heaps[2].share
    assert moved.number(2) == pytest.approx(2 * tiny.ALL[2] + 0.5 * (1 - much), abs=0.02)
    wanted = np.where(tiny.ALL[2] == 2, (1 - much) * cut.share[2], found.share(cut))
    assert moved.share(cut) == pytest.approx(wanted)
    assert frame((0, 1), ()).heaped(tiny.SCHEMA, ()) == []
    assert len(frame(numbers=()).heaped(tiny.SCHEMA, (cut,))) == 1
    assert frame(numbers=()).heaped(tiny.SCHEMA, ()) == []
