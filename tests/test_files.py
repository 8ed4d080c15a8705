"""A file is whole or not there; what a crash leaves is the old file or the new one."""

import os
import stat
import subprocess
import sys

import pytest

from understudy import files


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "a.txt"
    files.write(path, "größer\n")
    assert path.read_bytes() == "größer\n".encode()
    files.write(path, b"\x00\r\n")
    assert path.read_bytes() == b"\x00\r\n"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_mode_of_a_replaced_file_is_kept(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o640)
    files.write(path, "new", mode=0o600)
    assert (path.read_text(), mode(path)) == ("new", 0o640)


def test_a_folder_appears_filled_or_not_at_all(tmp_path):
    made = tmp_path / "made"
    with files.filled(made, {"a": "größer\n", "b": b"\x00"}):
        assert not made.exists()
    assert (made / "a").read_bytes() == "größer\n".encode()
    assert (made / "b").read_bytes() == b"\x00"
    with pytest.raises(OSError), files.filled(made, {"b": b"new"}):
        pass
    with pytest.raises(KeyError), files.filled(tmp_path / "other", {"b": b"new"}):
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert (made / "b").read_bytes() == b"\x00"


def test_a_secret_is_never_readable_by_others(tmp_path):
    files.write(tmp_path / "key", "secret", mode=0o600, new=True)
    assert mode(tmp_path / "key") == 0o600


def test_a_new_file_replaces_none(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        files.write(path, "yours", new=True)

    def unsupported(*_):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", unsupported)
    with pytest.raises(FileExistsError):
        files.write(path, "yours", new=True)
    assert path.read_text() == "mine"
    files.write(tmp_path / "b.txt", "yours", new=True)
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_what_fails_leaves_all_as_it_was(tmp_path, monkeypatch, step):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        files.write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_block_that_fails_leaves_nothing(tmp_path):
    def half():
        with files.staged(tmp_path / "a.txt") as part:
            part.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert os.listdir(tmp_path) == []


def test_file_then_name_then_folder(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def replaced(*names):
        steps.append("name")
        replace(*names)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    files.write(tmp_path / "a.txt", "x")
    assert steps == ["file", "name", "folder"]


def test_the_hidden_place_may_be_another_folder(tmp_path):
    (tmp_path / "release").mkdir()
    with files.staged(tmp_path / "release" / "page.html", beside=tmp_path) as part:
        part.write_text("page")
        assert part.parent == tmp_path
        assert os.listdir(tmp_path / "release") == []
    assert os.listdir(tmp_path / "release") == ["page.html"]
    assert os.listdir(tmp_path) == ["release"]


def test_a_process_that_is_killed_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    code = (
        "import os, pathlib, signal, sys\n"
        "from understudy import files\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write(pathlib.Path(sys.argv[1]), 'new' * 100_000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode < 0
    assert path.read_text() == "old"
