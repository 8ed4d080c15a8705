"""Numbers, tables and bars as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from understudy.wording import byte_size, domain, duration, number, percent

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
    "next_commands",
    "number",
    "percent",
    "table",
]


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


def next_commands(console: Console, *lines: str) -> None:
    """What to run next, each on a line of its own."""
    console.print(Text("\nNext", style="bold"))
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)


def bar(share: float, width: int = 30) -> Text:
    """A share of a whole."""
    full = min(width, max(0, round(width * share)))
    colour = "green" if share < 0.7 else "yellow" if share < 1 else "red"
    return Text.assemble(("█" * full, colour), ("░" * (width - full), "dim"))


# Schemas


def columns_table(columns: Iterable[Column], *, marks: bool) -> Table:
    """The columns of a schema, one a line."""
    from understudy.schema import Modelled

    headings = ["column", "type", "what it may hold", "codes"]
    made = table(*headings, *(["read from rows"] if marks else []), right=("codes",))
    for column in columns:
        size = f"{column.size:,}" if isinstance(column, Modelled) else "–"
        read = [", ".join(column.read_from_rows) or "–"] if marks else []
        made.add_row(column.name, column.kind, domain(column), size, *read)
    return made
