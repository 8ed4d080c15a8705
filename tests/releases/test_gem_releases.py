"""Releases by GEM: certified, loadable without networks, warm from public rows; refusals are free."""

import pytest

import understudy as us
from understudy.errors import InputError

from .conftest import people

SMALL = {"batch": 16, "width": 8, "latent": 4, "steps": 50, "picks": 2}


def test_refusals_are_free(schema, tmp_path):
    with us.Ledger(tmp_path / "l.db") as ledger:
        ledger.open_dataset("t", us.Budget.of(1, "1e-8"), composition="basic")
        for parameters in ({"megabytes": 0.001}, {"batch": 0}, {"nonsense": 1}):
            with pytest.raises(InputError, match="gem"):
                us.release(
                    people(100), schema, epsilon=1, method="gem", parameters=parameters,
                    ledger=ledger, dataset="t",
                )  # fmt: skip
        assert ledger.spent("t").epsilon == 0
        assert [e.kind for e in ledger.entries("t")] == ["open"]


@pytest.mark.slow
def test_a_release_loads_and_samples_and_is_certified(schema, tmp_path):
    made = us.GEM(epsilon=2, workload="marginals:2", **SMALL).fit(people(400), schema, key=1)
    assert made.release.certificate.bound > 0
    made.save(tmp_path / "r")
    us.verify(tmp_path / "r").require()
    assert us.GEM.load(tmp_path / "r").sample(50, key=1).num_rows == 50
