"""Numbers as people write them: "$1,234.50", "1.234,50 €", "12,5 %", "45 min", "(5)", "5-".

A pattern says how, as spreadsheets do: `#.##0,00 €` has points between thousands, a comma before two
decimals, and a blank and a sign behind. Without `#.##` before the `0`, thousands are not parted;
`#,##,##0` parts them as India does: 12,34,567.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa

from understudy.columns.reading import array_of, distinct_texts, pc, texts_of

_PATTERN = re.compile(r"([^0#]*?)(?:#([.,'’ \u00a0\u202f])##(\2##)?)?0(?:([.,])(0{1,15}))?([^0#]*)")
_BLANKS = r"[ \x{a0}\x{202f}]*"
_APART = re.compile(
    r"\(?[-+−]?\s*((?:US|CA|AU|NZ|HK|NT|MX|R|S|A|C)?\$|(?:USD|EUR|GBP|CHF|JPY|CAD|AUD|NZD|INR|CNY|SEK"
    r"|NOK|DKK|PLN|CZK|HUF|RON|TRY|ILS|KRW|BRL|MXN|ZAR|Rs\.?|[Kk]r\.?|Fr\.)(?=\s)"
    r"|[€£¥₹₽₩₺₫₴₪₱฿]?)\s*[-−]?(\d(?:[\d.,'’ \u00a0\u202f]*\d)?)"
    r"([ \u00a0\u202f]?(?:%|‰|°?[^\W\d]{1,10}(?:[ /][^\W\d]{1,10})?[²³]?|[^\w\s.,'+()-]))?-?\)?"
)
"""What may stand before a number (currencies), its digits, and what may stand behind it (units)."""
_LOOKED = 300


@dataclass(frozen=True)
class Notation:
    """What stands before and behind a number, between its thousands and before its decimals."""

    before: str
    thousands: str
    point: str
    places: int
    after: str
    pairs: bool = False
    """Whether digits before the last three are parted in pairs."""

    @classmethod
    def of(cls, pattern: str) -> Notation | None:
        """What a pattern says; None where it is none."""
        found = _PATTERN.fullmatch(pattern)
        if found is None or re.search(r"[-+\d()]", found[1] + found[6]):
            return None
        if found[2] and found[2] == found[4]:
            return None
        thousands, pairs, point, places = found[2] or "", bool(found[3]), found[4] or "", found[5]
        return cls(found[1], thousands, point, len(places or ""), found[6], pairs)

    @property
    def pattern(self) -> str:
        """As a schema file says it."""
        parted = f"{self.thousands}##" * (2 if self.pairs else 1)
        whole = f"#{parted}0" if self.thousands else "0"
        return f"{self.before}{whole}{self.point}{'0' * self.places}{self.after}"

    @cached_property
    def _regex(self) -> str:
        """Of texts that are written so, for Arrow; what stands before and behind may be missing."""
        before, after = (_literal(part.strip()) for part in (self.before, self.after))
        whole = "[0-9]{1,200}"
        if self.thousands:
            whole = f"{_parted(self.thousands, self.pairs)}|{whole}"
        rest = (
            rf"(?:{_literal(self.point)}(?P<rest>[0-9]{{0,50}}))?" if self.point else "(?P<rest>)"
        )
        return (
            rf"^[(+−-]?{_BLANKS}(?:{before})?{_BLANKS}[−-]?(?P<whole>{whole}){rest}"
            rf"{_BLANKS}(?:{after})?{_BLANKS}-?\)?$"
        )

    def plain(self, array: pa.Array) -> pa.Array:
        """Texts as programs write numbers; null where they are not written so."""
        texts, index = distinct_texts(array)
        texts = pc.utf8_trim_whitespace(texts)
        parts = pc.extract_regex(texts, self._regex)
        whole, rest = (pc.struct_field(parts, key) for key in ("whole", "rest"))
        whole = pc.replace_substring(whole, self.thousands or " ", "")
        sign = pc.if_else(pc.match_substring_regex(texts, r"^[^0-9]*[-−(]|-$"), "-", "")
        plain = pc.binary_join_element_wise(
            sign, whole, pc.if_else(pc.equal(rest, ""), "", "."), ""
        )
        plain = pc.binary_join_element_wise(plain, rest, "")
        return plain.take(array_of(np.minimum(index, len(texts) - 1), index == len(texts)))

    def written(self, array: pa.Array) -> pa.Array:
        """Plain numbers in this notation; null stays null."""
        coded = array.cast(pa.string()).dictionary_encode()
        spelled = [self._spelled(text) for text in coded.dictionary.to_pylist()]
        return texts_of(spelled).take(coded.indices)

    def _spelled(self, number: str) -> str:
        whole, _, rest = f"{Decimal(number.removeprefix('-')):f}".partition(".")  # Arrow has 1E-7
        rest = rest.rstrip("0").ljust(self.places, "0")
        if self.thousands:
            size, last = (2, whole[-3:]) if self.pairs else (3, "")
            head = whole.removesuffix(last)
            cuts = range(len(head) % size, len(head) + 1, size)
            parts = [*(head[max(0, cut - size) : cut] for cut in cuts), last]
            whole = self.thousands.join(part for part in parts if part)
        sign = "-" if number.startswith("-") else ""
        return f"{sign}{self.before}{whole}{self.point if rest else ''}{rest}{self.after}"


def _parted(thousands: str, pairs: bool) -> str:
    """What parted whole numbers look like, for Arrow and Python."""
    sign = _literal(thousands)
    if pairs:
        return f"[1-9][0-9]?(?:{sign}[0-9]{{2}}){{0,60}}{sign}[0-9]{{3}}"
    return f"[1-9][0-9]{{0,2}}(?:{sign}[0-9]{{3}}){{1,60}}"


def _literal(text: str) -> str:
    return re.escape(text)


def notation_of(texts: Sequence[str]) -> Notation | None:
    """The one notation that all these texts are written in; None where there is none.

    Where points could part thousands or decimals, three digits behind each are thousands.
    """
    found = [_APART.fullmatch(text.strip()) for text in texts]
    parts = [match.groups(default="") for match in found if match is not None]
    if len(parts) < len(texts) or not parts:
        return None
    before, after = ([part[at] for part in parts if part[at].strip()] for at in (0, 2))
    if any(len(set(map(str.strip, each))) > 1 for each in (before, after)):
        return None
    signed = sum(bool(part[0] or part[2].strip()) for part in parts)
    words = any(map(str.isalpha, "".join(after[:1])))  # 900 and 1.2k are not of one unit
    if 0 < signed < (len(parts) if words else len(parts) / 2):
        return None
    written = [part[1] for part in parts]
    fitting = [(_odd(written, *each), at, each) for at, each in enumerate(_separators(written))]
    fitting = [each for each in fitting if each[0] is not None]
    if not fitting:
        return None
    _, _, (thousands, point, pairs) = min(fitting)
    places = max(len(text.partition(point)[2]) if point else 0 for text in written)
    head = next((text for text, part in zip(texts, parts, strict=True) if part[0]), "")
    lead = before[0] + " " * head.partition(before[0])[2].startswith(" ") if before else ""
    behind = after[0] if after else ""
    found = Notation(lead, thousands, point if places else "", places, behind, pairs)
    plain = found.pattern == "0" or (found.pattern.startswith("0.") and not after)
    plain &= not any(text.strip().endswith((")", "-")) or "−" in text for text in texts)
    return None if plain or Notation.of(found.pattern) is None else found


def _separators(written: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    used = {sign for text in written for sign in text if not sign.isdigit()}
    for thousands, point in product((*",.'’ \u00a0\u202f", ""), (".", ",", "")):
        given = {thousands, point} - {""}
        if given == used and (thousands != point or not given):
            yield thousands, point, False
            if thousands == ",":
                yield thousands, point, True


def _odd(written: Sequence[str], thousands: str, point: str, pairs: bool) -> int | None:
    """How many have three decimals, as thousands might be; None where one is not written so."""
    part = f"{_parted(thousands, pairs)}|" if thousands else ""
    rest = rf"(?:{re.escape(point)}([0-9]+))?" if point else "()"
    form = re.compile(rf"(?:{part}0|[1-9][0-9]*){rest}")
    found = [form.fullmatch(text) for text in written]
    if not all(found):
        return None
    return sum(len(match[1] or "") == 3 for match in found if match)
