"""What is printed for people: whole lines where nobody watches."""

import pytest

from understudy.cli import shell, words
from understudy.demo import schema


def test_facts_stand_below_each_other(capsys):
    words.facts([("rows", "12"), ("certificate", "x" * 200)])
    assert capsys.readouterr().out.splitlines() == [
        "  rows         12",
        "  certificate  " + "x" * 200,
    ]


def test_lists_and_commands_keep_their_lines(capsys):
    words.bullets(["one", "two"])
    words.next_commands("understudy verify r", "understudy sample r")
    said = ["• one", "• two", "", "Next", "  understudy verify r", "  understudy sample r"]
    assert capsys.readouterr().out.splitlines() == said


@pytest.mark.parametrize(("share", "full"), [(0, 0), (0.5, 5), (1, 10), (7, 10)])
def test_a_bar_is_never_longer_than_its_place(share, full):
    assert words.bar(share, 10).plain == "█" * full + "░" * (10 - full)


@pytest.mark.parametrize("marks", [True, False])
def test_every_column_of_a_schema_has_a_line(capsys, marks):
    columns = schema().columns
    shell.out().print(words.columns_table(columns, marks=marks))
    lines = capsys.readouterr().out.splitlines()
    assert ("read from rows" in lines[1]) is marks
    assert [line.split()[0] for line in lines[3 : 3 + len(columns)]] == [c.name for c in columns]
