"""What the texts of a column are: a list, values to be discovered, names of people, or free text.

Pure: distinct texts and how many rows hold each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto

import numpy as np

from understudy._types import Bools, Whole
from understudy.draft.given import names_people
from understudy.draft.names import Name
from understudy.draft.numbers import LEAST_HOLDERS, common

LONGEST_LIST = 80
_MANY = 100
_COVERED = 0.95
_SHORT = 20
_COVERED_SHORT = 0.8
_FOUND = 0.02
_LONG = 40
_WORDS = 6
_CODES = 8
_LETTERS = 5
_FEW = 12
_LOOKED = 500
_SPARSE = 10
_STANDINS = 3
_CONTACT = re.compile(
    r"[^@\s]+@[^@\s]+\.[a-z]{2,}"  # e-mail
    r"|(https?://|www\.)\S+"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|[0-9a-f]{32,}"
    r"|([0-9a-f]{2}[:-]){5}[0-9a-f]{2}"  # of a network card
    r"|(\d{1,3}\.){3}\d{1,3}"
    r"|\d{3}-\d{2}-\d{4}"  # a social security number
    r"|\+\d[\d\s().-]{6,}"  # phones
    r"|\(?\d{2,4}\)?[\s.-]?\d{3,4}[\s.-]\d{3,6}(\s?x\d+)?",
    re.IGNORECASE,
)
_STREET = re.compile(
    r"\d+[a-z]?,?\s+\S.*\b(st|street|ave|avenue|rd|road|dr|drive|ln|lane|blvd|way|court|ct|place|pl|apt)\b.*"
    r"|\S.*(straße|strasse|str\.|weg|platz|gasse)\s+\d+.*",
    re.IGNORECASE,
)
_HEX = re.compile(r".*\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b.*", re.IGNORECASE)
_TAIL = re.compile(r"\S*[-_:/ ]([0-9a-f]{4,})", re.IGNORECASE)
_RUN = re.compile(r"\d{5,}")
_DATED = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*"
    r"|([a-z]{3,9}\.?[-\s/]|\d{1,2}[-/.])(19|20)?\d\d|(19|20)\d\d[-/.]\d{1,2}"  # months
    r"|.*\b[a-z]{3,9}\b.*\b(19|20)\d\d\b.*"
    r"|\d{1,3}:\d{2}(:\d{2}([.,]\d+)?)?(\s?[ap]\.?m\.?)?",  # times
    re.IGNORECASE,
)
_DAYS = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*|\d{1,3}:\d{2}(:\d{2}([.,]\d+)?)?")
_AMOUNT = re.compile(
    r"[-+]?[$€£¥]\s*\d[\d,.' ]*|[-+]?\d[\d,.' ]*\s*[$€£¥%]|\d{1,3}(,\d{3})+(\.\d+)?|\d+,\d+"
)
_ICD = re.compile(r"[A-TV-Z]\d[\dA-Z](\.?[\dA-Z]{1,4})?")
_PHRASE = re.compile(r".*[^\W\d_]{4}.*")  # A word: the beginning of what has one is no coarser code
_LONG_NUMBER = re.compile(r"(\D{0,9}\d){8,}\D{0,9}")
_TOKEN = re.compile(r"(?=\S*\d)\S{4,}")
_CODE = re.compile(r"[^\d]{1,30}|[<>≤≥]=?\s*\d+(\.\d+)?|\d+(\.\d+)?\s*\+")


class Sort(Enum):
    """What becomes of a column of texts."""

    LIST = auto()
    """Its common values are listed, the others become OTHER."""
    DISCOVER = auto()
    """A release finds what many hold."""
    IDENTIFIER = auto()
    """It names people or things, and is left out."""
    PROSE = auto()
    """It is free text, and is left out."""


def sort_of(name: Name, texts: Sequence[str], counts: Whole) -> Sort:
    """What becomes of a column with these distinct texts, held by so many rows each."""
    rows, distinct = int(counts.sum()), len(texts)
    often = common(counts)
    shared = float(counts[often].sum()) / rows
    some = texts[:: max(1, distinct // _LOOKED)]
    contacts = _mostly(some, _CONTACT) and not name.prefixes
    made = _mostly(some, _STREET, 0.6)
    if not name.prefixes and (name.identifies or not name.coded):
        made = made or _mostly(some, _HEX) or _are_hashes(some) or _are_numbered(texts)
    if contacts or (distinct > LEAST_HOLDERS and made):
        return Sort.IDENTIFIER
    several = distinct > LEAST_HOLDERS and distinct > rows / 50
    persons = distinct > LEAST_HOLDERS and (name.of_persons or name.role or names_people(some))
    if persons or (several and (name.of_people or name.reaches)):
        return Sort.IDENTIFIER
    few = distinct > LEAST_HOLDERS and (distinct > rows / 5 or name.of_a_person)
    if name.identifies and (distinct > _MANY or few or distinct == rows > 2):
        return Sort.IDENTIFIER
    dated = _mostly(some, _DATED, 0.6) or _mostly(some, _AMOUNT)
    coded = bool(prefixes(name, some))
    if distinct > _MANY and not (dated or coded) and _mostly(some, _LONG_NUMBER):
        return Sort.IDENTIFIER  # accounts, phones, articles: one may have any number of rows
    if shared < _FOUND and rows > LEAST_HOLDERS and not coded:  # hardly one that many hold
        if name.prose or _is_long(some) or (dated and distinct > rows / 2 and not name.identifies):
            return Sort.PROSE
        tokens = distinct > rows / 20 and _mostly(some, _TOKEN) and not dated
        if distinct > rows / 2 or tokens:
            return Sort.IDENTIFIER
    if _is_long(some) and (distinct > LONGEST_LIST or name.prose):
        return Sort.PROSE
    if distinct > LONGEST_LIST and _mostly(some, _DAYS):  # in mixed forms, or of two centuries
        return Sort.PROSE
    covered = _COVERED if distinct > _SHORT else _COVERED_SHORT
    if 0 < int(often.sum()) <= LONGEST_LIST and shared >= covered:
        return Sort.LIST
    rest = [text for text, held in zip(texts, often, strict=True) if not held]
    numbered = len(rest) > int(counts[~often].sum()) / 2 and _mostly(rest, _TOKEN)
    if int(often.sum()) <= _STANDINS and numbered and not (dated or coded):
        return Sort.IDENTIFIER  # plates, and "no plate"
    return Sort.DISCOVER


def prefixes(name: Name, texts: Sequence[str]) -> tuple[int, ...]:
    """Lengths at which the beginnings of codes are coarser codes, by the name or by their form."""
    some = texts[:: max(1, len(texts) // _LOOKED)]
    letters = {text[:1] for text in some}
    if name.prefixes and not _mostly(some, _PHRASE, 0.5):
        return name.prefixes
    return (3, 1) if len(letters) >= _LETTERS and _mostly(some, _ICD) else ()


def _mostly(texts: Sequence[str], form: re.Pattern[str], share: float = 0.9) -> bool:
    return sum(form.fullmatch(text.strip()) is not None for text in texts) >= share * len(texts)


def _are_hashes(texts: Sequence[str]) -> bool:
    """Whether all end with hexadecimal digits of one length, and as many letters as chance has."""
    tails = [match[1] for text in texts if (match := _TAIL.fullmatch(text.strip()))]
    signs = "".join(tails).lower()
    letters = sum(map(str.isalpha, signs))
    mixed = 0.25 * len(signs) < letters < 0.5 * len(signs)  # six of sixteen
    return len(tails) == len(texts) and len(set(map(len, tails))) == 1 and mixed


def _are_numbered(texts: Sequence[str]) -> bool:
    """Whether all have five or more digits in one form, zeros in front or hardly a number in a row."""
    forms = {re.sub(r"\d", "0", text.strip()) for text in texts}
    runs = _RUN.findall(next(iter(forms)))
    if len(forms) > 1 or len(runs) != 1 or not re.search(r"[^\W\d_]", next(iter(forms))):
        return False
    numbers = sorted(int(found[0]) for text in texts if (found := _RUN.search(text)))
    padded = numbers[-1] < 10 ** (len(runs[0]) - 1)
    return padded or numbers[-1] - numbers[0] >= _SPARSE * len(texts)


def _is_long(texts: Sequence[str]) -> bool:
    """Whether texts are sentences, rather than labels."""
    mean = sum(map(len, texts)) / len(texts)
    words = sum(len(text.split()) for text in texts) / len(texts)
    return mean >= _LONG and words >= _WORDS


def among_numbers(name: Name, texts: Sequence[str], counts: Whole) -> Bools | None:
    """Which texts are codes among numbers or dates ("N", "refused", "90+"); None where none are.

    Codes are few, and nothing in them can be read as a value. Codes of diseases and places, some of
    which have letters, are not numbers.
    """
    codes = np.array([_CODE.fullmatch(text.strip()) is not None for text in texts])
    others = [text for text, code in zip(texts, codes, strict=True) if code]
    values, open_ended = len(texts) - len(others), any(re.search(r"\d", text) for text in others)
    enough = values > max(_FEW if open_ended else _CODES // 2, 2 * len(others))
    if not others or len(others) > _CODES or not enough:
        return None
    if name.coded or name.prefixes or name.identifies:
        return None
    held = float(counts[codes].sum()) / float(counts.sum())
    return codes if held <= 0.5 or values > _SHORT else None
