"""Kernels are kept on disk where that can be, and compile all the same where it cannot."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl, UserProvidedCacheLocator

import understudy
from understudy.compiled import compiled, kernel

SRC = Path(understudy.__file__).parent


def plus(a, b):
    return a + b


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Neither the package's folder nor a home can be written; the temporary folder is ours."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", [UserProvidedCacheLocator])
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(plus)
    return tmp_path


def kept(folder):
    return [path for path in folder.rglob("*.nbi") if "plus" in path.name]


def test_what_is_compiled_is_kept_in_a_temporary_folder_of_ours(nowhere):
    assert compiled(plus)(2, 3) == 5
    (folder,) = nowhere.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert kept(folder)
    assert numba.config.CACHE_DIR == ""  # other people's functions are kept where they were
    again = compiled(plus)
    assert again(2, 3) == 5
    assert sum(again.stats.cache_hits.values()) == 1


def test_a_folder_that_others_may_enter_is_not_read(nowhere):
    folder = nowhere / f"understudy-numba-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert compiled(plus)(2, 3) == 5
    assert not list(folder.iterdir())


def test_a_link_to_somewhere_else_is_not_followed(nowhere):
    away = nowhere / "away"
    away.mkdir(mode=0o700)
    (nowhere / f"understudy-numba-{os.getuid()}").symlink_to(away)
    assert compiled(plus)(2, 3) == 5
    assert not list(away.iterdir())


def test_without_any_folder_it_compiles_for_this_process_alone(nowhere, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(nowhere / "missing"))
    assert compiled(plus)(2, 3) == 5
    assert not kept(nowhere)


READ_ONLY = """
import numpy as np
import understudy.compiled
try:
    open(understudy.compiled.__file__ + "c", "w")
except PermissionError:
    print("read-only")
from understudy.models import _kernels
from understudy.oracles import _kernel
from understudy.privacy import _rows
table = np.zeros(2)
_kernels.weigh(np.array([0, 1, 0, 1], np.uint16), np.ones(4), table)
print(*table)
"""


def test_every_kernel_loads_where_package_and_home_are_read_only(tmp_path):
    """A copy of the package without the right to write, read by one without the rights of root."""
    plain = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    if plain and shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and there is no setpriv to give that up")
    root = Path(tempfile.mkdtemp())
    try:
        shutil.copytree(SRC, root / "understudy", ignore=shutil.ignore_patterns("__pycache__"))
        for path in (root, *root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = subprocess.run(
            [*plain, sys.executable, "-c", READ_ONLY],
            capture_output=True, text=True, timeout=300, check=False, cwd=root,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root), "HOME": "/dev/null/none",
                 "TMPDIR": str(tmp_path)},
        )  # fmt: skip
    finally:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)
        shutil.rmtree(root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["read-only", "2.0 2.0"]
    assert list(tmp_path.rglob("*weigh*.o"))


# --- kernels -------------------------------------------------------------------------------------


@kernel
def half(x):
    return x / 2


@kernel
def added(table, cells, more):
    """Adds to cells of a table; half the sum of what was added."""
    total = 0.0
    for i in range(cells.size):
        table[cells[i], 0] += more
        total += more
    return half(total)


@kernel
def counted(cells):
    many = 0
    for i in range(cells.size):
        many += cells[i] > 1
    return many


def test_a_kernel_takes_arrays_of_any_type_and_numbers():
    for kind in (np.uint16, np.int64):
        table = np.zeros((3, 2))
        assert added(table, np.array([0, 2, 2], kind), 1.5) == 2.25
        assert table.tolist() == [[1.5, 0], [0, 0], [3.0, 0]]
    assert counted(np.array([0, 2, 2], np.uint8)) == 2


def test_a_kernel_takes_parts_of_arrays_and_arrays_in_any_order():
    assert counted(np.arange(10)[::-3]) == 3
    table = np.zeros((3, 2), order="F")
    added(table, np.array([1]), 1.0)
    assert table.tolist() == [[0, 0], [1, 0], [0, 0]]


WARM = """
import sys
import numpy as np
from understudy.models import _kernels
table = np.zeros(2)
_kernels.weigh(np.array([0, 1, 0, 1], np.uint16), np.ones(4), table)
print(*table, "numba" in sys.modules)
"""


def test_what_is_kept_runs_without_numba():
    runs = [
        subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[1].stdout.split() == ["2.0", "2.0", "False"]
