import pytest
from learners import N

from understudy.learn import PrivateLasso, PrivateLogisticRegression
from understudy.privacy import Budget, Ledger
from understudy.testing import SeededNoise


@pytest.fixture
def fixed_noise(monkeypatch):
    """The same draws in every run: how well a model does is no coin toss of the tests."""
    monkeypatch.setattr(PrivateLasso, "_noise", lambda self: SeededNoise(9))
    monkeypatch.setattr(PrivateLogisticRegression, "_noise", lambda self: SeededNoise(9))


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger.db"
    with Ledger(path) as made:
        made.open_dataset("rows", Budget.of(3, "1e-5"), rows_public=N, composition="basic")
    return path
