"""Drawings, in SVG of our own: each has a title and a description, and its colours from the sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence

from understudy.markup import Child, Html, join, tag
from understudy.report.facts import Column, Pair
from understudy.report.style import CURVES, HEAT
from understudy.report.training import Curve, Panel
from understudy.wording import number, percent

__all__ = ["WITHIN", "column", "curves", "gauge", "key", "matrix", "names", "scale"]

WITHIN = 10
"""A share of this many times the bound is right to within a tenth of itself."""

_WIDTH = 300
_ROW = 18
_NAMES, _VALUES = 112, 46
_TALL = 92


def _picture(
    title: str, description: str, *children: Child, box: tuple[float, float] | None, class_: str
) -> Html:
    view = None if box is None else f"0 0 {box[0]:g} {box[1]:g}"
    attributes = {"viewBox": view} if view else {}
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        children,
        role="img",
        aria_label=f"{title}. {description}",
        class_=class_,
        **attributes,
    )


# The certificate


def gauge(bound: float, rows: int) -> Html:
    """How large a group must be for its number to mean something; group sizes on a log scale."""
    low = 10.0 ** math.floor(math.log10(max(bound, 1e-9)) - 0.5)

    def x(share: float) -> float:
        return 100 * (1 - math.log10(min(max(share, low), 1.0)) / math.log10(low))

    first, second = min(bound, 1.0), min(WITHIN * bound, 1.0)
    zones = [
        ("bad", low, first, "may be noise"),
        ("rough", first, second, "rough"),
        ("good", second, 1.0, "good to a tenth"),
    ]
    drawn: list[Html] = []
    for name, start, end, label in zones:
        if end > start:
            width = x(end) - x(start)
            drawn.append(
                tag(
                    "rect",
                    x=f"{x(start):.2f}%",
                    y=18,
                    width=f"{width:.2f}%",
                    height=30,
                    class_=name,
                )
            )
            if width > 12:
                middle = f"{(x(start) + x(end)) / 2:.2f}%"
                drawn.append(tag("text", label, x=middle, y=37, text_anchor="middle"))
    for share, mark in ((first, True), (second, False)):
        if share < 1:
            at = f"{x(share):.2f}%"
            drawn.append(tag("line", x1=at, x2=at, y1=12 if mark else 18, y2=54))
            text = percent(share)
            drawn.append(tag("text", text, x=at, y=68, text_anchor="middle", class_="strong"))
            below = f"{number(share * rows)} rows"
            drawn.append(tag("text", below, x=at, y=83, text_anchor="middle", class_="soft"))
    if second >= 1 or x(second) < 88:  # room beside the mark before it
        drawn.append(tag("text", "100 %", x="100%", y=68, text_anchor="end", class_="soft"))
    drawn.append(tag("text", "size of a group, as a share of all rows →", x=0, y=9, class_="soft"))
    told = (
        f"A group of less than {percent(first)} of the rows, {number(first * rows)}, may be all "
        f"noise; from {percent(second)} on, {number(second * rows)} rows, its share is right to "
        f"within a tenth"
    )
    return _picture("Which groups the certificate covers", told, drawn, box=None, class_="gauge")


# Columns


def column(shown: Column) -> Html:
    """Synthetic shares as bars, the noisy measurement as a band over each of them."""
    inside = told = None
    if shown.measured is not None and shown.band is not None:
        inside = sum(
            abs(share - noisy) <= band
            for share, noisy, band in zip(shown.shares, shown.measured, shown.band, strict=True)
        )
        told = f"{inside} of {len(shown.shares)} bars lie within the band of the measurement."
    top = max(range(len(shown.shares)), key=shown.shares.__getitem__)
    most = f"Most frequent: {shown.labels[top]}, {percent(shown.shares[top])}."
    words = f"{most} {told or 'Not measured by itself.'}"
    title = f"Synthetic shares of {shown.name}"
    lying = not shown.ordered or (len(shown.labels) <= 8 and shown.kind in ("category", "boolean"))
    return _lying(shown, title, words) if lying else _standing(shown, title, words)


def _most(shown: Column) -> float:
    noisy = shown.measured or ()
    bands = shown.band or ()
    ends = [value + band for value, band in zip(noisy, bands, strict=True)]
    return max([*shown.shares, *ends, 1e-9])


def _lying(shown: Column, title: str, words: str) -> Html:
    """Bars from left to right, with room for names."""
    most, room = _most(shown), _WIDTH - _NAMES - _VALUES
    bars, bands, texts = [], [], []
    for i, (label, share) in enumerate(zip(shown.labels, shown.shares, strict=True)):
        y = i * _ROW
        width = room * share / most
        bars.append(f"M{_NAMES} {y + 3}h{width:.1f}v{_ROW - 6}h{-width:.1f}z")
        texts.append(tag("text", _short(label, 17), x=_NAMES - 8, y=y + 13, text_anchor="end"))
        texts.append(
            tag("text", percent(share), x=_WIDTH, y=y + 13, text_anchor="end", class_="soft")
        )
        if shown.measured is not None and shown.band is not None:
            start = _NAMES + room * max(shown.measured[i] - shown.band[i], 0) / most
            end = _NAMES + room * max(shown.measured[i] + shown.band[i], 0) / most
            bands.append(_lying_band(start, end, y + _ROW / 2))
    return _picture(
        title, words, tag("path", d="".join(bars), class_="bar"),
        tag("path", d="".join(bands), class_="noise") if bands else None, texts,
        box=(_WIDTH, _ROW * len(shown.labels)), class_="chart",
    )  # fmt: skip


def _lying_band(start: float, end: float, y: float) -> str:
    end = max(end, start + 1)
    return f"M{start:.1f} {y - 3.5}v7m0-3.5H{end:.1f}m0-3.5v7"


def _standing(shown: Column, title: str, words: str) -> Html:
    """Bars from below, for values with an order."""
    most, count = _most(shown), len(shown.shares)
    null = shown.labels[-1] == "NULL"
    gap = 10 if null and count > 1 else 0  # null is no value: it stands apart
    each = (_WIDTH - gap) / count
    thick = max(each - 1.5, 0.6 * each)
    top, base = 14, 14 + _TALL
    bars, bands = [], []
    for i, share in enumerate(shown.shares):
        x = i * each + (gap if null and i == count - 1 else 0)
        height = _TALL * share / most
        bars.append(f"M{x:.1f} {base}v{-height:.1f}h{thick:.1f}v{height:.1f}z")
        if shown.measured is not None and shown.band is not None:
            low = base - _TALL * max(shown.measured[i] - shown.band[i], 0) / most
            high = base - _TALL * max(shown.measured[i] + shown.band[i], 0) / most
            bands.append(f"M{x + thick / 2:.1f} {low:.1f}V{min(high, low - 1):.1f}")
    values = count - 1 if null else count
    ends = [_end(shown.labels[0].split("..")[0]), _end(shown.labels[values - 1].split("..")[-1])]
    last = min((values - 1) * each + thick, _WIDTH - (30 if gap else 0))
    texts = [
        tag("text", percent(most), x=0, y=10, class_="soft"),
        tag("text", _short(ends[0], 18), x=0, y=base + 15, class_="soft"),
        tag(
            "text", _short(ends[1], 18), x=f"{last:.1f}", y=base + 15,
            text_anchor="end", class_="soft",
        ),
    ]  # fmt: skip
    if gap:
        texts.append(tag("text", "null", x=_WIDTH, y=base + 15, text_anchor="end", class_="soft"))
    frame = f"M0 {top}H{_WIDTH}M0 {base}H{_WIDTH}"
    return _picture(
        title, words, tag("path", d=frame, class_="grid"),
        tag("path", d="".join(bars), class_="bar"),
        tag("path", d="".join(bands), class_="noise") if bands else None, texts,
        box=(_WIDTH, base + 20), class_="chart",
    )  # fmt: skip


def _end(label: str) -> str:
    """The end of an axis: 200000.00 is 200,000."""
    try:
        return f"{float(label):,.6g}"
    except ValueError:
        return label


def key(measured: bool) -> Html:
    """What bars and bands are."""
    bar = tag("svg", tag("rect", width=22, height=12, y=1, class_="bar"), aria_hidden="true")
    band = tag(
        "svg", tag("path", d="M2 4v7m0-3.5H20m0-3.5v7", class_="noise"), aria_hidden="true"
    )  # fmt: skip
    return tag(
        "ul",
        tag("li", bar, "share in the synthetic rows"),
        tag("li", band, "noisy measurement of the private table, 95 % of its noise")
        if measured
        else None,
        class_="key",
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# Pairs


def scale(pairs: Sequence[Pair]) -> tuple[float, ...]:
    """Where the steps of the matrix end: round numbers, so that each step holds about as many."""
    found = sorted(pair.error for pair in pairs if pair.error is not None)
    if not found:
        return ()
    ends = [found[min(len(found) - 1, len(found) * (i + 1) // HEAT)] for i in range(HEAT)]
    rounded = [_ceil(end) for end in ends[:-1]] + [_ceil(found[-1])]
    return tuple(max(rounded[: i + 1]) for i in range(HEAT))


def _ceil(value: float) -> float:
    if value <= 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value)) / 2
    return round(math.ceil(value / unit - 1e-9) * unit, 12)


def matrix(names: Sequence[str], pairs: Sequence[Pair], title: str) -> Html:
    """Half a matrix: one square for each pair, darker for a larger error."""
    ends = scale(pairs)
    numbers = len(names) <= 18
    size = 44 if numbers else max(8, min(24, 720 // len(names)))
    left = min(170, 8 + 7 * max(len(_short(name, 22)) for name in names)) if size >= 12 else 8
    squares: list[Html] = []
    texts: list[Html] = []
    for pair in pairs:
        i, j = pair.clique
        x, y = left + i * size, (j - 1) * size
        told = f"{pair.names[0]} × {pair.names[1]}: {_told(pair)}"
        if pair.error is None:
            squares.append(_square(x, y, size, None, told))
            continue
        step = next(k for k, end in enumerate(ends) if pair.error <= end * (1 + 1e-9))
        squares.append(_square(x, y, size, step, told))
        if numbers:
            texts.append(
                tag("text", f"{100 * pair.error:.2g}", x=x + size / 2, y=y + size / 2 + 4,
                    text_anchor="middle", class_=f"t{step}")
            )  # fmt: skip
        if pair.measured == "":
            texts.append(
                tag("circle", cx=x + size - 6, cy=y + 6, r=2.5 if numbers else 1,
                    class_=f"t{step}")
            )  # fmt: skip
    if size >= 12:
        for k, name in enumerate(names[1:]):
            y = k * size + size / 2 + 4
            texts.append(tag("text", _short(name, 22), x=left - 6, y=y, text_anchor="end"))
        for k, name in enumerate(names[:-1]):
            x, y = left + k * size + size / 2 + 4, (len(names) - 1) * size + 8
            texts.append(
                tag("text", _short(name, 22), transform=f"translate({x:g} {y:g}) rotate(-60)",
                    text_anchor="end")
            )  # fmt: skip
    height = (len(names) - 1) * size + (
        min(130, 5.4 * max(map(len, names)) + 14) if size >= 12 else 4
    )
    width = left + (len(names) - 1) * size
    known = [pair for pair in pairs if pair.error is not None]
    words = "No errors are known."
    if known:
        worst = max(known, key=lambda pair: pair.error or 0)
        words = (
            f"{len(known)} pairs; the largest is {percent(worst.error or 0)}, of "
            f"{worst.names[0]} and {worst.names[1]}. All of them are in the table below"
        )
    picture = _picture(title, words, squares, texts, box=(width, height), class_="pairs")
    least = f"--least:{min(width, 620):.0f}px;--most:{width:.0f}px"
    return tag("div", picture, class_="matrix scroll", style=least, tabindex="0", role="group",
               aria_label=title)  # fmt: skip


def _square(x: float, y: float, size: float, step: int | None, told: str) -> Html:
    inner = size - 2 if size > 12 else size - 1
    look = "grid" if step is None else f"h{step}"
    return tag("rect", tag("title", told), x=f"{x + 1:g}", y=f"{y + 1:g}", width=f"{inner:g}",
               height=f"{inner:g}", rx=3 if size > 12 else 0, class_=look)  # fmt: skip


def _told(pair: Pair) -> str:
    error = "no error stated" if pair.error is None else percent(pair.error)
    return f"{error}, {'model alone' if pair.measured == '' else 'measured'}"


def legend(pairs: Sequence[Pair]) -> Html:
    """Colours of the matrix, and the dot for what is model alone."""
    ends = scale(pairs)
    items: list[Html] = []
    for step, end in enumerate(ends):
        if step and end == ends[step - 1]:
            continue
        swatch = tag(
            "svg", tag("rect", width=22, height=12, y=1, rx=2, class_=f"h{step}"),
            aria_hidden="true",
        )  # fmt: skip
        items.append(tag("li", swatch, f"up to {percent(end)}"))
    if any(pair.measured == "" for pair in pairs):
        dot = tag("svg", tag("circle", cx=11, cy=7, r=3, fill="currentColor"), aria_hidden="true")
        items.append(tag("li", dot, "not measured: model alone"))
    return join(tag("ul", items, class_="key"))


# Training


def curves(panel: Panel) -> Html:
    """Lines against steps, from zero on; the limit is dashed."""
    values = [v for curve in panel.curves for v in curve.values]
    limit = [] if panel.limit is None else [panel.limit]
    least, most = min([*values, 0.0]), max([*values, *limit, 1e-9])
    first = min(curve.steps[0] for curve in panel.curves)
    last = max(curve.steps[-1] for curve in panel.curves)
    top, base = 14, 14 + _TALL

    def x(step: int) -> float:
        return _WIDTH * (step - first) / max(last - first, 1)

    def y(value: float) -> float:
        return base - _TALL * (value - least) / (most - least)

    drawn: list[Html] = []
    for j, curve in enumerate(panel.curves):
        points = zip(curve.steps, curve.values, strict=True)
        path = "L".join(f"{x(step):.1f} {y(value):.1f}" for step, value in points)
        drawn.append(tag("path", d=f"M{path}", class_=f"curve c{j % CURVES}"))
    if panel.limit is not None:
        drawn.append(tag("path", d=f"M0 {y(panel.limit):.1f}H{_WIDTH}", class_="limit"))
    above = f"{number(most)} promised" if panel.limit == most else number(most)
    texts = [
        tag("text", above, x=0, y=10, class_="soft"),
        tag("text", f"step {first:,}", x=0, y=base + 15, class_="soft"),
        tag("text", f"{last:,}", x=_WIDTH, y=base + 15, text_anchor="end", class_="soft"),
    ]
    if least < 0:
        texts.append(tag("text", number(least), x=_WIDTH / 2, y=base + 15, class_="soft",
                         text_anchor="middle"))  # fmt: skip
    frame = f"M0 {top}H{_WIDTH}M0 {y(0):.1f}H{_WIDTH}"
    told = "; ".join(_course(curve) for curve in panel.curves)
    if panel.limit is not None:
        told += f"; {number(panel.limit)} was promised"
    return _picture(
        f"{panel.title} against critic steps", told, tag("path", d=frame, class_="grid"),
        drawn, texts, box=(_WIDTH, base + 20), class_="chart",
    )  # fmt: skip


def _course(curve: Curve) -> str:
    start, end = number(curve.values[0]), number(curve.values[-1])
    return (
        f"{curve.name}: {start} at step {curve.steps[0]:,}, {end} at step {curve.steps[-1]:,}, "
        f"between {number(min(curve.values))} and {number(max(curve.values))}"
    )


def names(panel: Panel) -> Html | None:
    """Which line is which, where there are several."""
    if len(panel.curves) < 2:
        return None
    items = [
        tag(
            "li",
            tag("svg", tag("path", d="M0 7H22", class_=f"curve c{j % CURVES}"), aria_hidden="true"),
            curve.name,
        )
        for j, curve in enumerate(panel.curves)
    ]
    return tag("ul", items, class_="key")
