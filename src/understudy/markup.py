"""How pages are written.

Pages are built from `tag`, which escapes every text and every attribute it is given; only what is
`Html` already passes as it is. Column names and values come from a schema that somebody else may have
written, so nothing reaches a page in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Child", "Html", "join", "notebook", "table", "tag"]

_VOID = frozenset({"br", "hr", "img", "meta", "link", "input"})


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


Child = str | int | None | Iterable["Child"]
"""What an element may hold: text, which is escaped, `Html`, nothing, or several of these."""


def join(*children: Child) -> Html:
    """Children one after the other."""
    return Html("".join(_parts(children)))


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. `class_` is class, `aria_label` is aria-label; None and False leave one out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str | int):
            yield escape(str(child), quote=False)
        elif child is not None:
            yield from _parts(child)


def table(
    headings: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    caption: str | None = None,
    right: Iterable[int] = (),
    class_: str | None = None,
) -> Html:
    """A table; the first cell of a row is its heading. Columns in `right` hold numbers."""
    numeric = set(right)

    def cell(name: str, place: int, child: Child, scope: str | None = None) -> Html:
        return tag(name, child, class_="n" if place in numeric else None, scope=scope)

    head = tag("tr", [cell("th", i, child, "col") for i, child in enumerate(headings)])
    body = [
        tag(
            "tr", [cell("td" if i else "th", i, c, None if i else "row") for i, c in enumerate(row)]
        )
        for row in rows
    ]
    return tag(
        "table",
        None if caption is None else tag("caption", caption),
        tag("thead", head),
        tag("tbody", body),
        class_=class_,
    )


_CARD = (
    ".understudy{max-width:60em}.understudy table{border-collapse:collapse;font-size:inherit;"
    "margin:.2em 0 .6em}.understudy th,.understudy td{text-align:left!important;"
    "vertical-align:top;padding:.15em 1.2em .15em 0;font-weight:normal}.understudy thead th,"
    ".understudy .facts th{opacity:.7}"
)
"""Notebooks have their own rules for tables; the colours stay the notebook's."""


def notebook(title: str, facts: Sequence[tuple[str, Child]], *more: Child) -> str:
    """A small card for notebooks, in the notebook's own colours: a title, facts, whatever follows."""
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", said)) for name, said in facts]
    return str(
        tag(
            "div",
            tag("style", Html(_CARD)),
            tag("strong", title),
            tag("table", tag("tbody", rows), class_="facts") if rows else None,
            more,
            class_="understudy",
        )
    )
