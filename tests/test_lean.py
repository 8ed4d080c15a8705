"""A lean base install: what is heavy is an extra, and whatever needs one says so before it spends."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.thorough import slow
from understudy import demo
from understudy.game.methods import METHODS

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
REFERENCE = {"aim", "mst"}
NETS = {"dpgan", "gem", "querygan"}
HEAVY = (
    "fastapi", "ibis", "jax", "jaxlib", "matplotlib", "mbi", "optax", "ortools", "pandas", "polars",
    "psycopg", "pyspark", "sklearn",
)  # fmt: skip
# Stands in for an environment without them: nobody finds these packages.
WITHOUT = (
    f"HEAVY = {set(HEAVY)}"
    """
import sys
from importlib.machinery import PathFinder

class Lean(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split(".")[0] in HEAVY:
            return None
        return PathFinder.find_spec(name, path, target)

sys.meta_path = [Lean if finder is PathFinder else finder for finder in sys.meta_path]
"""
)


def fresh(code, folder):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + code],
        capture_output=True, text=True, timeout=300, check=False, cwd=folder,
    )  # fmt: skip


def names(requirements):
    return {text.split("==")[0].split(">")[0].split("[")[0] for text in requirements}


def test_the_extras_hold_what_the_base_does_not():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert not names(project["dependencies"]) & {"jax", "mbi", "optax"}
    assert names(extras["reference"]) == {"mbi", "jax"}
    assert names(extras["nets"]) == {"jax", "optax"}
    for extra in extras.values():
        assert names(extra) <= names(extras["dev"]) | {"pyright"}


RELEASE = """
import understudy as us
from understudy import demo
from understudy.schema import Schema
schema = demo.schema()
narrow = Schema(tuple(c for c in schema.columns if c.name in ("sex", "education", "smoker")))
table = demo.city_health_survey(300).select([c.name for c in narrow.columns])
with us.Ledger("ledger.db") as ledger:
    ledger.open_dataset("t", us.Budget.of(1, "1e-9"), composition="basic")
try:
    us.release(table, narrow, epsilon=1, method="METHOD", ledger="ledger.db", dataset="t")
except us.errors.InputError as error:
    print(error)
with us.Ledger("ledger.db") as ledger:
    print(float(ledger.spent("t").epsilon))
"""


ALWAYS = {"auto", "gem"}  # with and without what an extra brings


@pytest.mark.parametrize(
    "method", [name if name in ALWAYS else slow(name) for name in ("auto", *METHODS)]
)
def test_methods_without_the_extras(method, tmp_path):
    done = fresh(RELEASE.replace("METHOD", method), tmp_path)
    assert done.returncode == 0, done.stderr
    *said, spent = done.stdout.splitlines()
    if method in REFERENCE:
        assert said == [
            f"method = {method} needs mbi and JAX, which are not installed: "
            f"pip install '.[reference]', in the folder of the source"
        ]
        assert float(spent) == 0
    elif method in NETS:
        assert said == [
            f"method = {method} needs JAX and optax, which are not installed: "
            f"pip install '.[nets]', in the folder of the source"
        ]
        assert float(spent) == 0
    else:
        assert said == []
        assert float(spent) == 1


def test_the_command_says_it_with_exit_code_two(tmp_path):
    code = (
        "from understudy.cli import main\nsys.argv = ['understudy', 'plan', '--schema', "
        "'s.schema.toml', '--epsilon', '1', '--method', 'mst']\nsys.exit(main())"
    )
    demo.schema().save(tmp_path / "s.schema.toml")
    done = fresh(code, tmp_path)
    assert done.returncode == 2
    assert ".[reference]" in done.stderr


def test_learning_audits_and_comparisons_say_what_they_need(tmp_path):
    code = """
from understudy import errors, learn
from understudy.audit.judge import Claim, require_power
from understudy.report.compare import compare
for work in (
    lambda: learn.PrivateLogisticRegression,
    lambda: require_power(100, 20, Claim(1.0, 1e-6, 0.05)),
    lambda: compare(None, None),
):
    try:
        work()
    except errors.InputError as error:
        print(error)
"""
    done = fresh(code, tmp_path)
    assert done.returncode == 0, done.stderr
    learning, *others = done.stdout.splitlines()
    assert "needs scikit-learn" in learning
    assert "pip install '.[learn]'" in learning
    for said, what in zip(others, ("an audit", "a comparison"), strict=True):
        assert said.startswith(f"{what} needs scikit-learn")
        assert "pip install '.[learn]'" in said
