"""Ours against the libraries that install from PyPI: the same tables, workloads, ε and δ, one run each.

Every run is a process of its own, ours too, so that CPU seconds and peak memory are what the system
says of that process, imports and all. Rivals run in environments of their own, which are made here, get
codes and the exact public domain, and spend nothing on preprocessing. δ = 1/n², n public. Errors are
exact, of as many synthetic rows as there are rows: the worst cell of the workload, and the mean total
variation over its marginals. Runs take no seed, and none is thrown away: what is in the results file
is not run again, and where a run failed or took too long, that is what the file says.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.published.keeping import keep
from bench.published.tables import Bench
from understudy.errors import InputError, UnderstudyError
from understudy.queries import resolve

__all__ = [
    "RIVALS", "Measures", "Peers", "Point", "System", "Task", "Work", "environment", "floor",
    "label", "markdown", "measured", "ours", "run", "said", "tasks", "works",
]  # fmt: skip

_SCRIPTS = Path(__file__).parent / "rivals"
_LAUNCH = Path(__file__).parent / "launch.py"
_SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A table and a workload on it."""

    name: str
    bench: Bench = field(repr=False)
    cliques: tuple[tuple[int, ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class System:
    """What makes rows: a method of ours, or a rival's in its environment."""

    name: str
    method: str
    options: Mapping[str, Any]
    script: str | None = None
    requirement: str | None = None

    @property
    def ours(self) -> bool:
        """Whether it is a method of understudy."""
        return self.script is None


RIVALS: dict[str, System] = {
    each.name: each
    for each in (
        System("dpmm-mst", "mst", {}, "run_dpmm.py", "dpmm"),
        System("dpmm-aim", "aim", {"max_model_size": 8}, "run_dpmm.py", "dpmm"),
        System("smartnoise-mst", "mst", {}, "run_smartnoise.py", "smartnoise-synth"),
        System(
            "smartnoise-aim", "aim", {"max_model_size": 8}, "run_smartnoise.py", "smartnoise-synth"
        ),
        System(
            "smartnoise-mwem", "mwem", {"split_factor": 3}, "run_smartnoise.py", "smartnoise-synth"
        ),
    )
}  # fmt: skip
"""Their own defaults, but for what they cannot run without: AIM gets 8 MB of model (dpmm sets no limit,
80 MB take hours) and MWEM a split of the columns (the whole universe does not fit any memory)."""


def ours(text: str) -> System:
    """`auto`, or a method with settings: `aim:megabytes=8:iterations=200`.

    Raises:
        InputError: No such method, or no such setting.
    """
    from understudy.game.methods import method

    name, *settings = text.split(":")
    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"methods: {text!r} must look like aim:megabytes=8")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    method(name, **options)
    return System(text, name, options)


_WORKLOADS = {
    "ADULT-64x3": ("ADULT", "marginals:3:64@0"),
    "ADULT-all3": ("ADULT", "marginals:3"),
    "LOANS-64x3": ("LOANS", "marginals:3:64@0"),
    "NLTCS-all3": ("NLTCS", "marginals:3"),
    "WIDE-all2": ("WIDE", "marginals:2"),
}


def works(benches: Mapping[str, Bench], wanted: Sequence[str] | None = None) -> list[Work]:
    """The workloads on the tables that are there.

    Raises:
        InputError: A name that no workload has.
    """
    odd = [name for name in wanted or () if name not in _WORKLOADS]
    if odd:
        raise InputError(f"workloads = {', '.join(odd)}: choose from {', '.join(_WORKLOADS)}")
    found: list[Work] = []
    for name, (table, spec) in _WORKLOADS.items():
        if table in benches and (not wanted or name in wanted):
            bench = benches[table]
            found.append(Work(name, bench, resolve(spec, bench.schema).cliques))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One run that is to be done."""

    work: Work
    system: System
    epsilon: str
    number: int

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """What tells runs apart in the results."""
        return self.work.name, self.system.name, self.epsilon, self.work.bench.rows, self.number

    def __str__(self) -> str:
        return f"{self.work.name}, {self.system.name}, ε = {self.epsilon}"


def tasks(
    works: Sequence[Work], systems: Sequence[System], epsilons: Sequence[str], runs: int
) -> Iterator[Task]:
    """Every run, first runs first, so that a table is whole early."""
    for number in range(runs):
        for work in works:
            for epsilon in epsilons:
                for system in systems:
                    yield Task(work, system, epsilon, number)


# --- environments -------------------------------------------------------------------------------


def environment(folder: Path, requirement: str, say: Callable[[str], None]) -> Path | None:
    """The interpreter of an environment that holds `requirement`; made once, None if it fails."""
    home = folder / requirement
    python, ready = home / "bin" / "python", home / ".ready"
    if ready.exists() and python.exists():
        return python
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{requirement}.log"
    say(f"installing {requirement} into {home}, once; this may take minutes")
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "--disable-pip-version-check", requirement],
    )
    with log.open("wb") as into:
        for step in steps:
            try:
                done = subprocess.run(step, stdout=into, stderr=subprocess.STDOUT, check=False)
            except OSError as error:
                into.write(str(error).encode())
                done = None
            if done is None or done.returncode:
                into.flush()
                say(
                    f"{requirement} is left out: it could not be installed ({_last(log)}); the "
                    f"whole of it is in {log}. Mend that and give the same command again"
                )
                return None
    ready.touch()
    return python


def _last(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip()[:200] if lines else "no output"


# --- one run ------------------------------------------------------------------------------------


def run(task: Task, python: Path, limit: float) -> dict[str, Any]:
    """One run in a process of its own: errors, CPU seconds, peak memory; or why there are none."""
    bench = task.work.bench
    about = {
        "workload": task.work.name,
        "system": task.system.name,
        "epsilon": task.epsilon,
        "rows": bench.rows,
        "run": task.number,
        "options": dict(task.system.options),
    }
    with tempfile.TemporaryDirectory(prefix="understudy-peers-") as name:
        folder = Path(name)
        out = folder / "made.npy"
        np.save(folder / "codes.npy", np.column_stack(bench.codes).astype(np.int32))
        job = {
            "codes": str(folder / "codes.npy"),
            "names": [column.name for column in bench.schema.modelled],
            "shape": list(bench.schema.shape),
            "cliques": [list(clique) for clique in task.work.cliques],
            "epsilon": float(task.epsilon) if not task.system.ours else task.epsilon,
            "delta": 1 / bench.rows**2,
            "method": task.system.method,
            "options": dict(task.system.options),
            "out": str(out),
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        what = [str(_SCRIPTS / "run_ours.py")]
        if task.system.script is not None:
            what = [str(_SCRIPTS / task.system.script)]
        used = measured([str(python), *what, str(folder / "job.json")], folder, limit)
        costs = {key: used[key] for key in ("cpu", "memory_mb", "wall")}
        if used["why"] is not None:
            return about | costs | {"failed": used["why"]}
        try:
            made = np.load(out)
            worst, variation = _errors(task.work, made)
        except (OSError, ValueError, UnderstudyError) as error:
            return about | costs | {"failed": f"its rows cannot be used: {error}"}
        return about | costs | {
            "max": worst, "tv": variation, "made": len(made), "said": said(folder / "out.txt"),
        }  # fmt: skip


def _errors(work: Work, made: Any) -> tuple[float, float]:
    shape = work.bench.schema.shape
    if made.ndim != 2 or made.shape[1] != len(shape) or not len(made):
        raise ValueError(f"an array of shape {made.shape}")
    if made.min() < 0 or (made.max(axis=0) >= np.array(shape)).any():
        raise ValueError("values outside the domain")
    return work.bench.errors_of([made[:, i] for i in range(len(shape))], work.cliques)


def said(path: Path) -> dict[str, Any]:
    """The JSON object on the last line, if there is one."""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def measured(command: Sequence[str], folder: Path, limit: float) -> dict[str, Any]:
    """Run a command to its end or the limit; what the kernel says it used, children included.

    A small process of its own starts it: see `bench.published.launch`.
    """
    settings = {**os.environ, **dict.fromkeys(_SINGLE, "1")}
    usage = folder / "usage.json"
    launch = [sys.executable, "-I", "-S", str(_LAUNCH), str(usage), str(limit), *command]
    with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
        process = subprocess.Popen(
            launch, stdout=out, stderr=err, cwd=folder, env=settings, start_new_session=True
        )
        try:
            process.wait()
        except BaseException:
            process.terminate()  # it ends the run, then itself
            process.wait()
            raise
    if process.returncode:
        why = f"it could not be started: {_last(folder / 'err.txt')}"
        return {"cpu": 0.0, "memory_mb": 0.0, "wall": 0.0, "why": why}
    used = json.loads(usage.read_text(encoding="utf-8"))
    why = f"longer than {limit:g} seconds" if used["late"] else None
    if why is None and used["code"]:
        why = f"exit code {used['code']}: {_last(folder / 'err.txt')}"
    return {key: used[key] for key in ("cpu", "memory_mb", "wall")} | {"why": why}


def floor(work: Work, times: int = 3) -> tuple[float, float]:
    """(worst, mean variation) of the table's own rows drawn again; not private."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(times):
        drawn = rng.integers(work.bench.rows, size=work.bench.rows)
        found.append(work.bench.errors_of([c[drawn] for c in work.bench.codes], work.cliques))
    return float(np.mean([f[0] for f in found])), float(np.mean([f[1] for f in found]))


# --- results ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measures:
    """A mean and the half width of its 95 % interval; None with a single run."""

    mean: float
    half: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Measures:
        """Student's interval."""
        mean = math.fsum(values) / len(values)
        if len(values) < 2:
            return cls(mean, None)
        from scipy.stats import t

        spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
        return cls(mean, float(t.ppf(0.975, len(values) - 1)) * spread / math.sqrt(len(values)))

    def text(self, form: str) -> str:
        """`.0407 ± .0004`."""
        mean = form.format(self.mean)
        return mean if self.half is None else f"{mean} ± {form.format(self.half)}"


@dataclass(frozen=True, slots=True)
class Point:
    """All runs of a system on a workload at one ε."""

    workload: str
    system: str
    epsilon: str
    runs: int
    max: Measures | None
    tv: Measures | None
    cpu: Measures
    memory_mb: Measures
    failed: str | None


class Peers:
    """The runs in a JSON file; every run is on disk before the next begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[dict[str, Any]] = []
        if path.exists():
            try:
                self.runs = list(json.loads(path.read_text(encoding="utf-8"))["runs"])
                for one in self.runs:
                    _key(one)
                    _ = one["options"]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{path} does not hold results of this command ({type(error).__name__}); "
                    f"give another --out, or remove it"
                ) from None

    def __contains__(self, task: Task) -> bool:
        """Done, or known to fail: where one run of a point failed, the others are not tried."""
        at = task.key[:-1]
        return any(
            (_key(one) == task.key or (_key(one)[:-1] == at and "failed" in one))
            and one["options"] == dict(task.system.options)
            for one in self.runs
        )

    def forget(self, systems: Sequence[str]) -> int:
        """Drop the runs of these systems; how many there were."""
        before = len(self.runs)
        self.runs = [one for one in self.runs if one["system"] not in systems]
        return before - len(self.runs)

    def add(self, one: dict[str, Any]) -> None:
        """Keep a run; runs of the same point with other options make place for it."""
        at = _key(one)[:-1]
        self.runs = [
            known
            for known in self.runs
            if _key(known)[:-1] != at or known["options"] == one["options"]
        ]
        self.runs.append(one)
        self.save()

    def save(self) -> None:
        """Replace the file at once, so that it is never half written."""
        body = {
            "what": "python -m bench peers",
            "points": [asdict(point) for point in self.points()],
            "runs": self.runs,
        }
        keep(self.path, body)

    def points(self) -> list[Point]:
        """Runs put together, in the order of their first run."""
        together: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for one in self.runs:
            together.setdefault(_key(one)[:-1], []).append(one)
        return [_point(group) for group in together.values()]


def _key(one: dict[str, Any]) -> tuple[str, str, str, int, int]:
    return one["workload"], one["system"], one["epsilon"], one["rows"], one["run"]


def _point(group: Sequence[dict[str, Any]]) -> Point:
    first = group[0]
    good = [one for one in group if "failed" not in one]
    failed = next((one["failed"] for one in group if "failed" in one), None)
    counted = good or list(group)
    return Point(
        first["workload"],
        first["system"],
        first["epsilon"],
        len(good),
        Measures.of([one["max"] for one in good]) if good else None,
        Measures.of([one["tv"] for one in good]) if good else None,
        Measures.of([one["cpu"] for one in counted]),
        Measures.of([one["memory_mb"] for one in counted]),
        failed,
    )


def markdown(points: Sequence[Point], floors: Mapping[str, tuple[float, float]]) -> str:
    """The results as a table for people; ours as `understudy NAME`."""
    lines = [
        "| workload | system | ε | max | mean TV | CPU s | peak MB | runs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for workload in dict.fromkeys(point.workload for point in points):
        for point in (p for p in points if p.workload == workload):
            if point.max is None or point.tv is None:
                errors = f"{point.failed} | –"
            else:
                errors = f"{point.max.text('{:.4f}')} | {point.tv.text('{:.4f}')}"
            lines.append(
                f"| {workload} | {label(point.system)} | {point.epsilon} | {errors} | "
                f"{point.cpu.text('{:.1f}')} | {point.memory_mb.text('{:.0f}')} | {point.runs} |"
            )
        if workload in floors:
            worst, variation = floors[workload]
            lines.append(
                f"| {workload} | its own rows drawn again (not private) | ∞ | {worst:.4f} | "
                f"{variation:.4f} | – | – | 3 |"
            )
    return "\n".join(lines) + "\n"


def label(system: str) -> str:
    """How a system is called for people."""
    return system if system in RIVALS else f"understudy {system}"
