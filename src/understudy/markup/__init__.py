"""How HTML is written: by Jinja2 templates, which escape every text that they are given.

Column names and values come from a schema that somebody else may have written, so nothing reaches a
page in another way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

    from understudy.progress import Progress

__all__ = ["Html", "environment", "notebook", "progress_bars"]


class Html(str):
    """A text that notebooks show as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


@cache
def environment(package: str) -> Environment:
    """The templates of a package, read once; a name that is not defined is an error.

    What Jinja2 compiles is kept where Python keeps the bytecode of this file, if that can be written.
    """
    from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

    kept = Path(__file__).parent / "__pycache__"
    return Environment(
        loader=PackageLoader(package),
        bytecode_cache=FileSystemBytecodeCache(str(kept)) if os.access(kept, os.W_OK) else None,
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def notebook(
    title: str,
    facts: Iterable[tuple[str, str]],
    table: tuple[Sequence[str], Iterable[Sequence[str]]] | None = None,
    fold: str | None = None,
) -> Html:
    """A small card for notebooks, in the notebook's own colours: a title, facts, perhaps a table of
    headings and rows, which `fold` keeps closed under a line of its own."""
    return Html(_own("notebook.html", title=title, facts=facts, table=table, fold=fold))


def progress_bars(stages: Iterable[Progress], part: str) -> Html:
    """Stages as they followed each other; the last may be under way, and `part` says what is done."""
    return Html(_own("progress.html", stages=stages, part=part))


def _own(name: str, **context: Any) -> str:
    return environment("understudy.markup").get_template(name).render(context)
