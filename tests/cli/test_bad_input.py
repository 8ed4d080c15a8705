"""Bad input: a clear error with its remedy, nothing spent, nothing left behind.

What is wrong inside private rows is private: it changes no message and no exit code.
"""

import errno
import os
import re
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

import understudy as us
from tests.cli.cli_cases import SMALL, Case, run, small_rows
from tests.thorough import some


def _data(text: str) -> Callable[[Case], None]:
    return lambda case: case.data.write_text(text) and None


def _schema(*changes: tuple[str, str]) -> Callable[[Case], None]:
    def change(case: Case) -> None:
        text = SMALL
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        case.schema.write_text(text)

    return change


def _nothing(case: Case) -> None:
    pass


def _million(case: Case) -> None:
    values = ", ".join(f'"v{i}"' for i in range(10**6))
    case.schema.write_text(SMALL.replace('["F", "M"]', f"[{values}]"))


def _wide(case: Case) -> None:
    column = '[[column]]\nname = "{}"\ntype = "integer"\nlower = 0\nupper = 999\n'
    head = "[understudy]\nversion = 1\n"
    case.schema.write_text(head + "".join(column.format(name) for name in ("age", "sex", "income")))


def _unknown_column(case: Case) -> None:
    (case.folder / "w.json").write_text('[["age", "salary"]]')


BAD = {
    "no such table": (lambda case: case.data.unlink(), [], ["t.csv"]),
    "no header": (_data("1,2,3\n4,5,6\n"), [], ["header"]),
    "a row as header": (_data("34,F,200\n35,M,100\n"), [], ["header"]),
    "a missing column": (_data("age,sex\n1,F\n"), [], ["income"]),
    "another column": (_data("age,sex,income,name\n1,F,2,x\n"), [], ["name", "identifier"]),
    "a duplicate column": (_data("age,sex,age,income\n1,F,1,2\n"), [], ["duplicate", "rename"]),
    "an unconfirmed draft": (
        _schema(("bins = 10", 'bins = 10\nread_from_rows = ["lower"]')),
        [],
        ["'age' (lower)", "schema review"],
    ),
    "a million categories": (_million, [], ["'sex'", "1000000"]),
    "bounds reversed": (
        _schema(("lower = 0\nupper = 99\n", "lower = 99\nupper = 0\n")),
        [],
        ["'age'"],
    ),
    "not a schema": (lambda case: case.schema.write_text("{") and None, [], ["t.schema.toml"]),
    "no such schema": (lambda case: case.schema.unlink(), [], ["schema draft"]),
    "epsilon zero": (_nothing, ["--epsilon", 0], ["epsilon = 0", "above 0"]),
    "epsilon negative": (_nothing, ["--epsilon", "-1"], ["epsilon = -1"]),
    "epsilon no number": (_nothing, ["--epsilon", "one"], ["epsilon = 'one'"]),
    "epsilon beyond all use": (_nothing, ["--epsilon", "1e99999999"], ["epsilon", "out of range"]),
    "epsilon of 400 kB": (_nothing, ["--epsilon", "9" * 400_000], ["399,942 characters"]),
    "epsilon not finite": (_nothing, ["--epsilon", "inf"], ["epsilon"]),
    "delta too large": (
        _nothing,
        ["--rows-public", 1000, "--delta", "0.001"],
        ["delta = 0.001", "1/n = 0.001"],
    ),
    "delta large, n unknown": (_nothing, ["--delta", "0.01"], ["delta = 0.01", "1e-9"]),
    "replace without n": (_nothing, ["--neighbours", "replace"], ["--rows-public"]),
    "unknown column in the workload": (_unknown_column, ["--workload", "w.json"], ["'salary'"]),
    "a workload that is none": (_nothing, ["--workload", "triples"], ["marginals:3"]),
    "more columns than there are": (_nothing, ["--workload", "marginals:9"], ["marginals:9"]),
    "10^9 cells": (_wide, ["--workload", "marginals:3"], ["cells", "bins"]),
    "exhausted budget": (_nothing, ["--epsilon", 5], ["ε = 5", "ε = 3", "Ask for at most"]),
    "an existing folder": (lambda case: case.out.mkdir(), [], ["exists already"]),
    "no parent folder": (_nothing, ["--out", "no/such"], ["does not exist"]),
    "unknown method": (_nothing, ["--method", "magic"], ["magic", "mst"]),
    "no rows to make": (_nothing, ["--rows", 0], ["rows = 0"]),
    "beta": (_nothing, ["--beta", 0.9], ["beta = 0.9"]),
    "unknown dataset": (_nothing, ["--dataset", "u"], ["'u'", "ledger open"]),
    "no such ledger": (_nothing, ["--ledger", "no.ledger"], ["no.ledger", "ledger open"]),
}


@pytest.mark.parametrize("name", some(BAD, 3))
def test_bad_input_costs_nothing(case: Case, name: str, monkeypatch: pytest.MonkeyPatch):
    spoil, options, said = BAD[name]
    spoil(case)
    monkeypatch.chdir(case.folder)
    before = case.files()
    result = case.release(*options)
    assert result.code == 2, result.err
    assert result.out == ""
    [error] = [line for line in result.err.splitlines() if line.startswith("error: ")]
    for words in said:
        assert words in result.err, error
    assert case.kinds() == ["open"]
    assert case.files() == before


@pytest.mark.parametrize(
    "epsilon", ["1e99999999", "1e-99999999", "7" * 400_000], ids=["large", "small", "long"]
)
def test_a_plan_refuses_numbers_beyond_all_use_in_a_line(case: Case, epsilon: str):
    result = run("plan", "--schema", case.schema, "--epsilon", epsilon)
    assert result.code == 2
    assert "out of range" in " ".join(result.err.split())
    assert len(result.err) < 400


def test_no_message_echoes_an_input_of_400_kb(case: Case):
    for options in (
        ["--method", "m" * 400_000],
        ["--workload", "w" * 400_000],
        ["--set", "s" * 400_000],
        ["--neighbours", "n" * 400_000],
    ):
        result = case.release(*options)
        assert result.code == 2
        assert 0 < len(result.err) < 600, options[0]


def test_the_header_of_a_file_without_one_is_not_quoted(case: Case):
    case.data.write_text("8423,secret,17\n5,F,6\n")
    result = case.release()
    assert result.code == 2
    assert "secret" not in result.err
    assert "8423" not in result.err
    drafted = run("schema", "draft", case.data, "--out", case.folder / "d.toml")
    assert drafted.code in (0, 2)


def test_a_ragged_file_is_opened_by_draft_check_and_release_alike(case: Case):
    with case.data.open("a") as file:
        file.write("1\n1,2,3,4,5,6,7,8,9\n")
    drafted = run("schema", "draft", case.data, "--out", case.folder / "d.toml")
    assert (drafted.code, drafted.err) == (0, "")
    checked = run("schema", "check", case.schema, "--data", case.data)
    assert (checked.code, checked.err) == (1, ""), "the short row has no other cells"
    assert case.release().code == 0


def test_draft_refuses_a_file_without_a_header(tmp_path: Path):
    data = tmp_path / "t.csv"
    data.write_text("4,5,6\n1,2,3\n")
    drafted = run("schema", "draft", data)
    assert (drafted.code, "header" in drafted.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


# A full disk


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_no_space_is_found_before_spending(case: Case, monkeypatch: pytest.MonkeyPatch):
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    before = case.files()
    result = case.release()
    assert result.code == 1
    assert "Nothing was spent" in result.err
    assert case.kinds() == ["open"]
    assert case.files() == before


def test_a_disk_that_fills_up_leaves_nothing_half_written(
    case: Case, monkeypatch: pytest.MonkeyPatch
):
    before = case.files()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _full)
        result = case.release()
    assert result.code == 1
    assert "No space left" in result.err
    assert "stay charged" in result.err
    assert case.files() == before
    assert case.kinds()[-1] == "settle"


def test_a_full_disk_while_sampling(survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _full)
        result = run("sample", survey / "survey.release", "--out", tmp_path / "rows.csv")
    assert result.code == 1
    assert "Free some space" in result.err
    assert list(tmp_path.iterdir()) == []


# What only the custodian may know


def _screen(case: Case) -> str:
    """Everything a release prints, without its noise."""
    result = case.release("--rows-public", 400, "--rows", 100)
    assert result.code == 0, result.err
    verified = run("verify", case.out)
    assert verified.code == 0
    assert us.Schema.loads(SMALL).illegal(us.Release.load(case.out).rows) == []
    text = result.out + result.err
    text = re.sub(r"digest +[0-9a-f]{64}", "digest", text)
    text = re.sub(r"[0-9]+:[0-9a-f]{64}", "head", text)
    text = re.sub(r"≤ [0-9.]+|(?<=worst cell, )[0-9.]+", "≤ bound", text)
    return text.replace(str(case.folder), "")


ODD = {
    "no rows": "age,sex,income\n",
    "values outside": small_rows().replace("F", "X").replace("\n7,", "\n700,"),
    "nulls where none are allowed": re.sub(r"\n(\d+),([FM])", r"\n,", small_rows()),
    "numbers that are none": small_rows().replace("\n7,", "\nseven,"),
    "a short row": small_rows() + "5\n",
    "a long row": small_rows() + "5,F,6,7,8\n",
    "not UTF-8": small_rows() + "5,\udcff,6\n",
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    case = Case(tmp_path_factory.mktemp("clean"))
    case.data.write_text(small_rows())
    case.schema.write_text(SMALL)
    run("ledger", "open", case.ledger, "--dataset", "t", "--epsilon", 3,
        "--composition", "basic")  # fmt: skip
    return _screen(case)


@pytest.mark.parametrize("name", ODD)
def test_what_is_wrong_inside_rows_changes_nothing_one_sees(case: Case, expected: str, name: str):
    case.data.write_bytes(ODD[name].encode("utf-8", "surrogateescape"))
    assert _screen(case) == expected


def test_no_rows_and_private_n(case: Case):
    case.data.write_text("age,sex,income\n")
    assert case.release().code == 0
    assert us.verify(case.out).passed


def test_unforeseen_errors_keep_their_text_to_themselves(
    case: Case, monkeypatch: pytest.MonkeyPatch
):
    def leak(*_: object, **__: object) -> None:
        raise ValueError("row 17 holds 'secret'")

    monkeypatch.setattr("understudy.source.base.EncodedCounts.__init__", leak)
    result = case.release()
    assert result.code == 1
    assert "secret" not in result.err
    assert "UNDERSTUDY_DEBUG" in result.err
    assert case.kinds() == ["open"]
