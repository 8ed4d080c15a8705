"""What an audit found, as data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from understudy import files
from understudy._version import __version__
from understudy.audit import ceiling
from understudy.audit.judge import Attack, Verdict

__all__ = ["LIMITS", "Audit"]

LIMITS = "An audit can refute a claimed ε; it can never prove one."


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
