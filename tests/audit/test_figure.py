"""The picture of an audit says what the audit says."""

import pytest

from tests.audit.learners import CLAIM, design
from understudy.audit import judge
from understudy.audit.figure import draw
from understudy.audit.judge import audit


def drawn(name, claim, folder):
    found = audit(design(name), claim, runs=12, folder=folder / "runs")
    assert [path.name for path in draw(found, folder)] == ["figure.svg", "figure.png"]
    return (folder / "figure.svg").read_text()


@pytest.mark.slow
def test_a_refuted_claim_is_drawn_with_its_ceiling(tmp_path):
    text = drawn("ByHeart", CLAIM, tmp_path)
    assert "Refuted: ε = 1 was claimed" in text
    assert "out of reach if ε = 1" in text


def test_without_a_claim_there_is_no_ceiling(tmp_path):
    text = drawn("Deaf", judge.Claim(None, 1e-6, 0.05), tmp_path)
    assert "Attacks on the model show" in text
    assert "out of reach" not in text
