"""Costs as inert events: what a mechanism may draw, described apart from its analysis.

An event says everything that accounting needs and nothing else. A `Plan` is the complete list of
draws that a release may make; it is a public function of schema, workload, method and budget, and is
written to the ledger before anything private is read. The gate takes its noise scales from here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, get_args

from understudy.errors import PrivacyError
from understudy.privacy.budget import round_down

E = TypeVar("E")


def _plain(value: Any) -> Any:
    """NumPy's floats as Python's: another kind might say one thing here and another elsewhere."""
    return float.__float__(value) if isinstance(value, float) else value


def _positive(event: str, name: str, value: Any) -> None:
    if not (type(value) in (int, float) and math.isfinite(value) and value > 0):
        raise PrivacyError(f"{event}: {name} = {value!r} must be a finite number above 0")


def _count(event: str, name: str, value: Any) -> None:
    if type(value) is not int or value < 1:
        raise PrivacyError(f"{event}: {name} = {value!r} must be a whole number of at least 1")


def _rate(event: str, name: str, value: Any) -> None:
    """A rate is a multiple of 2^−32, so that it can be drawn exactly."""
    _positive(event, name, value)
    if value > 1 or value * 2.0**32 != int(value * 2.0**32):
        raise PrivacyError(f"{event}: rate = {value!r} must be a multiple of 2^-32, at most 1")


def _sides(event: str, name: str, value: Any) -> None:
    if value not in (1, 2):
        raise PrivacyError(f"{event}: sides = {value!r} must be 1 or 2")


def _multipliers(event: str, name: str, value: Any) -> None:
    if not value:
        raise PrivacyError(f"{event}: multipliers must not be empty")
    for each in value:
        _positive(event, name, each)


_CHECKS: dict[str, Callable[[str, str, Any], None]] = {
    **dict.fromkeys(("sigma", "scale", "jacobian", "output_sigma", "rho"), _positive),
    **dict.fromkeys(("step", "changes", "l1", "l2", "output_l2", "coordinates"), _count),
    **dict.fromkeys(("sensitivity", "k", "threshold", "values"), _count),
    "rate": _rate,
    "sides": _sides,
    "multipliers": _multipliers,
}
"""By the name of a field: every event is checked when it is made, also when it is read."""


class _Event:
    """What all events share: the check of their fields, and their form in the ledger."""

    __slots__ = ()
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for name, value in self._fields().items():
            object.__setattr__(self, name, _plain(value))
            _CHECKS[name](type(self).__name__, name, _plain(value))

    def _fields(self) -> dict[str, Any]:
        """As they are: a copy might say another thing than what is kept."""
        names = (each.name for each in fields(self))  # type: ignore[arg-type]
        return {name: attrgetter(name)(self) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Canonical form for the ledger."""
        said = self._fields().items()
        return {"kind": self.kind} | {k: list(v) if type(v) is tuple else v for k, v in said}


@dataclass(frozen=True, slots=True)
class Gaussian(_Event):
    """Discrete Gaussian noise N_ℤ(0, σ²) on every coordinate of an integer vector.

    A neighbour moves at most `changes` coordinates, each by at most `step`. Squared L2 sensitivity
    is `changes · step²`, so ρ = changes·step²/(2σ²) (Canonne-Kamath-Steinke 2020, Theorem 14).
    """

    kind = "gaussian"
    sigma: float
    step: int = 1
    changes: int = 1


@dataclass(frozen=True, slots=True)
class Laplace(_Event):
    """Discrete Laplace noise, P(z) ∝ exp(−|z|/scale), on an integer vector with L1 sensitivity l1.

    Pure ε = l1/scale. So is one pick of the largest of scores that move by at most l1/2 each, after
    noise on each (`mechanisms.top`); therefore nothing but this ε may be used of it in accounting.
    """

    kind = "laplace"
    scale: float
    l1: int = 1


@dataclass(frozen=True, slots=True)
class Selection(_Event):
    """k picks by Gumbel noise on integer scores, each with sensitivity `sensitivity`.

    Either one-shot top-k, the same law as k rounds of the exponential mechanism without
    replacement, or k independent picks; ε0 = 2·sensitivity/scale each. Pure k·ε0; zCDP k·ε0²/8 by
    the bounded range of each pick.
    """

    kind = "selection"
    scale: float
    sensitivity: int = 1
    k: int = 1


@dataclass(frozen=True, slots=True)
class Perturbation(_Event):
    """Objective perturbation on integers: a noisy linear term, a curvature, and noise on the minimum.

    A neighbour moves the gradient by √`changes` rows in L2, which are `step` units of the linear term's
    lattice each, the determinant of the Hessian by a factor of at most 1 + `jacobian` for each row that
    comes or goes, and what was computed by `output_l2` on the grid of what is released. With discrete
    Gaussian noise of σ on `coordinates` numbers and of `output_sigma` on the result,

        ρ = (√(changes·step²/(2σ²) + 4·jacobian²) + √(8·coordinates)/σ)² + output_l2²/(2·output_sigma²).

    Proof in `understudy.privacy.objective`.
    """

    kind = "perturbation"
    sigma: float
    step: int
    changes: int
    jacobian: float
    coordinates: int
    output_sigma: float
    output_l2: int


@dataclass(frozen=True, slots=True)
class SampledGaussian(_Event):
    """A sum over a Poisson sample of rows, with discrete Gaussian noise on every coordinate.

    Every row is taken by itself with probability `rate`; a row adds an integer vector of
    `coordinates` entries and L2 norm at most `l2`. `sides` is 1 where a neighbour adds or removes a
    row, 2 where it replaces one. σ is in the same units as `l2`. See `accounting` for its cost.
    """

    kind = "sampled gaussian"
    sigma: float
    l2: int
    coordinates: int
    rate: float = 1.0
    sides: int = 1


@dataclass(frozen=True, slots=True)
class SampledGroups(_Event):
    """A sum over a Poisson sample of rows in groups of coordinates, with rounded Gaussian noise.

    Every row is taken by itself with probability `rate`. In group j a row adds a vector of L2 norm at
    most one unit c_j, and every coordinate of the group gets N(0, (m_j·c_j)²), m_j = multipliers[j];
    the result is rounded to a public grid (`understudy.privacy.noise.rounded`). All groups together
    are one Gaussian mechanism of sensitivity 1 with

        1/m² = Σ_j 1/m_j²,

    so l groups at one multiplier m cost what one does at m/√l. `coordinates` is how many numbers are
    drawn; `sides` is 1 where a neighbour adds or removes a row, 2 where it replaces one.
    """

    kind = "sampled groups"
    multipliers: tuple[float, ...]
    coordinates: int
    rate: float = 1.0
    sides: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "multipliers", tuple(map(_plain, self.multipliers)))
        _Event.__post_init__(self)

    @property
    def multiplier(self) -> float:
        """m of all groups together, rounded down."""
        total = sum((Fraction(1) / Fraction(each) ** 2 for each in self.multipliers), Fraction(0))
        joint = math.sqrt(1 / total)
        while Fraction(joint) ** 2 * total > 1:
            joint = math.nextafter(joint, 0.0)
        return joint


@dataclass(frozen=True, slots=True)
class SampledSelection(_Event):
    """One pick by Gumbel noise on integer scores of a Poisson sample of rows.

    Every row is taken by itself with probability q = `rate`; a neighbour moves a sample's scores by
    at most `sensitivity`. With ε0 = 2·sensitivity/scale the pick is pure ε = ln(1 + q(e^ε0 − 1))
    (Balle-Barthe-Gaboardi 2018); the bounded range of the exponential mechanism is lost.
    """

    kind = "sampled selection"
    scale: float
    sensitivity: int
    rate: float


@dataclass(frozen=True, slots=True)
class Discovery(_Event):
    """The values of a column that many hold: noisy counts of holders that reach a threshold τ.

    Only values that somebody holds are looked at. A neighbour, a whole privacy unit, holds at most
    `values` of them and adds one to the count of each; where it replaces another, `sides` is 2.
    Discrete Gaussian noise, so ρ = sides·values/(2σ²) for the counts of values that others hold as
    well; one that nobody else holds has a count of 1 and is shown with probability
    P(1 + Z ≥ τ) ≤ P(N(0, σ²) ≥ τ − 2), so that altogether δ = values·Φ̄((τ − 2)/σ), in the sense of
    δ-approximate ρ-zCDP (Korolova et al. 2009; Bun-Steinke 2016, Definition 8.1).
    """

    kind = "discovery"
    sigma: float
    threshold: int
    values: int = 1
    sides: int = 1

    @property
    def delta(self) -> float:
        """How likely a value that one neighbour alone holds is shown, at most."""
        tail = math.erfc((self.threshold - 2) / (self.sigma * math.sqrt(2))) / 2
        return min(1.0, self.values * tail * (1 + 1e-12))


@dataclass(frozen=True, slots=True)
class Zcdp(_Event):
    """A zCDP filter: draws are chosen adaptively while their ρ adds up to at most `rho`."""

    kind = "zcdp"
    rho: float

    def __post_init__(self) -> None:
        if isinstance(self.rho, Fraction):
            object.__setattr__(self, "rho", round_down(self.rho))
        _Event.__post_init__(self)


Event = (
    Discovery
    | Gaussian
    | Laplace
    | Perturbation
    | SampledGaussian
    | SampledGroups
    | SampledSelection
    | Selection
    | Zcdp
)

_KINDS: dict[str, type[Event]] = {each.kind: each for each in get_args(Event)}


def event_from_json(body: Mapping[str, Any]) -> Event:
    """Read what `to_json` wrote."""
    said = dict(body)
    kind = said.pop("kind", None)
    if kind not in _KINDS:
        raise PrivacyError(f"unknown event kind {kind!r}; known: {', '.join(sorted(_KINDS))}")
    try:
        return _KINDS[kind](**said)
    except TypeError as error:
        raise PrivacyError(f"event {kind!r} with fields {sorted(said)}: {error}") from None


@dataclass(frozen=True, slots=True)
class Charge:
    """A named slot of a plan: `event`, to be drawn at most `times` times."""

    purpose: str
    event: Event
    times: int = 1

    def __post_init__(self) -> None:
        if not self.purpose:
            raise PrivacyError("a charge needs a purpose")
        _count(f"charge {self.purpose!r}", "times", self.times)

    def to_json(self) -> dict[str, Any]:
        """Canonical form for the ledger."""
        return {"purpose": self.purpose, "event": self.event.to_json(), "times": self.times}


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a release may draw, fixed before anything private is read."""

    charges: tuple[Charge, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "charges", tuple(self.charges))
        named = Counter(charge.purpose for charge in self.charges)
        twice = sorted(purpose for purpose, times in named.items() if times > 1)
        if twice:
            raise PrivacyError(f"a plan names each purpose once; named again: {', '.join(twice)}")

    def __getitem__(self, purpose: str) -> Charge:
        for charge in self.charges:
            if charge.purpose == purpose:
                return charge
        known = ", ".join(charge.purpose for charge in self.charges) or "none"
        raise PrivacyError(f"the plan has no charge for {purpose!r}; it has: {known}")

    def event(self, purpose: str, kind: type[E]) -> E:
        """The event that is planned for a purpose, of the kind that it is known to be."""
        event = self[purpose].event
        if not isinstance(event, kind):
            raise PrivacyError(f"{purpose!r} is planned as {event}, and must be a {kind.__name__}")
        return event

    def __contains__(self, purpose: object) -> bool:
        return any(charge.purpose == purpose for charge in self.charges)

    def drawn(self, purpose: str, given: Event | None) -> Event:
        """What is drawn for a purpose: its planned event, or inside a zCDP filter the one given."""
        planned = self[purpose].event
        adaptive = isinstance(planned, Zcdp)
        if (given is None) == adaptive:
            wrong = "a zCDP filter needs the event to draw" if adaptive else "its event is fixed"
            raise PrivacyError(f"charge {purpose!r}: {wrong}")
        return planned if given is None else given

    def __iter__(self) -> Iterator[Charge]:
        return iter(self.charges)

    def to_json(self) -> list[dict[str, Any]]:
        """Canonical form for the ledger."""
        return [charge.to_json() for charge in self.charges]

    @classmethod
    def from_json(cls, body: list[dict[str, Any]]) -> Plan:
        """Read what `to_json` wrote."""
        return cls(
            tuple(Charge(c["purpose"], event_from_json(c["event"]), c["times"]) for c in body)
        )
