"""docs/privacy.md lists what must be trusted, with its size; this keeps the list true."""

import ast
import io
import re
import tokenize
from pathlib import Path

import understudy

ROOM = Path(understudy.__file__).parent / "privacy"
PAGE = ROOM.parent.parent.parent / "docs" / "privacy.md"
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text):
    """Lines with code: no blank ones, no comments, no docstrings."""
    words = {
        line
        for node in ast.walk(ast.parse(text))
        for statement in (node.body if isinstance(getattr(node, "body", 0), list) else ())
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement.value.value, str)
        for line in range(statement.lineno, statement.end_lineno + 1)
    }
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - words)


def size(name):
    if name.endswith("/"):
        return sum(code_lines(path.read_text("utf-8")) for path in (ROOM / name).glob("*.py"))
    return code_lines((ROOM / f"{name}.py").read_text("utf-8"))


def table():
    section = PAGE.read_text("utf-8").split("## What must be trusted")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ")][1:]
    return [
        (re.findall(r"`([^`]+)`", modules), int(n.strip(" *").replace(",", "")))
        for _, modules, n in rows
    ]


def test_what_must_be_trusted_is_as_large_as_the_page_says():
    *parts, (_, total) = table()
    assert [(names, sum(map(size, names))) for names, _ in parts] == parts
    assert total == sum(lines for _, lines in parts)


def test_a_line_of_code_is_one_with_code():
    text = (
        '"""Words.\n\nMore."""\n\nx = 1  # a comment\n# another\n'
        'def f():\n    """Says."""\n    return (\n        x\n    )\n'
    )
    assert code_lines(text) == 5


def test_nothing_else_opens_charges_or_draws():
    """Who names `reveal`, and who the ledger is charged by, is held by tests/test_architecture.py."""
    listed = {name.rstrip("/") for names, _ in table() for name in names}
    assert {"gate", "exact", "mechanisms", "noise", "ledger", "accounting"} <= listed
