"""Households are repeatable, legal, and have the structure they promise."""

import numpy as np
import pytest
from bench.households import (
    HOUSEHOLD_COLUMNS,
    KEY,
    LARGEST,
    PERSON_COLUMNS,
    households,
)

from understudy.errors import InputError


def test_tables_are_repeatable_and_legal():
    one, same, other = households(500, 1), households(500, 1), households(500, 2)
    assert one.persons.equals(same.persons)
    assert one.households.equals(same.households)
    assert not one.persons.equals(other.persons)
    assert one.households.column_names == [KEY, *(c.name for c in HOUSEHOLD_COLUMNS)]
    assert one.persons.column_names == [KEY, *(c.name for c in PERSON_COLUMNS)]
    for table, columns in ((one.households, HOUSEHOLD_COLUMNS), (one.persons, PERSON_COLUMNS)):
        for column in columns:
            codes = column.encode(table[column.name])
            assert codes.min() >= 0
            assert len(np.unique(codes)) > 1
    sizes = np.bincount(one.persons[KEY].to_numpy())[1:]
    assert set(sizes) == set(range(1, LARGEST + 1))


def test_heads_are_older_than_children_and_origins_are_shared():
    persons = households(2_000, 3).persons
    home, role, age = (persons[name].to_numpy() for name in (KEY, "role", "age"))
    heads = role == "head"
    assert heads.sum() == 2_000
    head_age = dict(zip(home[heads], age[heads], strict=True))
    children = role == "child"
    assert all(age[i] < head_age[home[i]] for i in np.flatnonzero(children))
    origin = persons["origin"].to_numpy()
    head_origin = dict(zip(home[heads], origin[heads], strict=True))
    others = np.flatnonzero(~heads)
    assert np.mean([origin[i] == head_origin[home[i]] for i in others]) > 0.8


def test_households_may_be_empty():
    some = households(400, 4, empty=0.5)
    lived = len(set(some.persons[KEY].to_pylist()))
    assert 0 < lived < 400
    assert some.households.num_rows == 400


@pytest.mark.parametrize("number", [-1, 1.5, True])
def test_a_number_that_is_none_is_refused(number):
    with pytest.raises(InputError, match="number="):
        households(number)


def test_a_share_beyond_one_is_refused():
    with pytest.raises(InputError, match="empty="):
        households(10, empty=1.5)
