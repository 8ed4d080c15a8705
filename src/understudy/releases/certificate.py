"""The certificate: a privately measured upper bound on the worst error, whatever the method did.

Theorem (lattice version). Fix the M synthetic rows and the workload Q. Let
K = max_{q in Q} |M·c_q(D) − n·ĉ_q| = n·M·g with g = max_q |c_q(D)/n − ĉ_q/M| the worst error. The
gate releases R = ⌈L·K/M⌉ + Z, Z discrete Laplace with P(z) ∝ a^|z|, a = e^{−1/scale}, of
sensitivity L under both relations. With t the least integer such that a^{t+1}/(1+a) ≤ β,

    P( g > (R + t)/(L·n) ) ≤ P(Z ≤ −t−1) = a^{t+1}/(1+a) ≤ β.

An error is never negative, so the bound is (max(R, 0) + t)/(L·n): it covers at least as often, and a
certificate never claims less than its own noise can tell (no "≤ 0.0000" on an unlucky draw).

Where n is private it is replaced in the denominator by n_low = ñ − ⌈σ·z⌉, ñ the privately measured
number of rows, which is above n with probability at most β_n (the discrete Gaussian has lighter tails
than the continuous one: P(Z ≥ m+1) ≤ P(N ≥ m), Canonne-Kamath-Steinke 2020). The two failures add.

Total variations on request: V_j + m over 4·n bounds TV_j for all J marginals at once, with
m = ⌈σ·z_{(1−β)^{1/J}}⌉ (Šidák; the noises are independent). TV_j bounds the error of every question
about the columns of marginal j.

The statement is about these rows and this table; only the noise of the certificate is random.

Population, for methods that ask: where the n rows are independent draws from a population P, all |Q|
cells at once satisfy |q(D) − q(P)| ≤ √(ln(2|Q|/β')/(2n)) with probability 1 − β' (Hoeffding), so the
worst error against P is at most bound + √(ln(2|Q|/β')/(2n)) with probability 1 − β − β'. No other
algorithm and no further charge is needed for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy import wording
from understudy.errors import PrivacyError
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import (
    VARIATION_GRID,
    TotalVariations,
    WorstError,
    WorstErrorOfRows,
    WorstQueryError,
    variation_step,
)
from understudy.privacy.relation import Relation
from understudy.queries import counts
from understudy.queries.families import ViewCounts

LATTICE = 64
"""Errors are measured in units of 1/64 row."""

WORST = "certificate"
VARIATION = "certificate of total variation"
ROWS = "number of rows"

_TABULATED = 20_000_000  # Cells up to which marginals are compared as whole tables
_ROWS_SHARE = 0.2  # Of the failure probability, what covers a privately measured n


class Events(NamedTuple):
    """What the plan has for the certificate itself; None where n is public, or it is not asked for."""

    worst: Laplace
    rows: Gaussian | None
    variation: Gaussian | None

    @classmethod
    def of(cls, plan: Plan) -> Events:
        """The events of its charges."""
        events = {charge.purpose: charge.event for charge in plan.charges}
        worst, rows, variation = (events.get(purpose) for purpose in (WORST, ROWS, VARIATION))
        if (
            not isinstance(worst, Laplace)
            or not isinstance(rows, Gaussian | None)
            or not isinstance(variation, Gaussian | None)
        ):
            raise PrivacyError(
                f"the plan has {worst}, {rows} and {variation} for {WORST!r}, {ROWS!r} and "
                f"{VARIATION!r}, which no certificate has"
            )
        return cls(worst, rows, variation)


def variation_charge(
    rho: Fraction, relation: Relation, marginals: int, rows_public: bool
) -> Charge:
    """The charge of simultaneous bounds on the total variation of every marginal."""
    step = variation_step(relation, rows_public=rows_public)
    return Charge(VARIATION, planning.gaussian(rho, step=step, changes=marginals))


def population_margin(queries: int, rows: int, beta: float) -> float:
    """√(ln(2|Q|/β)/(2n)): how far a sample of n rows is from its population on any of |Q| queries."""
    return math.sqrt(math.log(2 * max(queries, 1) / beta) / (2 * max(rows, 1)))


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is certified about the bundled synthetic rows, at confidence 1 − beta, all of it at once.

    `bound`: no cell of the workload (no query, where it has other classes) is off by more than this
    share of the rows; `cells` counts them, `of` is what they are.
    `variations`: per marginal of the workload, a bound on its total variation; None if not asked for.
    `population`: the same as `bound` for the population that the rows were drawn from, at confidence
    1 − 2·beta; None unless the method asked for it.
    The remaining fields are the released numbers from which a stranger recomputes both.
    """

    bound: float
    beta: float
    cells: int
    rows: int
    worst: int
    rows_measured: int | None
    rows_public: int | None
    variations: tuple[float, ...] | None = None
    variations_measured: tuple[int, ...] | None = None
    population: float | None = None
    of: str = "cells"

    def __str__(self) -> str:
        return self._said(wording.bound)

    def __repr__(self) -> str:
        return f"<Certificate: {self}>"

    @property
    def statement(self) -> str:
        """The same as the bundle states it, in which a bound of 1 is a number like any other."""
        return self._said(lambda bound: f"≤ {bound:.4f}")

    def _said(self, at_most: Callable[[float], str]) -> str:
        text = (
            f"worst error over {self.cells:,} {self.of} of the workload {at_most(self.bound)} "
            f"({100 * (1 - self.beta):g} % confidence)"
        )
        if self.variations is not None:
            text += f"; total variation of every marginal {at_most(max(self.variations))}"
        if self.population is not None:
            text += (
                f"; against a population that the rows were drawn from independently "
                f"{at_most(self.population)} ({100 * (1 - 2 * self.beta):g} % confidence)"
            )
        return text

    def _repr_html_(self) -> str:
        from understudy.releases.notebook import certificate_card

        return certificate_card(self)

    def to_json(self) -> dict[str, Any]:
        """For the bundle."""
        body = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        for name, usual in (("population", None), ("of", "cells")):
            if body[name] == usual:
                del body[name]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Certificate:
        """Read what `to_json` wrote."""
        fields = dict(body)
        for name in ("variations", "variations_measured"):
            fields[name] = None if fields[name] is None else tuple(fields[name])
        return cls(**fields)

    def seen(self, plan: Plan, rows: int) -> tuple[float, float]:
        """The worst error as it was measured, and the scale of its Laplace noise, as shares of rows."""
        event = Events.of(plan).worst
        return self.worst / (event.l1 * rows), event.scale / (event.l1 * rows)

    def bounded(self, plan: Plan, *, population: bool = False) -> Certificate:
        """With the bounds that its released numbers and the planned noise give, whatever it stated."""
        worst_beta, rows_beta, variation_beta = _failures(
            self.beta, self.rows_public is None, self.variations_measured is not None
        )
        event, rows, variation = Events.of(plan)
        n = _rows_bound(rows, self.rows_measured, self.rows_public, rows_beta)
        margin = _laplace_margin(event.scale, worst_beta)
        bound = min(1.0, (max(self.worst, 0) + margin) / (event.l1 * n))
        variations = None
        if self.variations_measured is not None:
            assert variation is not None
            count = len(self.variations_measured)
            margin = _gaussian_margin(variation.sigma, 1 - (1 - variation_beta) ** (1 / count))
            variations = tuple(
                min(1.0, (max(v, 0) + margin) / (2 * VARIATION_GRID * n))
                for v in self.variations_measured
            )
        beyond = None
        if population:
            beyond = min(1.0, bound + population_margin(self.cells, n, self.beta))
        return replace(self, bound=bound, variations=variations, population=beyond)


def certify(
    gate: Gate,
    plan: Plan,
    cliques: Sequence[tuple[int, ...]],
    codes: Sequence[NDArray[np.unsignedinteger[Any]]],
    *,
    beta: float,
    rows_measured: int | None,
    population: bool = False,
    classes: Sequence[ProductQueries] = (),
    views: ViewCounts | None = None,
) -> Certificate:
    """Measure and bound the worst error of fixed synthetic rows, given as codes.

    Charges are in the plan. Marginals that are too large to tabulate are compared cell by occupied
    cell, with the same result. `classes`, one for each clique, are what is asked of the cliques where
    that is not all of their cells. `views` are those of synthetic families, in place of rows.
    """
    size, facts = int(codes[0].size) if views is None else views.total, gate.facts
    sizes = [math.prod(facts.shape[i] for i in clique) for clique in cliques]
    variations, varied = None, Events.of(plan).variation is not None
    if varied or classes or views is not None or sum(sizes) <= _TABULATED:
        tables = counts(codes, facts.shape, cliques) if views is None else views.tables(cliques)
        if classes:
            worst = gate.ask(WORST, WorstQueryError(classes, tables, size))
        else:
            worst = gate.ask(WORST, WorstError(cliques, tables, size))
        if varied:
            noisy = gate.ask(VARIATION, TotalVariations(cliques, tables, size))
            variations = tuple(int(v) for v in noisy)
    else:
        worst = gate.ask(WORST, WorstErrorOfRows(cliques, codes))
    return Certificate(
        bound=1.0,
        beta=beta,
        cells=sum(each.size for each in classes) if classes else sum(sizes),
        rows=size,
        worst=worst,
        rows_measured=rows_measured,
        rows_public=facts.rows_public,
        variations_measured=variations,
        of="queries" if classes else "cells",
    ).bounded(plan, population=population)


def forecast_margin(plan: Plan, beta: float, rows: int, rows_private: bool) -> float:
    """How much the certificate adds to the true worst error: noise margin plus its mean of zero."""
    event, _, variation = Events.of(plan)
    worst_beta, _, _ = _failures(beta, rows_private, variation is not None)
    return _laplace_margin(event.scale, worst_beta) / (event.l1 * max(rows, 1))


def _failures(beta: float, rows_private: bool, variations: bool) -> tuple[float, float, float]:
    """β split over the statements made, so that all hold together with probability 1 − β."""
    rows_beta = beta * _ROWS_SHARE if rows_private else 0.0
    left = beta - rows_beta
    return (left / 2, rows_beta, left / 2) if variations else (left, rows_beta, 0.0)


def _rows_bound(
    noise: Gaussian | None, rows_measured: int | None, rows_public: int | None, beta: float
) -> int:
    if rows_public is not None:
        return max(1, rows_public)
    assert rows_measured is not None
    assert noise is not None
    return max(1, rows_measured - _gaussian_margin(noise.sigma, beta))


def _laplace_margin(scale: float, beta: float) -> int:
    """The least integer t with a^{t+1}/(1+a) ≤ β, a = e^{−1/scale}."""
    log_mass = math.log1p(math.exp(-1 / scale))
    t = max(0, math.ceil(scale * (-math.log(beta) - log_mass)) - 1)
    while -(t + 1) / scale - log_mass > math.log(beta):
        t += 1
    while t > 0 and -t / scale - log_mass <= math.log(beta):
        t -= 1
    return t


def _gaussian_margin(sigma: float, beta: float) -> int:
    """m with P(Z ≥ m + 1) ≤ P(N(0, σ²) ≥ m) ≤ β."""
    return max(0, math.ceil(sigma * NormalDist().inv_cdf(1 - beta)))
