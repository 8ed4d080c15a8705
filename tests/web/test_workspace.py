"""The folder behind the page."""

import pytest

from understudy.errors import InputError
from understudy.web.errors import Missing
from understudy.web.workspace import Workspace, read_json, suffix_of, without_paths, write_json


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "desk")


def add(workspace, name):
    with workspace.incoming() as folder:
        (folder / "rows.csv").write_text("a\n1\n")
        return workspace.add_table(name, folder / "rows.csv", "text", 1)


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("People of 2024", "people-of-2024"),
        ("Ärzte & Co.", "arzte-co"),
        ("../../etc/passwd", "etc-passwd"),
        ("日本", "table"),
        ("x" * 300, "x" * 48),
    ],
)
def test_names_become_addresses_that_stay_in_the_folder(workspace, name, identity):
    table = add(workspace, name)
    assert (table.id, table.name) == (identity, name)
    assert table.folder.parent == workspace.folder / "tables"
    assert add(workspace, name).id == f"{identity}-2"
    assert list((workspace.folder / "incoming").iterdir()) == []


@pytest.mark.parametrize("identity", ["", ".", "..", "a/b", "A", "-a", "a" * 65, "nobody", "ä"])
def test_other_names_lead_nowhere(workspace, identity):
    with pytest.raises(Missing, match="no such table"):
        workspace.path("tables", identity)


def test_a_damaged_table_is_left_out_of_the_list(workspace):
    whole, damaged = add(workspace, "whole"), add(workspace, "damaged")
    (damaged.folder / "table.json").write_text("{")
    assert workspace.tables() == [whole]
    with pytest.raises(Missing, match="damaged"):
        workspace.table("damaged")


def test_removed_rows_are_gone_and_their_name_is_kept(workspace):
    table = add(workspace, "people")
    workspace.remove_rows(table)
    assert not workspace.table("people").present
    assert not table.schema.exists()
    assert add(workspace, "people").id == "people-2"


def test_half_an_upload_is_swept_away_at_the_next_start(workspace):
    (workspace.folder / "incoming" / "left").mkdir()
    workspace.sweep()
    assert list((workspace.folder / "incoming").iterdir()) == []


def test_a_folder_of_another_version_is_refused(workspace):
    write_json(workspace.folder / "workspace.json", {"version": 99})
    with pytest.raises(InputError, match="another version"):
        Workspace(workspace.folder)


def test_messages_lose_the_place_of_the_folder(workspace):
    text = f"{workspace.folder}/tables/people/rows.csv: cannot be read in {workspace.folder}"
    assert without_paths(text, workspace.folder) == "rows.csv: cannot be read in desk"


def test_json_that_is_not_whole_is_none(tmp_path):
    assert read_json(tmp_path / "none.json") is None
    (tmp_path / "half.json").write_text('{"a":')
    assert read_json(tmp_path / "half.json") is None


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.CSV", ".csv"), ("a.csv.gz", ".csv.gz"), ("a.pq", ".pq"), ("a.xlsx", None), ("csv", None)],
)
def test_a_name_says_the_format(name, suffix):
    assert suffix_of(name) == suffix
