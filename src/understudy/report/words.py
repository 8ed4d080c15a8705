"""What a release promises, in the words of the people who will rely on it."""

from __future__ import annotations

import math

from understudy.audit import ceiling
from understudy.privacy.cost import SampledGroups
from understudy.privacy.relation import Relation
from understudy.releases import Release
from understudy.report.facts import unmeasured
from understudy.units import Unit, things
from understudy.wording import number

REASONABLE = 10
"""The largest ε that is commonly held to promise something by itself (Ponomareva et al. 2023)."""
_SMALL = ("zero", "one", "two", "three", "four", "five", "six")


def whose(release: Release) -> str:
    """Whose privacy: a row, or what the rows of a unit belong to."""
    return protected(release.schema.unit)


def protected(unit: Unit | None) -> str:
    """Who is protected, in a word."""
    if unit is None:
        return "row"
    return "family" if unit.family else unit.column


def counted(release: Release) -> str:
    """What the shares of a release are shares of."""
    return things(release.schema.unit)


def meaning(epsilon: float, delta: float, unit: Unit | None, relation: Relation) -> str:
    """What ε means, the same words everywhere: what the best attack gains over guessing.

    For a prior of one half, where the gain is largest, P(right) ≤ (e^ε + δ)/(1 + e^ε); see
    `understudy.audit.ceiling`.
    """
    right = math.ceil(1e3 * ceiling.accuracy(epsilon, delta) - 1e-9) / 10
    who = protected(unit)
    asked = f"Was a certain {who} in the table?"
    if unit is not None and unit.family:
        parent = f"row of {unit.column.partition('.')[0]}"
        asked = f"Was a certain {parent}, with all its {unit.family}, in the tables?"
    elif unit is not None:
        asked = f"Were rows of a certain {who} in the table?"
    if relation is Relation.REPLACE:
        asked = f"Which of two values did a certain {who} of the table have?"
    return (
        f"{asked} Guessing is right 50 % of the time. With this release, whoever starts from there can "
        f"be right at most {right:g} % of the time: a gain of at most {right - 50:.3g} percentage "
        f"points, whatever else they know and whatever they try."
    )


def promise(release: Release) -> str:
    """The promise in plain words, true for every ε."""
    return meaning(release.epsilon, release.delta, release.schema.unit, release.relation)


def strength(epsilon: float) -> str:
    """How strong an ε is commonly held to be (Ponomareva et al. 2023, section 5.2)."""
    if epsilon <= 1:
        return "a strong formal promise"
    if epsilon <= REASONABLE:
        return "a reasonable promise, weaker than the strong ones (ε at most 1)"
    return "a weak promise: hardly more than none by itself"


def caution(epsilon: float) -> str | None:
    """What to say of an ε that promises hardly anything, before it is spent; None for others."""
    if epsilon <= REASONABLE:
        return None
    return f"ε = {number(epsilon)} protects hardly anybody; common choices lie between 0.1 and 10"


def chance(delta: float) -> str:
    """A small probability in words."""
    if delta <= 0:
        return "without exception"
    return f"but for a chance of 1 in {1 / delta:,.0f}"


def factor(epsilon: float) -> str:
    """e^ε: how much likelier one row can make anything."""
    return number(math.exp(min(epsilon, 700.0)))


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


def inferred(release: Release) -> str | None:
    """That most pairs of columns were not measured, where that is so and is known."""
    missing, total = unmeasured(release)
    if not release.measurements or 2 * missing <= total:
        return None
    return (
        f"{total - missing:,} of {total:,} pairs of columns were measured; the other {missing:,} "
        f"follow from the model alone. What needs such a pair, such as a mean by group, may be “not "
        f"determined”; a release with --purpose measures the pairs that it names"
    )


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
