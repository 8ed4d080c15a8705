"""Kernels are kept on disk where that can be, and compile all the same where it cannot."""

import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl, UserProvidedCacheLocator

import understudy
from tests.thorough import slow, some
from understudy import compiled as module
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
table = np.zeros((1, 2))
_kernels.weigh(np.array([0, 1, 0, 1], np.uint16), np.ones(4), table)
print(*table[0])
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
table = np.zeros((1, 2))
_kernels.weigh(np.array([0, 1, 0, 1], np.uint16), np.ones(4), table)
print(*table[0], "numba" in sys.modules)
"""


def test_what_is_kept_runs_without_numba():
    runs = [
        subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[1].stdout.split() == ["2.0", "2.0", "False"]


# --- files of machine code that cannot be used -----------------------------------------------------

KERNELS = """
from understudy.compiled import kernel

@kernel
def third(x):
    return x / 3

@kernel
def sixth(x):
    return third(x) / 2

@kernel
def spread(table, cells, more):
    total = 0
    for i in range(cells.size):
        table[cells[i]] += sixth(more) / i  # the first is a division by zero
        total += cells[i]
    return total

@kernel
def clear(table):
    for i in range(table.size):
        table[i] = 0.0

@kernel
def several(cells):
    return cells.size > 1
"""


def loaded(folder, text=KERNELS):
    """The kernels as a process finds them that never saw them, in a folder of their own."""
    path = folder / "kernels.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def works(kernels):
    """The same as in plain Python, whichever way the kernels are compiled."""
    table, cells = np.zeros(3), np.array([2, 0, 2], np.uint16)
    assert kernels.spread(table, cells, 1.5) == 4
    np.testing.assert_array_equal(table, [1.5 / 3 / 2, 0, np.inf])
    assert kernels.sixth(1.5) == 1.5 / 3 / 2
    assert kernels.clear(table) is None
    assert not table.any()
    return True


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where the kernels of a test lie; the caches elsewhere are empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cached = (module._machine, module._text)
    for each in cached:
        each.cache_clear()
    yield tmp_path
    for each in cached:
        each.cache_clear()


@pytest.fixture
def runs(monkeypatch):
    """The names of the kernels that were compiled by ourselves, and of those that Numba calls."""
    compiling, finding, names = module._compile, module._native, ([], [])

    def compile(function, kinds):
        names[0].append(function.__name__)
        return compiling(function, kinds)

    def native(function, kinds):
        found = finding(function, kinds)
        if found is None:
            names[1].append(function.__name__)
        return found

    monkeypatch.setattr(module, "_compile", compile)
    monkeypatch.setattr(module, "_native", native)
    return names


ALL = ["spread", "sixth", "clear"]


def test_machine_code_is_kept_beside_the_source_and_read_from_there(folder, runs):
    for _ in range(2):
        assert works(loaded(folder))
        assert runs == (ALL, [])
    found = sorted(path.name.split("-")[0] for path in (folder / "__pycache__").glob("*.o"))
    assert found == ["kernels.clear", "kernels.sixth", "kernels.spread"]
    assert not [path for path in (folder / "__pycache__").iterdir() if path.name.startswith(".")]


def flipped(at):
    def damage(path):
        data = bytearray(path.read_bytes())
        data[at if at >= 0 else len(data) + at] ^= 1
        path.write_bytes(data)

    return damage


def cut(share):
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def moved(path):
    """The machine code of one kernel under the name of another."""
    (other,) = path.parent.glob("kernels.third-*.o")
    shutil.copyfile(other, path)


DAMAGE = {
    "empty": cut(0),
    "cut in the head": cut(0.01),
    "cut in the code": cut(0.5),
    "one byte short": lambda path: os.truncate(path, path.stat().st_size - 1),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "flipped in the digest": flipped(3),
    "flipped in the head": flipped(70),
    "flipped in the code": flipped(-200),
    "not ours": lambda path: path.write_bytes(b"\xff" * 5000),
    "of another kernel": moved,
    "group may write": lambda path: path.chmod(0o664),
    "all may write": lambda path: path.chmod(0o646),
    "of an older format": lambda path: path.write_bytes(path.read_bytes().partition(b" ")[2]),
}


@pytest.mark.parametrize("damage", some(DAMAGE.values(), 3), ids=DAMAGE)
def test_a_file_that_is_not_as_it_was_written_is_compiled_anew(folder, runs, damage):
    def run():
        kernels = loaded(folder)
        assert (kernels.third(3.0), kernels.sixth(3.0)) == (1.0, 0.5)

    run()
    (path,) = (folder / "__pycache__").glob("kernels.sixth-*.o")
    damage(path)
    for _ in range(2):  # the second reads what the first wrote
        run()
        assert runs == (["third", "sixth", "sixth"], [])
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_used(folder, runs):
    assert works(loaded(folder))
    (path,) = (folder / "__pycache__").glob("kernels.sixth-*.o")
    os.chown(path, 12345, -1)
    assert works(loaded(folder))
    assert path.stat().st_uid == 0
    assert runs == ([*ALL, "sixth"], [])


def test_root_may_have_written_it(folder, runs, monkeypatch):
    assert works(loaded(folder))
    stranger = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    assert works(loaded(folder))
    assert runs[0] == (ALL if os.geteuid() == 0 else ALL * 2)


def test_a_folder_in_the_place_of_a_file_is_passed_over(folder, runs):
    assert works(loaded(folder))
    (path,) = (folder / "__pycache__").glob("kernels.sixth-*.o")
    path.unlink()
    path.mkdir()
    for _ in range(2):
        assert works(loaded(folder))
    assert runs == ([*ALL, "sixth"], [])
    assert list((folder / "home" / "understudy").glob("kernels.sixth-*.o"))


def raises(error):
    def broken(*_):
        raise error

    return broken


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("_machine", AttributeError),
        slow(("_key", OSError)),
        slow(("_compile", AttributeError)),
        slow(("_compile", TypeError)),
        slow(("_compile", AssertionError)),
        slow(("_compile", KeyError)),
        ("_compile", numba.TypingError),
        slow(("_linked", OSError)),
        ("_linked", RuntimeError),
    ],
)
def test_where_anything_of_it_fails_numba_calls_the_kernels(folder, runs, monkeypatch, name, error):
    monkeypatch.setattr(module, name, raises(error("not as expected")))
    assert works(loaded(folder))
    assert runs[1] == ALL


def test_kernels_work_where_numba_does_not_compile_at_all(folder, runs, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    kernels = loaded(folder)
    assert kernels.sixth(1.5) == 1.5 / 3 / 2
    assert runs[1] == ["sixth"]


def test_code_that_lacks_a_function_is_not_run(folder, runs, monkeypatch):
    binding = module._machine()[0]
    text = "declare double @nowhere(double)\ndefine double @f(double %x) {\n"
    text += "  %y = call double @nowhere(double %x)\n  ret double %y\n}\n"
    target = binding.Target.from_default_triple().create_target_machine()
    code = target.emit_object(binding.parse_assembly(text))
    with pytest.raises(RuntimeError, match="materialize"):
        module._linked(code, "f")
    with pytest.raises(RuntimeError):
        module._linked(code[: len(code) // 2], "f")
    monkeypatch.setattr(module, "_compile", lambda *_: b'["f", "float64"]\n' + code)
    assert loaded(folder).sixth(1.5) == 1.5 / 3 / 2
    assert runs[1] == ["sixth"]


def test_a_result_that_is_neither_count_nor_float_nor_none_comes_by_numba(folder, runs):
    assert loaded(folder).several(np.zeros(2)) is True
    assert runs[1] == ["several"]


def test_where_nothing_can_be_written_every_process_compiles(folder, runs, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError("read-only")

    monkeypatch.setattr(module.files, "write", refuse)
    for times in (1, 2):
        assert works(loaded(folder))
        assert runs == (ALL * times, [])
    assert not list(folder.rglob("*.o"))


TWICE = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import kernels
from understudy import compiled
compile = compiled._compile
def waiting(*given):
    made = compile(*given)
    print("compiled", flush=True)
    sys.stdin.readline()
    return made
compiled._compile = waiting
print(kernels.sixth(3.0), compiled._native(kernels.sixth.__wrapped__, (("d", 0),)) is not None)
"""


def test_two_processes_may_write_the_same_file_at_once(folder, runs):
    (folder / "kernels.py").write_text(KERNELS)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", TWICE, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    assert [each.stdout.readline() for each in both] == ["compiled\n"] * 2
    for each in both:
        each.stdin.write("go on\n")
        each.stdin.flush()
    # One may look while the other puts its file in place, and compile once more.
    assert [each.communicate()[0].splitlines()[-1] for each in both] == ["0.5 True"] * 2
    (path,) = folder.rglob("*.o")
    assert not [each for each in path.parent.iterdir() if each.name.startswith(".")]
    assert loaded(folder).sixth(3.0) == 0.5
    assert runs == ([], [])


def test_the_key_is_of_all_that_the_code_depends_on(folder, monkeypatch):
    def key(kinds=(("d", 0),), text=KERNELS, name="sixth"):
        module._machine.cache_clear()
        module._text.cache_clear()
        return module._key(inspect.unwrap(getattr(loaded(folder, text), name)), kinds)

    keys = [
        key(),
        key(kinds=(("q", 0),)),
        key(kinds=(("<f8", 1),)),
        key(kinds=(("<f8", 2),)),
        key(text=KERNELS.replace("/ 3", "/ 4")),
        key(name="third"),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(llvmlite, "__version__", "0.0.1")
        keys.append(key())
    for name in ("get_host_cpu_name", "get_default_triple"):
        with monkeypatch.context() as patch:
            patch.setattr(llvmlite.binding, name, lambda: "another")
            keys.append(key())
    with monkeypatch.context() as patch:
        patch.setattr(llvmlite.binding, "get_host_cpu_features", llvmlite.binding.FeatureMap)
        keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
