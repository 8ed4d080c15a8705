"""Lists and orders that everybody knows: weekdays, months, yes and no, brackets, grades, scales.

They are public, so a draft may write them down whole, whichever of their values the rows hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence


def _list(words: str) -> tuple[str, ...]:
    return tuple(words.split(", "))


_DAYS = _list("monday, tuesday, wednesday, thursday, friday, saturday, sunday")
_MONTHS = _list(
    "january, february, march, april, may, june, july, august, september, october, november, "
    "december"
)
_STATES = _list(
    "AL, AK, AZ, AR, CA, CO, CT, DE, DC, FL, GA, HI, ID, IL, IN, IA, KS, KY, LA, ME, MD, MA, "
    "MI, MN, MS, MO, MT, NE, NV, NH, NJ, NM, NY, NC, ND, OH, OK, OR, PA, RI, SC, SD, TN, TX, "
    "UT, VT, VA, WA, WV, WI, WY"
)
_CYCLES = (
    _DAYS,
    tuple(day[:3] for day in _DAYS),
    _MONTHS,
    tuple(month[:3] for month in _MONTHS),
)
_LISTS = (
    *_CYCLES,
    _list("no, yes"),
    _list("n, y"),
    _list("female, male"),
    _list("f, m"),
    _list("false, true"),
)
_SCALES = (
    *_CYCLES,
    _list("none, very low, low, lower, medium, moderate, normal, high, higher, very high"),
    _list("none, minimal, mild, minor, moderate, major, severe, critical, fatal"),
    _list("very poor, poor, fair, average, good, very good, excellent, outstanding"),
    _list("very bad, bad, ok, okay, good, very good"),
    _list("never, rarely, seldom, occasionally, sometimes, often, usually, always"),
    _list("strongly disagree, disagree, neutral, neither, agree, strongly agree"),
    _list("very dissatisfied, dissatisfied, neutral, satisfied, very satisfied"),
    _list("very unlikely, unlikely, neutral, likely, very likely"),
    _list("tiny, very small, small, medium, large, very large, extra large, huge"),
    _list("xxs, xs, s, m, l, xl, xxl, xxxl"),
    _list("beginner, novice, elementary, intermediate, advanced, expert"),
    _list("trainee, junior, mid, senior, lead, principal"),
    _list("freshman, sophomore, junior, senior"),
    _list("newborn, infant, toddler, child, teen, young, adult, middle-aged, senior"),
    _list("hourly, daily, weekly, biweekly, fortnightly, monthly, quarterly, yearly"),
    _list("freezing, cold, cool, mild, warm, hot"),
    _list("bronze, silver, gold, platinum, diamond"),
    _list("basic, standard, plus, premium"),
    _list("underweight, normal, overweight, obese"),
    _list("first, second, third, fourth, fifth"),
    _list("i, ii, iii, iv, v, vi"),
)
_LEAST = 3
"""So many words make a scale; two of them may mean something else."""
_CASES: tuple[Callable[[str], str], ...] = (str.lower, str.upper, str.capitalize)
_STEPS = _list(
    "grade, level, stage, class, year, step, phase, tier, band, rank, quartile, quintile, "
    "decile, q, quarter, score, group age, age, wave, round, th"
)
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
_BELOW = re.compile(
    r"^(<=?|≤|under|below|less than|up to|at most|fewer than|younger than|before)", re.I
)
_ABOVE = re.compile(r"^(>=?|≥|over|above|more than|at least|older than|after)", re.I)
_BEYOND = re.compile(r"(\+|\b(and|or) (over|more|above|older|greater|up)\b|\bplus\b)", re.I)


def whole_list(values: Iterable[str]) -> tuple[str, ...] | None:
    """The list that two or more values are of, in their spelling and its order; None of no list."""
    texts = set(values)
    if len(texts) < 2:
        return None
    if len(texts) >= 5 and texts <= set(_STATES):
        return tuple(sorted(_STATES))
    for listed in _LISTS:
        for case in _CASES:
            spelled = tuple(map(case, listed))
            # A weekday or two may be anything; most of them are not.
            if texts <= set(spelled) and 2 * len(texts) > len(spelled):
                return spelled
    return None


def in_order(values: Sequence[str], *, graded: bool = False) -> tuple[str, ...] | None:
    """The values in the order that their texts say; None where they say none.

    Brackets and numbers with a unit ("[0-10)", "<18", "10+ years"), scales of words ("low", "medium",
    "high"), weekdays and months. `graded` says that letters are grades.
    """
    if len(values) < 2:
        return None
    for order in (_by_scale, _by_number, *([_by_letter] if graded else [])):
        if (found := order(values)) is not None:
            return found
    return None


def _by_scale(values: Sequence[str]) -> tuple[str, ...] | None:
    texts = {re.sub(r"[\s_-]+", " ", value.strip().lower()): value for value in values}
    if len(texts) < max(len(values), _LEAST):
        return None
    for scale in _SCALES:
        if set(texts) <= set(scale):
            return tuple(texts[word] for word in scale if word in texts)
    return None


def _by_number(values: Sequence[str]) -> tuple[str, ...] | None:
    """By the first number of each, where all are brackets, or numbers of one unit."""
    parsed = [_placed(value) for value in values]
    known = [place for place in parsed if place is not None]
    if len(known) < len(values):
        return None
    places = [place for place, _ in known]
    frames = {frame for _, frame in known if frame is not None}
    brackets = len(known) > sum(frame is not None for _, frame in known)
    if len(set(places)) < len(places) or len(frames) > 1:
        return None
    stepped = all(_is_step(frame) for frame in frames)
    if not (brackets or stepped) or (frames and not stepped and frames != {("", "")}):
        return None
    return tuple(value for _, value in sorted(zip(places, values, strict=True)))


def _is_step(frame: tuple[str, str]) -> bool:
    """Whether the words around a number make it a place in an order: "2 years", "grade 3"."""
    before, after = frame
    return (not before and bool(after)) or (before in _STEPS and not after)


Place = tuple[tuple[float, int], tuple[str, str] | None]
"""Where a text stands, and, of a single number, the words around it."""


def _placed(text: str) -> Place | None:
    plain = text.strip()
    spread = re.sub(r"(?<=[\dkKmM])\s*(-|–|to)\s*(?=[\d$])", " ", plain)
    numbers = re.findall(rf"({_NUMBER})([kKmM]\b)?", spread)
    if not 1 <= len(numbers) <= 2:
        return None
    digits, unit = numbers[0]
    least = float(digits.replace(",", "")) * {"": 1, "k": 1e3, "m": 1e6}[unit.lower()]
    if len(numbers) == 2:
        joined = re.search(r"\d\D{0,6}(-|–|\bto\b|,|\.\.)\D{0,3}\d", plain) or re.match(
            r"[\[(]", plain
        )
        return ((least, 0), None) if joined else None
    if _BELOW.match(plain):
        return (least, -1), None
    if _ABOVE.match(plain) or _BEYOND.search(plain):
        return (least, 1), None
    before, after = re.split(_NUMBER, plain, maxsplit=1)
    unit = re.sub(r"(?<=[a-z])s$|st$|nd$|rd$|th$", "", after.strip().lower())
    unit = "th" if not unit and after.strip() else unit
    return (least, 0), (before.strip().lower(), unit)


def _by_letter(values: Sequence[str]) -> tuple[str, ...] | None:
    """Grades: A, B, C, ... with or without a digit or a sign."""
    if len(values) < _LEAST or not all(re.fullmatch(r"[A-H][1-9]?[+-]?", v) for v in values):
        return None
    plain = {value: value.rstrip("+-") for value in values}
    return tuple(
        sorted(values, key=lambda v: (plain[v], "+ -".index(v.removeprefix(plain[v]) or " ")))
    )
