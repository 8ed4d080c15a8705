"""The architecture, held by a test: who imports whom, and who may touch what.

Every file under src/understudy is parsed, so that imports inside functions and TYPE_CHECKING blocks
count as well. The checker is itself tested on small bad sources, so that it is known to be able to
fail.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import understudy

SRC = Path(understudy.__file__).parent

# A room imports only from itself and from rooms before it.
ORDER = (
    "_version", "_lazy", "_types", "errors", "files", "quoting", "figures", "units", "compiled",
    "progress", "markup", "privacy", "columns", "constraints", "schema", "wording", "demo",
    "queries", "source", "draft", "oracles",
    "nets", "models", "estimates", "players", "game", "releases", "learn", "audit", "report", "web",
    "cli", "__main__", "testing",
)  # fmt: skip

# Besides the order: post-processing does not know the room of private answers.
NEVER = {
    "models": "privacy",
    "estimates": "privacy",
    "nets": "privacy",
    "players.data": "privacy",
    "columns": "privacy",
    "constraints": "privacy",
    "schema": "privacy",
    "draft": "privacy",
}

# Two methods of a schema that a user calls by name; nothing else in its room knows of rows.
DOORS = {("schema.schema", "draft")}

# Libraries with one door.
ONLY = {
    "opendp": ("privacy.noise",),
    "dp_accounting": (),
    "mbi": ("models.graphical",),
    "jax": ("models.graphical", "nets"),
    "optax": ("nets",),
    "cryptography": ("releases.signature",),
    "duckdb": ("source",),
    "ibis": ("source.sql",),
    "pyspark": ("source.spark", "releases.sample_to"),
    "psycopg": ("privacy.postgres", "source"),
    "ortools": ("oracles.exact",),
    "sklearn": ("learn", "audit", "report.classify"),
    "tomlkit": ("schema.toml",),
    "jinja2": ("markup",),
}

# Who may open a Sensitive, who may spend, and what opened facts and mechanisms may be known by.
OPENS = ("privacy.exact", "privacy.sensitive")
SPENDS = ("privacy.gate", "privacy.journal")
SEALED = {"ExactCounts", "ExactRows", "Examples", "Facts", "HeldValues"}
OPENED = {"Tables", "Learned"}

PICKLES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
GENERATORS = {"Generator", "BitGenerator", "SeedSequence", "PCG64", "PCG64DXSM", "Philox"}
SEEDED = {"default_rng", "RandomState"}


def modules():
    """(dotted name below understudy, source) of every file; "" is the package itself."""
    for path in sorted(SRC.rglob("*.py")):
        parts = list(path.relative_to(SRC).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        yield ".".join(parts), path.read_text(encoding="utf-8"), path.name == "__init__.py"


def inside(module, room):
    return module == room or module.startswith(room + ".")


def imports(tree, module, package):
    """(full dotted name, line) of everything imported, also by name through importlib."""
    here = ["understudy", *module.split(".")] if module else ["understudy"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = here[: len(here) - node.level + (1 if package else 0)]
                base = ".".join([*up, base] if base else up)
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and called(node.func) in ("import_module", "__import__"):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, node.lineno


def called(function):
    return getattr(function, "attr", getattr(function, "id", None))


def dotted(node):
    """ "np.random.seed" of an attribute, or None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else None
    return None


def is_global_randomness(name):
    parts = name.split(".")
    numpy_random = parts[:2] in (["np", "random"], ["numpy", "random"]) and len(parts) == 3
    return numpy_random and parts[2] not in GENERATORS | SEEDED


def is_opened(name):
    """Whether something of the privacy room, by its dotted name, is exact or draws."""
    last = name.rpartition(".")[2]
    if inside(name, "privacy.exact"):
        return last not in SEALED
    return inside(name, "privacy.mechanisms") or last in OPENED


def import_problems(tree, module, package):
    room = module.split(".")[0]
    for name, line in imports(tree, module, package):
        top, _, rest = name.partition(".")
        if top in PICKLES:
            yield f"{module}:{line} imports {name}: no pickles"
        if top == "random" or is_global_randomness(name):
            yield f"{module}:{line} imports {name}: global randomness"
        if top in ONLY and not any(inside(module, door) for door in ONLY[top]):
            yield f"{module}:{line} imports {name}: only {', '.join(ONLY[top])} may"
        if name.endswith(".reveal") and module not in OPENS:
            yield f"{module}:{line} imports {name}: only privacy.exact opens a Sensitive"
        if inside(rest, "privacy") and not inside(module, "privacy") and is_opened(rest):
            yield f"{module}:{line} imports {name}: opened facts and mechanisms stay in privacy"
        if top != "understudy" or module == "":
            continue
        target = rest.split(".")[0]
        if target not in ORDER:
            yield f"{module}:{line} imports {name}: not a room; import from the room itself"
        elif (
            target != room
            and ORDER.index(target) >= ORDER.index(room)
            and (module, target) not in DOORS
        ):
            yield f"{module}:{line} imports {name}: {target} comes after {room}"
        for here, there in NEVER.items():
            if inside(module, here) and inside(rest, there):
                yield f"{module}:{line} imports {name}: {here} may not know {there}"


def use_problems(tree, module):
    for node in ast.walk(tree):
        at = f"{module}:{getattr(node, 'lineno', 0)}"
        attribute = node.attr if isinstance(node, ast.Attribute) else None
        name = node.value if isinstance(node, ast.Constant) else attribute
        if module not in OPENS:
            if isinstance(node, ast.Name) and node.id == "reveal":
                yield f"{at} uses reveal: only privacy.exact opens a Sensitive"
            if name == "reveal" or (isinstance(name, str) and name.endswith("__sealed")):
                yield f"{at} names {name!r}: only privacy.exact opens a Sensitive"
        if attribute in ("charge", "redraw") and module not in SPENDS:
            yield f"{at} uses .{attribute}: only privacy.gate and privacy.journal spend"
        if attribute in OPENED and not inside(module, "privacy"):
            yield f"{at} uses .{attribute}: opened facts stay in privacy"
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"{at} has a bare except"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            refused = isinstance(node.value, ast.Constant) and node.value.value is False
            if not refused:
                yield f"{at} allows pickles"
        if isinstance(node, ast.Attribute) and is_global_randomness(dotted(node) or ""):
            yield f"{at} uses {dotted(node)}: global randomness"
        if isinstance(node, ast.Call) and called(node.func) in SEEDED:
            keyed = bool(node.args or node.keywords)
            if not keyed:
                yield f"{at} calls {called(node.func)}() without a key: it cannot be repeated"


def problems(module, source, package=False):
    tree = ast.parse(source)
    if module and module.split(".")[0] not in ORDER:
        return [f"{module}: a room without a place; give it one in ORDER and docs/design.md"]
    return [*import_problems(tree, module, package), *use_problems(tree, module)]


def test_every_file_keeps_to_its_room():
    seen = list(modules())
    assert len(seen) > 50
    assert [p for module, source, package in seen for p in problems(module, source, package)] == []


# Attributes that may be asked for by name, and why: nothing of ours is found by its name alone.
BY_NAME = {
    ("audit.inside", "coef_"): "a foreign model may be linear",
    ("audit.inside", "intercept_"): "a foreign model may be linear",
    ("audit.models", None): "what a foreign factory makes is checked for scikit-learn's methods",
    ("audit.models", "predict_proba"): "a foreign model is checked for it",
    ("cli.app", "ctx"): "not every misuse has it, by Typer's own Click",
    ("cli.shell", "__notes__"): "Python adds it to an exception with the first note",
    ("privacy.stores", "sqlite_errorname"): "not every error of sqlite3 has it",
    ("releases.notebook", "kernel"): "of IPython's shells only notebooks have it",
    ("source.duckdb", "to_arrow_reader"): "newer releases of DuckDB have it",
    ("source.sql", "con"): "not every backend of Ibis has it",
    ("testing.distributions", "__array__"): "arrays of JAX and others",
    ("web.guard", "path"): "not every route of Starlette has it",
}


def asked_by_name(module, source):
    """(module, name) of every `hasattr`, and of every `getattr` with a name that is written out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = (
                node.args[1].value
                if isinstance(node.args[1:2] and node.args[1], ast.Constant)
                else None
            )
            if node.func.id == "hasattr" or (node.func.id == "getattr" and name is not None):
                yield module, name


def test_nothing_is_found_by_its_name_alone():
    found = {each for module, source, _ in modules() for each in asked_by_name(module, source)}
    assert found - set(BY_NAME) == set()
    assert set(BY_NAME) - found == set(), "not needed any more"


def test_the_search_for_names_can_fail():
    assert list(asked_by_name("a", "getattr(x, 'hook', None)")) == [("a", "hook")]
    assert list(asked_by_name("a", "hasattr(x, name)")) == [("a", None)]
    assert list(asked_by_name("a", "getattr(x, field.name)")) == []


def test_the_order_is_the_documented_one():
    text = (SRC.parent.parent / "docs" / "design.md").read_text(encoding="utf-8")
    table = text.split("## The modules")[1].split("\n## ")[0]
    rooms = [line.split("`")[1].strip("/") for line in table.splitlines() if line.startswith("| `")]
    named = [room.removesuffix(".py") for room in rooms]
    assert named == [room for room in ORDER if room in named]
    present = {p.stem if p.suffix == ".py" else p.name for p in SRC.iterdir()}
    rooms_present = present - {
        "__pycache__",
        "__init__",
        "_version",
        "_lazy",
        "_types",
        "__main__",
        "demo",
        "py.typed",
    }
    assert rooms_present <= set(named) | {"oracles", "nets", "learn", "audit", "report", "web"}


BAD = {
    "up the stairs": ("privacy.gate", "from understudy.schema import Schema", "comes after"),
    "inside a function": (
        "queries.workload",
        "def f():\n    import understudy.source.frames",
        "comes after",
    ),
    "for types only": (
        "draft.check",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from understudy.game import play",
        "comes after",
    ),
    "a constraint and the schema": (
        "constraints.rules",
        "from understudy.schema import Schema",
        "comes after",
    ),
    "a schema and the rows": ("schema.toml", "from understudy.draft import draft", "comes after"),
    "relative": ("privacy.noise", "from ..releases import run", "comes after"),
    "relative, one room": ("privacy.noise", "from .. import game", "comes after"),
    "by name": ("models.measured", "import_module('understudy.releases.run')", "comes after"),
    "the tests' room": ("cli.app", "from understudy.testing import check_method", "comes after"),
    "round the back": ("game.play", "from understudy import release", "not a room"),
    "a new room": ("attic.things", "x = 1", "without a place"),
    "models and the gate": (
        "models.decomposable",
        "from understudy.privacy.gate import Gate",
        "may not know",
    ),
    "data players and the gate": (
        "players.data.maxent",
        "from understudy.privacy import Gate",
        "may not know",
    ),
    "reveal imported": (
        "source.base",
        "from understudy.privacy.sensitive import reveal as look",
        "opens a Sensitive",
    ),
    "reveal as attribute": ("game.play", "sensitive.reveal(x)", "opens a Sensitive"),
    "reveal by name": ("game.play", "getattr(sensitive, 'reveal')(x)", "opens a Sensitive"),
    "reveal in testing": ("testing.sources", "reveal(x)", "opens a Sensitive"),
    "the slot": ("source.base", "x._Sensitive__sealed()", "opens a Sensitive"),
    "the slot by name": (
        "cli.app",
        "object.__getattribute__(x, '_Sensitive__sealed')",
        "opens a Sensitive",
    ),
    "reveal in the gate": ("privacy.gate", "reveal(x)", "opens a Sensitive"),
    "reveal in a question": (
        "privacy.questions.counts",
        "from understudy.privacy.sensitive import reveal",
        "opens a Sensitive",
    ),
    "reveal at the door": ("privacy", "from understudy.privacy.sensitive import reveal", "opens a"),
    "the slot in a question": (
        "privacy.questions.counts",
        "x._Sensitive__sealed()",
        "opens a Sensitive",
    ),
    "opened counts": (
        "players.query.fixed",
        "from understudy.privacy.exact import Tables",
        "stay in privacy",
    ),
    "opened examples": (
        "learn.sgd",
        "from understudy.privacy.exact import Learned as Rows",
        "stay in privacy",
    ),
    "opened counts round the back": (
        "testing.stand_ins",
        "from understudy.privacy.gate import Tables",
        "stay in privacy",
    ),
    "opened counts as attribute": ("game.play", "gate.Tables(counts)", "stay in privacy"),
    "all that is exact": ("game.play", "from understudy.privacy import exact", "stay in privacy"),
    "all that is exact, by name": (
        "game.play",
        "import_module('understudy.privacy.exact')",
        "stay in privacy",
    ),
    "everything exact": ("game.play", "from understudy.privacy.exact import *", "stay in privacy"),
    "a mechanism": (
        "players.query.fixed",
        "from understudy.privacy.mechanisms import added",
        "stay in privacy",
    ),
    "all mechanisms": (
        "players.query.fixed",
        "import understudy.privacy.mechanisms as m",
        "stay in privacy",
    ),
    "a charge": ("releases.run", "reservation.charge('tables')", "only privacy.gate"),
    "a charge handed on": ("releases.run", "spend = reservation.charge", "only privacy.gate"),
    "a charge by a question": (
        "privacy.questions.counts",
        "charges.charge(p)",
        "only privacy.gate",
    ),
    "a second draw": ("privacy.exact", "charges.redraw(2, 'tables')", "only privacy.gate"),
    "another noise": ("privacy.gate", "import opendp.prelude as dp", "only privacy.noise"),
    "noise by name": ("releases.run", "import_module('opendp.prelude')", "only privacy.noise"),
    "mbi elsewhere": ("players.data.maxent", "from mbi import Domain", "only models.graphical"),
    "jax elsewhere": ("models.decomposable", "def f():\n    import jax.numpy", "only models"),
    "keys elsewhere": ("cli.sign", "import cryptography.hazmat", "only releases.signature"),
    "a page that may not escape": ("web.site", "from jinja2 import Environment", "only markup"),
    "pickle": ("releases.bundle", "import pickle", "no pickles"),
    "joblib": ("releases.bundle", "from joblib import dump", "no pickles"),
    "allow_pickle": ("releases.bundle", "np.load(p, allow_pickle=True)", "allows pickles"),
    "seed": ("models.measured", "np.random.seed(0)", "global randomness"),
    "normal": ("models.measured", "x = numpy.random.normal(0, 1)", "global randomness"),
    "random": ("models.measured", "import random", "global randomness"),
    "from numpy": ("models.measured", "from numpy.random import rand", "global randomness"),
    "no key": ("models.measured", "rng = np.random.default_rng()", "without a key"),
    "bare except": ("cli.app", "try:\n    f()\nexcept:\n    pass", "bare except"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_checker_can_fail(name):
    module, source, message = BAD[name]
    found = problems(module, source)
    assert any(message in problem for problem in found), found


@pytest.mark.parametrize(
    ("module", "source", "package"),
    [
        ("privacy.exact", "from understudy.privacy.sensitive import reveal\nreveal(x)", False),
        ("privacy", "from .sensitive import Sensitive", True),
        ("privacy.gate", "charges.charge(purpose, event)", False),
        ("privacy.journal", "charges.redraw(2, purpose, event)", False),
        ("privacy.questions.counts", "from understudy.privacy.exact import Learned, Tables", False),
        ("privacy.questions.counts", "from understudy.privacy.mechanisms import added", False),
        ("learn.estimators", "from understudy.privacy.exact import Examples, Facts", False),
        ("source.base", "from understudy.privacy.exact import ExactCounts, ExactRows", False),
        ("releases.facts", "from understudy.privacy.exact import HeldValues", False),
        ("privacy.noise", "import_module('opendp.prelude')", False),
        ("models.graphical", "def f():\n    import jax\n    import mbi", False),
        ("models", "from .decomposable import Decomposable", True),
        ("game.play", "import numpy as np\nrng = np.random.default_rng(7)", False),
        ("players.base", "def f(rng: np.random.Generator): ...", False),
        ("releases.run", "from understudy import errors\nfrom understudy.game import play", False),
        ("demo", "from understudy.schema import Schema", False),
        ("cli.demo", "from understudy.demo import schema", False),
        ("", "from understudy.releases.run import release", True),
    ],
)
def test_the_checker_lets_good_sources_pass(module, source, package):
    assert problems(module, source, package) == []


# --- the face of the package --------------------------------------------------------------------

HEAVY = (
    "opendp", "dp_accounting", "jax", "mbi", "duckdb", "pyarrow", "pandas", "polars", "scipy", "numba",
    "ortools", "sklearn", "ibis", "pyspark", "psycopg", "cryptography", "tomlkit",
    "jinja2",
)  # fmt: skip


def fresh(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    loaded = fresh("import sys, understudy; print(*{m.split('.')[0] for m in sys.modules})")
    assert not set(loaded) & set(HEAVY)
    assert "understudy" in loaded


def test_importing_the_package_is_fast():
    code = "import time; t = time.process_time(); import understudy; print(time.process_time() - t)"
    assert min(float(fresh(code)[0]) for _ in range(3)) < 0.5  # CPU, so that load does not count


def test_importing_the_releases_loads_what_every_release_needs_and_no_more():
    loaded = fresh("import sys, understudy.releases.run; print(*sys.modules)")
    assert {"numpy", "pyarrow"} <= set(loaded)
    assert not set(loaded) & {*HEAVY, "pyarrow.dataset", "pyarrow.parquet"} - {"pyarrow"}


def test_the_public_names_are_pinned_and_resolve():
    assert sorted(understudy.__all__) == sorted(PUBLIC)
    for name in understudy.__all__:
        assert getattr(understudy, name) is not None
    assert set(dir(understudy)) >= set(PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'relase'"):
        _ = understudy.relase


PUBLIC = [
    "AIM", "DPGAN", "DQRS", "DualQuery", "Estimate", "Estimates", "FEM", "FrankWolfe",
    "GEM", "GaussianMarginals", "HDMM", "MaxEnt",
    "METHODS", "MST", "MWEM", "Answer", "Budget", "Certificate", "Independent", "Ledger", "SepFEM",
    "QueryGAN", "Relation", "Release", "Schema", "Synthesizer", "Workload", "__version__",
    "epsilon_for", "errors", "release_graph", "sample_graph",
    "logit", "marginals", "ols", "prepare", "read", "release", "statistic", "verify", "workload",
]  # fmt: skip


def test_picture_of_the_rooms_shows_their_order():
    """Bottom to top, right to left: a room uses those below it and to its right."""
    drawn = (SRC.parent.parent / "docs" / "figures" / "rooms.svg").read_text(encoding="utf-8")
    boxes = re.findall(r'class="name mid" x="([\d.]+)" y="([\d.]+)">([^<]+)<', drawn)
    placed = sorted(boxes, key=lambda box: (-float(box[1]), -float(box[0])))
    rooms = [name for _, _, names in placed for name in reversed(names.split(" · "))]
    hidden = {"_version", "_lazy", "_types", "__main__"}
    assert rooms == [room for room in ORDER if room not in hidden]
