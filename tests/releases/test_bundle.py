"""What a bundle could not hold, or a verifier would refuse, is refused before anything is spent."""

import pyarrow as pa
import pytest

import understudy as us
from understudy.errors import InputError
from understudy.privacy.ledger import Ledger
from understudy.releases import bundle, form
from understudy.schema import Category, Schema

from .conftest import people


@pytest.mark.parametrize(
    ("told", "choices"),
    [
        ("key must be", {"key": -1}),
        ("key must be", {"key": 10**400}),
        ("beta = 1e-20", {"beta": 1e-20}),
        ("too small", {"epsilon": "1e-40"}),
        ("200,002 draws", {"method": "mwem", "parameters": {"rounds": 100_000}}),
        ("100,003 draws", {"method": "dpgan", "parameters": {"steps": 100_000}}),
    ],
)
def test_it_is_refused_and_costs_nothing(schema, ledger, told, choices):
    with pytest.raises(InputError, match=told):
        us.release(
            people(50), schema, ledger=ledger, dataset="t", **{"epsilon": 1, "method": "mst"} | choices
        )  # fmt: skip
    with Ledger(ledger) as opened:
        assert [entry.kind for entry in opened.entries("t")] == ["open"]


def test_a_schema_beyond_its_file(monkeypatch):
    monkeypatch.setitem(form.LARGEST, "schema.toml", 1000)
    wide = Schema((Category("a", tuple(f"value {i}" for i in range(200))),))
    with pytest.raises(InputError, match="declare fewer values"):
        us.release(pa.table({"a": ["value 1"]}), wide, epsilon=1)


@pytest.mark.parametrize("method", ["independent", "maxent", "mwem", "hdmm"])
def test_no_manifest_is_larger_than_was_foreseen(tmp_path, schema, monkeypatch, method):
    foreseen = []
    whole = bundle._foreseen

    def noted(*args):
        foreseen.append(whole(*args))
        return foreseen[-1]

    monkeypatch.setattr(bundle, "_foreseen", noted)
    parameters = {"rounds": 30} if method == "mwem" else {}
    made = us.release(
        people(200), schema, epsilon=2, method=method, parameters=parameters, workload="marginals:3"
    )
    data = (made.save(tmp_path / "r") / "release.json").read_bytes()
    [(values, size)] = foreseen
    assert form.values(data) <= 1.5 * values
    assert len(data) <= 1.5 * size
