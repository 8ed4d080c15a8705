"""The audit of a learner: models trained with and without canaries, and what they betray.

The rows that shadows are trained on must be rows that may be known: held out and named by the
custodian, public, or synthetic. Canaries are planted (corners of the features' box with labels by lot,
which a model can only learn by heart) or rows that the custodian names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.audit import features as looks
from understudy.audit import judge, lira, network, scores
from understudy.audit.learners import Learner
from understudy.audit.report import Audit
from understudy.audit.runs import Progress, Runs, collect, fingerprint
from understudy.errors import InputError

__all__ = ["Examples", "Trained", "audit_model", "corners"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Rows with labels 0, 1, …, checked before anything is trained."""

    features: Floats
    labels: Labels
    names: tuple[str, ...] = ()

    def require(self, classes: int | None = None) -> None:
        """Refuse what no model can be trained on.

        Raises:
            InputError: Naming the column.
        """
        if self.features.ndim != 2 or len(self.features) != len(self.labels):
            raise InputError(
                f"features {self.features.shape} and {len(self.labels)} labels do not belong "
                f"together: give one label for each row"
            )
        if len(self.labels) == 0:
            raise InputError("there are no rows; give a table with rows that may be known")
        seen = np.unique(self.labels)
        if classes is None and len(seen) < 2:
            raise InputError(
                "the labels have one class only, so there is nothing to learn; give another --label"
            )
        for column in range(self.features.shape[1]):
            values = self.features[:, column]
            if not np.isfinite(values).all():
                raise InputError(
                    f"column {self._name(column)} holds values that are not finite numbers; fill "
                    f"or drop them"
                )
            if classes is None and len(values) > 1 and values.min() == values.max():
                raise InputError(
                    f"column {self._name(column)} is constant ({values[0]:g}); drop it, no model "
                    f"can use it"
                )

    def _name(self, column: int) -> str:
        return repr(self.names[column]) if self.names else str(column)


@dataclass(frozen=True, eq=False)
class Trained:
    """One design: a learner, known rows and canaries. A run flips the coins and trains."""

    learner: Learner
    known: Examples
    canaries: Examples
    key: int

    def __post_init__(self) -> None:
        self.known.require()
        self.canaries.require(classes=int(self.known.labels.max()) + 1)
        if len(self.canaries.labels) > len(self.known.labels):
            raise InputError(
                f"canaries = {len(self.canaries.labels)} are more than the rows to hide them in, "
                f"{len(self.known.labels)}; give fewer canaries or more rows"
            )

    def describe(self) -> dict[str, Any]:
        """The learner, the rows by their digest, and the key of the coins."""
        rows = fingerprint(
            self.known.features, self.known.labels, self.canaries.features, self.canaries.labels
        )
        return {"learner": self.learner.describe(), "rows": rows, "key": self.key}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """Flip, train, look at every canary."""
        rng = np.random.default_rng([self.key, number])
        inside = rng.random(len(self.canaries.labels)) < 0.5
        order = rng.permutation(len(self.known.labels) + int(inside.sum()))
        rows = np.vstack([self.known.features, self.canaries.features[inside]])[order]
        labels = np.concatenate([self.known.labels, self.canaries.labels[inside]])[order]
        model = self.learner(rows, labels)
        chances = probabilities(model, self.canaries.features)
        found: dict[str, NDArray[Any]] = {"inside": inside}
        for name, score in scores.SCORES.items():
            found[f"score {name}"] = score(chances, self.canaries.labels)
        found["logit"] = scores.logit(chances, self.canaries.labels)
        found["black box"] = looks.black_box(chances, self.canaries.labels)
        if looks.has_inside(model):
            found["white box"] = looks.white_box(
                model, self.canaries.features, chances, self.canaries.labels
            )
        return found


def probabilities(model: Any, rows: Floats) -> Floats:
    """What the model says, checked.

    Raises:
        InputError: It has no `predict_proba`, or that gives no probabilities.
    """
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"the model {type(model).__name__} has no predict_proba; attacks read probabilities: "
            f"give a classifier that has it"
        )
    found = np.asarray(model.predict_proba(rows), dtype=float)
    if found.ndim != 2 or not np.isfinite(found).all() or (found < 0).any():
        raise InputError(f"predict_proba of {type(model).__name__} gives no probabilities")
    return found


def corners(known: Examples, count: int, key: int) -> Examples:
    """Planted canaries, no two alike: every feature at its least or largest known value, and the
    label by lot. Where there are fewer corners than canaries, the others lie anywhere in the box."""
    if count < 1:
        raise InputError(f"canaries = {count} must be at least 1")
    rng = np.random.default_rng([key, 1 << 32])
    low, high = known.features.min(axis=0), known.features.max(axis=0)
    up = rng.random((2 * count, len(low))) < 0.5
    drawn = rng.permutation(np.unique(np.where(up, high, low), axis=0))[:count]
    inner = rng.uniform(low, high, (count - len(drawn), len(low)))
    labels = rng.choice(np.unique(known.labels), count)
    return Examples(np.vstack([drawn, inner]), labels.astype(np.int64), known.names)


def audit_model(
    design: Trained,
    claim: judge.Claim,
    *,
    runs: int,
    folder: Path,
    workers: int = 1,
    progress: Progress = lambda done, total: None,
    rows_used: str = "planted canaries among rows that may be known",
) -> Audit:
    """Train shadows with the coins of `design`, attack, and judge the claim.

    Runs are kept in `folder`; the same call goes on where one was stopped.

    Raises:
        InputError: The audit could show nothing, whatever came out.
    """
    judge.require_power(runs, len(design.canaries.labels), claim)
    parts = judge.Parts.of(runs)
    kept = Runs(folder, design.describe())
    collect(design, kept, runs, workers, progress)
    found = kept.read(runs)
    inside: Bools = found["inside"]
    attacks = judge.oriented(_attacks(found, inside, parts, design.key), inside, parts)
    rng = np.random.default_rng([design.key, 1 << 34])
    return Audit(
        what="model",
        design=design.describe(),
        rows_used=rows_used,
        runs=runs,
        canaries=len(design.canaries.labels),
        attacks=tuple(
            judge.measure(name, each[parts.judge], inside[parts.judge], rng)
            for name, each in attacks.items()
        ),
        verdict=judge.verdict(attacks, inside, parts, claim, rng),
    )


def _attacks(
    found: dict[str, NDArray[Any]], inside: Bools, parts: judge.Parts, key: int
) -> dict[str, Floats]:
    """Scores of every attack in every run; what is learnt is learnt on the fitting runs."""
    made: dict[str, Floats] = {
        name.removeprefix("score "): found[name] for name in found if name.startswith("score ")
    }
    learnt = inside[parts.fit]
    if learnt.any() and not learnt.all():
        logits = found["logit"]
        made["LiRA online"] = lira.online(logits, logits[parts.fit], learnt)
        made["LiRA offline"] = lira.offline(logits, logits[parts.fit], learnt)
        for name in ("black box", "white box"):
            if name in found:
                shown = found[name][parts.fit]
                attacker = network.train(
                    shown.reshape(-1, shown.shape[-1]), learnt.reshape(-1), key=key
                )
                made[f"network, {name}"] = attacker.score(
                    found[name].reshape(-1, shown.shape[-1])
                ).reshape(inside.shape)
    return made
