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
_LOCAL = (
    _list("montag, dienstag, mittwoch, donnerstag, freitag, samstag, sonntag"),
    _list("lundi, mardi, mercredi, jeudi, vendredi, samedi, dimanche"),
    _list("lunes, martes, miércoles, jueves, viernes, sábado, domingo"),
    _list("lunedì, martedì, mercoledì, giovedì, venerdì, sabato, domenica"),
    _list("maandag, dinsdag, woensdag, donderdag, vrijdag, zaterdag, zondag"),
    _list("mo, di, mi, do, fr, sa, so"),
    _list(
        "januar, februar, märz, april, mai, juni, juli, august, september, oktober, november, "
        "dezember"
    ),
    _list(
        "janvier, février, mars, avril, mai, juin, juillet, août, septembre, octobre, novembre, "
        "décembre"
    ),
    _list(
        "enero, febrero, marzo, abril, mayo, junio, julio, agosto, septiembre, octubre, noviembre, "
        "diciembre"
    ),
    _list(
        "gennaio, febbraio, marzo, aprile, maggio, giugno, luglio, agosto, settembre, ottobre, "
        "novembre, dicembre"
    ),
    _list(
        "janeiro, fevereiro, março, abril, maio, junho, julho, agosto, setembro, outubro, novembro, "
        "dezembro"
    ),
    _list(
        "januari, februari, maart, april, mei, juni, juli, augustus, september, oktober, november, "
        "december"
    ),
    _list("jan, feb, mär, apr, mai, jun, jul, aug, sep, okt, nov, dez"),
)
_CYCLES = (
    _DAYS,
    tuple(day[:3] for day in _DAYS),
    _MONTHS,
    tuple(month[:3] for month in _MONTHS),
    *_LOCAL,
)
_LISTS = (
    *_CYCLES,
    _list("no, yes"),
    _list("n, y"),
    _list("female, male"),
    _list("f, m"),
    _list("false, true"),
    _list("nein, ja"),
    _list("n, j"),
    _list("non, oui"),
    _list("no, sí"),
    _list("no, si"),
    _list("não, sim"),
    _list("nee, ja"),
    _list("weiblich, männlich"),
    _list("w, m"),
)


def _towards(worse: str, better: str) -> tuple[str, ...]:
    """From one pole to the other, by how strongly; a survey uses some of these words."""
    strong, weak = (
        _list("completely, totally, fully, strongly, extremely, very, definitely, mostly"),
        _list("rather, somewhat, moderately, fairly, slightly, a little, tend to, probably"),
    )
    after = _list("strongly, somewhat, slightly")
    ends = [
        (
            *(f"{word} {pole}" for word in strong),
            *(f"{pole} {after[0]}", pole, *(f"{pole} {word}" for word in after[1:])),
            *(f"{word} {pole}" for word in weak),
        )
        for pole in (worse, better)
    ]
    middle = [
        "neutral",
        "neither",
        f"neither {worse} nor {better}",
        f"neither {better} nor {worse}",
    ]
    return (*ends[0], *middle, "undecided", "unsure", "not sure", *ends[1][::-1])


_SCALES = (
    *_CYCLES,
    _list("none, very low, low, lower, medium, moderate, normal, high, higher, very high"),
    _list("none, minimal, mild, minor, moderate, major, severe, critical, fatal"),
    _list("very poor, poor, fair, average, good, very good, excellent, outstanding"),
    _list("very bad, bad, ok, okay, good, very good"),
    _list(
        "never, almost never, rarely, seldom, occasionally, sometimes, about half the time, often, "
        "frequently, usually, most of the time, very often, almost always, always"
    ),
    *(
        _towards(*poles)
        for poles in (
            ("disagree", "agree"),
            ("dissatisfied", "satisfied"),
            ("unlikely", "likely"),
            ("unimportant", "important"),
            ("difficult", "easy"),
            ("negative", "positive"),
            ("unsafe", "safe"),
        )
    ),
    _list(
        "not, not at all, not very, a little, slightly, rather, somewhat, moderately, fairly, quite, "
        "quite a bit, very, very much, a lot, extremely, completely"
    ),
    _list(
        "never, less than once a year, once a year, a few times a year, less than once a month, "
        "less than monthly, once a month, 1 3 times a month, 2 3 times a month, a few times a month, "
        "several times a month, once a week, 1 2 times a week, 2 3 times a week, "
        "a few times a week, several times a week, most days, daily, every day, once a day, "
        "several times a day"
    ),
    _list(
        "no schooling, no formal education, preschool, kindergarten, primary, primary school, "
        "elementary, elementary school, 1st 4th, 5th 6th, 7th 8th, middle school, lower secondary, "
        "9th, 10th, 11th, 12th, secondary, secondary school, upper secondary, high school, hs grad, "
        "high school graduate, some college, assoc voc, assoc acdm, associate, associate degree, "
        "associates, tertiary, bachelor, bachelors, bachelor degree, bachelor's, bachelor's degree, "
        "university, master, masters, master degree, master's, master's degree, postgraduate, "
        "prof school, doctorate, doctoral, doctoral degree, phd"
    ),
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
    r"^(<=?|≤|under|below|less than|up to|at most|fewer than|younger than|before"
    r"|unter|bis|weniger als|höchstens|moins de|jusqu'à|menos de|hasta|meno di|fino a)",
    re.I,
)
_ABOVE = re.compile(
    r"^(>=?|≥|over|above|more than|at least|older than|after"
    r"|über|ab|mehr als|mindestens|plus de|más de|desde|più di|oltre)",
    re.I,
)
_BEYOND = re.compile(
    r"(\+|\b(and|or) (over|more|above|older|greater|up)\b|\bplus\b"
    r"|\b(und|oder) (mehr|älter|darüber)\b|\b(y|o) más\b|\be (più|oltre)\b)",
    re.I,
)
_ROMAN = re.compile(r"(?:([a-z]+)\s)?([ivx]+)([a-c]?)")
_LABELLED = re.compile(r"(\d+)(?:\s*[-–=:.)(]\s*\D.*)?")


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
    for order in (_by_scale, _by_number, _by_label, _by_roman, *([_by_letter] if graded else [])):
        if (found := order(values)) is not None:
            return found
    return None


def _by_scale(values: Sequence[str]) -> tuple[str, ...] | None:
    texts = {re.sub(r"[\s_-]+", " ", value.strip().lower()): value for value in values}
    if len(texts) < max(len(values), _LEAST):
        return None
    for words in (texts, _without_the_last(texts)):
        for scale in _SCALES:
            if words and set(words) <= set(scale):
                return tuple(words[word] for word in scale if word in words)
    return None


def _without_the_last(texts: dict[str, str]) -> dict[str, str]:
    """The texts without the word that all end with: "important" of "very important"; {} if none is."""
    split = {text: text.rpartition(" ") for text in texts}
    lasts = {last for _, _, last in split.values()}
    if len(lasts) > 1 or not all(first for first, _, _ in split.values()):
        return {}
    return {split[text][0]: value for text, value in texts.items()}


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


def _by_label(values: Sequence[str]) -> tuple[str, ...] | None:
    """A scale whose ends have names: "1 - very bad", "2", "3", "4", "5 - very good"."""
    found = {value: _LABELLED.fullmatch(value.strip()) for value in values}
    places = {value: int(match[1]) for value, match in found.items() if match is not None}
    plain = sum(value.strip().isdigit() for value in values)
    steps = sorted(places.values())
    if len(places) < max(len(values), _LEAST) or not 0 < plain < len(values):
        return None
    in_a_row = steps == list(range(steps[0], steps[0] + len(steps)))
    return tuple(sorted(values, key=places.__getitem__)) if in_a_row else None


def _by_roman(values: Sequence[str]) -> tuple[str, ...] | None:
    """Steps: "Stage I", "Stage IIa", "Stage IV"."""
    found = [(value, _ROMAN.fullmatch(value.strip().lower())) for value in values]
    read = [(match[1] or "", _roman(match[2]), match[3], value) for value, match in found if match]
    before, places = {each[0] for each in read}, {each[1:3] for each in read}
    if len(places) < max(len(values), _LEAST) or len(before) > 1 or not before <= {"", *_STEPS}:
        return None
    letters = before == {""} and all(len(value.strip()) == 1 for value in values)
    if letters or not all(number for _, number, _, _ in read):
        return None
    return tuple(value for _, _, _, value in sorted(read))


def _roman(digits: str) -> int:
    """The number; 0 where it is written otherwise."""
    known = (
        "i",
        "ii",
        "iii",
        "iv",
        "v",
        "vi",
        "vii",
        "viii",
        "ix",
        "x",
        "xi",
        "xii",
        "xiii",
        "xiv",
    )
    return known.index(digits) + 1 if digits in known else 0


def _is_step(frame: tuple[str, str]) -> bool:
    """Whether the words around a number make it a place in an order: "2 years", "grade 3"."""
    before, after = frame
    return (not before and bool(after)) or (before in _STEPS and not after)


Place = tuple[tuple[float, int], tuple[str, str] | None]
"""Where a text stands, and, of a single number, the words around it."""


def _placed(text: str) -> Place | None:
    plain = text.strip()
    spread = re.sub(r"(?<=[\dkKmM])\s*(-|–|to|bis|à|tot)\s*(?=[\d$])", " ", plain)
    numbers = re.findall(rf"({_NUMBER})([kKmM]\b)?", spread)
    if not 1 <= len(numbers) <= 2:
        return None
    digits, unit = numbers[0]
    least = float(digits.replace(",", "")) * {"": 1, "k": 1e3, "m": 1e6}[unit.lower()]
    if len(numbers) == 2:
        joined = re.search(
            r"\d\D{0,6}(-|–|\b(?:to|bis|à|tot)\b|,|\.\.)\D{0,3}\d", plain
        ) or re.match(r"[\[(]", plain)
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
