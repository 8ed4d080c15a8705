"""Claims, and what runs can say of them."""

import numpy as np
import pytest

from tests.audit.learners import CLAIM, design
from understudy.audit import judge
from understudy.audit.judge import audit
from understudy.errors import InputError


def test_a_flipped_rule_is_an_attack_too():
    rng = np.random.default_rng(0)
    inside = rng.random((30, 10)) < 0.5
    scores = {"upside down": -(inside + 0.1 * rng.normal(size=inside.shape))}
    parts = judge.Parts.of(30)
    turned = judge.oriented(scores, inside, parts)
    assert list(turned) == ["upside down, flipped"]
    assert judge.verdict(turned, inside, parts, CLAIM, rng).bound > 1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf])
def test_a_claim_must_be_one(epsilon):
    with pytest.raises(InputError, match="epsilon = "):
        judge.Claim(epsilon, 1e-6, 0.05)


def test_too_few_runs_say_what_they_could_have_shown(tmp_path):
    with pytest.raises(
        InputError, match=r"too few to say anything.*no more than ε = ([\d.]+)"
    ) as e:
        audit(design("ByHeart", 1), CLAIM, runs=30, folder=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    told = judge.largest_bound(30, 1, CLAIM)
    assert f"ε = {told:.3g}" in str(e.value)
    enough = int(str(e.value).split("at least ")[1].split()[0])
    assert judge.largest_bound(enough, 1, CLAIM) > 1 >= judge.largest_bound(30, 1, CLAIM)
    with pytest.raises(InputError, match="at least 6 runs"):
        judge.require_power(5, 10, CLAIM)
