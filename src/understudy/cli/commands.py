"""Commands that are printed for people to run: as printed, in a fresh shell, they work."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from understudy.wording import quoted

_NAMED = re.compile(r"`understudy (?=[a-z-])")


def program() -> str:
    """How a fresh shell starts the program that runs now: by its name only where PATH finds it."""
    found, started = shutil.which("understudy"), Path(sys.argv[0])
    if started.stem == "understudy" and started.is_file():
        same = found is not None and Path(found).samefile(started)
        return "understudy" if same else quoted(str(started))
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "understudy"
    return f"{quoted(sys.executable)} -m understudy"


def command(*parts: object) -> str:
    """A command line of this program, its parts quoted for a shell where they need it."""
    return " ".join([program(), *(quoted(str(part)) for part in parts)])


def in_prose(text: str) -> str:
    """A message with the commands that it names in backticks as `command` would print them."""
    return _NAMED.sub(lambda _: f"`{program()} ", text)
