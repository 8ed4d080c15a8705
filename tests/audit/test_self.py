"""Every method of the registry is attacked at a fixed budget; none may be refuted."""

from typing import Any

import pytest

from tests.audit.tables import SCHEMA, background
from understudy.audit import judge
from understudy.audit.judge import audit
from understudy.audit.releases import Releasing, plant
from understudy.game.methods import METHODS

# As little work as a method can do; it is the privacy that is looked at.
SMALL: dict[str, dict[str, Any]] = {
    "aim": {"rounds": 4, "iterations": 50},
    "dpgan": {"steps": 10, "width": 8, "latent": 4, "critic_width": 8},
    "dqrs": {"rounds": 10, "samples": 20},
    "dualquery": {"rounds": 10, "samples": 20},
    "fem": {"rounds": 5, "samples": 20},
    "frankwolfe": {"rounds": 10},
    "gem": {"picks": 3, "steps": 10, "width": 8, "latent": 4, "batch": 50},
    "maxent": {"records": 1000},
    "mst": {"iterations": 50},
    "mwem": {"rounds": 3},
    "querygan": {"rounds": 3, "steps": 5, "records": 200, "width": 8},
    "sepfem": {"rounds": 5, "samples": 20},
}
EPSILON, DELTA = 1.0, 1e-6
RUNS_AND_CANARIES = {"dpgan": (8, 30), "gem": (8, 30)}
"""24 runs with 12 canaries; fewer with more for networks, which are compiled anew for every n."""
BETA = 1e-3
"""Per method, so that the suite calls a right method wrong less than once in seventy times."""


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("method", METHODS)
def test_no_method_betrays_more_than_it_claims(method: str, relation: str, tmp_path):
    choices: dict[str, Any] = {
        "epsilon": "1", "delta": "1e-6", "workload": "marginals:2", "method": method,
        "parameters": SMALL.get(method, {}), "neighbours": relation, "rows": 40,
    }  # fmt: skip
    if relation == "replace" or method in ("dpgan", "gem"):
        choices["rows_public"] = len(background())
    runs, canaries = RUNS_AND_CANARIES.get(method, (24, 12))
    design = plant(Releasing(SCHEMA, choices), background(), canaries=canaries, key=5)
    claim = judge.Claim(EPSILON, DELTA, BETA)
    assert judge.largest_bound(runs, canaries, claim) > 2 * EPSILON  # it could have been refuted
    found = audit(design, claim, runs=runs, folder=tmp_path / "runs")
    assert not found.refuted, found.verdict.words
    assert {attack.name.removesuffix(", flipped") for attack in found.attacks} >= {
        "distance", "density", "likelihood", "certificate", "shadow release",
    }  # fmt: skip
