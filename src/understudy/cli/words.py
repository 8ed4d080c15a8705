"""Numbers, tables and bars as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from understudy.schema import Column

__all__ = [
    "as_json",
    "bar",
    "bullets",
    "byte_size",
    "columns_table",
    "domain",
    "duration",
    "facts",
    "number",
    "percent",
    "table",
]

_SHOWN = 6
_WIDEST = 24


def number(value: float | Fraction) -> str:
    """A number with three digits that mean something."""
    value = float(value)
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.3g}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(share: float) -> str:
    """A share, with two digits that mean something."""
    if share < 0.0001:
        return f"{100 * share:.1g} %" if share else "0 %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def byte_size(size: float) -> str:
    """Bytes, in decimal units."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def duration(seconds: float) -> str:
    """Seconds, or minutes, or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def as_json(console: Console, value: Any) -> None:
    """For machines: nothing but JSON on stdout."""
    console.print(json.dumps(value, indent=2, ensure_ascii=False), soft_wrap=True)


def table(*headings: str, right: Iterable[str] = ()) -> Table:
    """A plain table: headings, a rule, no frame."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(heading, justify="right" if heading in set(right) else "left")
    return made


def facts(console: Console, pairs: Sequence[tuple[str, str | Text]]) -> None:
    """Names on the left, what they are on the right."""
    width = max(len(name) for name, _ in pairs)
    if not console.is_terminal:  # one whole line each, for other programs
        for name, value in pairs:
            console.print(Text(f"  {name:<{width}}  ") + Text(str(value)), soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=width + 2, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(f"  {name}", style="dim"), value)
    console.print(grid)


def bullets(console: Console, lines: Iterable[str]) -> None:
    """A list; each line whole where nobody is watching."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    for line in lines:
        if console.is_terminal:
            grid.add_row("•", line)
        else:
            console.print(f"• {line}", soft_wrap=True)
    if console.is_terminal:
        console.print(grid)


def bar(share: float, width: int = 30) -> Text:
    """A share of a whole."""
    full = min(width, max(0, round(width * share)))
    colour = "green" if share < 0.7 else "yellow" if share < 1 else "red"
    return Text.assemble(("█" * full, colour), ("░" * (width - full), "dim"))


# Schemas


def domain(column: Column) -> str:
    """What a column may hold, in a few words."""
    from understudy.schema import Modelled

    nullable = isinstance(column, Modelled) and column.nullable
    return _values(column) + (" or null" if nullable else "")


def _values(column: Column) -> str:
    from understudy.schema import Boolean, Category, Identifier, Incomplete, Text
    from understudy.schema.columns.binned import Binned

    if isinstance(column, Category):
        count = len(column.values)
        words = _listed([str(value) for value in column.values])
        other = "" if column.other is None else " + OTHER"
        return f"{count} {'value' if count == 1 else 'values'}{other}: {words}"
    if isinstance(column, Boolean):
        return "true, false"
    if isinstance(column, Binned):
        cells = "" if column.edges is None and column.bins is None else f" in {column.cells} bins"
        return f"{_point(column.lower)} to {_point(column.upper)}{cells}"
    if isinstance(column, Identifier):
        return "left out" if column.dropped else f"written anew as {column.action}"
    if isinstance(column, Incomplete):
        return f"a {column.wanted}; to fill in: {', '.join(column.missing)}"
    if isinstance(column, Text):
        return "free text, which no release can hold"
    return ""


def _point(value: object) -> str:
    if isinstance(value, (int, float)) and abs(value) >= 10_000:
        return f"{value:,.12g}"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _listed(values: Sequence[str]) -> str:
    shown: list[str] = []
    for value in values[:_SHOWN]:
        if shown and sum(map(len, shown)) + len(value) > _WIDEST:
            break
        shown.append(value if len(value) <= _WIDEST else value[: _WIDEST - 1] + "…")
    return ", ".join(shown) + (", …" if len(shown) < len(values) else "")


def columns_table(columns: Iterable[Column], *, marks: bool) -> Table:
    """The columns of a schema, one a line."""
    from understudy.schema import Modelled

    headings = ["column", "type", "what it may hold", "codes"]
    made = table(*headings, *(["read from rows"] if marks else []), right=("codes",))
    for column in columns:
        size = f"{column.size:,}" if isinstance(column, Modelled) else "–"
        read = [", ".join(column.read_from_rows) or "–"] if marks else []
        made.add_row(
            column.name,
            column.kind,
            domain(column),
            size,
            *read,
        )
    return made
