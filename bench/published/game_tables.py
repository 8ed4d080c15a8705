"""The results of `bench game` as tables in Markdown: what the picture shows, in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.published import published
from bench.published.game import LeftOut, Point, Results
from understudy.wording import bound

__all__ = ["LOOKS_FIRST", "markdown", "reason"]

Answers = Mapping[str, Mapping[str, float]]

LOOKS_FIRST = ("auto", "fem", "sepfem", "dualquery", "dqrs", "mwem", "frankwolfe", "hdmm")
"""The order in which methods are shown."""


def markdown(results: Results) -> str:
    """One table of errors against ε, one a table of growing workloads, and what is not there."""
    points = results.points()
    answers = results.answered
    parts = [_over_epsilon([point for point in points if point.figure == 1], answers)]
    growing = [point for point in points if point.figure == 2]
    parts += [
        _growing(panel, [point for point in growing if point.panel == panel], answers)
        for panel in dict.fromkeys(point.panel for point in growing)
    ]
    if results.left_out:
        parts.append(_left_out(results.left_out))
    parts += [_certificates(results), _theorems(points)]
    return "\n\n".join(part for part in parts if part) + "\n"


def reason(one: LeftOut) -> str:
    """What a method said, up to its advice."""
    return one.why.split("; ")[0].split(": leave")[0].removeprefix(f"method = {one.method} ")


def _over_epsilon(points: Sequence[Point], answers: Answers) -> str:
    if not points:
        return ""
    epsilons = sorted({point.epsilon for point in points}, key=float)
    lines = [
        _row("table", "method", *(f"ε = {e}" for e in epsilons), "runs", "rounds", "CPU s"),
        _row(*["---"] * (len(epsilons) + 5)),
    ]
    for panel in dict.fromkeys(point.panel for point in points):
        name = panel
        table, _, order = panel.rpartition(" ")
        known = published.fem(table, int(order[0]) if order[:1].isdigit() else None)
        if known:
            values = [_share(known[e]) if e in known else "" for e in epsilons]
            lines.append(_row(name, published.FEM_NAME, *values, published.RUNS, "", ""))
            name = ""
        for method, own in _by_method([p for p in points if p.panel == panel]):
            at = {point.epsilon: point for point in own}
            values = [_share(at[e].mean) if e in at else "" for e in epsilons]
            lines.append(
                _row(
                    name, _label(method, own), *values, _range([p.runs for p in own], "{:d}"),
                    _range([p.rounds for p in own], "{:.0f}"), _range([p.cpu for p in own], "{:.1f}"),
                )
            )  # fmt: skip
            name = ""
        if expected := answers.get(panel):
            values = [_share(expected[e]) if e in expected else "" for e in epsilons]
            lines.append(_row(name, published.HDMM_NAME, *values, "", "", ""))
    return "\n".join(lines)


def _growing(panel: str, points: Sequence[Point], answers: Answers) -> str:
    expected = answers.get(panel, {})
    numbers = sorted({point.marginals for point in points} | set(map(int, expected)))
    (epsilon,) = {point.epsilon for point in points}
    title = f"{panel.removesuffix(' growing')}, ε = {epsilon}"
    lines = [
        _row(title, *map(_number, numbers), "runs", "CPU s"),
        _row(*["---"] * (len(numbers) + 3)),
    ]
    for method, own in _by_method(points):
        at = {point.marginals: point for point in own}
        values = [_share(at[n].mean) if n in at else "" for n in numbers]
        lines.append(
            _row(
                _label(method, own), *values, _range([p.runs for p in own], "{:d}"),
                _range([p.cpu for p in own], "{:.1f}"),
            )
        )  # fmt: skip
    if expected:
        values = [_share(expected[str(n)]) if str(n) in expected else "" for n in numbers]
        lines.append(_row(published.HDMM_NAME, *values, "", ""))
    return "\n".join(lines)


def _left_out(every: Sequence[LeftOut]) -> str:
    """One line a method and panel, with the first of its reasons."""
    lines = [_row("left out", "on", "why"), _row("---", "---", "---")]
    seen: set[tuple[str, str]] = set()
    for one in every:
        if (one.panel, one.method) not in seen:
            seen.add((one.panel, one.method))
            lines.append(_row(f"`{one.method}`", one.panel, reason(one)))
    return "\n".join(lines)


def _certificates(results: Results) -> str:
    """How far the certificate lies above the true error, and how often it does not."""
    runs = results.runs
    if not runs:
        return ""
    told: list[str] = []
    ends = sorted({one["epsilon"] for one in runs}, key=float)
    for epsilon in dict.fromkeys((ends[0], ends[-1])):
        gaps = [one["certificate"] - one["max"] for one in runs if one["epsilon"] == epsilon]
        told.append(f"{sum(gaps) / len(gaps):.2g} at ε = {epsilon}")
    below = sum(one["certificate"] < one["max"] for one in runs)
    return (
        f"Over all {len(runs)} runs the certificate was on average {' and '.join(told)} above the "
        f"true worst error, and below it in {below}, {100 * below / len(runs):.1f} %, where 5 % are "
        f"expected."
    )


def _theorems(points: Sequence[Point]) -> str:
    """The least bound that a method's theorem gave, in words."""
    least: dict[str, float] = {}
    for point in points:
        if point.theorem is not None:
            least[point.method] = min(point.theorem, least.get(point.method, point.theorem))
    told = ", ".join(f"`{method}` {bound(value)}" for method, value in least.items())
    return f"The theorems, at their best: {told}." if told else ""


def _by_method(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    have = {point.method for point in points}
    order = [m for m in LOOKS_FIRST if m in have] + sorted(have - set(LOOKS_FIRST))
    return [(m, [point for point in points if point.method == m]) for m in order]


def _label(method: str, points: Sequence[Point]) -> str:
    """With the share of rounds that recycle queries, where there are such rounds."""
    shares = [100 * point.recycled for point in points]
    return f"`{method}`" + (f", {_range(shares, '{:.0f}')} % recycled" if max(shares) else "")


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _number(value: int) -> str:
    return f"{value:,} marginals".replace(",", " ")


def _range(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low}–{high}"
