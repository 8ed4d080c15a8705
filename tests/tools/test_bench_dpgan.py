"""`python -m bench.dpgan`: a rival that stops leaves its reason and its last words in the table."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bench import dpgan, dpgan_devices

from understudy.schema import Schema

SCHEMA = Schema.loads("""[understudy]
version = 1
[[column]]
name = "a"
type = "integer"
lower = 0
upper = 3
[[column]]
name = "b"
type = "boolean"
""")
TABLE = pa.table({"a": [0, 1, 2, 3] * 5, "b": [True, False] * 10})


def interpreter(folder: Path, body: str) -> Path:
    """A Python whose smartnoise is `body`: the script it is given is not run."""
    (folder / "fake.py").write_text("import json, sys, time\n" + body, encoding="utf-8")
    made = folder / "python"
    made.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u "{folder}/fake.py" "$3"\n')
    made.chmod(0o755)
    return made


def test_a_rival_that_is_late_says_how_far_it_came(tmp_path):
    python = interpreter(tmp_path, 'print("epoch 1, epsilon is 0.3")\ntime.sleep(60)\n')
    with pytest.raises(dpgan.Stopped, match=r"longer than 2 seconds.*last said: epoch 1, eps"):
        dpgan.rival("dpctgan", {}, python, 2)(SCHEMA, TABLE, "3")


def test_a_rival_that_fails_says_why(tmp_path):
    python = interpreter(tmp_path, 'sys.exit("no module named packaging")\n')
    with pytest.raises(dpgan.Stopped, match=r"exit code 1: no module named packaging"):
        dpgan.rival("dpctgan", {}, python, 30)(SCHEMA, TABLE, "3")


def test_a_rival_gets_its_settings_and_its_rows_are_scored(tmp_path):
    body = """
import shutil
job = json.load(open(sys.argv[1]))
assert job["options"] == {"epochs": 6} and job["epsilon"] == 3.0 and job["shape"] == [4, 2]
shutil.copy(job["codes"], job["out"])
print(json.dumps({"options": job["options"]}))
"""
    made = dpgan.rival("dpctgan", {"epochs": 6}, interpreter(tmp_path, body), 30)(
        SCHEMA, TABLE, "3"
    )
    real = SCHEMA.encode(TABLE)
    assert all(np.array_equal(a, b) for a, b in zip(real, made, strict=True))
    assert dpgan.marginal_score(SCHEMA.shape, real, made, 2) == 1000
    kept = {
        "rows themselves": {"k2": 990.0, "k3": 980.0, "auc": 0.9},
        "x | 3 | 0": {"k2": 500.0, "k3": 400.0, "auc": 0.6, "cpu": 3.0, "seconds": 4.0},
        "x | 3 | 1": {"k2": 600.0, "k3": 500.0, "auc": 0.7, "cpu": 5.0, "seconds": 6.0},
        "y | 3 | 0": {"failed": "Stopped: longer than 2 seconds"},
    }
    written = dpgan.table(json.loads(json.dumps(kept)))
    assert "| x | 3 | 550 | 450 | 0.650 | 4 |" in written
    assert "| y | 3 | Stopped: longer than 2 seconds | | | |" in written


def test_devices_are_compared_run_by_run():
    """Means, and differences of the same run with Student's interval: 4.303·s/√3 for three runs."""
    kept = {
        f"T | {name} | {run}": {
            "pairs": 900.0 + run * 10 + more,
            "auc": 0.5,
            "kmeans": 2.0,
            "cpu": 3,
        }
        for name, gains in (("none", (0, 0, 0)), ("groups", (1, 2, 3)))
        for run, more in enumerate(gains)
    }
    written = dpgan_devices.table(kept)
    assert "| T | none | 910 | 0.500 | 2.000 | 3 |" in written
    assert "| T | groups | 912 (+2.0 ± 2.5) | 0.500 (+0.000 ± 0.000) |" in written


def test_rows_of_a_run_are_disjoint_and_the_same_for_all_settings():
    given = dpgan_devices.generated(6000)
    one, other = (dpgan_devices.parted(given, 500, 1) for _ in range(2))
    assert one.private.equals(other.private)
    assert (one.private.num_rows, one.public.num_rows, one.tested.num_rows) == (500, 10, 5000)
    with pytest.raises(ValueError, match="lower --rows"):
        dpgan_devices.parted(given, 5000, 0)
    assert given.schema.illegal(given.rows) == []
