"""For the documentation: parameters of a docstring as a list.

Docstrings here name parameters in two columns,

    rows     how many rows; by default as many
             as there seem to be

which Markdown would run together. This extension of griffe makes a list of such lines.
"""

import re
from typing import Any

import griffe

_NAMED = re.compile(r"^(?P<names>`?\w+`?(?:, `?\w+`?)*)(?P<gap>\s{2,})(?P<words>\S.*)$")


def listed(text: str) -> str:
    """The same text with two-column lines as list items; other lines as they are."""
    lines: list[str] = []
    hang = 0
    for line in text.splitlines():
        match = _NAMED.match(line)
        if match:
            if not hang and lines and lines[-1]:
                lines.append("")
            names = ", ".join(f"`{name.strip('` ')}`" for name in match["names"].split(","))
            lines.append(f"- {names}: {match['words']}")
            hang = match.start("words")
        elif hang and line.startswith(" " * hang):
            lines.append(f"  {line.strip()}")
        else:
            hang = 0
            lines.append(line)
    return "\n".join(lines)


class Parameters(griffe.Extension):
    """Rewrites every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = listed(obj.docstring.value)
