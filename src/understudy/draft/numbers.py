"""What the numbers of a column are: amounts, counts, codes, or numbers of people and things.

Pure: distinct values and how many rows hold each. `common` says which values many rows hold; a draft
writes down none that few hold.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Whole
from understudy.draft.names import Name

Values = Floats
Counts = Whole

LEAST_HOLDERS = 10
FEW_HOLDERS = 2000
_LEAST_SHARE = 0.001
_MANY = 100  # More numbers than that, under a name that identifies, are not codes any more
_COLLISIONS = 10  # So many amounts would be expected to agree by chance where no two numbers do
_FEW_MONTHS = 5
"""An amount of six digits ends like a month once in eight; so many do by chance once in 3·10^4."""
_CELLS = 30
_MOVED = 0.05
_CUT = 0.03
_BEND = 0.01
_GAP = 0.3
_NARROW = 0.1
_SERIAL = 10**6  # Larger than a short list of codes needs
_ATOM = 10
_ALONE = 3  # So many times as far beyond all others as these lie apart is no amount that many share


def common(counts: Whole) -> Bools:
    """Which values enough rows hold to be written down: at least 10, and one in a thousand."""
    return counts >= max(LEAST_HOLDERS, ceil(_LEAST_SHARE * int(counts.sum())))


def names_things(name: Name, values: Values, counts: Counts) -> bool:
    """Whether whole numbers name people or things. `values` are distinct and sorted.

    By the name, where there are many of them, or no two rows agree. By the values, where no two rows
    agree though amounts of that size would, or rows are numbered, or the name says a code; or where
    long numbers of one length are spread evenly, as no amounts are: one person's number may then have
    any number of rows.
    """
    rows, distinct = int(counts.sum()), len(values)
    alone = distinct == rows
    if name.identifies or name.reaches:
        few = distinct > rows / 5 or name.of_a_person or bool(values[distinct // 2] >= _SERIAL)
        few &= distinct > LEAST_HOLDERS
        return distinct > _MANY or few or (alone and distinct > 2)
    if name.amount:
        return False
    if alone and distinct >= LEAST_HOLDERS and not are_days(values) and not are_months(values):
        numbered = values[-1] - values[0] == distinct - 1
        if numbered or name.coded or _even(values, 10**4 if distinct >= 50 else 10**6):
            return True
    if distinct < 50:
        return False
    if distinct == rows and rows * rows / (2 * (float(values[-1] - values[0]) + 1)) >= _COLLISIONS:
        return True
    several = distinct > _MANY or rows < 1.05 * distinct
    hardly = rows < 1.01 * distinct  # drawn at random, two of six digits may agree
    if are_days(values) or not several:
        return False
    return _long(values) or _even(values, 10**5 if hardly else 10**6)


def _long(values: Values) -> bool:
    """Whether all have the same number of digits, ten or more, and are no moments."""
    low, high = float(values[0]), float(values[-1])
    alike = low >= 10**9 and int(log10(low)) == int(log10(high))
    moments = [10 ** (9 + at) <= low and high < 2.2 * 10 ** (9 + at) for at in (0, 3, 6, 9)]
    return (
        alike and not any(moments) and not are_days(np.floor(values / 10 ** (int(log10(low)) - 7)))
    )


def _even(values: Values, least: float = 10**6) -> bool:
    """Whether numbers of at least seven digits lie evenly between their ends.

    All are of one length, or so long that only a hash is.
    """
    low, high = float(values[0]), float(values[-1])
    if low < least or (int(log10(low)) != int(log10(high)) and high < 2**53):
        return False
    ranks = (np.arange(len(values)) + 0.5) / len(values)
    most = max(0.1, 1 / len(values) ** 0.5)
    return float(np.abs((values - low) / (high - low) - ranks).max()) < most


def are_days(values: Values) -> bool:
    """Whether all are days written as 20240131: what lies between two of them may be none."""
    months, days = np.divmod(values, 100)
    return are_months(months) and bool(np.all((days >= 1) & (days <= 31)))


def are_months(values: Values) -> bool:
    """Whether all are months written as 202401, and too many to be so by chance."""
    years, months = np.divmod(values, 100)
    fit = (years >= 1900) & (years < 2100) & (months >= 1) & (months <= 12)
    return len(values) >= _FEW_MONTHS and bool(np.all(fit))


def apart(values: Values, counts: Counts) -> Bools:
    """Which values are codes among numbers: 999 beyond the rest, -1 below counts, 0 before years.

    Only values that many rows hold. `values` are distinct and sorted; at least five are left.
    """
    usual = np.array([_is_code(value) for value in values]) & common(counts)
    found = np.zeros(len(values), np.bool_)
    refusals = usual & (values <= -7)
    if len(values) > 2 and refusals.any() and (refusals | (values >= -1)).all():
        found |= refusals if (values >= 0).sum() > 1 else False  # -9 and -8 beside 1 to 4
    if len(values) <= 5:
        return found
    below, near = values < 0, counts[(values >= 0) & (values <= 2)]
    usual &= (values != -1) | (counts > 2 * near.max(initial=0))
    if values[0] < 0:  # all numbers below zero, or one far below the rest
        if (usual | ~common(counts))[below].all() and (~below).sum() >= 5:
            found |= below & usual
        elif usual[0] and _far(values[1] - values[0], values[1:]):
            found[0] = True
    lone = common(counts)[-1] and len(values) > 50 and values[-1] >= 999
    if lone and values[-1] - values[-2] >= _ALONE * (values[-2] - values[0]):
        found[-1] = True  # 365243 days, where all others are years at most
    if len(values) > 50:  # -127, where others are -4 to 40, and hardly two are the same
        for end, beside in ((0, 1), (-1, -2)):
            rest = np.delete(values, end)
            many = counts[end] >= _ATOM * np.delete(counts, end).max() and common(counts)[end]
            found[end] |= many and abs(values[end] - values[beside]) >= rest[-1] - rest[0]
    top = len(values)
    while top > 5 and usual[top - 1] and values[top - 1] >= 10:
        top -= 1
    for start in range(top, len(values)):
        rest = values[:start][~found[:start]]
        if len(rest) >= 5 and _far(values[start] - values[start - 1], rest):
            found[start:] = True
            break
    zero, rest = values == 0, values[~found & (values != 0)]
    if (zero & common(counts)).any() and len(rest) >= 5 and rest[0] >= rest[-1] - rest[0]:
        found |= zero
    return found


def _far(gap: float, rest: Values) -> bool:
    return gap >= max(3.0, _GAP * float(rest[-1] - rest[0]))


def _is_code(value: float) -> bool:
    """-1, -7, -8, -9; 99, 98, 97, 96, 88, 77, 999, -99, ...: what forms use in place of a number."""
    if value != round(value) or abs(value) >= 10**10:
        return False
    digits = str(abs(int(value)))
    if len(digits) == 1:
        return value in (-1, -7, -8, -9)
    return (set(digits[:-1]) == {"9"} and digits[-1] in "6789") or set(digits) in ({"8"}, {"7"})


def small_range(values: Values, counts: Counts) -> tuple[int, int] | None:
    """Bounds for counts of few values, so that each is a cell of its own; None where there are many.

    They enclose what many rows hold: beyond them lie at most 3 % of the rows, and counting these
    as the nearest bound hardly moves mean and standard deviation.
    """
    often = values[common(counts)]
    if not len(often):
        return None
    low, high = int(often[0]), int(often[-1])
    if low == high and low == 0 and len(values) > 1:
        high = 1  # none, or some
    cells = high - low + 1
    if not 2 <= cells <= min(_CELLS, 2 * len(often)):
        return None
    outside = counts[(values < low) | (values > high)].sum()
    if outside > _CUT * counts.sum():
        return None
    mean, deviation = _moments(values, counts)
    cut_mean, cut_deviation = _moments(np.clip(values, low, high), counts)
    moved = max(abs(cut_mean - mean), abs(cut_deviation - deviation))
    return (low, high) if moved <= max(_MOVED * deviation, _BEND * (high - low)) else None


def middle(values: NDArray[Any], counts: Whole) -> tuple[Any, Any]:
    """Where the rows lie, but for 10 of them and one in a thousand at each end."""
    beyond = max(LEAST_HOLDERS, _LEAST_SHARE * float(counts.sum()))
    last = len(values) - 1
    low = values[min(last, int(np.searchsorted(np.cumsum(counts), beyond)))]
    high = values[::-1][min(last, int(np.searchsorted(np.cumsum(counts[::-1]), beyond)))]
    return min(low, high), max(low, high)


def region(values: Values, counts: Counts) -> tuple[int, int]:
    """Whole degrees around the middle."""
    low, high = middle(values, counts)
    return floor(low), floor(high) + 1


def around(values: Values, counts: Counts) -> tuple[float, float] | None:
    """Round bounds of three times the width of the middle, where a release could not find the ends.

    So it is where few rows have a value, and where all lie close together and far from zero, as years
    and seconds since 1970 do: on a line without ends that takes as many steps as they have digits.
    None elsewhere.
    """
    low, high = (Fraction(float(end)) for end in middle(values, counts))
    far = low * high > 0 and 0 < high - low < _NARROW * max(abs(low), abs(high))
    if counts.sum() >= FEW_HOLDERS and not far:
        return None
    width = high - low or abs(high) or Fraction(1)
    step = Fraction(10) ** floor(log10(width / 5))
    step = next(step * factor for factor in (1, 2, 5, 10) if step * factor >= width / 5)
    low, high = low - width, high + width
    low = max(low, Fraction(0)) if values[0] >= 0 else low
    high = min(high, Fraction(0)) if values[-1] < 0 else high
    low, high = floor(low / step) * step, ceil(high / step) * step
    return float(low), float(high if high > low else low + step)


def _moments(values: Values, counts: Counts) -> tuple[float, float]:
    mean = float(np.average(values, weights=counts))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))


def fewest_decimals(values: Values) -> int | None:
    """The fewest decimals that write every value, if six are enough."""
    for decimals in range(1, 7):
        with np.errstate(over="ignore"):
            if np.all(np.round(values, decimals) == values):
                return decimals
    return None
