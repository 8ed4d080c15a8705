"""Descriptions for other tools: they parse, they agree with the release, they hold nothing private."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date

import pyarrow as pa
import pytest
import yaml

import understudy as us
from understudy.errors import BundleError, InputError
from understudy.report.exports import FILL_IN, FORMATS, About, describe
from understudy.schema import Boolean, Category, Date, Datetime, Identifier, Integer, Number, Schema
from understudy.schema.imports import import_sdv

SCHEMA = Schema(
    (
        Identifier("key", "K-{:04d}"),
        Identifier("secret"),
        Category('na"me', ("a", 'b"\n')),
        Category("code", (1, 2, 3), nullable=True),
        Boolean("flag"),
        Integer("age", 0, 99, bins=10, dtype="int32"),
        Number("income", 0, 10, bins=4),
        Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=4),
        Datetime("at", "2020-01-01T00:00:00", "2020-01-02T00:00:00", bins=3),
    )
)


AUDIT = {"words": "nothing found.", "limits": "It can never prove a claim."}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rows = 40
    table = pa.table(
        {
            "key": [str(i) for i in range(rows)],
            "secret": ["hidden-person"] * rows,
            'na"me': ["a"] * rows,
            "code": [1] * rows,
            "flag": [True] * rows,
            "age": pa.array([33] * rows, pa.int32()),
            "income": [1.5] * rows,
            "day": pa.array([date(2020, 5, 5)] * rows),
            "at": pa.array(["2020-01-01T10:00:00"] * rows),
        }
    )
    made = us.release(table, SCHEMA, epsilon=1, method="independent", workload="marginals:1")
    return made.save(tmp_path_factory.mktemp("x") / "My Table.release")


def test_sdv_metadata_is_read_back(folder):
    text = describe(folder, "sdv")
    body = json.loads(text)
    assert body["METADATA_SPEC_VERSION"] == "V1"
    ((name, table),) = body["tables"].items()
    assert name == "my-table"
    assert "secret" not in table["columns"]  # dropped from the rows, so from their description
    assert table["columns"]["age"] == {"sdtype": "numerical", "computer_representation": "Int32"}
    assert table["columns"]["day"] == {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}
    back = import_sdv(text)
    assert [column.name for column in back.columns] == [c.name for c in SCHEMA.written]
    kinds = [getattr(column, "wanted", column.kind) for column in back.columns]
    assert kinds == ["identifier", "category", "category", "boolean", "integer", "number", "date",
                     "datetime"]  # fmt: skip


def test_a_data_package_has_domains_and_hashes(folder):
    body = json.loads(describe(folder, "frictionless", About(curator="City", license="CC0-1.0")))
    assert body["name"] == "my-table"
    assert body["contributors"][0]["title"] == "City"
    (resource,) = body["resources"]
    manifest = json.loads((folder / "release.json").read_bytes())
    assert resource["path"] == "synthetic.parquet"
    assert resource["hash"] == "sha256:" + manifest["files"]["synthetic.parquet"]["sha256"]
    fields = {field["name"]: field for field in resource["schema"]["fields"]}
    assert fields["code"]["type"] == "integer"
    assert "required" not in fields["code"]["constraints"]
    assert fields["age"]["constraints"] == {"required": True, "minimum": 0, "maximum": 99}
    assert fields['na"me']["constraints"]["enum"] == ["a", 'b"\n']
    assert fields["day"]["constraints"]["minimum"] == "2020-01-01"


def test_croissant_names_every_column_and_the_file(folder):
    body = json.loads(describe(folder, "croissant"))
    assert body["conformsTo"].endswith("croissant/1.1")
    made = body["prov:wasGeneratedBy"]
    assert "differential privacy" in made["prov:label"]
    assert made["prov:wasAssociatedWith"]["prov:label"].startswith("understudy ")
    assert "not part of this dataset" in body["prov:wasDerivedFrom"]["prov:label"]
    assert "prov:wasAttributedTo" not in body  # nobody said who
    assert "no certificate" in body["rai:dataLimitations"]
    assert "differential privacy" in body["rai:personalSensitiveInformation"]
    named = json.loads(describe(folder, "croissant", About(curator="City")))
    assert named["prov:wasAttributedTo"]["prov:label"] == "City"
    (records,) = body["recordSet"]
    columns = [field["source"]["extract"]["column"] for field in records["field"]]
    assert columns == [column.name for column in SCHEMA.written]
    (file,) = body["distribution"]
    assert all(f["source"]["fileObject"]["@id"] == file["@id"] for f in records["field"])
    assert {f["dataType"] for f in records["field"]} == {
        "sc:Text", "sc:Integer", "sc:Float", "sc:Boolean", "sc:Date", "sc:DateTime",
    }  # fmt: skip


def test_the_registry_entry_states_the_promise(folder):
    text = describe(folder, "opendp-registry", About(title='T: "x"\n', curator="City"))
    body = yaml.safe_load(text)
    deployment = body["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-9}
    assert isinstance(deployment["privacy_loss"]["privacy_parameters"]["delta"], float)
    assert deployment["basic"]["name"] == 'T: "x"\n'
    assert deployment["basic"]["data_product_type"] == "Synthetic data"
    assert deployment["basic"]["data_curators"][0]["data_curator_name"] == "City"
    assert deployment["basic"]["intended_use"] == FILL_IN
    # Where the registry takes certain words alone, they are named.
    assert deployment["basic"]["data_curators"][0]["data_curator_type"].endswith("or Nonprofit")
    assert "Healthcare" in deployment["basic"]["data_product_sector"]
    assert isinstance(deployment["basic"]["publication_date"], str)
    assert FILL_IN in deployment["deployment_model"]["release_type_details"]
    assert "Audit" not in text
    told = describe(folder, "opendp-registry", audit=AUDIT)
    assert "Audit: nothing found." in told
    assert set(deployment) == {"basic", "dp_variant", "privacy_loss", "deployment_model",
                               "implementation", "administrative"}  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_private_is_in_any_of_them(folder, format):
    assert "hidden-person" not in describe(folder, format)


def test_bad_input(folder, tmp_path):
    with pytest.raises(InputError, match="must be one of sdv"):
        describe(folder, "xml")
    with pytest.raises(InputError, match=r"must end in .md, .html or .json"):
        describe(folder, "sheet", out=tmp_path / "sheet.pdf")
    with pytest.raises(BundleError, match="not a release"):
        describe(tmp_path, "sdv")


def test_rows_are_named_by_their_place_where_the_description_lies_above(folder, tmp_path):
    above = json.loads(describe(folder, "frictionless", out=folder.parent / "datapackage.json"))
    assert above["resources"][0]["path"] == "My Table.release/synthetic.parquet"
    elsewhere = json.loads(describe(folder, "croissant", out=tmp_path / "croissant.json"))
    assert elsewhere["distribution"][0]["contentUrl"] == "synthetic.parquet"


# The formats' own tools, in processes of their own: what they warn of is not ours

_FRICTIONLESS = """
import sys
from frictionless import Package
told = Package(sys.argv[1]).validate()
assert told.valid, told.flatten(["type", "note", "fieldName"])
print(told.tasks[0].stats["rows"])
"""
_CROISSANT = """
import logging, sys
import mlcroissant
heard = []
logging.getLogger("absl").addFilter(lambda record: heard.append(record.getMessage()))
dataset = mlcroissant.Dataset(sys.argv[1])
issues = dataset.metadata.ctx.issues
assert not issues.errors, issues.report()
assert not issues.warnings, issues.report()
assert not heard, heard
rows = list(dataset.records("rows"))
assert rows[0]["rows/city"] in (b"Aa", b"Bb"), rows[0]
assert {type(row["rows/income"]) for row in rows} == {float, type(None)}
print(len(rows))
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A release of every kind, with nulls among its numbers."""
    rows = 200
    schema = Schema(
        (
            Identifier("key", "K-{:04d}"),
            Category("city", ("Aa", "Bb")),
            Category("code", (1, 2, 3), nullable=True),
            Boolean("flag"),
            Integer("age", 0, 99, bins=10, nullable=True),
            Number("income", 0, 10, bins=4, nullable=True),
            Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=4),
            Datetime("at", "2020-01-01T00:00:00", "2020-01-02T00:00:00", bins=3),
        )
    )
    table = pa.table(
        {
            "key": [str(i) for i in range(rows)],
            "city": ["Aa", "Bb"] * (rows // 2),
            "code": [1, None] * (rows // 2),
            "flag": [True, False] * (rows // 2),
            "age": pa.array([33, None] * (rows // 2)),
            "income": [1.5, None] * (rows // 2),
            "day": pa.array([date(2020, 5, 5)] * rows),
            "at": pa.array(["2020-01-01T10:00:00"] * rows),
        }
    )
    made = us.release(table, schema, epsilon=5, method="independent", workload="marginals:1")
    return made.save(tmp_path_factory.mktemp("plain") / "plain.release"), made.rows.num_rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "name", "code"),
    [
        ("frictionless", "datapackage.json", _FRICTIONLESS),
        ("croissant", "croissant.json", _CROISSANT),
    ],
)
def test_the_formats_own_tools_read_every_row(plain, format, name, code):
    folder, rows = plain
    out = folder.parent / name
    about = About(curator="City", license="CC-BY-4.0", url="https://example.org/plain")
    out.write_text(describe(folder, format, about, out), encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-c", code, str(out)], capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 0, told.stderr
    assert int(told.stdout.splitlines()[-1]) == rows
