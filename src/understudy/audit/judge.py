"""From the scores of many runs to attacks' ROC curves and one lower bound on ε.

Runs are independent; in each, every canary is in or out by a fair coin. They are divided once, before
any is looked at, into three parts:

    fit      attacks learn what they learn (shadow networks, LiRA's laws, discriminants)
    choose   the attack with its threshold, or its number of guesses, is picked
    judge    what was picked is counted; nothing else is read from these runs

so that the bound is a confidence bound for one test fixed in advance. With one canary the bound is
that of many runs (Clopper-Pearson); with several it is that of one run on all canaries of all runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sized
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy import files
from understudy._types import Bools, Floats, Rng
from understudy._version import __version__
from understudy.audit import bounds, ceiling
from understudy.audit.roc import Interval, Roc, mean_interval, rank_rule, roc
from understudy.audit.runs import Progress, Runs, Task, collect
from understudy.errors import InputError, require_extra

LIMITS = "An audit can refute a claimed ε; it can never prove one."
LEVELS = (0.001, 0.01)
"""False-positive rates at which TPR is reported."""
_SIDES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of all coins that are guessed "in", and "out"."""
_QUANTILES = np.linspace(0, 1, 201)  # Where thresholds are tried
_LEAST_RUNS = 6
_WRONG = 0.45  # An AUC below this on the fitting runs turns a rule round


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be refuted: (ε, δ), at confidence 1 − β. ε is None where nothing is claimed."""

    epsilon: float | None
    delta: float
    beta: float

    def __post_init__(self) -> None:
        if self.epsilon is not None and not (0 < self.epsilon < math.inf):
            raise InputError(
                f"epsilon = {self.epsilon}: a claim is above 0 and finite; ε = 0 would mean an "
                f"output that does not depend on the rows at all, and no ε means no claim"
            )
        bounds.check_risk(self.delta, self.beta)

    @property
    def risk(self) -> dict[str, Any]:
        """δ and β, as every bound takes them."""
        return {"delta": self.delta, "beta": self.beta}


@dataclass(frozen=True, slots=True)
class Parts:
    """Which runs serve what."""

    fit: slice
    choose: slice
    judge: slice

    @classmethod
    def of(cls, runs: int) -> Parts:
        """A third to learn from, a sixth to choose by, half to judge."""
        if runs < _LEAST_RUNS:
            raise InputError(
                f"runs = {runs}: an audit needs at least {_LEAST_RUNS} runs, a third to learn from, "
                f"a sixth to choose by and half to judge"
            )
        first = max(2, runs // 3)
        second = first + max(1, runs // 6)
        return cls(slice(0, first), slice(first, second), slice(second, runs))

    @property
    def judged(self) -> int:
        """The number of runs that count."""
        return self.judge.stop - self.judge.start


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """How one attack did on the judged runs."""

    name: str
    curve: Roc
    accuracy: Interval
    """Of the rank rule, one value per run."""

    @property
    def tpr_at(self) -> dict[float, float]:
        """TPR at the low FPRs where an attack is worth something."""
        return {level: self.curve.tpr_at(level) for level in LEVELS}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The one test, and what it showed."""

    claim: Claim
    how: str
    attack: str
    evidence: Mapping[str, int]
    bound: float
    """No (ε, δ)-DP mechanism with ε below this gives such evidence, but with probability β."""
    largest: float
    """What the same number of runs would have shown had every guess been right."""

    @property
    def others(self) -> dict[str, float]:
        """Further readings of the same evidence, each under an assumption of its own."""
        if "hits" not in self.evidence:
            return {}
        seen: dict[str, Any] = {**self.evidence, **self.claim.risk}
        found = {"credible": bounds.credible_lower_bound(**seen)}
        if self.claim.delta > 0:
            found["gaussian"] = bounds.gaussian_lower_bound(**seen)
        return found

    @property
    def refuted(self) -> bool:
        """Whether the claim cannot be kept."""
        return self.claim.epsilon is not None and self.bound > self.claim.epsilon

    @property
    def words(self) -> str:
        """One sentence."""
        sure = f"{100 * (1 - self.claim.beta):g} % confidence"
        if self.claim.epsilon is None:
            return f"ε is at least {self.bound:.3g} ({sure}); nothing was claimed"
        if self.refuted:
            return (
                f"the claim of ε = {self.claim.epsilon:g} is refuted: "
                f"ε is at least {self.bound:.3g} ({sure})"
            )
        return (
            f"the claim of ε = {self.claim.epsilon:g} is not refuted: the attacks show ε ≥ "
            f"{self.bound:.3g} ({sure}) and could have shown {self.largest:.3g}. An audit can "
            f"refute a claim, never prove it"
        )


def largest_bound(runs: int, canaries: int, claim: Claim) -> float:
    """The largest ε that an audit of this size can show."""
    judged = Parts.of(runs).judged
    if canaries == 1:
        halves = {"with_canary": judged // 2, "without_canary": judged - judged // 2}
        return bounds.largest_many_runs_bound(**halves, **claim.risk)
    coins = judged * canaries
    return bounds.largest_one_run_bound(canaries=coins, guesses=coins, **claim.risk)


def require_power(runs: int, canaries: int, claim: Claim) -> None:
    """Refuse, before anything is trained, an audit that could not refute the claim whatever came.

    Raises:
        InputError: With the largest ε that could have been shown, and the runs that are needed; or
            scikit-learn, which attacks learn with, is missing.
    """
    require_extra("an audit", "learn")
    if claim.epsilon is None:
        return
    found = largest_bound(runs, canaries, claim)
    if found > claim.epsilon:
        return
    enough = runs
    while enough < 1 << 24 and largest_bound(enough, canaries, claim) <= claim.epsilon:
        enough = enough + max(1, enough // 20)
    remedy = (
        f"give at least {enough} runs" if enough < 1 << 24 else "claim a smaller ε, or a smaller δ"
    )
    many = "1 canary" if canaries == 1 else f"{canaries} canaries"
    raise InputError(
        f"runs = {runs} with {many} are too few to say anything: even if every guess were right, "
        f"they could show no more than ε = {found:.3g} at confidence {1 - claim.beta:g}, and "
        f"ε = {claim.epsilon:g} is claimed; {remedy}"
    )


def oriented(scores: Mapping[str, Floats], inside: Bools, parts: Parts) -> dict[str, Floats]:
    """Attacks whose rule is upside down on the fitting runs are flipped, and say so.

    A guess that is wrong more often than right is no privacy: its opposite is an attack.
    """
    found: dict[str, Floats] = {}
    for name, each in scores.items():
        learnt = inside[parts.fit]
        wrong = learnt.any() and not learnt.all() and roc(each[parts.fit], learnt).auc < _WRONG
        found[f"{name}, flipped" if wrong else name] = -each if wrong else each
    return found


def measure(name: str, scores: Floats, inside: Bools, rng: Rng) -> Attack:
    """The curve over all judged coins, and the rank rule's accuracy run by run."""
    mixed = [k for k in range(len(inside)) if inside[k].any() and not inside[k].all()]
    if mixed:
        right = [rank_rule(scores[k], inside[k], rng) for k in mixed]
    else:  # one canary: a run has a member or another, so runs are ranked, all at once
        right = [rank_rule(np.ravel(scores), np.ravel(inside), rng)]
    return Attack(name, roc(scores, inside), mean_interval(right))


def verdict(
    scores: Mapping[str, Floats], inside: Bools, parts: Parts, claim: Claim, rng: Rng
) -> Verdict:
    """Choose on the choosing runs, count on the judged ones.

    `scores` holds runs × canaries for every attack, already fitted on the fitting runs.
    """
    if inside.shape[1] == 1:
        flat = {name: found[:, 0] for name, found in scores.items()}
        return _many_runs(flat, inside[:, 0], parts, claim)
    coins = inside[parts.judge].size
    best: tuple[float, str, int, int] = (-1.0, next(iter(scores)), 0, 0)
    for name, found in scores.items():
        seen, bits = np.ravel(found[parts.choose]), np.ravel(inside[parts.choose])
        order = np.lexsort((rng.random(len(seen)), seen))
        ascending = bits[order]
        for up in _SIDES:
            for down in _SIDES:
                ins, outs = round(up * len(seen)), round(down * len(seen))
                if not 0 < ins + outs <= len(seen):
                    continue
                right = int(ascending[len(seen) - ins :].sum()) + int((~ascending[:outs]).sum())
                ups, downs = round(up * coins), round(down * coins)
                if not 0 < ups + downs <= coins:
                    continue
                correct = _expected(right, ins + outs, ups + downs)
                value = bounds.one_run_lower_bound(
                    canaries=coins, guesses=ups + downs, correct=correct, **claim.risk
                )
                best = max(best, (value, name, ups, downs))
    _, name, ups, downs = best
    seen, bits = np.ravel(scores[name][parts.judge]), np.ravel(inside[parts.judge])
    ascending = bits[np.lexsort((rng.random(len(seen)), seen))]
    correct = int(ascending[coins - ups :].sum()) + int((~ascending[:downs]).sum())
    evidence = {"canaries": coins, "guesses": ups + downs, "correct": correct}
    return Verdict(
        claim,
        f"one run, {inside.shape[1]} canaries in each of {parts.judged} runs",
        name,
        evidence,
        bounds.one_run_lower_bound(**evidence, **claim.risk),
        bounds.largest_one_run_bound(canaries=coins, guesses=ups + downs, **claim.risk),
    )


def _many_runs(scores: Mapping[str, Floats], inside: Bools, parts: Parts, claim: Claim) -> Verdict:
    judged = inside[parts.judge]
    with_, without = int(judged.sum()), int((~judged).sum())
    if not with_ or not without:
        raise InputError("the coins put the canary into all judged runs or none; give more runs")
    sizes = {"with_canary": with_, "without_canary": without}
    best: tuple[float, str, float] = (-1.0, "", math.inf)
    for name, found in scores.items():
        seen, bits = found[parts.choose], inside[parts.choose]
        for threshold in np.unique(np.quantile(seen, _QUANTILES, method="closest_observation")):
            called = seen >= threshold
            hits = _expected(int((called & bits).sum()), int(bits.sum()), with_)
            alarms = _expected(int((called & ~bits).sum()), int((~bits).sum()), without)
            value = bounds.many_runs_lower_bound(hits=hits, alarms=alarms, **sizes, **claim.risk)
            best = max(best, (value, name, float(threshold)))
    _, name, threshold = best
    called = scores[name][parts.judge] >= threshold
    hits, alarms = int((called & judged).sum()), int((called & ~judged).sum())
    evidence = {"hits": hits, "alarms": alarms, **sizes}
    return Verdict(
        claim,
        "many runs, one canary",
        name,
        evidence,
        bounds.many_runs_lower_bound(**evidence, **claim.risk),
        bounds.largest_many_runs_bound(**sizes, **claim.risk),
    )


def _expected(seen: int, of: int, among: int) -> int:
    """What a rate seen in a few would come to among more, a little towards one half."""
    return min(among, round((seen + 0.5) / (of + 1) * among))


# --- what an audit found, as data ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """Attacks on the judged runs, and the verdict on the claim."""

    what: str
    design: Mapping[str, Any]
    rows_used: str
    """Which rows the audit ran on, in words."""
    runs: int
    canaries: int
    attacks: tuple[Attack, ...]
    verdict: Verdict

    @property
    def refuted(self) -> bool:
        """Whether the claim cannot be kept."""
        return self.verdict.refuted

    def to_json(self) -> dict[str, Any]:
        """Everything but the curves' points, which the figure has."""
        claim, found = self.verdict.claim, self.verdict
        return {
            "what": f"understudy audit {self.what}",
            "understudy": __version__,
            "words": found.words,
            "limits": LIMITS,
            "refuted": found.refuted,
            "claim": asdict(claim),
            "lower_bound": {
                "epsilon": found.bound,
                "largest": found.largest,
                "how": found.how,
                "attack": found.attack,
                "evidence": dict(found.evidence),
                "under_assumptions": dict(found.others),
            },
            "ceiling": None
            if claim.epsilon is None
            else {
                "accuracy": ceiling.accuracy(claim.epsilon, claim.delta),
                "advantage": ceiling.advantage(claim.epsilon, claim.delta),
            },
            "rows_used": self.rows_used,
            "runs": self.runs,
            "canaries": self.canaries,
            "attacks": [_attack(each) for each in self.attacks],
            "design": dict(self.design),
        }

    def save(self, path: Path) -> Path:
        """Write audit.json, whole or not at all."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        files.write(path, text)
        return path


def _attack(found: Attack) -> dict[str, Any]:
    right = found.accuracy
    return {
        "name": found.name,
        "auc": found.curve.auc,
        "advantage": found.curve.advantage,
        "tpr_at_fpr": {f"{level:g}": tpr for level, tpr in found.tpr_at.items()},
        "rank_rule_accuracy": {
            "mean": right.mean,
            "low": right.low if math.isfinite(right.low) else None,
            "high": right.high if math.isfinite(right.high) else None,
            "runs": right.runs,
        },
    }


class Design(Task, Protocol):
    """Shadow runs with canaries. A run keeps who was `inside`, `score …` of attacks that learn
    nothing, and what the others learn from."""

    @property
    def what(self) -> str:
        """What is audited, in a word."""
        ...

    @property
    def key(self) -> int:
        """Of the coins; public."""
        ...

    @property
    def canaries(self) -> Sized:
        """Each in or out by a coin."""
        ...

    def attacks(self, found: Mapping[str, NDArray[Any]], parts: Parts) -> dict[str, Floats]:
        """Scores, runs × canaries, of attacks that learn, on the fitting runs."""
        ...


def audit(
    design: Design,
    claim: Claim,
    *,
    runs: int,
    folder: Path,
    workers: int = 1,
    progress: Progress = lambda done, total: None,
    rows_used: str = "planted canaries among rows that may be known",
) -> Audit:
    """Run with the coins of `design` again and again, attack, and judge the claim.

    Nothing is charged: no protected row is read. Runs are kept in `folder`; the same call goes on
    where one was stopped.

    Raises:
        InputError: The audit could show nothing, whatever came out.
    """
    require_power(runs, len(design.canaries), claim)
    kept = Runs(folder, design.describe())
    collect(design, kept, runs, workers, progress)
    return judged(design, kept.read(runs), claim, rows_used)


def judged(
    design: Design, found: Mapping[str, NDArray[Any]], claim: Claim, rows_used: str
) -> Audit:
    """Attack runs that are done, stacked by name, and judge the claim."""
    inside, parts = found["inside"], Parts.of(len(found["inside"]))
    scores = {n.removeprefix("score "): found[n] for n in found if n.startswith("score ")}
    attacks = oriented(scores | design.attacks(found, parts), inside, parts)
    rng = np.random.default_rng([design.key, 1 << 34])
    return Audit(
        what=design.what,
        design=design.describe(),
        rows_used=rows_used,
        runs=len(inside),
        canaries=inside.shape[1],
        attacks=tuple(
            measure(name, each[parts.judge], inside[parts.judge], rng)
            for name, each in attacks.items()
        ),
        verdict=verdict(attacks, inside, parts, claim, rng),
    )
