"""The threat model in docs/serve.md: every line has an answer and a test that pytest collects."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TEST = re.compile(r"`([a-z_/]+\.py::test_\w+)`")


def lines():
    """The rows of the table: threat, what stands against it, tests."""
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    section = text.partition("\n## Threats\n")[2].partition("\n## ")[0]
    head, rule, *rows = [line for line in section.splitlines() if line.startswith("|")]
    assert (head, rule) == ("| threat | what stands against it | test |", "|---|---|---|")
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_every_threat_has_an_answer_and_a_test():
    table = lines()
    assert len(table) > 10
    for row in table:
        assert len(row) == 3, row
        threat, answer, tests = row
        assert threat, row
        assert answer, row
        assert _TEST.findall(tests), f"no test is named beside {threat!r}"
        assert not _TEST.sub("", tests).strip(" ,"), f"more than tests beside {threat!r}"


def test_every_named_test_is_collected():
    for named in sorted({test for _, _, tests in lines() for test in _TEST.findall(tests)}):
        file, _, name = named.partition("::")
        held = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")).body
        functions = {each.name for each in held if isinstance(each, ast.FunctionDef)}
        assert name in functions, named
