"""Every block of code on the pages is run, in the order of its page, in an empty folder.

`python` blocks of a page share their names, `sh` blocks hold commands of understudy, `toml` and `json`
are parsed. A block that only shows something is `text` (or names no language); directly below a
`python` block it is what that block prints, and is compared.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import shlex
import sys
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

from understudy import cli

from .test_readme import PAGES, ROOT

RUNNING = {"py", "python3", "pycon", "bash", "shell", "console", "zsh"}
"""Other names for what is run: a block so named would be left out."""

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)

# What the reader of a page has at hand.
AT_HAND = {
    "docs/learn.md": """
import numpy as np
rng = np.random.default_rng(0)
low, high = np.full(3, -1.0), np.full(3, 1.0)
X, X_new = rng.uniform(-1, 1, (500, 3)), rng.uniform(-1, 1, (5, 3))
y = np.where(X[:, 0] > 0, "yes", "no")
""",
    "docs/families.md": """
from pyarrow.csv import write_csv
import understudy as us
from understudy import cli
from bench.households import households as generated
from bench.visits import visits as generated_visits
made, clinic = generated(2000, key=1), generated_visits(1000, key=1)
households, persons, patients, visits = made.households, made.persons, clinic.patients, clinic.visits
for name in ("households", "persons", "patients", "visits"):
    write_csv(globals()[name], name + ".csv")
write_csv(visits.join(patients, "patient_id"), "stays.csv")
cli.main(["schema", "draft", "households.csv", "persons.csv", "--out", "homes.toml"])
cli.main(["schema", "confirm", "homes.toml", "--all"])
""",
    "docs/workload.md": """
from pyarrow.csv import write_csv
from understudy.demo import city_health_survey, schema
schema().save("survey.schema.toml")
write_csv(city_health_survey(2000), "survey.csv")
""",
    "docs/benchmarks.md": """
import understudy as us
from understudy.demo import city_health_survey, schema as facts
n = 2000
table, schema = city_health_survey(n), facts()
""",
    "docs/methods/dpgan.md": """
import understudy as us
from understudy.demo import city_health_survey, schema as facts
table, schema = city_health_survey(2000).select(["sex", "smoker"]), facts()
schema = type(schema)(tuple(c for c in schema.columns if c.name in ("sex", "smoker")))
""",
}


def files_at_hand(folder: Path) -> None:
    """A table of patients, and the schema of the survey."""
    rng = np.random.default_rng(0)
    lines = ["age,sex,smoker"]
    for _ in range(2000):
        lines.append(f"{rng.integers(18, 90)},{rng.choice(['F', 'M'])},{rng.choice(['yes', 'no'])}")
    (folder / "patients.csv").write_text("\n".join(lines) + "\n")


def blocks(page: Path) -> list[tuple[str, str, bool]]:
    """(language, code, whether it stands directly below the block before it) of a page."""
    text = page.read_text(encoding="utf-8")
    found, end = [], -1
    for match in FENCED.finditer(text):
        below = end >= 0 and not text[end : match.start()].strip()
        found.append((match[1], match[2], below))
        end = match.end()
    return found


def commands(code: str) -> list[list[str]]:
    joined = code.replace("\\\n", " ")
    return [words for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


def with_code(page: Path) -> bool:
    return any(language in ("python", "sh") for language, _, _ in blocks(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_say_what_they_are(page):
    for language, code, _ in blocks(page):
        assert language not in RUNNING, f"{page.name}: write {language!r} as python or sh"
        if language == "toml":
            tomllib.loads(code)
        elif language == "json":
            json.loads(code)
        elif language == "sh":
            assert all(words[0] == "understudy" for words in commands(code)), code


OTHERS = ("README.md", "CONTRIBUTING.md")  # run by tests of their own
RUN = [page for page in PAGES if with_code(page) and page.name not in OTHERS]


def test_the_guides_are_among_the_pages():
    names = {page.stem for page in RUN}
    assert names >= {"start", "tutorial", "epsilon", "workload", "certificate", "players", "report"}


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    answers = itertools.repeat("a", 100)  # a reader who knows that all of it is public
    monkeypatch.setattr("builtins.input", lambda prompt="": next(answers))
    files_at_hand(tmp_path)
    name = str(page.relative_to(ROOT))
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # where dataclasses look their names up
    exec(AT_HAND.get(name, ""), module.__dict__)
    printed = None
    for language, code, below in blocks(page):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, name, "exec"), module.__dict__)
            printed = out.getvalue()
        elif language == "sh":
            for words in commands(code):
                assert cli.main(words[1:]) == 0, " ".join(words)
            printed = None
        elif language == "text" and below and printed is not None:
            assert code == printed, f"{name}: this is not what the code above prints"
