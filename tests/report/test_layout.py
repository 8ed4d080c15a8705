"""Which columns a report draws, shows together or folds: each of them exactly once."""

from __future__ import annotations

import math

import pytest

from understudy.report.facts import Column
from understudy.report.layout import arranged, brief


def column(name, *labels, ordered=False, measured=False):
    shares = tuple(2 * (i + 1) / (len(labels) * (len(labels) + 1)) for i in range(len(labels)))
    band = (0.03,) * len(labels)
    noisy = (shares, band) if measured else (None, None)
    return Column(name, "category", ordered, labels, shares, *noisy, together=1)


WIDE = [
    *(column(f"letter{i}", *"abcdefghijkl") for i in range(20)),
    *(column(f"drug{i}", "No", "Yes", "Often") for i in range(3)),
    column("never", "No", "OTHER"),
    *(column(f"coin{i}", "heads", "tails") for i in range(3)),
]


def test_every_column_is_shown_once():
    layout = arranged(WIDE)
    together = [name for family in layout.families for name, _ in family.rows]
    shown = [*(c.name for c in (*layout.drawn, *layout.folded)), *together]
    assert sorted(shown) == sorted(c.name for c in WIDE)
    assert together == ["drug0", "drug1", "drug2", "never"]  # three coins are too few for a table
    assert len(layout.drawn) == 6


def test_a_family_has_a_share_for_each_value_that_a_column_has():
    (family,) = arranged(WIDE).families
    assert family.labels == ("No", "Yes", "Often")
    rows = dict(family.rows)
    assert rows["drug0"] == pytest.approx((1 / 6, 2 / 6, 3 / 6))
    assert rows["never"] == (pytest.approx(1 / 3), None, None)


def test_a_narrow_table_is_drawn_whole():
    narrow = [column(f"c{i}", *"abcdefghij"[: 7 + i % 3]) for i in range(12)]
    assert arranged(narrow).drawn == tuple(narrow)
    assert not arranged(narrow).folded


def test_rare_values_are_one_bar_with_their_share_and_noise():
    long = column("c", *"abcdefghij", measured=True)
    short = brief(long)
    assert short.labels == (*"defghij", "3 other values")
    assert sum(short.shares) == pytest.approx(1)
    assert short.measured is not None
    assert short.band is not None
    assert short.measured[-1] == pytest.approx(sum(long.shares[:3]))
    assert short.band[-1] == pytest.approx(0.03 * math.sqrt(3))


def test_few_values_and_ordered_ones_stay_as_they_are():
    few, ordered = column("c", *"abcdefgh"), column("d", *"abcdefghij", ordered=True)
    assert brief(few) is few
    assert brief(ordered) is ordered
