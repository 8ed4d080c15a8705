"""Lower bounds on ε from what an attack got right.

Each function answers: which ε can no longer be claimed, at confidence 1 − β, after these guesses? A
bound above the claim refutes it. A bound below it proves nothing, whatever the number: a better
attack may exist.

    many runs       R releases with a canary, R without: Clopper-Pearson on both rates
    credible        the same, as a Bayesian quantile under Jeffreys' prior
    Gaussian        the same, if the trade-off curve is known to be Gaussian
    one run         m canaries, each in or out by a fair coin, in one release (or in several)

Canary, threshold and number of guesses must be fixed before the runs that are counted are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from understudy.errors import InputError

_MOST = 700.0  # e^ε must stay a float
_QUADRATURE = 1000


def many_runs_lower_bound(
    *, hits: int, with_canary: int, alarms: int, without_canary: int, delta: float, beta: float
) -> float:
    """ε that runs with and without one canary refute, at confidence 1 − β.

    `hits` of `with_canary` runs and `alarms` of `without_canary` were called "member". With
    TPR ≥ t and FPR ≤ f, Clopper-Pearson bounds at β/2 each, every (ε, δ)-DP mechanism has

        ε ≥ max(0, ln((t − δ)/f), ln((1 − f − δ)/(1 − t))).

    Both inequalities use the same two bounds, so nothing more is paid for taking the larger
    (Jagielski, Ullman and Oprea 2020).
    """
    tpr, fpr = _rates(hits, with_canary, alarms, without_canary, delta, beta)
    return _from_rates(tpr, fpr, delta)


def gaussian_lower_bound(
    *, hits: int, with_canary: int, alarms: int, without_canary: int, delta: float, beta: float
) -> float:
    """The same if the mechanism is known to be μ-Gaussian-DP, and only then.

    μ ≥ Φ⁻¹(t) − Φ⁻¹(f), and ε solves δ = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) (Nasr et al. 2023).
    Needs δ > 0: a Gaussian mechanism has no pure ε.
    """
    if not delta > 0:
        raise InputError(f"delta = {delta}: a Gaussian mechanism has an ε only at a δ above 0")
    tpr, fpr = _rates(hits, with_canary, alarms, without_canary, delta, beta)
    if not 0 < tpr < 1 or not 0 < fpr < 1:
        return 0.0
    mu = float(special.ndtri(tpr) - special.ndtri(fpr))
    if mu <= 0:
        return 0.0

    def spare(epsilon: float) -> float:
        beyond = special.ndtr(-epsilon / mu + mu / 2)
        return float(beyond - math.exp(epsilon) * special.ndtr(-epsilon / mu - mu / 2)) - delta

    return _largest(lambda epsilon: spare(epsilon) >= 0)


def credible_lower_bound(
    *, hits: int, with_canary: int, alarms: int, without_canary: int, delta: float, beta: float
) -> float:
    """The β-quantile of ε under Jeffreys' prior: *credible* at 1 − β, not a confidence bound.

    FPR ~ Beta(½ + FP, ½ + TN) and FNR ~ Beta(½ + FN, ½ + TP), independent, and
    ε = max(ln((1 − δ − FNR)/FPR), ln((1 − δ − FPR)/FNR)) (Zanella-Béguelin et al. 2023). The law
    of ε is integrated over quantiles of FPR rather than drawn, so the answer takes no seed.
    """
    _check(hits, with_canary, alarms, without_canary, delta, beta)
    misses, silent = with_canary - hits, without_canary - alarms
    at = (np.arange(_QUADRATURE) + 0.5) / _QUADRATURE
    fpr = special.betaincinv(0.5 + alarms, 0.5 + silent, at)

    def below(epsilon: float) -> float:
        """P(ε ≤ epsilon): FNR is at least what both inequalities ask."""
        ratio = math.exp(epsilon)
        least = np.maximum(1 - delta - ratio * fpr, (1 - delta - fpr) / ratio)
        inside = np.clip(least, 0.0, 1.0)
        return float(np.mean(special.betaincc(0.5 + misses, 0.5 + hits, inside)))

    return _largest(lambda epsilon: below(epsilon) <= beta)


def one_run_lower_bound(
    *, canaries: int, guesses: int, correct: int, delta: float, beta: float
) -> float:
    """ε that one run on many canaries refutes, at confidence 1 − β.

    Each of m canaries was put in by a fair coin; the auditor guessed r of the coins from the output,
    abstaining on the others, and v guesses were right. If the mechanism is (ε, δ)-DP for one canary,
    with W ~ Binomial(r, e^ε/(1 + e^ε)) and f(v) = P(W ≥ v),

        P(correct ≥ v) ≤ f(v) + 2mδ · max over 1 ≤ i ≤ m of (f(v − i) − f(v))/i

    (Steinke, Nasr and Jagielski 2023). Returned is the largest ε that keeps the right-hand side at
    most β. Several independent runs count as one run on all their canaries: each coin moves one of
    them, so the product of the runs is (ε, δ)-DP for every coin.

    `guesses` must be fixed in advance.
    """
    _whole(canaries, "canaries", 1)
    _among(guesses, "guesses", canaries, "canaries")
    _among(correct, "correct", guesses, "guesses")
    check_risk(delta, beta)
    if guesses == 0:
        return 0.0
    fewer = np.arange(1, correct + 1)  # beyond v steps f is 1 and only the divisor grows

    def chance(epsilon: float) -> float:
        p = 1 / (1 + math.exp(-epsilon))
        tail = float(special.bdtrc(correct - 1, guesses, p)) if correct else 1.0  # P(W ≥ v)
        if delta == 0 or correct == 0:
            return tail
        gains = (special.bdtrc(correct - fewer - 1.0, guesses, p) - tail) / fewer
        return tail + 2 * canaries * delta * max(0.0, float(gains.max()))

    return _largest(lambda epsilon: chance(epsilon) <= beta)


def largest_many_runs_bound(
    *, with_canary: int, without_canary: int, delta: float, beta: float
) -> float:
    """What a perfect attack would show in so many runs; no run of this size can show more."""
    runs = {"with_canary": with_canary, "without_canary": without_canary}
    return many_runs_lower_bound(hits=with_canary, alarms=0, **runs, delta=delta, beta=beta)


def largest_one_run_bound(*, canaries: int, guesses: int, delta: float, beta: float) -> float:
    """What guesses that are all right would show."""
    return one_run_lower_bound(
        canaries=canaries, guesses=guesses, correct=guesses, delta=delta, beta=beta
    )


def rate_below(successes: int, trials: int, beta: float) -> float:
    """The rate is at least this with confidence 1 − β (Clopper-Pearson, one-sided)."""
    if successes == 0:
        return 0.0
    return float(special.betaincinv(successes, trials - successes + 1, beta))


def rate_above(successes: int, trials: int, beta: float) -> float:
    """The rate is at most this with confidence 1 − β (Clopper-Pearson, one-sided)."""
    if successes == trials:
        return 1.0
    return float(special.betaincinv(successes + 1, trials - successes, 1 - beta))


def _rates(
    hits: int, with_canary: int, alarms: int, without_canary: int, delta: float, beta: float
) -> tuple[float, float]:
    _check(hits, with_canary, alarms, without_canary, delta, beta)
    return rate_below(hits, with_canary, beta / 2), rate_above(alarms, without_canary, beta / 2)


def _from_rates(tpr: float, fpr: float, delta: float) -> float:
    found = [0.0]
    if tpr > delta and fpr > 0:
        found.append(math.log((tpr - delta) / fpr))
    if 1 - fpr > delta and tpr < 1:
        found.append(math.log((1 - fpr - delta) / (1 - tpr)))
    return max(found)


def _largest(holds: Callable[[float], bool]) -> float:
    """The end of an interval that begins at 0, from the inside; 0 if it is empty."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < _MOST and holds(high):
        low, high = high, 2 * high
    if high >= _MOST:
        return _MOST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _check(
    hits: int, with_canary: int, alarms: int, without_canary: int, delta: float, beta: float
) -> None:
    _whole(with_canary, "with_canary", 1)
    _whole(without_canary, "without_canary", 1)
    _among(hits, "hits", with_canary, "with_canary")
    _among(alarms, "alarms", without_canary, "without_canary")
    check_risk(delta, beta)


def check_risk(delta: float, beta: float) -> None:
    """Refuse a δ that is no chance, and a β that leaves no confidence."""
    if not 0 <= delta < 1:
        raise InputError(f"delta = {delta} must be at least 0 and below 1")
    if not 0 < beta <= 0.5:
        raise InputError(f"beta = {beta} must be above 0 and at most 0.5, for instance 0.05")


def _whole(value: int, name: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} = {value!r} must be a whole number, at least {least}")


def _among(value: int, name: str, most: int, of: str) -> None:
    _whole(value, name, 0)
    if value > most:
        raise InputError(f"{name} = {value} must be at most {of} = {most}")
