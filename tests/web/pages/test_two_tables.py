"""Two tables on the page: from two files, or a flat one, to a release of families and its answers."""

import json
import zipfile
from io import BytesIO

import pytest
from bench import households as homes
from pyarrow import compute as pc
from pyarrow import csv

import understudy as us
from tests.web.conftest import SCHEMA, csv_bytes, zipped
from understudy.schema import Schema

AT = "/tables/households"


@pytest.fixture(scope="module")
def files():
    """Some households and their persons, as CSV."""
    made = homes.households(600, 3)
    parents = made.households.select([homes.KEY, "region", "tenure"])
    children = made.persons.select([homes.KEY, "role", "age", "sex"])
    return csv_bytes(parents), csv_bytes(children)


def sent(page, *named, **fields):
    token = page.csrf("/releases")
    every = [("file", (name, data, "text/csv")) for name, data in named]
    return page.client.post("/tables", data={"csrf": token, **fields}, files=every)


def drafted(page, files):
    """The children first: which of the two has the parents is found."""
    return sent(page, ("persons.csv", files[1]), ("households.csv", files[0]))


def schema_of(page, name="households"):
    return Schema.load(page.site.workspace.table(name).schema)


def test_two_files_are_drafted_reviewed_and_confirmed(custodian, files):
    page = custodian
    shown = drafted(page, files)
    assert shown.status_code == 200
    assert "Does one row of households have several of persons?" in shown.text
    assert "600 values in" in shown.text  # how many persons there are: for a custodian
    assert page.client.get(f"{AT}/plan").status_code == 409
    _, _, family = schema_of(page).tables
    assert (family.parent, family.child, family.order) == ("households", "persons", None)
    folder = page.site.workspace.table("households").folder
    kept = (folder / "rows.csv").read_bytes(), (folder / "children.csv").read_bytes()
    assert kept == files
    answer = {"key": "family", "choice": "replace", "text": "max_children = 5, siblings = all"}
    page.post(f"{AT}/schema/decisions", **answer)
    _, _, family = schema_of(page).tables
    assert (family.max_children, family.siblings, family.read_from_rows) == (5, "all", ())
    answer = {"again": "family", "choice": "replace"}
    wrong = page.post(f"{AT}/schema/decisions", **answer, text="max_children = 1000")
    assert "max_children = 1000 must be a whole number" in page.told(wrong)
    again = "max_children = 6, min_children = 1, siblings = same"
    page.post(f"{AT}/schema/decisions", **answer, text=again)
    _, _, family = schema_of(page).tables
    assert (family.max_children, family.min_children, family.siblings) == (6, 1, "same")
    page.post(f"{AT}/schema/confirm")
    text = page.client.get(f"{AT}/schema").text
    assert text.index("<h3>households</h3>") < text.index("<h3>persons</h3>")
    assert text.count("tells households apart") == text.count(">written anew<") == 2
    answer = {"again": "persons.age", "choice": "replace", "text": "0 to 99"}
    page.post(f"{AT}/schema/decisions", **answer)
    assert schema_of(page).tables[1].columns[2].upper == 99
    assert "Every fact is confirmed" in page.post(f"{AT}/schema/confirm").text


def test_a_release_of_two_tables_and_its_answers(custodian, files):
    page = custodian
    drafted(page, files)
    page.post(f"{AT}/schema/confirm")
    asked = page.client.get(AT).text
    assert "about one of households with all its persons" in asked
    page.post(f"{AT}/budget", epsilon="3", delta="1e-8", sure="yes")
    planned = page.client.get(f"{AT}/plan", params={"epsilon": "1", "rows": "600"}).text
    assert "600 households with their persons" in planned
    assert "Budget afterwards" in planned
    assert (
        "The release is done"
        in page.post(f"{AT}/releases", epsilon="1", sure="yes", name="homes").text
    )
    assert us.verify(page.folder / "releases" / "homes").passed
    at = "/releases/homes"
    both = json.loads((page.folder / "releases" / "homes" / "release.json").read_text())["families"]
    size = f"{both['parents']:,} families with {both['children']:,} persons by maxent"
    assert size in page.client.get("/releases").text
    shown = page.client.get(
        at, params={"q": "`persons.age` >= 40 and `households.tenure` = 'owned'"}
    )
    assert "certified with 95 % confidence" in shown.text
    assert "of the families" in shown.text
    assert "synthetic households with" in shown.text
    guessed = page.client.get(at, params={"s": "mean(persons.age) by households.tenure"}).text
    assert "tenure = owned" in guessed.replace("&#39;", "")
    assert "population that the families were drawn from" in guessed
    for path in ("report", "verify"):
        assert page.client.get(f"{at}/{path}").status_code == 200
    assert page.client.get(f"{at}/sample?where=age>5").status_code == 422
    for path, many in (("rows", None), ("sample?rows=50&key=1", 50)):
        got = page.client.get(f"{at}/{path}").content
        with zipfile.ZipFile(BytesIO(got)) as both:
            parents, children = (csv.read_csv(both.open(name)) for name in both.namelist())
        keys = parents["household_id"].to_pylist()
        assert len(set(keys)) == len(keys) == (many or len(keys))
        assert set(children["household_id"].to_pylist()) <= set(keys)
        assert children.column_names == ["household_id", "role", "age", "sex"]
    bundle = page.client.get(f"{at}/bundle.zip").content
    back = page.upload("again.release.zip", bundle, to="/import")
    assert back.status_code == 200, page.told(back)
    homes, again = (page.folder / "releases" / name for name in ("homes", "again"))
    for part in homes.iterdir():
        assert (again / part.name).read_bytes() == part.read_bytes()
    damaged = zipped(homes, children=(homes / "parents.parquet").read_bytes())
    assert page.upload("x.zip", damaged, to="/import").status_code == 422


def test_parents_without_children_count(custodian, files):
    page, few = custodian, csv.read_csv(BytesIO(files[1]))
    few = few.filter(pc.less(pc.index_in(few[homes.KEY], few[homes.KEY].unique()), 300))
    drafted(page, (files[0], csv_bytes(few)))
    page.post(f"{AT}/schema/confirm")
    planned = page.client.get(f"{AT}/plan/forecast", params={"epsilon": "1"}).text
    assert "<b>600 households with their persons</b>" in planned


def split(page):
    made = homes.households(400, 4)
    flat = made.persons.join(made.households, homes.KEY).sort_by(homes.KEY)
    columns = [homes.KEY, "region", "tenure", "role", "age"]
    data = csv_bytes(flat.select(columns))
    return sent(page, ("people.csv", data), split="household_id")


def test_a_flat_file_is_split(custodian):
    assert "Does one row of households have several of people?" in split(custodian).text
    custodian.post("/tables/people/schema/confirm")
    changed = schema_of(custodian, "people").dumps().replace('name = "region"', 'name = "place"')
    wrong = custodian.post("/tables/people/schema/text", text=changed)
    assert "'place'" in custodian.told(wrong).replace("&#39;", "'")
    gone = custodian.post("/tables/people/remove", sure="yes")
    assert "The rows were removed" in gone.text


@pytest.mark.slow
def test_a_flat_file_is_released(custodian):
    split(custodian)
    custodian.post("/tables/people/schema/confirm")
    custodian.post("/tables/people/budget", epsilon="3", delta="1e-8", sure="yes")
    done = custodian.post("/tables/people/releases", epsilon="1", sure="yes", name="split")
    assert "The release is done" in done.text
    assert us.verify(custodian.folder / "releases" / "split").passed


def test_rows_of_both_files_are_removed(custodian, files):
    drafted(custodian, files)
    table = custodian.site.workspace.table("households")
    custodian.post(f"{AT}/remove", sure="yes")
    assert {file.name for file in table.folder.iterdir()} == {"table.json"}


@pytest.mark.parametrize(
    ("names", "fields", "said"),
    [
        (("a", "b"), {"split": "household_id"}, "is for one file that holds both levels"),
        (("a",), {"split": "house"}, "'house' is not a column of the table"),
        (("a", "a"), {}, "has exactly one of 'a_2': join them"),
    ],
)
def test_files_that_are_not_two_levels(custodian, files, names, fields, said):
    data = {"a": files[0], "b": files[1]}
    response = sent(custodian, *((f"{n}.csv", data[n]) for n in names), **fields)
    assert response.status_code == 422
    assert said in custodian.told(response).replace("&#39;", "'")
    assert custodian.site.workspace.tables() == []


def test_a_schema_of_one_table_is_not_one_of_two_files(custodian, files):
    drafted(custodian, files)
    wrong = custodian.post(f"{AT}/schema/text", text=SCHEMA.dumps())
    assert "has two files" in custodian.told(wrong)
