"""Figures 1 and 2 of "New Oracle-Efficient Algorithms for Private Synthetic Data Release", run again.

Figure 1: worst error over all cells of 64 random marginals against ε. Figure 2: the same at ε = 0.1
against the number of marginals. Both for marginals of three and of five columns. The line of HDMM's
answers is computed (`bench.published.matrix`). δ = 1/n², n public. A run is a whole release,
certificate and all; its CPU seconds are those of `release`, libraries already loaded. Runs take no seed
and are never thrown away: the results file holds each of them, and what is in it is not run again.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.published import published
from bench.published.keeping import keep
from bench.published.tables import Bench, generated
from understudy._version import __version__
from understudy.cli.options import parameters
from understudy.errors import InputError, UnderstudyError
from understudy.progress import Progress
from understudy.queries import resolve
from understudy.releases import prepare
from understudy.releases.run import release

__all__ = [
    "LeftOut", "Panel", "Point", "Results", "Task", "answered", "figure_one", "figure_two", "run",
    "sizes", "tasks",
]  # fmt: skip

LARGE = ("fem", "sepfem", "dualquery", "dqrs", "hdmm", "auto")
"""Methods that serve tables of any width."""
SMALL = ("mwem", "frankwolfe", "fem", "auto")
"""Methods for a universe that can be enumerated, and two to compare them with."""
GROWING = ("fem", "sepfem", "dualquery", "dqrs", "hdmm", "auto")
_MARGINALS = 64
_GROWING_EPSILON = "0.1"
_MOST_WIDE = 1024
"""Of marginals of more than three columns, for figure 2."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One set of axes: a table, and workloads or ε along x."""

    name: str
    figure: int
    title: str
    bench: Bench = field(repr=False)
    workloads: tuple[str, ...]
    epsilons: tuple[str, ...]
    methods: tuple[str, ...]
    order: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One run that is to be done."""

    panel: Panel
    method: str
    workload: str
    epsilon: str
    number: int
    seconds: float
    """About how long it will take; from the method's own forecast."""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What tells runs apart in the results."""
        return self.panel.name, self.method, self.workload, self.epsilon, self.number

    def __str__(self) -> str:
        return f"{self.panel.name}, {self.workload}, {self.method}, ε = {self.epsilon}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A method that cannot serve a workload, and what it said."""

    panel: str
    method: str
    workload: str
    why: str

    def __str__(self) -> str:
        return f"{self.panel}, {self.workload}: {self.method} is left out: {self.why}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What a run of it would be called."""
        return self.panel, self.method, self.workload


def figure_one(
    benches: Iterable[Bench], orders: Sequence[int], epsilons: Sequence[str]
) -> list[Panel]:
    """Error against ε: 64 marginals of every order, and all triples of six columns."""
    panels: list[Panel] = []
    for bench in benches:
        for order in orders:
            number = min(_MARGINALS, math.comb(len(bench.schema.shape), order))
            workload = f"marginals:{order}:{number}@0"
            panels.append(
                Panel(
                    f"{bench.name} {order}-way", 1, f"{bench.name}, {number} {order}-way marginals",
                    bench, (workload,), tuple(epsilons), LARGE, order,
                )
            )  # fmt: skip
        six = bench.six()
        if six is not None:
            panels.append(
                Panel(
                    f"{bench.name} six columns", 1, f"{bench.name}, six columns, all triples",
                    six, ("marginals:3",), tuple(epsilons), SMALL,
                )
            )  # fmt: skip
    return panels


def sizes(columns: int, order: int) -> tuple[int, ...]:
    """64, 128, … and all."""
    every = math.comb(columns, order)
    doubled = [_MARGINALS << i for i in range(30) if _MARGINALS << i < every]
    return (*doubled, every)


def figure_two(
    benches: Iterable[Bench], orders: Sequence[int] = (3,), most: int | None = None
) -> list[Panel]:
    """Error at ε = 0.1 against the number of marginals, up to all of them (or to `most`)."""
    panels: list[Panel] = []
    for bench in benches:
        columns = len(bench.schema.shape)
        for order in orders:
            every = math.comb(columns, order)
            limit = min(most or every, every if order <= 3 else _MOST_WIDE)
            panels.append(
                Panel(
                    f"{bench.name} {order}-way growing", 2,
                    f"{bench.name}, {order}-way, ε = {_GROWING_EPSILON}", bench,
                    tuple(
                        f"marginals:{order}" if n == every else f"marginals:{order}:{n}@0"
                        for n in sizes(columns, order)
                        if n <= limit
                    ),
                    (_GROWING_EPSILON,), GROWING, order,
                )
            )  # fmt: skip
    return panels


def answered(panels: Sequence[Panel]) -> dict[str, dict[str, float]]:
    """The expected worst error of HDMM's answers, by panel and by ε, or number of marginals."""
    from bench.published.matrix import expected_worst

    found: dict[str, dict[str, float]] = {}
    for panel in panels:
        for workload in panel.workloads:
            number = len(resolve(workload, panel.bench.schema, max_cells=2**62))
            for epsilon in panel.epsilons:
                at = str(number) if panel.figure == 2 else epsilon
                found.setdefault(panel.name, {})[at] = expected_worst(
                    panel.bench, workload, epsilon, delta(panel.bench.rows)
                )
    return found


def delta(rows: int) -> Fraction:
    """1/n²."""
    return Fraction(1, rows * rows)


def tasks(
    panels: Sequence[Panel],
    runs: int,
    methods: Sequence[str] | None,
    skipped: Callable[[LeftOut], None],
) -> Iterator[Task]:
    """Every run, first runs first, so that a figure is whole early; `skipped` hears what cannot be.

    A method may have settings of its own after slashes, as in "fem/published=true".

    Raises:
        InputError: No method of that name belongs to any panel.
    """
    if methods:
        known = {method for panel in panels for method in panel.methods}
        odd = [method for method in methods if method.partition("/")[0] not in known]
        if odd:
            raise InputError(
                f"methods = {', '.join(odd)}: these panels have {', '.join(sorted(known))}"
            )
    able: list[tuple[Panel, str, str, float]] = []
    for panel in panels:
        for method in methods or panel.methods:
            if method.partition("/")[0] not in panel.methods:
                continue
            for workload in panel.workloads:
                try:
                    prepared = _prepare(panel, method, workload, panel.epsilons[0])
                except UnderstudyError as error:
                    skipped(LeftOut(panel.name, method, workload, str(error)))
                else:
                    forecast = prepared.forecast(panel.bench.rows)
                    if forecast.memory_bytes > (have := _memory()):
                        needed = forecast.memory_bytes / 1e9
                        why = f"it needs {needed:.0f} GB of memory, of {have / 1e9:.0f} GB here"
                        skipped(LeftOut(panel.name, method, workload, why))
                    else:
                        able.append((panel, method, workload, forecast.seconds))
    for number in range(runs):
        for panel, method, workload, seconds in able:
            for epsilon in panel.epsilons:
                yield Task(panel, method, workload, epsilon, number, seconds)


def _prepare(panel: Panel, method: str, workload: str, epsilon: str) -> Any:
    return prepare(
        panel.bench.schema,
        epsilon=epsilon,
        delta=delta(panel.bench.rows),
        workload=workload,
        rows_public=panel.bench.rows,
        **_named(method),
    )


def _named(method: str) -> dict[str, Any]:
    """A method and its settings, as options of a release."""
    name, *settings = method.split("/")
    return {"method": name, "parameters": parameters(name, settings)}


def _memory() -> float:
    """Bytes of this machine."""
    return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")


class _Clock:
    """CPU seconds of every stage, and the number of rounds, from the progress of a release."""

    def __init__(self) -> None:
        self.begun = self.last = time.process_time()
        self.stage, self.rounds = "checking", 0
        self.stages: dict[str, float] = {}

    def __call__(self, progress: Progress) -> None:
        now = time.process_time()
        self.stages[self.stage] = self.stages.get(self.stage, 0.0) + now - self.last
        self.last, self.stage = now, progress.stage
        if progress.stage == "playing":
            self.rounds = progress.total


def warm_up(method: str) -> None:
    """Load what a method needs, on a small generated table, so that a run's time is its own."""
    small = generated(500)
    narrow = small.six()
    assert narrow is not None
    release(
        narrow.table, narrow.schema, epsilon="1", workload="marginals:3",
        rows_public=narrow.rows, rows=500, **_named(method),
    )  # fmt: skip


def run(task: Task) -> dict[str, Any]:
    """One release, its true errors and what it cost."""
    bench = task.panel.bench
    clock, wall = _Clock(), time.monotonic()
    made = release(
        bench.table,
        bench.schema,
        epsilon=task.epsilon,
        delta=delta(bench.rows),
        workload=task.workload,
        rows_public=bench.rows,
        progress=clock,
        **_named(task.method),
    )
    cpu = time.process_time() - clock.begun
    worst, variation = bench.errors(made.rows, made.workload.cliques)
    return {
        "panel": task.panel.name,
        "figure": task.panel.figure,
        "method": task.method,
        "workload": task.workload,
        "epsilon": task.epsilon,
        "run": task.number,
        "marginals": len(made.workload),
        "cells": made.workload.cells(bench.schema.shape),
        "rows": bench.rows,
        "delta": float(delta(bench.rows)),
        "max": worst,
        "mean_total_variation": variation,
        "certificate": made.certificate.bound,
        "theorem": None if made.theorem is None else made.theorem.bound,
        "rounds": clock.rounds,
        "recycled": sum(c.purpose.startswith("coins") for c in made.plan) / max(clock.rounds, 1),
        "cpu": cpu,
        "cpu_stages": clock.stages,
        "wall": time.monotonic() - wall,
        "settings": made.method,
        "understudy": __version__,
    }


@dataclass(frozen=True, slots=True)
class Point:
    """All runs of one point of a figure."""

    panel: str
    figure: int
    method: str
    workload: str
    marginals: int
    epsilon: str
    runs: int
    mean: float
    min: float
    max: float
    certificate: float
    theorem: float | None
    rounds: float
    recycled: float
    """The share of rounds that keep queries by rejection sampling: `dqrs` alone."""
    cpu: float
    cpu_max: float


class Results:
    """The runs in a JSON file; every run is on disk before the next begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[dict[str, Any]] = []
        self.answered: dict[str, dict[str, float]] = {}
        """HDMM's answers: see `answered`."""
        self._left_out: dict[tuple[str, str, str], LeftOut] = {}
        if path.exists():
            try:
                body = json.loads(path.read_text(encoding="utf-8"))
                self.runs = list(body["runs"])
                for one in self.runs:
                    _key(one)
                for one in body.get("left_out", []):
                    self.leave_out(LeftOut(**one))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{path} does not hold results of this command ({type(error).__name__}); "
                    f"give another --out, or remove it"
                ) from None

    def __contains__(self, task: Task) -> bool:
        shape = (task.panel.bench.rows, task.key)
        return any((one["rows"], _key(one)) == shape for one in self.runs)

    def add(self, one: dict[str, Any]) -> None:
        """Keep a run."""
        self.runs.append(one)
        self.save()

    def leave_out(self, one: LeftOut) -> None:
        """Note what cannot be run."""
        self._left_out[one.key] = one

    @property
    def left_out(self) -> list[LeftOut]:
        """What cannot be run, unless it has been after all."""
        ran = {_key(one)[:3] for one in self.runs}
        return [one for key, one in self._left_out.items() if key not in ran]

    def save(self) -> None:
        """Replace the file at once, so that it is never half written."""
        body = {
            "what": "python -m bench game",
            "published": [
                {"table": t, "order": k, "epsilons": list(published.EPSILONS), "max": list(errors)}
                for (t, k), errors in published.FEM.items()
            ],
            "hdmm_answers_expected": self.answered,
            "points": [asdict(point) for point in self.points()],
            "left_out": [asdict(one) for one in self.left_out],
            "runs": self.runs,
        }
        keep(self.path, body)

    def points(self) -> list[Point]:
        """Runs put together, in the order of their first run."""
        together: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for one in self.runs:
            together.setdefault(_key(one)[:-1], []).append(one)
        return [_point(group) for group in together.values()]


def _key(one: dict[str, Any]) -> tuple[str, str, str, str, int]:
    return one["panel"], one["method"], one["workload"], one["epsilon"], one["run"]


def _point(group: Sequence[dict[str, Any]]) -> Point:
    first, errors = group[0], [one["max"] for one in group]

    def mean(name: str) -> float:
        return sum(one[name] for one in group) / len(group)

    return Point(
        panel=first["panel"],
        figure=first["figure"],
        method=first["method"],
        workload=first["workload"],
        marginals=first["marginals"],
        epsilon=first["epsilon"],
        runs=len(group),
        mean=mean("max"),
        min=min(errors),
        max=max(errors),
        certificate=mean("certificate"),
        theorem=None if first["theorem"] is None else mean("theorem"),
        rounds=mean("rounds"),
        recycled=sum(one.get("recycled", 0.0) for one in group) / len(group),
        cpu=mean("cpu"),
        cpu_max=max(one["cpu"] for one in group),
    )
