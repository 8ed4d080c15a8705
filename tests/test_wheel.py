"""The wheel, as a stranger gets it: built, installed in an empty environment, tried on every Python."""

import glob
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import understudy

ROOT = Path(__file__).parent.parent
OLDEST = (3, 11)


def pythons():
    """(version, interpreter) of every Python that is found and new enough, this one included."""
    names = [name for minor in range(OLDEST[1], 30) if (name := shutil.which(f"python3.{minor}"))]
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    names += sorted(glob.glob(f"{pyenv}/versions/3.*/bin/python3"))
    found = {"{}.{}".format(*sys.version_info): sys.executable}
    for name in names:
        code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([name, "-c", code], capture_output=True, text=True, check=False)
        version = done.stdout.strip()
        if done.returncode == 0 and tuple(map(int, version.split("."))) >= OLDEST:
            found.setdefault(version, name)
    return found


def run(*words, folder):
    """In an environment of its own: nothing of this one is found."""
    known = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=known,
        capture_output=True, text=True, timeout=1_800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT,
        folder=folder,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = Path(understudy.__file__).parent
    there = {
        f"understudy/{path.relative_to(sources).as_posix()}"
        for path in sources.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "understudy/py.typed" in there
    assert {name for name in names if ".dist-info/" not in name} == there


@pytest.mark.slow
def test_an_empty_environment_of_every_python_releases_and_verifies(wheel, tmp_path):
    for version, python in pythons().items():
        folder = tmp_path / version
        folder.mkdir()
        run(python, "-m", "venv", folder / "env", folder=folder)
        programs = folder / "env" / "bin"
        run(programs / "python", "-m", "pip", "install", "--quiet", wheel, folder=folder)
        code = "import understudy; print(understudy.__file__)"
        assert run(programs / "python", "-c", code, folder="/").startswith(str(folder)), version
        command = programs / "understudy"
        run(command, "demo", "out", folder=folder)
        run(command, "verify", "out/survey.release", folder=folder)
        run(command, "sample", "out/survey.release", "--rows", 10, "--out", "s.csv", folder=folder)
        assert len((folder / "s.csv").read_text("utf-8").splitlines()) == 11
        shutil.rmtree(folder)
