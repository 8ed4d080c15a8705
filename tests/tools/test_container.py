"""The container file: what it says, and what it runs, on a read-only file system without rights.

No image is built here: that takes podman or docker, and a base image. The command of the image is run
in a namespace of its own in which nothing but a temporary folder and the data can be written.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "tools" / "container" / "Containerfile"
TEXT = FILE.read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    joined = re.sub(r"(?m)^#.*\n", "", TEXT).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]  # type: ignore[misc]


def test_it_builds_from_wheels_and_runs_as_a_plain_user():
    said = instructions()
    names = [name for name, _ in said]
    assert names.count("FROM") == 2
    runs = " ".join(rest for name, rest in said if name == "RUN")
    assert "--no-index --find-links /wheels" in runs
    assert not re.search(r"apt-get|curl|wget|https?:", runs)
    users = [rest for name, rest in said if name == "USER"]
    assert users == ["10001:10001"]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert ("VOLUME", "/data") in said
    assert json.loads(dict(said)["ENTRYPOINT"]) == ["understudy", "serve", "/data"]


CONFINED = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$1/tmp"
mount --bind "$1/data" "$1/data"
mount -o remount,bind,ro /
if touch "$1/anywhere" 2>/dev/null; then echo "still writable"; exit 9; fi
cd "$1/data"
shift
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""


@pytest.mark.slow
def test_its_command_runs_where_nothing_else_can_be_written(tmp_path):
    if any(shutil.which(name) is None for name in ("unshare", "setpriv")):
        pytest.skip("there is no unshare or no setpriv")
    confined = ["unshare", "--map-root-user", "--mount", "sh", "-c", CONFINED, "sh", str(tmp_path)]
    for name in ("tmp", "data"):
        (tmp_path / name).mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path / "tmp"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    tried = subprocess.run([*confined, "true"], capture_output=True, text=True, env=environment)
    if tried.returncode:
        pytest.skip(f"no namespaces here: {tried.stderr or tried.stdout}")
    program = [*confined, sys.executable, "-m", "understudy"]
    made = subprocess.run(
        [*program, "demo", "demo", "--rows", "500"],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    words = json.loads(dict(instructions())["ENTRYPOINT"])[1:]
    words[words.index("/data")] = str(tmp_path / "data" / "page")
    with subprocess.Popen(
        [*program, *words, "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            said = ""
            while not (address := re.search(r"http://[\w.]+:\d+", said)):
                line = server.stdout.readline()
                assert line, said
                said += line
            with urllib.request.urlopen(f"{address[0]}/healthz", timeout=30) as answer:
                assert answer.status == 200
        finally:
            server.terminate()
    assert (tmp_path / "data" / "page").is_dir()
