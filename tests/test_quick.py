"""What `make quick` leaves out."""

from dataclasses import dataclass

from tests import quick


@dataclass
class Item:
    nodeid: str


def test_the_first_case_of_what_is_not_long(monkeypatch, tmp_path):
    monkeypatch.setattr(quick, "LIST", tmp_path / "long.txt")
    quick.LIST.write_text("test_long\n")
    names = ["tests/a.py::test_long[0]", "tests/a.py::test_b[0]", "tests/a.py::test_b[1]"]
    kept, left = quick.choose([Item(name) for name in names])
    assert [item.nodeid for item in kept] == names[1:2]
    assert [item.nodeid for item in left] == [names[0], names[2]]


def test_a_file_without_a_brief_test_is_not_read(monkeypatch, tmp_path):
    monkeypatch.setattr(quick, "LIST", tmp_path / "long.txt")
    quick.LIST.write_text("test_long\n")
    (tmp_path / "test_a.py").write_text("def test_long(): ...\n")
    (tmp_path / "test_b.py").write_text("def test_long(): ...\ndef test_brief(): ...\n")
    (tmp_path / "helper.py").write_text("")
    ignored = quick.Quick().pytest_ignore_collect
    assert ignored(tmp_path / "test_a.py")
    assert not ignored(tmp_path / "test_b.py")
    assert not ignored(tmp_path / "helper.py")


def test_long_tests_are_named_without_their_files():
    took = {"a.py::one": 0.1, "a.py::two": 9.0, "b.py::one": 9.0, "b.py::three": 0.0}
    assert quick.listed(took) == ["one", "two"]
