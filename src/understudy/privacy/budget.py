"""Exact budgets: ε, δ and ρ are rational numbers, sums are exact, remainders round down."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction

from understudy.errors import InputError

__all__ = ["Budget", "Exact", "decimal", "exact", "round_down", "round_up", "split"]

Exact = str | int | float | Decimal | Fraction

LONGEST = 400
"""The most digits of a number, before or after its point: floats have at most 324 after it."""
_EXACT = re.compile(
    r"-?[0-9]{1,400}(\.[0-9]{1,400})?(E[+-]?[0-9]{1,3})?|-?[0-9]{1,400}/[1-9][0-9]{0,399}"
)


def exact(value: Exact, name: str = "value") -> Fraction:
    """The rational number that a person meant: `0.1` is 1/10, not its binary neighbour."""
    if isinstance(value, bool):
        raise InputError(f"{name} = {value!r} is not a number; give one such as 1 or 0.5")
    if isinstance(value, Fraction):
        return value
    try:
        number = Decimal(repr(float(value)) if isinstance(value, float) else str(value).strip())
    except InvalidOperation:
        raise InputError(
            f"{name} = {value!r} is not a number; give one such as 1 or 1e-9"
        ) from None
    if not number.is_finite():
        raise InputError(f"{name} = {value!r} is not finite; give a number such as 1 or 1e-9")
    _, digits, exponent = number.as_tuple()
    if len(digits) > LONGEST or abs(int(exponent)) > LONGEST:
        raise InputError(
            f"{name} = {str(value)[:40]} has more than {LONGEST} digits; give one such as 1 or 1e-9"
        )
    return Fraction(number)


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
    """Read what `decimal` wrote, and nothing that would take long: exponents of three digits."""
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise InputError(f"{repr(text)[:80]} is not an exact decimal or a fraction, as text")
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
        return f"(ε = {decimal(self.epsilon)}, δ = {float(self.delta):g})"

    def to_json(self) -> dict[str, str]:
        """Exact decimals as text."""
        return {"epsilon": decimal(self.epsilon), "delta": decimal(self.delta)}

    @classmethod
    def from_json(cls, body: Mapping[str, str]) -> Budget:
        """Read what `to_json` wrote."""
        return cls(exact_text(body["epsilon"]), exact_text(body["delta"]))


def split(total: Fraction, shares: Mapping[str, Exact]) -> dict[str, Fraction]:
    """Divide `total` in proportion to `shares`. The parts add up to exactly `total`."""
    weights = {name: exact(share, f"share of {name}") for name, share in shares.items()}
    for name, weight in weights.items():
        if weight < 0:
            raise InputError(f"share of {name} = {weight} must not be negative")
    whole = sum(weights.values(), Fraction(0))
    if whole == 0:
        raise InputError("at least one share must be above 0")
    return {name: total * weight / whole for name, weight in weights.items()}
