"""Exact budgets: ε, δ and ρ are rational numbers, sums are exact, remainders round down."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction

from understudy.errors import InputError, cut

Exact = str | int | float | Decimal | Fraction

_DIGITS, _LARGEST, _SMALLEST = 100, 308, -324
"""Digits of a number that somebody gives, and its powers of ten: `1e99999999` as a fraction would
have a hundred million digits."""
_LONGEST = 400
"""Digits on either side of the point or the slash of a number that is kept; see docs/bundle.md."""
_EXACT = re.compile(
    r"-?[0-9]{1,400}(\.[0-9]{1,400})?(E[+-]?[0-9]{1,3})?|-?[0-9]{1,400}/[1-9][0-9]{0,399}"
)


def exact(value: Exact, name: str = "value") -> Fraction:
    """The rational number that a person meant: `0.1` is 1/10, not its binary neighbour."""
    if isinstance(value, bool):
        raise InputError(f"{name} = {value!r} is not a number; give one such as 1 or 0.5")
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) < 10**_LONGEST:
        return value
    try:
        text = repr(float(value)) if isinstance(value, float) else str(value).strip()
        number = Decimal(text)
    except (InvalidOperation, ValueError):  # also of whole numbers too long to be written
        raise InputError(
            f"{name} = {_shown(value)} is not a number; give one such as 0.5, without commas"
        ) from None
    if not number.is_finite():
        raise InputError(f"{name} = {_shown(value)} is not finite; give a number such as 1 or 1e-9")
    long = len(number.as_tuple().digits) > _DIGITS
    if long or (number and not _SMALLEST <= number.adjusted() <= _LARGEST):
        raise InputError(
            f"{name} = {_shown(value)} is out of range: a number has at most {_DIGITS} digits and "
            f"lies between 1e{_SMALLEST} and 1e{_LARGEST}; give one such as 1 or 1e-9"
        )
    return Fraction(number)


def _shown(value: Exact) -> str:
    """A value as somebody gave it, shortened."""
    try:
        return cut(repr(value), 100)
    except ValueError:
        return "a whole number of thousands of digits"


def decimal(value: Fraction) -> str:
    """The shortest decimal that reads back as `value`; the fraction itself if it has none.

    `exact_text(decimal(v)) == v` for every rational v.
    """
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = max(value.numerator.bit_length(), value.denominator.bit_length()) * 2 + 10
    context = Context(prec=digits)
    number = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    text = format(number, "f")
    return text if len(text) <= 24 else str(number)


def exact_text(text: str) -> Fraction:
    """Read what `decimal` wrote; a stranger may have written it, so its size is limited."""
    if not _EXACT.fullmatch(text):
        raise InputError(f"{_shown(text)} is not an exact decimal or a fraction of a bearable size")
    return Fraction(text)


def round_up(value: Fraction) -> float:
    """The smallest float that is not below `value`."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def round_down(value: Fraction) -> float:
    """The largest float that is not above `value`."""
    number = float(value)
    return number if Fraction(number) <= value else math.nextafter(number, -math.inf)


@dataclass(frozen=True, slots=True)
class Budget:
    """An (ε, δ) promise, exact."""

    epsilon: Fraction
    delta: Fraction

    @classmethod
    def of(cls, epsilon: Exact, delta: Exact) -> Budget:
        """Check and make exact. ε > 0, 0 ≤ δ < 1."""
        e, d = exact(epsilon, "epsilon"), exact(delta, "delta")
        if e <= 0:
            raise InputError(
                f"epsilon = {epsilon} must be above 0; common choices lie between 0.1 and 10 "
                f"(smaller is more private)"
            )
        if not 0 <= d < 1:
            raise InputError(
                f"delta = {delta} must be at least 0 and far below 1/(number of rows), "
                f"for instance 1e-9"
            )
        return cls(e, d)

    def __str__(self) -> str:
        return f"(ε = {decimal(self.epsilon)}, δ = {f'{float(self.delta):g}'.replace('e-0', 'e-')})"

    @property
    def recorded(self) -> str:
        """The same as a bundle has it: δ with two digits behind the e (docs/bundle.md)."""
        return f"(ε = {decimal(self.epsilon)}, δ = {float(self.delta):g})"

    def to_json(self) -> dict[str, str]:
        """Exact decimals as text."""
        return {"epsilon": decimal(self.epsilon), "delta": decimal(self.delta)}

    @classmethod
    def from_json(cls, body: Mapping[str, str]) -> Budget:
        """Read what `to_json` wrote."""
        return cls(exact_text(body["epsilon"]), exact_text(body["delta"]))
