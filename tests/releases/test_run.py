"""From a plan to a release: charges before draws, settled whatever happens, refused before it costs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.thorough import slow, some
from understudy.errors import BudgetExhausted, InputError, RelationError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import OpenDPNoise
from understudy.privacy.relation import Relation
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.testing import SeededNoise

from .conftest import people


def test_everything_that_was_asked_for_is_inside_the_epsilon(made):
    assert accounting.epsilon(made.plan, made.budget.delta).epsilon <= 1
    assert accounting.epsilon(made.plan, made.budget.delta).epsilon > 0.99
    purposes = {charge.purpose for charge in made.plan}
    assert {"number of rows", "certificate", "certificate of total variation"} <= purposes
    drawn = [e.body["purpose"] for e in made.entries if e.kind == "charge"]
    assert sorted(drawn) == sorted(c.purpose for c in made.plan for _ in range(c.times))


@pytest.mark.parametrize(
    ("method", "neighbours"), some(product(["independent", "mwem"], ["add-remove", "replace"]), 4)
)
def test_error_falls_with_epsilon(method, neighbours, table, schema):
    """A release that is all noise at ε = 0.01 and close at ε = 100."""

    codes = schema.encode(table)

    def error(epsilon):
        made = us.release(
            table, schema, epsilon=epsilon, workload="marginals:1", method=method,
            neighbours=neighbours, rows_public=3000,
        )  # fmt: skip
        drawn = schema.encode(made.rows)
        return max(
            np.abs(np.bincount(a, minlength=k) - np.bincount(b, minlength=k)).max() / 3000
            for a, b, k in zip(codes, drawn, schema.shape, strict=True)
        )

    assert error(0.01) > 5 * error(100)
    assert error(100) < 0.02


def test_charges_are_durable_before_each_draw(tmp_path, table, schema):
    """At every draw, another connection to the ledger already sees the charge."""
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        ledger.open_dataset("t", Budget.of(1, "1e-8"), composition="basic")

    class Watching(OpenDPNoise):
        def __init__(self):
            super().__init__()
            self.seen = []

        def _look(self):
            with Ledger(path) as other:
                self.seen.append(sum(e.kind == "charge" for e in other.entries("t")))

        def gaussian(self, values, sigma):
            self._look()
            return super().gaussian(values, sigma)

        def laplace(self, values, scale):
            self._look()
            return super().laplace(values, scale)

    noise = Watching()
    us.release(
        table, schema, epsilon=1, method="independent", ledger=path, dataset="t", noise=noise
    )
    assert noise.seen == [1, 2, 3]


def test_an_exception_settles_the_account_and_leaves_nothing(tmp_path, table, schema):
    path = tmp_path / "l.db"
    ledger = Ledger(path)
    ledger.open_dataset("t", Budget.of(1, "1e-8"), composition="basic")

    class Failing(OpenDPNoise):
        def laplace(self, values, scale):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        us.release(
            table, schema, epsilon="0.5", method="independent", ledger=ledger, dataset="t",
            noise=Failing(),
        )  # fmt: skip
    kinds = [e.kind for e in ledger.entries("t")]
    assert kinds == ["open", "reserve", "charge", "charge", "charge", "settle"]
    assert ledger.entries("t")[-1].body["outcome"] == "aborted"
    assert ledger.spent("t").epsilon == Budget.of("0.5", 0).epsilon
    ledger.verify("t")


def test_the_total_budget_is_kept(tmp_path, table, schema):
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        ledger.open_dataset("t", Budget.of(1, "1e-8"), composition="basic")
    how = {"method": "independent", "ledger": path, "dataset": "t"}
    us.release(table, schema, epsilon="0.6", **how)
    with pytest.raises(BudgetExhausted, match=r"at most ε = 0\.4 and"):
        us.release(table, schema, epsilon="0.5", **how)
    us.release(table, schema, epsilon="0.4", **how)
    with pytest.raises(BudgetExhausted):
        us.release(table, schema, epsilon="0.001", **how)
    with Ledger(path) as ledger:
        assert ledger.spent("t").remaining_epsilon == 0


def test_relations_do_not_mix(tmp_path, table, schema):
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        ledger.open_dataset(
            "t", Budget.of(1, "1e-8"), Relation.REPLACE, rows_public=3000, composition="basic"
        )
    given = {"epsilon": 1, "method": "independent", "ledger": path, "dataset": "t"}
    with pytest.raises(RelationError):
        us.release(table, schema, neighbours="add-remove", **given)
    assert us.release(table, schema, **given).relation is Relation.REPLACE, "the dataset decides"


def test_seeded_noise_is_stamped_and_refused(tmp_path, table, schema):
    made = us.release(table, schema, epsilon=1, method="independent", noise=SeededNoise(1))
    assert not made.private
    assert "NOT PRIVATE" in made.promise
    made.save(tmp_path / "r")
    found = us.verify(tmp_path / "r")
    assert not found.passed
    assert any("NOT PRIVATE" in check.detail for check in found.checks if not check.passed)


def test_seeded_noise_and_key_make_a_release_repeatable(table, schema):
    def make():
        return us.release(
            table, schema, epsilon=1, method="mwem", workload="marginals:1",
            noise=SeededNoise(5), key=7,
        )  # fmt: skip

    assert make().rows.equals(make().rows)


@pytest.mark.parametrize("method", ["independent", "mwem"])
def test_no_rows_give_a_release_too(method, schema, table):
    made = us.release(table.slice(0, 0), schema, epsilon=1, method=method)
    assert made.rows.num_rows >= 1
    assert schema.illegal(made.rows) == []


NETS = ("dpgan", "gem")  # half a minute and ten seconds


@pytest.mark.parametrize("method", some([slow(m) if m in NETS else m for m in us.METHODS], 3))
def test_a_single_column_with_a_single_value(method):
    schema = Schema.loads(
        '[understudy]\nversion = 1\n[[column]]\nname = "x"\ntype = "category"\nvalues = ["a"]\n'
    )
    few = {"steps": 3} if method == "dpgan" else {}
    made = us.release(
        pa.table({"x": ["a"] * 20}), schema, epsilon=1, method=method, parameters=few
    )  # fmt: skip
    assert set(made.rows["x"].to_pylist()) == {"a"}


def test_what_is_wrong_inside_rows_says_nothing(schema):
    """Values outside the schema and nulls where none belong change no message and no outcome."""
    odd = pa.table(
        {
            "age": pa.array([None, -5, 10**9, 50] * 50),
            "sex": ["X", None, "F", "M"] * 50,
            "smoker": pa.array([None, True, False, None] * 50),
            "visits": pa.array([99, -1, None, 2] * 50),
        }
    )
    said: list[Progress] = []
    plain: list[Progress] = []
    made = us.release(odd, schema, epsilon=1, method="independent", progress=said.append)
    us.release(people(200), schema, epsilon=1, method="independent", progress=plain.append)
    # The time is forecast from the number of rows, which is measured with noise and paid for.
    assert [replace(p, seconds=0) for p in said] == [replace(p, seconds=0) for p in plain]
    assert schema.illegal(made.rows) == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": -1}, "epsilon = -1"),
        ({"epsilon": "a lot"}, "epsilon = 'a lot'"),
        ({"delta": "0.001", "rows_public": 3000}, "below 1/n"),
        ({"delta": 1}, "delta = 1"),
        ({"delta": "0.1"}, "delta = 0.1"),
        ({"neighbours": "both"}, "'add-remove' or 'replace'"),
        ({"neighbours": "replace"}, "rows-public"),
        ({"rows_public": 0}, "rows_public = 0"),
        ({"rows": 0}, "rows = 0"),
        ({"beta": 0.7}, "beta = 0.7"),
        ({"certificate_share": 0}, "certificate_share = 0"),
        ({"certificate_share": 0.4, "variations": True}, r"certificate_share = 0\.4 .* 0\.33"),
        ({"method": "magic"}, "choose auto"),
        ({"method": "mwem", "parameters": {"rounds": 0}}, "rounds = 0"),
        ({"method": "mwem", "parameters": {"limit": 5}}, "possible rows"),
        ({"method": "mwem", "parameters": {"colour": 1}}, "colour"),
        ({"workload": [("age", "sexx")]}, "sexx"),
        ({"workload": "marginals:9"}, "9"),
        ({"ledger": "x.db"}, "go together"),
    ],
)
def test_bad_input_is_refused_before_anything_is_read(change, match, schema):
    class Untouchable:
        """A source that must not be read."""

        columns = ("age", "sex", "smoker", "visits")
        native = "arrow"

        def describe(self):
            return "a table"

        def frame(self, rows):
            return rows

        def bind(self, schema):
            raise AssertionError("the rows were read")

    how = {"epsilon": 1, "method": "independent", **change}
    with pytest.raises(InputError, match=match):
        us.release(Untouchable(), schema, **how)


def test_mst_end_to_end(table, schema):
    """Dependence survives: age and visits go together, where independent columns lose it."""
    made = us.release(table, schema, epsilon=5, method="mst")
    age = np.array(made.rows["age"])
    visits = np.array(made.rows["visits"])
    assert np.corrcoef(age, visits)[0, 1] > 0.3
    assert made.certificate.bound < 0.1


@pytest.mark.slow
def test_a_release_and_its_save_cross_few_rooms():
    """Whoever follows one release reads few files, and rooms hand over whole values."""
    # In a process without the second verifier.
    code = "from bench import house; files, crossed = house.trace(); print(files, crossed.total())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    files, crossings = map(int, done.stdout.split())
    assert files <= 80
    assert crossings <= 250
