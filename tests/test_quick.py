"""What `make quick` leaves out."""

from dataclasses import dataclass

from tests import quick


@dataclass
class Item:
    nodeid: str


def test_the_first_case_of_what_is_not_long(monkeypatch, tmp_path):
    monkeypatch.setattr(quick, "LIST", tmp_path / "long.txt")
    quick.LIST.write_text("tests/a.py::test_long\n")
    names = ["tests/a.py::test_long[0]", "tests/a.py::test_b[0]", "tests/a.py::test_b[1]"]
    kept, left = quick.choose([Item(name) for name in names])
    assert [item.nodeid for item in kept] == names[1:2]
    assert [item.nodeid for item in left] == [names[0], names[2]]


def test_files_without_a_brief_test_are_named_as_such():
    took = {"a.py::one": 0.1, "a.py::two": 9.0, "b.py::one": 9.0, "b.py::two": 8.0, "c.py::x": 0.0}
    assert quick.listed(took) == ["a.py::two", "b.py"]
