"""What the README and the other pages show, works: its code runs, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.cli_cases import run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, "" for none."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S)
    return [code for name, code in fenced if name == language]


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """The table of the README's examples, and its confirmed schema."""
    rng = np.random.default_rng(0)
    lines = ["age,sex,smoker"]
    for _ in range(2000):
        lines.append(f"{rng.integers(18, 90)},{rng.choice(['F', 'M'])},{rng.choice(['yes', 'no'])}")
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_readme(patients):
    (shell,) = [b for b in blocks(ROOT / "README.md", "") if "schema draft" in b]
    commands = [shlex.split(line, comments=True) for line in shell.splitlines() if line.strip()]
    assert len(commands) == 8
    for program, *words in commands:
        assert program == "understudy"
        # Fewer rows than the page asks for: the words are what is tested.
        words = ["2000" if word == "1000000" else word for word in words]
        if words[:2] == ["schema", "review"]:  # nobody is there to be asked
            words = ["schema", "confirm", words[2], "--all"]
        done = run(*words)
        assert done.code == 0, (words, done.err)
    assert (patients / "patients.release" / "release.json").is_file()
    assert (patients / "more.parquet").is_file()


def test_the_python_of_the_readme(patients):
    assert run("schema", "draft", "patients.csv").code == 0
    assert run("schema", "confirm", "patients.schema.toml", "--all").code == 0
    (code,) = blocks(ROOT / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})  # the page's own code
    assert (patients / "patients.release" / "release.json").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_the_pages_is_python(page):
    for code in blocks(page, "python"):
        compile(code, page.name, "exec")
