"""Generator networks measured: error against ε and against rounds, for every oracle of critics.

A *system* is a method with settings: `querygan` with each of its oracles, and `gem` where it is there;
"querygan:moments/objective=wasserstein" has a setting of its own.
A run is a whole release, certificate and all, with δ = 1/n² and n public; CPU seconds are those of
`release`, compilation by JAX included. Runs take no seed, are never thrown away, and what is in the
results file is not run again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.published.game import delta
from bench.published.keeping import keep
from bench.published.tables import Bench
from understudy._version import __version__
from understudy.cli.options import parameters
from understudy.errors import InputError
from understudy.figures import STYLE, plain, save
from understudy.game.methods import METHODS
from understudy.game.methods.querygan import ORACLES
from understudy.releases.run import release

__all__ = ["AXES", "Nets", "Task", "draw", "run", "systems", "tasks"]

AXES = {"epsilon": "ε", "rounds": "rounds of the game"}
"""What runs along x."""
_COLOURS = ("#009E73", "#0072B2", "#D55E00", "#E69F00", "#CC79A7")
_MARKERS = ("*", "o", "s", "^", "D")


def systems(names: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Settings by name: "querygan:moments" and so on, and "gem" where it is registered.

    Raises:
        InputError: A name is not one of them.
    """
    known: dict[str, dict[str, Any]] = {
        f"querygan:{oracle}": {"oracle": oracle} for oracle in ORACLES
    }
    if "gem" in METHODS:
        known["gem"] = {}
    odd = [name for name in names or () if name.partition("/")[0] not in known]
    if odd:
        raise InputError(f"systems = {', '.join(odd)}: choose from {', '.join(known)}")
    found: dict[str, dict[str, Any]] = {}
    for name in names or known:
        system, *settings = name.split("/")
        found[name] = known[system] | parameters(system.partition(":")[0], settings)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One run that is to be done. `rounds = None` is the method's own rule."""

    bench: Bench = field(repr=False)
    workload: str
    system: str
    settings: dict[str, Any]
    axis: str
    epsilon: str
    rounds: int | None
    number: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells runs apart in the results."""
        rows = self.bench.rows
        return self.bench.name, rows, self.system, self.axis, self.epsilon, self.rounds, self.number

    def __str__(self) -> str:
        rounds = "" if self.rounds is None else f", {self.rounds} rounds"
        return f"{self.bench.name}, {self.system}, ε = {self.epsilon}{rounds}"


def tasks(
    bench: Bench,
    workload: str,
    chosen: dict[str, dict[str, Any]],
    epsilons: Sequence[str],
    rounds: Sequence[int],
    at: str,
    runs: int,
) -> Iterator[Task]:
    """Every run, first runs first: each system at every ε, and at ε = `at` for all `rounds`."""
    for number in range(runs):
        for system, settings in chosen.items():
            for epsilon in epsilons:
                yield Task(bench, workload, system, settings, "epsilon", epsilon, None, number)
            # The rounds of gem are another thing: each measures anew.
            if system.startswith("querygan"):
                for T in rounds:
                    yield Task(bench, workload, system, settings, "rounds", at, T, number)


def run(task: Task) -> dict[str, Any]:
    """One release, its true errors and what it cost."""
    bench = task.bench
    settings = task.settings if task.rounds is None else {**task.settings, "rounds": task.rounds}
    begun, wall = time.process_time(), time.monotonic()
    made = release(
        bench.table,
        bench.schema,
        epsilon=task.epsilon,
        delta=delta(bench.rows),
        workload=task.workload,
        method=task.system.partition("/")[0].partition(":")[0],
        parameters=settings,
        rows_public=bench.rows,
    )
    cpu = time.process_time() - begun
    worst, variation = bench.errors(made.rows, made.workload.cliques)
    codes = bench.schema.encode(made.rows)
    return {
        "table": bench.name,
        "rows": bench.rows,
        "workload": task.workload,
        "system": task.system,
        "axis": task.axis,
        "epsilon": task.epsilon,
        "rounds": task.rounds,
        "run": task.number,
        "delta": float(delta(bench.rows)),
        "max": worst,
        "mean_total_variation": variation,
        "wasserstein": bench.wasserstein(codes),
        "parity": bench.parity(codes, made.workload.cliques),
        "certificate": made.certificate.bound,
        "proved": None if made.theorem is None else made.theorem.bound,
        "cpu": cpu,
        "wall": time.monotonic() - wall,
        "settings": made.method,
        "remarks": dict(made.diagnostics),
        "understudy": __version__,
    }


@dataclass(frozen=True, slots=True)
class Point:
    """All runs of one point."""

    table: str
    system: str
    axis: str
    epsilon: str
    rounds: int | None
    runs: int
    tv: float
    max: float
    wasserstein: float
    parity: float
    certificate: float
    cpu: float

    @property
    def x(self) -> float:
        """Where it stands."""
        return float(self.epsilon) if self.axis == "epsilon" else float(self.rounds or 0)


class Nets:
    """The runs in a JSON file; every run is on disk before the next begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[dict[str, Any]] = []
        if path.exists():
            try:
                self.runs = list(json.loads(path.read_text(encoding="utf-8"))["runs"])
                for one in self.runs:
                    _key(one)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{path} does not hold results of this command ({type(error).__name__}); "
                    f"give another --out, or remove it"
                ) from None

    def __contains__(self, task: Task) -> bool:
        return any(_key(one) == task.key for one in self.runs)

    def add(self, one: dict[str, Any]) -> None:
        """Keep a run."""
        self.runs.append(one)
        self.save()

    def save(self) -> None:
        """Replace the file at once, so that it is never half written."""
        keep(self.path, {"what": "python -m bench querygan", "runs": self.runs})

    def regrets(self) -> list[tuple[str, str, str, str]]:
        """Of critics that follow the regularised leader: table, run, regret and what bounds it."""
        found: list[tuple[str, str, str, str]] = []
        for one in self.runs:
            told = one.get("remarks", {})
            if "regret_of_the_critics" in told:
                bound = told["bound_on_their_regret"]
                said = bound if isinstance(bound, str) else f"{bound:.4f}"
                rounds = one["rounds"] or "by rule"
                run = f"{one['system']}, ε = {one['epsilon']}, rounds {rounds}"
                found.append((one["table"], run, f"{told['regret_of_the_critics']:.4f}", said))
        return found

    def points(self) -> list[Point]:
        """Runs put together, along every axis in order."""
        together: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for one in self.runs:
            together.setdefault(_key(one)[:-1], []).append(one)
        found = [_point(group) for group in together.values()]
        tables = list(dict.fromkeys(point.table for point in found))
        order = list(dict.fromkeys(point.system for point in found))
        return sorted(
            found, key=lambda p: (tables.index(p.table), p.axis, order.index(p.system), p.x)
        )


def _key(one: dict[str, Any]) -> tuple[Any, ...]:
    names = ("table", "rows", "system", "axis", "epsilon", "rounds", "run")
    return tuple(one[name] for name in names)


def _point(group: Sequence[dict[str, Any]]) -> Point:
    def mean(name: str) -> float:
        return sum(one[name] for one in group) / len(group)

    first = group[0]
    return Point(
        first["table"], first["system"], first["axis"], first["epsilon"], first["rounds"], len(group),
        mean("mean_total_variation"), mean("max"), mean("wasserstein"), mean("parity"),
        mean("certificate"), mean("cpu"),
    )  # fmt: skip


def draw(points: Iterable[Point], workload: str, folder: Path) -> list[Path]:
    """Write querygan.svg and querygan.png: mean total variation, one set of axes per table and axis."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = list(points)
    panels = [
        (table, axis)
        for table in dict.fromkeys(point.table for point in shown)
        for axis in AXES
        if any((point.table, point.axis) == (table, axis) for point in shown)
    ]
    if not panels:
        return []
    names = list(dict.fromkeys(point.system for point in shown))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.2 * len(panels) + 0.4, 3.2), layout="constrained")
        spots = figure.subplots(1, len(panels), squeeze=False)[0]
        handles: dict[str, Any] = {}
        for spot, (table, axis) in zip(spots, panels, strict=True):
            for at, name in enumerate(names):
                here = (table, axis, name)
                line = [p for p in shown if (p.table, p.axis, p.system) == here]
                if not line:
                    continue
                (handles[name],) = spot.plot(
                    [p.x for p in line], [p.tv for p in line], linewidth=1.2,
                    color=_COLOURS[at % len(_COLOURS)], marker=_MARKERS[at % len(_MARKERS)],
                    markersize=6, markeredgecolor="white", markeredgewidth=0.4,
                )  # fmt: skip
            spot.set_xscale("log")
            spot.set_ylim(bottom=0)
            spot.set_xlabel(AXES[axis])
            spot.set_title(f"{table}, {workload}", fontsize=9, loc="left")
            plain(spot)
        spots[0].set_ylabel("mean total variation")
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper left", ncols=5, frameon=False
        )
        return save(figure, folder, "querygan")
