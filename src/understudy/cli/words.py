"""Numbers, tables and bars as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from understudy.cli import shell
from understudy.units import Unit
from understudy.units import scope as scope_of
from understudy.wording import domain

if TYPE_CHECKING:
    from understudy.schema import Column


def as_json(value: Any) -> None:
    """For machines: nothing but JSON on stdout."""
    shell.say(json.dumps(value, indent=2, ensure_ascii=False))


def table(*headings: str, right: Iterable[str] = ()) -> Table:
    """A plain table: headings, a rule, no frame."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        grid.add_column(heading, justify="right" if heading in set(right) else "left")
    return grid


def facts(pairs: Sequence[tuple[str, str | Text]]) -> None:
    """Names on the left, what they are on the right; nothing where there are none."""
    if not pairs:
        return
    console, width = shell.out(), max(len(name) for name, _ in pairs)
    if not console.is_terminal:  # one whole line each, for other programs
        for name, value in pairs:
            shell.say(f"  {name:<{width}}  {value}")
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=width + 2, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(f"  {name}", style="dim"), value)
    console.print(grid)


def warning(told: object) -> list[tuple[str, str | Text]]:
    """The line that warns, where there is something to warn of."""
    return [] if told is None else [("warning", Text(str(told), style="yellow"))]


def scope(unit: Unit | None, *, brief: bool = False) -> list[tuple[str, str | Text]]:
    """The line that says what figures are about, where that is not simply all rows."""
    told = scope_of(unit, brief=brief)
    return [] if told is None else [("figures are of", Text(told, style="yellow"))]


def bullets(lines: Iterable[str]) -> None:
    """A list; each line whole where nobody is watching."""
    console, grid = shell.out(), Table.grid(padding=(0, 1, 0, 0))
    for line in lines:
        if console.is_terminal:
            grid.add_row("•", line)
        else:
            shell.say(f"• {line}")
    if console.is_terminal:
        console.print(grid)


def next_commands(*lines: str) -> None:
    """What to run next, each on a line of its own."""
    shell.say(("\nNext", "bold"))
    for line in lines:
        shell.say(f"  {line}")


def entries(count: int) -> str:
    """Of a ledger whose hash chain was checked."""
    return f"{count:,} {'entry' if count == 1 else 'entries'}, hash chain intact"


def bar(share: float, width: int = 30) -> Text:
    """What is left of a whole, as a share."""
    full = min(width, max(0, round(width * share)))
    colour = "green" if share > 0.3 else "yellow" if share > 0 else "red"
    return Text.assemble(("█" * full, colour), ("░" * (width - full), "dim"))


# Schemas


def columns_table(columns: Iterable[Column], *, marks: bool) -> Table:
    """The columns of a schema, one a line."""
    from understudy.schema import Identifier, Modelled

    headings = ["column", "type", "what it may hold", "codes"]
    listed = table(*headings, *(["read from rows"] if marks else []), right=("codes",))
    for column in columns:
        size = f"{column.size:,}" if isinstance(column, Modelled) else "–"
        read = [", ".join(column.read_from_rows) or "–"] if marks else []
        dropped = isinstance(column, Identifier) and column.dropped
        kind = "–" if dropped else column.kind  # "identifier" in the file: it need not be one
        listed.add_row(column.name, kind, domain(column), size, *read)
    return listed
