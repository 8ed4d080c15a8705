"""The tables of the attacks, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from bench.published.mia import RULES, Point, Results, Slope
from bench.published.mia_rows import PANELS, SOLVERS, Panel

__all__ = ["tables"]

_NAMES = {"frank-wolfe": "FW", "sgd": "SGD"}
_SAID = {
    "rank": "the N best scores are members",
    "midpoint": "τ between the means of members and others among rows that are not judged",
    "best": "τ with the largest TPR − FPR among rows that are not judged",
}


def tables(results: Results) -> str:
    """Attack accuracy by each rule, what the models are worth, and the log fits."""
    shown = [point for point in results.points() if point.attack == _panel(point.panel).attack]
    parts = [
        f"Attack accuracy in per cent, {_SAID[rule]}; mean and 95 % interval over trainings. Where not "
        f"every model predicts better than a constant, how many do.\n\n"
        + _attacks([point for point in shown if point.rule == rule])
        for rule in RULES
    ]
    models = _models([point for point in shown if point.rule == "rank"])
    return "\n\n".join([*parts, models, _fits(results.slopes())]) + "\n"


def _panel(name: str) -> Panel:
    return next(panel for panel in PANELS if panel.name == name)


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _models_of(points: Sequence[Point]) -> Iterator[tuple[Panel, int]]:
    for rows in sorted({point.rows for point in points}):
        for panel in PANELS:
            if any((point.panel, point.rows) == (panel.name, rows) for point in points):
                yield panel, rows


def _attacks(points: Sequence[Point]) -> str:
    epsilons = sorted({point.epsilon for point in points if point.epsilon is not None})
    kinds: list[tuple[str, float | None]] = [(s, e) for s in SOLVERS for e in epsilons]
    heads = ["model", "N", "by", *(f"{_NAMES[s]}, ε = {e:g}" for s, e in kinds), "alone"]
    kinds.append(("none", None))
    at = {(p.panel, p.rows, p.solver, p.epsilon): p for p in points}
    lines = [
        [panel.title, f"{rows:,}", panel.attack]
        + [cell(at.get((panel.name, rows, *kind))) for kind in kinds]
        for panel, rows in _models_of(points)
    ]
    bounds = {point.epsilon: point.ceiling for point in points if point.ceiling is not None}
    lines.append(["ceiling", "", "any", *(f"{100 * bounds[e]:.1f}" for _, e in kinds[:-1]), "100"])
    return _table(heads, lines)


def cell(point: Point | None) -> str:
    """An accuracy with its interval, or how many models were better than a constant, if not all."""
    if point is None:
        return "–"
    if not point.attacked:
        return f"{point.better} of {point.trainings}"
    if point.trainings == 1:
        return f"{100 * point.mean:.1f} (one)"
    return f"{100 * point.mean:.1f} ± {50 * (point.high - point.low):.1f}"


_COLUMNS: tuple[tuple[str, Callable[[Point], str]], ...] = (
    ("model", lambda p: _panel(p.panel).title),
    ("N", lambda p: f"{p.rows:,}"),
    ("solver", lambda p: _NAMES.get(p.solver, "alone")),
    ("ε", lambda p: "∞" if p.epsilon is None else f"{p.epsilon:g}"),
    ("better", lambda p: f"{p.better} of {p.trainings}"),
    ("T", lambda p: f"{p.steps:,}" if p.steps else "–"),
    ("on fresh rows", lambda p: f"{p.quality:.3f}"),
    ("constant", lambda p: f"{p.constant:.3f}"),
    ("F − F*", lambda p: f"{p.excess:.4f}"),
    ("of weights 0", lambda p: f"{p.start:.3f}"),
    ("bound", lambda p: bound(p)),
    ("‖w − w*‖", lambda p: f"{p.distance:.2f}"),
)


def bound(point: Point) -> str:
    """A bound on the excess loss; above that of weights 0 it says nothing."""
    if point.epsilon is None:
        return "–"
    return (
        f"{point.bound:.2g}" if point.bound < point.start else f"says nothing ({point.bound:.2g})"
    )


def _models(points: Sequence[Point]) -> str:
    """Quality, excess loss beside its bound, and distance to w*."""
    ordered = sorted(points, key=lambda p: (*_place(p), p.epsilon or float("inf")))
    return _table(
        [head for head, _ in _COLUMNS], ([write(p) for _, write in _COLUMNS] for p in ordered)
    )


def _place(found: Point | Slope) -> tuple[int, int, str]:
    """Where a line stands in a table."""
    return found.rows, PANELS.index(_panel(found.panel)), found.solver


def _fits(slopes: Sequence[Slope]) -> str:
    """Slopes in ln ε, as the thesis fits them: of the accuracy in per cent, of ln(F − F*)."""
    lines: dict[tuple[str, int, str], list[str]] = {}
    for slope in sorted(slopes, key=_place):
        size = 100 if slope.what == "accuracy" else 1
        half = size * (slope.high - slope.low) / 2
        at = _panel(slope.panel).title, slope.rows, _NAMES[slope.solver]
        lines.setdefault(at, []).append(f"{size * slope.mean:+.2f} ± {half:.2f}")
    return _table(
        ["model", "N", "solver", "accuracy in per cent per ln ε", "ln(F − F*) per ln ε"],
        ([title, f"{rows:,}", solver, *found] for (title, rows, solver), found in lines.items()),
    )
