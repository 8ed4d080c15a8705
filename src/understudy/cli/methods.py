"""`understudy methods`: the algorithms that can make a release."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from rich.text import Text

from understudy.cli import shell, words


@shell.guarded
def methods() -> None:
    """List the methods and their public parameters.

    \b
    [bold]Example[/bold]
      understudy release … --method mwem --set rounds=30
    """
    from understudy.game.methods import METHODS, method

    listed = words.table("method", "what it does", "parameters (--set)")
    for name, make in METHODS.items():
        listed.add_row(Text(name, style="bold"), _purpose(make), _parameters(make()))
    shell.out().print(listed)
    shell.say(f"  auto is {method('auto').name}.")


def _purpose(make: Any) -> str:
    """The first sentence of the module that a method is written in."""
    text = (sys.modules[make.__module__].__doc__ or "").strip().split("\n\n")[0]
    line = " ".join(text.split()).rstrip(".")
    # What comes before the colon names the methods of the module; the row does that.
    return line.partition(": ")[2] if line.startswith("`") else line


def _parameters(method: Any) -> str:
    fields = [field for field in dataclasses.fields(method) if field.name != "name" and field.repr]
    return ", ".join(f"{f.name}={_default(getattr(method, f.name))}" for f in fields) or "–"


def _default(value: Any) -> str:
    return (
        "auto" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"
    )
