"""A report that can only be read: no script, nothing that is loaded, nothing that acts.

A report travels in a release and is opened in a browser. What it may consist of is part of the format
(docs/bundle.md, "The report"), and narrow: the fixed `HEAD`, then text, and tags of one form with names
and attributes from short lists. Every other `<` is refused, so there is nothing that a browser could
read otherwise than we do: no comment, no unquoted attribute, no tag that is left open. The policy in
`HEAD` tells the browser the same once more.
"""

from __future__ import annotations

import re

from understudy.errors import BundleError

NAME = "report.html"
HEAD = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark">'
)
"""What every report begins with: its encoding, and that a browser may load and run nothing."""

TAGS = frozenset(
    re.findall(
        r"\S+",
        """a body caption circle code dd desc details div dl dt figcaption figure footer h1 h2 h3 head
        header html li line main p path pre rect section span strong style summary svg table tbody td
        text th thead title tr ul""",
    )
)
ATTRIBUTES = frozenset(
    re.findall(
        r"\S+",
        """aria-hidden aria-label aria-labelledby class cx cy d fill height href id r role rx scope
        style tabindex text-anchor transform viewBox width x x1 x2 y y1 y2""",
    )
)
FUNCTIONS = frozenset({"min", "minmax", "nth-child", "repeat", "rotate", "translate", "var"})
"""Of style sheets and drawings; none of them names a place to load from."""
RULES = frozenset({"@media", "@page"})

_OF_TEXT = ("style", "title")
_TAG = re.compile(r'<(/?)([a-z][a-z0-9]*)((?: [A-Za-z0-9-]+="[^"<>]*")*)>')
_ATTRIBUTE = re.compile(r' ([A-Za-z0-9-]+)="([^"<>]*)"')
_CALL = re.compile(r"(?<![\w-])([\w-]+)\(")
_AT = re.compile(r"@[\w-]*")


def require_static(data: bytes) -> None:
    """Raise `BundleError` unless the page is of the form that docs/bundle.md gives a report."""
    try:
        page = data.decode("utf-8")
    except UnicodeDecodeError:
        raise BundleError(f"{NAME} is not UTF-8") from None
    if not page.startswith(HEAD):
        raise BundleError(f"{NAME} does not begin as a report does")
    if "\0" in page:
        raise BundleError(f"{NAME} holds a null character")
    at, opened = len(HEAD), ""
    known: set[str] = set()
    while (start := page.find("<", at)) >= 0:
        tag = _TAG.match(page, start)
        if tag is None:
            raise BundleError(f"{NAME} holds {page[start : start + 40]!r}, which is no plain tag")
        if opened == "style":
            _require_plain(page[at:start], "a style sheet")
        if opened and tag[0] != f"</{opened}>":
            raise BundleError(f"{NAME} holds {tag[0][:40]!r} inside of <{opened}>")
        if tag[0] not in known:
            _require_known(tag)
            known.add(tag[0])
        opened = tag[2] if tag[2] in _OF_TEXT and not tag[1] else ""
        at = tag.end()
    if opened:
        raise BundleError(f"{NAME} ends inside of <{opened}>")


def _require_known(tag: re.Match[str]) -> None:
    closing, name, attributes = tag.groups()
    if name not in TAGS or (attributes and (closing or name in _OF_TEXT)):
        raise BundleError(f"{NAME} holds {tag[0][:40]!r}, which is not for a report")
    for attribute, value in _ATTRIBUTE.findall(attributes):
        if attribute not in ATTRIBUTES:
            raise BundleError(f"{NAME} holds the attribute {attribute[:40]!r} of <{name}>")
        if attribute == "href" and not value.startswith("#"):
            raise BundleError(f"{NAME} refers to {value[:40]!r}, outside of itself")
        if attribute != "aria-label":
            _require_plain(value, attribute)


def _require_plain(text: str, where: str) -> None:
    """Nothing that loads, and nothing that is written so as not to be seen."""
    unknown = set(_CALL.findall(text)) - FUNCTIONS
    unknown |= set(_AT.findall(text)) - RULES | {"&", "\\"} & set(text)
    if unknown:
        raise BundleError(f"{NAME} holds {min(unknown)[:40]!r} in {where}")
