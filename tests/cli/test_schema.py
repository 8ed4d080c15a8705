"""`understudy schema`: draft, confirm, check and import."""

from pathlib import Path

import pytest
from bench.households import households
from pyarrow import csv

import understudy as us
from tests.cli.cli_cases import SMALL, run, small_rows
from tests.tools import servers
from understudy.schema.family import FamilySchema
from understudy.units import Unit

# schema


def test_draft_confirm_check(tmp_path: Path):
    data = tmp_path / "t.csv"
    data.write_text(small_rows())
    schema = tmp_path / "t.schema.toml"

    drafted = run("schema", "draft", data)
    assert drafted.code == 0
    assert "NOT PRIVATE" in drafted.out
    assert f"understudy schema review {schema}" in drafted.out
    assert "--all" not in drafted.out
    assert us.Schema.load(schema).columns[0].read_from_rows

    again = run("schema", "draft", data)
    assert (again.code, "not overwritten" in again.err) == (2, True)

    checked = run("schema", "check", schema)
    assert checked.code == 0
    assert "read from rows" in checked.out
    assert "Before a release" in checked.out

    neither = run("schema", "confirm", schema)
    assert neither.code == 2
    assert "--all" in neither.err
    unknown = run("schema", "confirm", schema, "--column", "agee")
    assert unknown.code == 2
    assert "agee" in unknown.err

    one = run("schema", "confirm", schema, "--column", "age")
    assert one.code == 0
    assert [bool(c.read_from_rows) for c in us.Schema.load(schema).columns] == [False, True, True]
    rest = run("schema", "confirm", schema, "--all")
    assert rest.code == 0
    assert "You have stated that all of this is public" in rest.out
    assert "which columns have empty cells" in rest.out
    assert "ready for a release" in rest.out
    us.Schema.load(schema).require_confirmed()
    assert "DRAFT" not in schema.read_text()
    assert run("schema", "confirm", schema, "--all").code == 0


def test_a_folder_without_tables_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    folder = run("schema", "draft", ".")
    assert (folder.code, "holds no .parquet files" in folder.err) == (2, True)
    assert not [*tmp_path.glob("*.toml")]


def test_confirm_keeps_comments_and_all_other_facts(tmp_path: Path):
    schema = tmp_path / "s.toml"
    schema.write_text(
        SMALL.replace('name = "age"', 'name = "age"  # from the census form')
        .replace("bins = 10", 'bins = 10\nread_from_rows = [\n  "lower",\n  "upper",\n]')
        .replace("bins = 5", 'bins = 5\nread_from_rows = ["upper"]')
    )
    wanted = us.Schema.loads(SMALL)
    assert run("schema", "confirm", schema, "--column", "age").code == 0
    assert "from the census form" in schema.read_text()
    assert us.Schema.load(schema).columns[0] == wanted.columns[0]
    assert us.Schema.load(schema).columns[2].read_from_rows == ("upper",)
    assert run("schema", "confirm", schema, "--all").code == 0
    assert us.Schema.load(schema) == wanted


def test_check_with_data_says_it_is_not_private(tmp_path: Path):
    schema, data = tmp_path / "s.toml", tmp_path / "t.csv"
    schema.write_text(SMALL)
    data.write_text(small_rows(20))
    fine = run("schema", "check", schema, "--data", data)
    assert (fine.code, "NOT PRIVATE" in fine.out, "fits" in fine.out) == (0, True, True)
    data.write_text(small_rows(20) + "500,X,1\n")
    wrong = run("schema", "check", schema, "--data", data)
    assert wrong.code == 1
    assert "NOT PRIVATE" in wrong.out
    assert "500" in wrong.out


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("mbi", '{"age": 85, "sex": 2}', "ready for a release"),
        ("sdv", '{"columns": {"age": {"sdtype": "numerical"}}}', "What may age hold?"),
    ],
)
def test_import(tmp_path: Path, kind: str, text: str, said: str):
    source, out = tmp_path / "other.json", tmp_path / "s.toml"
    source.write_text(text)
    made = run("schema", "import", source, "--from", kind, "--out", out)
    assert made.code == 0, made.err
    assert said in made.out
    assert us.Schema.load(out).columns[0].name == "age"
    assert run("schema", "import", source, "--from", kind, "--out", out).code == 2


@pytest.fixture
def people(case) -> str:
    table = csv.read_csv(case.data)
    servers.create(table, "cli people")
    return servers.postgres()


def test_a_schema_from_a_table_of_a_database(case, people: str, tmp_path: Path):
    out = tmp_path / "s.toml"
    secret = people.replace("postgres:@", "postgres:hunter2@")
    drafted = run("schema", "draft", secret, "--table", '"cli people"', "--out", out)
    assert drafted.code == 0, drafted.err
    assert "age" in out.read_text()
    assert "hunter2" not in drafted.out + drafted.err + out.read_text()
    looked = run("schema", "check", out, "--data", secret, "--table", '"cli people"')
    assert looked.code == 0, looked.out
    assert "hunter2" not in looked.out + looked.err


def test_who_is_protected(tmp_path: Path):
    schema, data = tmp_path / "t.schema.toml", tmp_path / "t.csv"
    rows = "".join(f"{1000 + i // 2},{i % 5}\n" for i in range(400))
    data.write_text("patient_id,score\n" + rows)
    drafted = run("schema", "draft", data)
    assert drafted.code == 0, drafted.err
    assert "Does one person have several rows?" in drafted.out
    assert "1 drops 200" in drafted.out
    assert "200" not in schema.read_text()
    assert run("schema", "confirm", schema, "--all").code == 0
    assert us.Schema.load(schema).unit_word == "?"
    planned = run("plan", "--schema", schema, "--epsilon", "1", "--rows", "400")
    assert planned.code == 2
    assert "'patient_id'" in planned.err
    assert "people may have several rows" in planned.err
    assert run("schema", "confirm", schema, "--max-rows", "2").code == 2
    answered = run("schema", "confirm", schema, "--unit", "patient_id", "--max-rows", "2")
    assert answered.code == 0, answered.err
    assert "one patient_id (at most 2" in answered.out
    assert us.Schema.load(schema).unit == Unit("patient_id", 2)
    assert run("schema", "confirm", schema, "--equal").code == 2
    together = run(
        "schema", "confirm", schema, "--unit", "patient_id", "--max-rows", "2", "--equal"
    )
    assert "together as one" in together.out
    assert us.Schema.load(schema).unit == Unit.sharing("patient_id", 2)


def test_two_files_are_drafted_reviewed_confirmed_and_checked(tmp_path: Path):
    made = households(600, 3)
    for name, table in (("homes", made.households), ("persons", made.persons)):
        csv.write_csv(table, tmp_path / f"{name}.csv")
    homes, persons, schema = (tmp_path / n for n in ("homes.csv", "persons.csv", "s.toml"))
    drafted = run("schema", "draft", persons, homes, "--out", schema)
    assert drafted.code == 0
    assert "NOT PRIVATE" in drafted.out
    assert "max_children = 1 drops" in drafted.out
    assert run("schema", "draft", persons, homes, homes).code == 2
    schema.write_text(
        schema.read_text().replace('name = "homes"', 'name = "homes"  # of the census')
    )
    listed = run("schema", "review", schema, persons, "--list")
    assert "Does one row of homes have several of persons?" in listed.out
    assert "max_children = 1 drops" in listed.out
    answers = ["--set", "family=max_children = 5, min_children = 0", "--drop", "persons.origin"]
    assert run("schema", "review", schema, *answers).code == 0
    loaded = us.Schema.load(schema)
    assert isinstance(loaded, FamilySchema)
    assert loaded.tables[2].max_children == 5
    assert "of the census" in schema.read_text()
    one = run("schema", "confirm", schema, "--column", "homes.region")
    assert one.code == 0
    assert "homes.region" not in us.Schema.load(schema).marked
    says = "not (role = 'head' and sibling.role = 'head')"
    with schema.open("a") as file:
        file.write(f'\n[[rule]]\nsays = "{says}"\nread_from_rows = true\n')
    assert says in [rule.says for rule in us.Schema.load(schema).rules]
    assert run("schema", "review", schema, "--drop", says).code == 0
    assert says not in [rule.says for rule in us.Schema.load(schema).rules]
    assert run("schema", "confirm", schema, "--all").code == 0
    us.Schema.load(schema).require_confirmed()
    assert (
        "persons: add those that have none"
        in run("schema", "review", schema, persons, "--list").out
    )
    alone = run("schema", "review", schema, "--list").out
    assert "Add --rows and about how many rows homes has" in alone
    checked = run("schema", "check", schema, "--data", homes, "--children", persons)
    assert "NOT PRIVATE" in checked.out


def test_a_flat_file_is_drafted_in_two_levels(tmp_path: Path):
    data = tmp_path / "stays.csv"
    lines = [f"{i // 2},{'FM'[i // 2 % 2]},{1 + i % 2},{'ABC'[i % 3]}" for i in range(400)]
    data.write_text("\n".join(["patient_id,sex,visit,ward", *lines]))
    drafted = run("schema", "draft", data, "--split", "patient_id")
    assert drafted.code == 0
    schema = us.Schema.load(tmp_path / "stays.schema.toml")
    assert isinstance(schema, FamilySchema)
    parents, _, family = schema.tables
    assert (family.parent, family.child, family.order) == ("patients", "stays", "visit")
    assert [column.name for column in parents.columns] == ["patient_id", "sex"]
    wrong = run("schema", "draft", data, "--split", "patient", "--out", tmp_path / "x.toml")
    assert (wrong.code, "patient_id" in wrong.err) == (2, True)
