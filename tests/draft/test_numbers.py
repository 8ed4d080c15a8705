import numpy as np
import pytest

from understudy.draft import numbers
from understudy.draft.names import Name

RNG = np.random.default_rng(3)
X = Name("x")


def counted(cells):
    return np.unique(np.asarray(cells, float), return_counts=True)


def test_what_few_hold_is_not_common():
    assert numbers.common(np.array([9, 10, 981])).tolist() == [False, True, True]
    assert numbers.common(np.array([49, 50, 49_901])).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("name", "cells", "expected"),
    [
        ("x", np.arange(1000), True),
        ("x", np.sort(RNG.choice(5000, 1000, replace=False)), True),  # amounts would agree
        ("x", RNG.choice(9 * 10**8, 1000, replace=False) + 10**8, True),
        ("balance", RNG.choice(9 * 10**8, 1000, replace=False) + 10**8, False),
        ("x", np.exp(RNG.normal(15, 1, 1000)).astype(int), False),
        ("x", RNG.integers(0, 90, 1000), False),
        ("patient_nbr", RNG.integers(0, 10**7, 700).repeat(3), True),
        ("x", RNG.integers(10**8, 10**9, 400).repeat(3), True),  # one person, several rows
        ("x", RNG.integers(0, 2**63, 800), True),  # a hash
        ("x", np.exp(RNG.normal(15, 1, 400)).astype(int).repeat(3), False),
        ("x", np.exp(RNG.uniform(np.log(10**6), np.log(10**7), 900)).astype(int), False),
        ("x", [20200000 + 100 * (1 + i % 12) + 1 + i % 28 for i in range(900)], False),
        ("type_id", RNG.integers(0, 9, 1000), False),
        ("x", np.arange(7, 27), True),  # rows are numbered
        ("x", np.arange(10**15, 10**15 + 40 * 10**9, 10**9), True),
        ("SK_ID_CURR", RNG.choice(10**6, 300, replace=False), True),
        ("x", np.arange(20_000, 90_000, 700), True),
        ("x", RNG.gamma(2, 900, 40).astype(int), False),
        ("npi", [5, 7, 90], True),
        ("ManagerID", RNG.integers(0, 22, 1000), True),  # people, however few
        ("store_id", RNG.integers(0, 22, 1000), False),
        ("serial_no", RNG.integers(10**9, 10**10, 60).repeat(20), True),  # of 60 machines
        ("x", RNG.choice([13, 15, 18], 900) * 10**9 + RNG.integers(0, 10**9, 900), True),  # phones
        ("x", RNG.normal(165 * 10**10, 10**10, 900).astype(int), False),  # milliseconds
        ("x", [202001010000 + 10**6 * (i % 12) + i % 24 for i in range(900)], False),
        ("x", np.append(RNG.choice(9 * 10**5, 998, replace=False) + 10**5, [500_000] * 2), True),
        ("X Coordinate", RNG.integers(1_090_000, 1_205_000, 900), False),
        ("last_modified", RNG.integers(16 * 10**8, 17 * 10**8, 900), False),
    ],
)
def test_numbers_of_people_and_things(name, cells, expected):
    assert numbers.names_things(Name(name), *counted(cells)) is expected


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        ([*RNG.integers(0, 121, 900), *[999] * 50], [999]),
        ([*RNG.integers(0, 91, 900), *[99] * 50], []),  # somebody may be 99
        ([*RNG.integers(0, 60, 900), *[98] * 20, *[99] * 20], [98, 99]),
        ([*RNG.integers(1, 900, 900), *[-1] * 300], [-1]),
        ([*RNG.integers(-1, 9, 900)], []),
        ([*RNG.integers(-30, 40, 900), *[-999] * 20], [-999]),
        ([*RNG.integers(1930, 2016, 900), *[0] * 500], [0]),
        ([*RNG.gamma(2, 900, 900).astype(int), *[0] * 500], []),
        ([*-RNG.integers(1, 9000, 900), *[365243] * 99], [365243]),
        ([*RNG.gamma(2, 9000, 900).astype(int), *[365243] * 9], []),
        ([*RNG.integers(0, 121, 900), *[999] * 5], []),  # few hold it
        ([1, 2, 3] * 90 + [99] * 30, []),  # too few to tell
        ([1, 2, 3, 4] * 90 + [-8] * 30 + [-9] * 30, [-9, -8]),
        ([-9, -4, 1, 2, 3] * 90, []),
        ([*np.round(RNG.uniform(-4, 40, 900), 2), *[-127.0] * 40], [-127]),
        ([*RNG.integers(0, 40, 900), *[100] * 40], []),  # others are held as often
    ],
)
def test_codes_among_numbers(cells, codes):
    values, counts = counted(cells)
    assert values[numbers.apart(values, counts)].tolist() == codes


def test_months_and_days_that_are_written_as_numbers():
    months = np.array([100.0 * year + month for year in (2019, 2020) for month in range(1, 13)])
    assert numbers.are_months(months)
    assert not numbers.are_months(np.append(months, 201913))
    assert not numbers.are_months(months[:3])
    assert numbers.are_days(months * 100 + 28)
    assert not numbers.are_days(months * 100 + 32)


def test_small_ranges_hold_what_many_hold():
    assert numbers.small_range(*counted([1, 2, 3] * 20)) == (1, 3)
    assert numbers.small_range(*counted([*[1, 2, 3] * 200, 5])) == (1, 3)
    assert numbers.small_range(*counted([*[0] * 900, 1])) == (0, 1)
    assert numbers.small_range(*counted([*[0] * 900, 5000])) is None  # it moves the mean
    assert numbers.small_range(*counted(np.arange(60).repeat(20))) is None
    assert numbers.small_range(*counted([100, 900] * 50)) is None
    assert numbers.small_range(*counted([1, 2, 3])) is None


def test_decimals():
    assert numbers.fewest_decimals(np.array([1.25, 3.0])) == 2
    assert numbers.fewest_decimals(np.array([1 / 3])) is None


def test_a_region_is_in_whole_degrees_and_no_single_row_moves_it():
    places = np.append(RNG.normal(-122.2, 0.05, 2000), [0.0, -140.0])
    assert numbers.region(*counted(places)) == (-123, -122)
    assert numbers.region(*counted([47.5])) == (47, 48)


def test_round_bounds_for_columns_that_few_have_a_value_of():
    assert numbers.around(*counted(RNG.normal(0, 1, 2000))) is None
    low, high = numbers.around(*counted([*RNG.normal(0, 1, 900), 10**9])) or (0, 0)
    assert (-10 < low < -4, 4 < high < 10) == (True, True)
    assert numbers.around(*counted([7.5])) == (0, 16)
    assert numbers.around(*counted([0.0])) == (0, 1)
    assert numbers.around(*counted([-3.0, -3.0])) == (-6, 0)


def test_bounds_of_numbers_far_from_zero():
    years = numbers.around(*counted(np.arange(9000) % 66 + 1940))
    assert years == (1860, 2080)
    assert numbers.around(*counted(-1000 - np.arange(9000) % 66)) == (-1140, -920)
    assert numbers.around(*counted(np.arange(9000) % 66)) is None
    assert numbers.around(*counted([7.0] * 9000)) is None
