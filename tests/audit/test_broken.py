"""Broken mechanisms are caught with 95 % confidence; right ones never are."""

import numpy as np
import pytest

from tests.audit.mechanisms import MECHANISMS, Draw
from tests.audit.tables import SCHEMA, Histogram, Leaking, lonely, planted
from tests.thorough import examples, slow, some
from understudy.audit import judge
from understudy.audit.judge import audit, judged
from understudy.audit.releases import Releasing

SURE = 1e-5  # per repetition, so that 200 of them fail less than once in hundreds of suites


def look(draw: Draw, claim: judge.Claim, runs: int, rng: np.random.Generator) -> judge.Verdict:
    """One audit: coins, runs, and the verdict of the three parts."""
    inside = rng.random(runs) < 0.5
    found = np.empty(runs)
    found[inside] = draw(rng, True, int(inside.sum()))
    found[~inside] = draw(rng, False, int((~inside).sum()))
    scores = judge.oriented({"score": found[:, None]}, inside[:, None], judge.Parts.of(runs))
    return judge.verdict(scores, inside[:, None], judge.Parts.of(runs), claim, rng)


@pytest.mark.parametrize("name", MECHANISMS)
def test_broken_mechanisms_are_caught(name: str):
    mechanism, rng = MECHANISMS[name], np.random.default_rng(11)
    claim = judge.Claim(mechanism.epsilon, mechanism.delta, 0.05)
    found = look(mechanism.wrong, claim, 80_000, rng)
    assert found.refuted, found.words
    assert "is refuted" in found.words
    right = look(mechanism.right, claim, 80_000, rng)
    assert not right.refuted, right.words
    assert 0.3 < right.bound <= mechanism.epsilon  # the attack is no straw man


@pytest.mark.parametrize("name", some(MECHANISMS, 4))
def test_right_mechanisms_never_are(name: str):
    mechanism, rng = MECHANISMS[name], np.random.default_rng(12)
    claim = judge.Claim(mechanism.epsilon, mechanism.delta, SURE)
    assert not any(look(mechanism.right, claim, 3_000, rng).refuted for _ in range(200))


def repeated(pipeline: Histogram, canaries: int, runs: int, claim: judge.Claim) -> judge.Verdict:
    """An audit of the small histogram, in memory."""
    design = planted(pipeline, canaries)
    rows = [design.run(k) for k in range(runs)]
    found = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return judged(design, found, claim, "planted").verdict


def test_a_right_pipeline_never_is():
    """Coins are the same in all repetitions, the noise is not."""
    rng = np.random.default_rng(13)
    claim = judge.Claim(1.0, 0.0, SURE)
    assert not any(
        repeated(Histogram(1.0, rng), 4, 12, claim).refuted for _ in range(examples(40, 200))
    )


@pytest.mark.parametrize(("leak", "canaries"), [("row", 4), ("certificate", 1)])
def test_a_pipeline_that_leaks_is_caught(leak: str, canaries: int):
    rng = np.random.default_rng(14)
    claim = judge.Claim(0.2, 0.0, 0.05)
    found = repeated(Histogram(0.2, rng, leak), canaries, 120, claim)
    assert found.refuted, found.words


@pytest.mark.parametrize("leak", ["row", slow("certificate")])
def test_a_release_that_leaks_is_caught(leak: str, tmp_path):
    """A real release with one row learnt by heart, or an exact error beside its certificate."""
    choices = {
        "epsilon": "0.1", "delta": "1e-6", "method": "independent", "rows_public": 40, "rows": 10,
    }  # fmt: skip
    pipeline = Leaking(Releasing(SCHEMA, choices), leak)
    design = planted(pipeline, 1) if leak == "certificate" else lonely(pipeline)
    found = audit(design, judge.Claim(0.1, 1e-6, 0.05), runs=120, folder=tmp_path / "runs")
    assert found.refuted, found.verdict.words
