"""`understudy schema review`: the decisions about a draft, at a terminal and without one."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_cases import run
from understudy.cli import main, review
from understudy.cli.commands import command, program
from understudy.schema import Schema

DRAFT = """\
# notes of a custodian
[understudy]
version = 1
unit = "?"

[[column]]
name = "patient"
type = "identifier"
read_from_rows = ["type"]

[[column]]
name = "job"
type = "category"
values = ["baker", "clerk", "mayor"]
nullable = false
read_from_rows = ["type", "nullable", "values"]

[[column]]
name = "size_a"
type = "integer"
lower = 0
upper = 13
read_from_rows = ["lower", "upper"]

[[column]]
name = "size_b"
type = "integer"
lower = 0
upper = 7
read_from_rows = ["lower", "upper"]

[[column]]
name = "sex"
type = "category"
values = ["F", "M"]
read_from_rows = ["values"]
"""


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "t.schema.toml"
    path.write_text(DRAFT)
    return path


@pytest.fixture
def walk(draft: Path, monkeypatch, capsys):
    """Answer the questions with these lines; whoever runs out of them has closed the terminal."""

    def go(*lines: object, data: tuple[Path, ...] = ()):
        left = iter(lines)

        def typed(prompt: str = "") -> str:
            line = next(left, EOFError())
            if isinstance(line, BaseException):
                raise line
            return str(line)

        monkeypatch.setattr("builtins.input", typed)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        code = main(["schema", "review", str(draft), *map(str, data)])
        assert next(left, None) is None, "not every line was asked for"
        out, err = capsys.readouterr()
        return code, out, err

    return go


def columns(path: Path):
    return {column.name: column for column in Schema.load(path).columns}


def test_a_walk_through_all_of_it(walk, draft: Path):
    code, out, _ = walk(
        "patient 5",
        "",
        "p",
        "x", "c", "all", "0 to 50", "many", "0 to 20",
        "d", "all",
        "a",
    )  # fmt: skip
    assert code == 0
    schema, found = Schema.load(draft), columns(draft)
    schema.require_confirmed()
    assert (schema.unit.column, schema.unit.max_rows) == ("patient", 5)
    assert found["job"].values == "discover"
    assert (found["size_a"].upper, found["size_b"].upper) == (50, 20)
    assert found["sex"].kind == "identifier"
    assert draft.read_text().startswith("# notes of a custodian")
    assert "1 of 6" in out
    assert "Enter" in out
    assert "nearly all rows of size_a lie between about 0 and 13" in out
    assert "nothing is open" in out


def test_yes_is_an_answer_where_it_can_mean_only_one_thing(walk, draft: Path):
    code, out, _ = walk("y", "row", "yes", "n", "Y")  # neither to who, nor a no to a list
    assert code == 0
    assert "answer with row, patient 4, s or q" in out
    assert "answer with a, c, p, d, u, s or q" in out
    assert columns(draft)["patient"].read_from_rows == ()
    assert columns(draft)["job"].read_from_rows == ("type", "nullable")


def test_no_is_an_answer_where_the_question_is_the_other_way_round(walk, draft: Path):
    asked = DRAFT.replace('unit = "?"', 'read_from_rows = ["unit"]')
    draft.write_text(asked)
    code, out, _ = walk("yes", "no", "q")
    assert "answer with a, " in out
    assert (code, "Noted: one row is protected." in out) == (0, True)
    text = re.sub("read_from_rows = .*|unit = .*", "", DRAFT)
    for rule in ("size_a <= size_b", "size_a >= 1"):
        text += f"\n[[rule]]\nsays = '{rule}'\nread_from_rows = true\n"
    draft.write_text(text)
    _, out, _ = walk("y", "a 1")
    assert "answer with a, d, o, s or q" in out
    assert Schema.load(draft).rules[0].says == "size_a <= size_b"


def test_one_row_a_person_is_an_answer_where_nobody_was_found_with_several(walk, draft: Path):
    draft.write_text(
        """[understudy]
version = 1
read_from_rows = ["unit"]

[[column]]
name = "sex"
type = "category"
values = ["F", "M"]
"""
    )
    code, out, _ = walk("a")
    assert code == 0
    assert "nothing is open" in out
    Schema.load(draft).require_confirmed()


def test_the_enter_key_makes_nothing_public(walk, draft: Path):
    before = Schema.load(draft)
    code, out, _ = walk("", "", "", "", "", "")
    assert (code, columns(draft)["patient"].read_from_rows) == (0, ())  # it is left out
    assert Schema.load(draft).columns[1:] == before.columns[1:]
    assert "5 decisions left" in out


def test_what_is_answered_stays_when_somebody_leaves(walk, draft: Path):
    code, _, err = walk("row", "a", KeyboardInterrupt())
    assert code == 130
    assert "Every answer that was kept is in" in err
    assert f"To go on:\n  {command('schema', 'review', draft)}\n" in err
    assert Schema.load(draft).unit_word == "row"
    assert columns(draft)["patient"].read_from_rows == ()
    assert columns(draft)["job"].read_from_rows == ("type", "nullable", "values")
    code, out, _ = walk("a")  # and the terminal is closed
    assert code == 0
    assert columns(draft)["job"].read_from_rows == ("type", "nullable")
    code, out, _ = walk("q")
    assert (code, "3 decisions left" in out) == (0, True)


def test_an_answer_is_taken_back_unless_the_file_was_edited_since(walk, draft: Path, monkeypatch):
    before = draft.read_text()
    code, out, _ = walk("row", "u", "q")
    assert (code, draft.read_text()) == (0, before)
    assert "Taken back." in out
    assert out.count("1 of 6  Does one person have several rows?") == 2
    take_back = review._take_back

    def elsewhere(path, answers):
        path.write_text(path.read_text() + "# an editor was here\n")
        return take_back(path, answers)

    monkeypatch.setattr(review, "_take_back", elsewhere)
    code, _, err = walk("row", "u", "q")
    assert "was edited since" in err
    assert Schema.load(draft).unit_word == "row"


def test_a_misspelt_decision_gets_a_suggestion_and_an_answered_column_the_way_to_change_it(
    draft: Path,
):
    typo = run("schema", "review", draft, "--private", "values:jobb")
    assert "no open decision is called 'values:jobb' (did you mean 'job'" in typo.err
    run("schema", "review", draft, "--drop", "job")
    again = run("schema", "review", draft, "--private", "job")
    assert (
        "nothing is open about 'job'; to change what was answered, use --set or edit" in again.err
    )


def test_facts_are_set_where_nothing_is_open(draft: Path):
    run("schema", "review", draft, "--public", "bounds", "--private", "size_b")
    made = run("schema", "review", draft, "--set", "size_a=0 to 50", "--set", "size_b=0 to 60")
    assert made.code == 0, made.err
    assert columns(draft)["size_a"].upper == 50
    assert "Noted: size_b: from 0 to 60" in made.out
    assert run("schema", "review", draft, "--set", "unit=patient 3").code == 0
    assert run("schema", "review", draft, "--set", "unit=patient 2").code == 0
    assert Schema.load(draft).unit.max_rows == 2
    ended = run("schema", "review", draft, "--public", "size_a")
    assert (ended.code, "nothing is open about 'size_a'" in ended.err) == (2, True)


def test_a_group_may_be_answered_in_part(walk, draft: Path):
    walk("s", "s", "s", "d", "3", "d", "2", "q")
    assert columns(draft)["size_b"].kind == "identifier"
    assert columns(draft)["size_a"].read_from_rows == ("lower", "upper")


def test_a_group_is_answered_by_numbers_or_names_one_column_at_a_time(walk, draft: Path):
    code, out, _ = walk("s", "s", "s", "c", "2", "0 to 20", "d", "size_a", "z", "q")
    assert (code, columns(draft)["size_b"].upper) == (0, 20)
    assert columns(draft)["size_a"].kind == "identifier"
    assert (out.count("Noted: size_b: 0 to 20."), out.count("Dropped: size_a.")) == (1, 1)
    assert "answer with a, c, p, d, u, s or q" in out
    assert "a, c, p, d, u, s, q as before; ? explains them" in out
    walk("s", "s", "s", "c", "sizes", "q")  # none of them: nothing happened, and it asks again


def test_what_was_kept_of_a_group_stays_and_the_command_to_go_on_is_said(walk, draft: Path):
    code, _, err = walk("s", "s", "s", "c", "all", "0 to 50", KeyboardInterrupt())
    assert code == 130
    assert columns(draft)["size_a"].upper == 50
    assert columns(draft)["size_b"].read_from_rows == ("lower", "upper")
    assert f"To go on:\n  {command('schema', 'review', draft)}\n" in err


def test_the_name_of_a_column_is_no_value_unless_it_is_quoted(walk, draft: Path):
    _, _, err = walk("s", "s", "c", "size_a", "baker, clerk", "", "q")
    assert "'size_a' is the name of a column, not a value" in err
    assert columns(draft)["job"].values == ("baker", "clerk")


def test_rules_are_kept_and_dropped_by_their_numbers(walk, draft: Path):
    rules = ["sex = 'F' implies size_a >= 1", "sex = 'M' implies size_b <= 3", "size_a >= 0"]
    text = "".join(f'\n[[rule]]\nsays = "{rule}"\nread_from_rows = true\n' for rule in rules)
    draft.write_text(DRAFT + text)
    walk("s", "s", "s", "s", "s", "a", "a 1, 2", "q")
    found = Schema.load(draft).rules
    assert [rule.says for rule in found] == rules[:2]
    assert not any(rule.read_from_rows for rule in found)


def test_rules_are_struck_out_by_their_numbers(walk, draft: Path):
    rules = ["sex = 'F' implies size_a >= 1", "sex = 'M' implies size_b <= 3", "size_a >= 0"]
    text = "".join(f'\n[[rule]]\nsays = "{rule}"\nread_from_rows = true\n' for rule in rules)
    draft.write_text(DRAFT + text)
    walk("s", "s", "s", "s", "s", "d 2", "a all", "q")
    assert [rule.says for rule in Schema.load(draft).rules] == [rules[0], rules[2]]


def test_lines_are_answered_behind_a_letter_and_the_rest_is_asked_again(walk, draft: Path):
    code, out, _ = walk("s", "s", "s", "d 2", "a", "q")
    assert (code, columns(draft)["size_b"].kind) == (0, "identifier")
    assert columns(draft)["size_a"].read_from_rows == ()
    assert out.count("Are the bounds of size_a, size_b public knowledge?") == 1


def test_a_question_is_opened_and_its_lines_answered_one_by_one(walk, draft: Path):
    code, out, _ = walk("s", "s", "s", "o", "a", "s", "s", "s")
    assert code == 0
    assert "one by one, and 1 more" in out
    assert columns(draft)["size_a"].read_from_rows == ()
    assert columns(draft)["size_b"].read_from_rows == ("lower", "upper")
    code, out, _ = walk("s", "s", "s", "a", "u", "q")
    assert out.count("Are the bounds of size_b public knowledge?") == 2


def test_the_lines_that_are_left_keep_their_numbers(walk, draft: Path):
    text = DRAFT + DRAFT[DRAFT.index('[[column]]\nname = "size_b"') :].split("\n\n")[0].replace(
        "size_b", "size_c"
    ).replace("upper = 7", "upper = 9")
    draft.write_text(text)
    code, out, err = walk("s", "s", "s", "d 1", "d 1", "d 3", "q")
    assert code == 0
    assert "'1' is no line and no name of this question; its lines are 2, 3." in err
    found = columns(draft)
    assert [found[f"size_{each}"].kind for each in "abc"] == ["identifier", "integer", "identifier"]
    assert "3  size_c: 0 to 9" in out


def test_people_are_limited_by_the_number_that_is_typed(walk, draft: Path, tmp_path: Path):
    data = tmp_path / "t.csv"
    rows = "".join(f"P{i // 12},baker,{i % 5},1,F\n" for i in range(240))
    data.write_text("patient,job,size_a,size_b,sex\n" + rows)
    _, out, _ = walk("5", "q", data=(data,))
    assert "    5  at most 5 rows of each patient" in out
    assert Schema.load(draft).unit.max_rows == 5
    draft.write_text(DRAFT)
    walk("4 equal", "q", data=(data,))
    assert Schema.load(draft).unit.equal == 4
    draft.write_text(DRAFT)
    walk("3", "q")
    assert Schema.load(draft).unit.max_rows == 3


def test_numbers_are_read_as_people_write_them(walk, draft: Path):
    _, out, _ = walk("s", "s", "s", "c 1", "0-20", "c 2", "0 to 1,000", "q")
    assert "Noted: size_a: 0 to 20." in out
    assert "Noted: size_b: from 0 to 1000" in out


def test_one_list_for_all_of_a_group_needs_no_typing(walk, draft: Path):
    text = DRAFT.replace('["baker", "clerk", "mayor"]', '["F", "M", "X"]')
    draft.write_text(text)
    walk("s", "s", "w", "q")
    assert columns(draft)["sex"].values == columns(draft)["job"].values == ("F", "M", "X")


def test_without_a_terminal(draft: Path, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    refused = run("schema", "review", draft)
    assert (refused.code, "--list" in refused.err) == (2, True)
    shown = run("schema", "review", draft, "--list")
    assert shown.code == 0
    assert "NOT PRIVATE" in shown.out
    assert "--all" not in shown.out
    assert shown.out.index("several rows?") < shown.out.index("baker, clerk, mayor")

    # The commands that it prints are those that answer.
    lines = [line.partition("  # ")[0].strip() for line in shown.out.splitlines()]
    commands = [line for line in lines if " understudy " in f" {line}"]
    assert command("schema", "confirm", draft, "--unit", "row") in commands
    for line in commands:
        if "--public" in line or line.endswith("--unit row"):
            assert run(*shlex.split(line.removeprefix(program()))).code == 0, line
    Schema.load(draft).require_confirmed()
    done = run("schema", "review", draft, "--list")
    assert "nothing is open" in done.out


def test_a_table_of_one_column_is_listed_and_confirmed(tmp_path: Path):
    draft = tmp_path / "s.toml"
    draft.write_text(
        '[understudy]\nversion = 1\nread_from_rows = ["unit"]\n[[column]]\nname = "wait"\n'
        'type = "number"\ndecimals = 1\nread_from_rows = ["type", "decimals"]\n'
    )
    shown = run("schema", "review", draft, "--list")
    assert (shown.code, shown.out.count("--public")) == (0, 2)


def test_facts_of_a_list_of_numbers_are_such_as_numbers(draft: Path):
    draft.write_text(draft.read_text().replace('["F", "M"]', "[1.5, 2.0, 7.25]"))
    shown = run("schema", "review", draft, "--list").out
    line = next(line for line in shown.splitlines() if "sex=" in line)
    given = shlex.split(line.partition("such as: ")[2])
    assert given == ["--set", "sex=1, 2, 3"]
    assert run("schema", "review", draft, *given).code == 0


def test_where_nobody_was_found_with_several_rows_that_is_the_first_answer(draft: Path):
    text = draft.read_text().replace('unit = "?"', 'read_from_rows = ["unit"]')
    draft.write_text(text)
    shown = run("schema", "review", draft, "--list").out
    assert shown.index("--public unit") < shown.index("--unit patient --max-rows 5")


def test_answers_of_one_command(draft: Path):
    made = run(
        "schema", "review", draft, "--set", "unit=patient 3", "--public", "identifiers",
        "--private", "job", "--set", "size_a=0 to 99", "--drop", "size_b", "--set", "sex=F, M, X",
        "--set", "types=all",
    )  # fmt: skip
    assert made.code == 0, made.err
    found = columns(draft)
    assert (found["size_a"].upper, found["sex"].values) == (99, ("F", "M", "X"))
    assert (found["size_b"].kind, found["job"].nullable) == ("identifier", True)
    Schema.load(draft).require_confirmed()


def test_what_is_said_of_one_column_goes_before_what_is_said_of_its_group(draft: Path):
    made = run("schema", "review", draft, "--public", "bounds", "--private", "size_b")
    assert made.code == 0, made.err
    assert columns(draft)["size_a"].read_from_rows == ()
    assert "size_b" in [column.name for column in Schema.load(draft).undeclared]


def test_rules_that_an_answer_takes_with_it_are_named(draft: Path):
    rule = "[[rule]]\nsays = \"job = 'mayor' implies sex = 'F'\"\nread_from_rows = true\n"
    draft.write_text(DRAFT + rule)
    made = run("schema", "review", draft, "--drop", "job")
    assert "dropped with it" in made.out
    assert "job = 'mayor' implies" in made.out
    assert Schema.load(draft).rules == ()


def test_values_that_a_new_list_lacks_are_named(draft: Path):
    slip = run("schema", "review", draft, "--set", "job=baker, clerk, mayr")
    assert slip.code == 2
    assert "did you mean it by 'mayr'?" in slip.err
    made = run("schema", "review", draft, "--set", "job=baker, clerk")
    assert "holds 'mayor', not in the list of job: rows with it count as 'baker'" in made.out
    whole = run("schema", "review", draft, "--set", "sex=F, M, X")
    assert "not in the list" not in whole.out


def test_values_that_are_not_typed_count_as_other_unless_somebody_says_no(walk, draft: Path):
    _, out, _ = walk("s", "s", "c", "baker, clerk", "", "q")
    assert (columns(draft)["job"].values, columns(draft)["job"].other) == (
        ("baker", "clerk"),
        "OTHER",
    )
    assert "'mayor', not in the list of job: rows with it count as OTHER" in out
    draft.write_text(DRAFT)
    _, out, _ = walk("s", "s", "c", "baker, clerk", "1-8", "n", "q")
    assert columns(draft)["job"].other is None
    assert "Enter: yes; n: as 'baker'" in out
    assert "rows with it count as 'baker'" in out


def test_with_the_table_it_says_whether_any_row_is_concerned(walk, draft: Path, tmp_path: Path):
    data = tmp_path / "t.csv"
    rows = "".join(f"P{i},{'mayor' if i == 7 else 'baker'},{i % 5},1,F\n" for i in range(40))
    data.write_text("patient,job,size_a,size_b,sex\n" + rows)
    _, out, _ = walk("s", "s", "c", "baker, clerk", "", "c 1", "0 to 9", "q", data=(data,))
    assert "a value that is not declared in 1 row ('mayor' ×1)" in out
    assert "not in the list of job" not in out, "said once"
    assert "Noted: size_a: 0 to 9.\n  Every row of the table fits." in out


def test_a_command_answers_all_or_nothing(draft: Path):
    before = draft.read_text()
    for wrong in (["--public", "jobs"], ["--set", "size_a=9"], ["--private", "patient"]):
        refused = run("schema", "review", draft, "--drop", "job", *wrong)
        assert refused.code == 2, wrong
        assert draft.read_text() == before
        assert not refused.out, "nothing was noted"


def test_the_rows_of_people_are_for_a_custodian(draft: Path, tmp_path: Path):
    data = tmp_path / "t.csv"
    rows = "".join(f"P{i // 2},baker,{i % 5},1,F\n" for i in range(40))
    data.write_text("patient,job,size_a,size_b,sex\n" + rows)
    shown = run("schema", "review", draft, data, "--list").out
    assert "50 % of the rows left out; the noise of 1 row" in shown
    assert "--unit patient --max-rows 2" in shown
    shown = run("schema", "review", draft, "--list").out
    assert "left out; the noise" not in shown
    assert "--unit patient --max-rows 5" in shown, "and not --unit row alone"


def test_the_plan_that_it_prints_has_rows_only_where_it_has_seen_them(draft: Path, tmp_path: Path):
    data = tmp_path / "t.csv"
    rows = "".join(f"P{i // 2},baker,{i % 5},1,F\n" for i in range(1234))
    data.write_text("patient,job,size_a,size_b,sex\n" + rows)
    run("schema", "confirm", draft, "--all", "--unit", "patient", "--max-rows", 1)
    assert "--epsilon 1 --rows 620" in run("schema", "review", draft, data, "--list").out
    shown = run("schema", "review", draft, "--list").out
    assert "--epsilon 1\n" in shown
    assert "Add --rows" in shown


def test_where_bounds_are_to_be_found_it_says_how_to_state_them(tmp_path: Path):
    path = tmp_path / "t.schema.toml"
    path.write_text(
        '[understudy]\nversion = 1\n[[column]]\nname = "cost"\ntype = "integer"\nbins = "shape"\n'
    )
    told = run("schema", "review", path, "--list").err
    line = command("schema", "review", path, "--set", "COLUMN=LEAST to MOST")
    assert "Bounds of cost will be found privately" in told
    assert f"`{line}` states them" in told


def test_at_a_real_terminal(draft: Path):
    parent, child = pytest.importorskip("pty").openpty()
    command = [sys.executable, "-m", "understudy", "schema", "review", str(draft)]
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child)
    os.close(child)
    os.write(parent, b"row\n\x04")  # and Ctrl-D
    seen = b""
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(parent)
    assert process.wait(30) == 0, seen
    assert b"Does one person have several rows?" in seen
    assert Schema.load(draft).unit_word == "row"
