"""Records that agree with themselves, against the views of families, which do."""

import itertools

import numpy as np
import pytest

from understudy.queries.families import EncodedFamilies, ViewCounts
from understudy.schema.family import Layout, weight_of
from understudy.schema.views import coherent

VALUES, MOST = (4, 3), 4


def layout_of(ordered, childless, nullable):
    """(layout, shape): a parent's column, the number of children, two columns of a child, the second
    perhaps with a null of its own."""
    values = (VALUES[0], VALUES[1] + nullable)
    extra = (childless, childless and not nullable)
    shape = [3, MOST + childless, *(n + more for n, more in zip(values, extra, strict=True))]
    pos = len(shape) if ordered else None
    shape += [4 + childless] if ordered else []
    twins = (len(shape), len(shape) + 1)
    shape += [values[0] + 1, values[1] + (not nullable)]
    return Layout((0,), 1, (2, 3), twins, values, pos, childless), tuple(shape)


KINDS = list(itertools.product([False, True], repeat=3))


@pytest.mark.parametrize(("ordered", "childless", "nullable"), KINDS)
def test_views_of_families_stay_as_they_are(ordered, childless, nullable):
    layout, shape = layout_of(ordered, childless, nullable)
    rng = np.random.default_rng(0)
    sizes = rng.integers(0 if childless else 1, MOST + 1, 200)
    columns = tuple(rng.integers(n, size=int(sizes.sum())) for n in layout.values)
    families = EncodedFamilies((rng.integers(3, size=200),), sizes, columns)
    counts = ViewCounts(families, layout, weight_of(MOST, ordered=ordered), shape)
    cells, _ = counts.sparse([tuple(range(len(shape)))])[0]
    views = np.unravel_index(cells, shape)
    for one, other in zip(coherent(views, layout, shape), views, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("ordered", "childless", "nullable"), KINDS)
def test_any_records_come_to_agree(ordered, childless, nullable):
    layout, shape = layout_of(ordered, childless, nullable)
    rng = np.random.default_rng(1)
    codes = [rng.integers(n, size=3_000).astype(np.uint8) for n in shape]
    before = [column.copy() for column in codes]
    moved = coherent(codes, layout, shape)
    for one, other in zip(codes, before, strict=True):
        np.testing.assert_array_equal(one, other)
    for i in (0, layout.size):
        np.testing.assert_array_equal(moved[i], codes[i])
    sizes = moved[layout.size] + (not layout.childless)
    none = sizes < 2
    if ordered:
        place = moved[layout.pos]
        assert ((place == 0) == (sizes == 1)).all()
        assert not ((place == 2) & (sizes == 2)).any()
        assert ((place == 4) == (sizes == 0)).all()
        none |= place == 1
    for i, own in zip(layout.child, layout.values, strict=True):
        assert (moved[i][sizes == 0] == shape[i] - 1).all()
        assert (moved[i][sizes > 0] < own).all()
    for twin, own in zip(layout.sibling, layout.values, strict=True):
        assert (moved[twin][none] == shape[twin] - 1).all()
        assert (moved[twin][~none] < own).all()
    for one, other in zip(coherent(moved, layout, shape), moved, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_sibling_that_was_missing_follows_the_child():
    layout, shape = layout_of(False, False, False)
    rng = np.random.default_rng(2)
    codes = [rng.integers(n, size=2_000) for n in shape]
    codes[layout.sibling[0]] = np.where(
        rng.random(2_000) < 0.3, shape[layout.sibling[0]] - 1, codes[2]
    )
    moved = coherent(codes, layout, shape)
    there = moved[layout.size] > 0
    np.testing.assert_array_equal(moved[layout.sibling[0]][there], codes[2][there])


def test_no_record_to_learn_from_and_no_record_at_all():
    layout, shape = layout_of(False, False, False)
    codes = [np.full(3, n - 1) for n in shape]
    assert (coherent(codes, layout, shape)[layout.sibling[0]] == 0).all()
    assert all(column.size == 0 for column in coherent([c[:0] for c in codes], layout, shape))
