"""Commands on a ledger in PostgreSQL: the same words, and never the password."""

import json

import pytest

from tests.cli.cli_cases import SMALL, Case, run, small_rows
from tests.tools.servers import house


@pytest.fixture
def team():
    """The address of an empty ledger, with a password that the server does not ask for."""
    with house() as url:
        yield url.replace("postgres:@", "postgres:hunter2@")


def said(*arguments):
    found = run(*arguments)
    assert "hunter2" not in found.out + found.err
    return found


def test_a_release_on_the_team_ledger_from_opening_to_verifying(tmp_path, team):
    case = Case(tmp_path)
    case.data.write_text(small_rows())
    case.schema.write_text(SMALL)
    opened = said("ledger", "open", team, "--dataset", "t", "--epsilon", 3,
                  "--composition", "basic")  # fmt: skip
    assert opened.code == 0, opened.err
    assert "--ledger postgresql://postgres@" in opened.out
    made = said(
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--method", "independent",
        "--out", case.out, "--ledger", team, "--dataset", "t",
    )  # fmt: skip
    assert made.code == 0, made.err
    checked = said("verify", case.out, "--ledger", team, "--dataset", "t")
    assert checked.code == 0
    assert "with this bundle's digest" in checked.out
    [view] = json.loads(said("ledger", "show", team, "--json").out)
    assert view["spent"]["epsilon"] == 1
    assert view["chain"]["holds"]
    release = view["releases"][0]["release"]
    assert "finished already" in said("ledger", "settle", team, release).out


@pytest.mark.parametrize("where", ["file", "server"])
def test_an_account_for_people(tmp_path, team, where):
    """From opening to verifying, with people of several rows: rows and people do not mix."""
    account = team if where == "server" else tmp_path / "people.ledger"
    case = Case(tmp_path)
    rows = small_rows().splitlines()
    numbered = [f"p{i // 2},{row}" for i, row in enumerate(rows[1:])]
    case.data.write_text("\n".join([f"who,{rows[0]}", *numbered]) + "\n")
    who = '[[column]]\nname = "who"\ntype = "identifier"\n'
    case.schema.write_text(
        SMALL.replace("version = 1", f'version = 1\nunit = "who"\nmax_rows = 2\n{who}')
    )
    opened = said("ledger", "open", account, "--dataset", "t", "--epsilon", 3, "--unit", "who")
    assert opened.code == 0, opened.err
    assert "all rows of one who added or removed" in opened.out
    given = (
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--method", "independent",
        "--ledger", account, "--dataset", "t",
    )  # fmt: skip
    made = said(*given, "--out", case.out)
    assert made.code == 0, made.err
    assert "differential privacy per who" in made.out
    assert "one who (at most 2 of its rows count) added or removed" in made.out
    assert said("verify", case.out, "--ledger", account, "--dataset", "t").code == 0
    shown = said("ledger", "show", account)
    assert "all rows of one who" in shown.out
    case.schema.write_text(SMALL.replace("version = 1", f"version = 1\n{who}"))
    refused = said(*given, "--out", tmp_path / "rows")
    assert refused.code == 2, refused.err
    assert "unit" in refused.err
    [view] = json.loads(said("ledger", "show", account, "--json").out)
    assert 0.9 < view["spent"]["epsilon"] < 1.2  # by ρ


def test_a_file_is_migrated_by_one_command(case: Case, team):
    assert case.release().code == 0
    moved = said("ledger", "migrate", case.ledger, team)
    assert moved.code == 0, moved.err
    assert "From now on give --ledger postgresql://postgres@" in moved.out
    again = said("ledger", "migrate", case.ledger, team)
    assert (again.code, "no dataset left" in again.out) == (0, True)
    assert "moved to postgresql://postgres@" in said("ledger", "show", case.ledger).out
    refused = run(
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--method", "independent",
        "--out", case.folder / "more", "--ledger", case.ledger, "--dataset", "t",
    )  # fmt: skip
    assert refused.code == 1
    assert "was moved from" in refused.err
    assert said("verify", case.out, "--ledger", team).code == 0
    assert said("ledger", "show", team).code == 0


def test_addresses_that_do_not_lead_anywhere(case: Case):
    for address, reason in [
        ("postgresql://me:hunter2@127.0.0.1:1/x", "no server answers"),
        ("postgresql://me:hunter2@[x", "cannot be read"),
    ]:
        for command in (
            ("ledger", "open", address, "--dataset", "t", "--epsilon", 1),
            ("ledger", "show", address),
            ("ledger", "migrate", case.ledger, address),
            ("release", case.data, "--schema", case.schema, "--epsilon", 1, "--out", case.out,
             "--ledger", address, "--dataset", "t"),
        ):  # fmt: skip
            found = said(*command)
            assert (found.code, reason in found.err) == (2, True), found.err
    assert not case.out.exists()
    assert case.kinds() == ["open"]
