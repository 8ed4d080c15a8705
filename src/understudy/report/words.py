"""What a release promises, in the words of the people who will rely on it."""

from __future__ import annotations

import math

from understudy.audit import ceiling
from understudy.privacy.cost import SampledGroups
from understudy.privacy.relation import Relation
from understudy.releases import Release
from understudy.wording import number, percent

__all__ = ["chance", "factor", "noise", "promise", "small", "strength", "tables", "whose"]

_SMALL = ("zero", "one", "two", "three", "four", "five", "six")


def whose(release: Release) -> str:
    """Whose privacy: a row, or what the rows of a unit belong to."""
    unit = release.schema.unit
    return "row" if unit is None else unit.column


def promise(release: Release) -> str:
    """The promise in one sentence, true for every ε: what the best attack can reach.

    For a prior of one half, P(right) ≤ (e^ε + δ)/(1 + e^ε); see `understudy.audit.ceiling`.
    """
    right = percent(ceiling.accuracy(release.epsilon, release.delta))
    unit = whose(release)
    if release.relation is Relation.REPLACE:
        asked = f"which of two possible values one particular {unit} of the original table had"
    else:
        asked = f"whether one particular {unit} was in the original table"
    return (
        f"Anyone trying to tell from this release {asked} is right at most {right} of the time, "
        f"whatever else they know. A coin is right 50 %."
    )


def strength(epsilon: float) -> str:
    """How strong an ε is commonly held to be (Ponomareva et al. 2023, section 5.2)."""
    if epsilon <= 1:
        return "a strong formal promise"
    if epsilon <= 10:
        return "a reasonable promise, weaker than the strong ones (ε at most 1)"
    return "a weak promise: hardly more than none by itself"


def chance(delta: float) -> str:
    """A small probability in words."""
    if delta <= 0:
        return "without exception"
    return f"but for a chance of 1 in {1 / delta:,.0f}"


def factor(epsilon: float) -> str:
    """e^ε: how much likelier one row can make anything."""
    return number(math.exp(min(epsilon, 700.0)))


def small(value: float) -> str:
    """A small number as people write it: 1e-9."""
    text = f"{value:g}"
    return text.replace("e-0", "e-")


def tables(release: Release) -> str:
    """What the certificate speaks of."""
    workload, of = release.workload, release.certificate.of
    if of != "cells":
        return f"{release.certificate.cells:,} {of} of the workload ({', '.join(workload.kinds)})"
    sizes = sorted({len(clique) for clique in workload.cliques})
    word = _SMALL[sizes[-1]] if sizes[-1] < len(_SMALL) else str(sizes[-1])
    columns = f"{word} {'column' if sizes[-1] == 1 else 'columns'}"
    up_to = "" if len(sizes) == 1 else "up to "
    many = len(workload)
    return f"{many:,} {'table' if many == 1 else 'tables'} of {up_to}{columns}"


def noise(release: Release) -> str:
    """Where the noise comes from; gradients have too many coordinates for an exact sampler."""
    if not release.private:
        return "This release was made with seeded test noise and protects nobody."
    exact = (
        "Noise is drawn as integers from the operating system's cryptographic source, through "
        "OpenDP's samplers, which are exact: no floating-point number of it is released."
    )
    if any(isinstance(charge.event, SampledGroups) for charge in release.plan):
        return (
            f"{exact} For gradients it is drawn in floating point from cryptographic bits and rounded "
            f"to a public grid; what that could change is charged."
        )
    return exact
