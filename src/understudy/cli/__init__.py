"""The command line: a thin shell over the rooms. Every command is one file.

Exit codes: 0 fine, 1 the work failed, 2 wrong use or input, 130 stopped by Ctrl-C.
Results go to stdout; progress, notes and errors go to stderr.
"""

import atexit
import gc
import sys

# Most objects of a short command are modules, which stay: looking through them again and again is a
# sixth of the time that it takes to start.
gc.set_threshold(200_000, 20, 100)


@atexit.register
def _leave() -> None:
    """At its end a process frees everything at once: looking for cycles first takes 0.1 to 0.2 s.

    DuckDB's and JAX's bindings would report what was not looked through as leaks.
    """
    if not {"duckdb", "jaxlib"} & sys.modules.keys():
        gc.freeze()


from understudy.cli.app import app, main  # noqa: E402

__all__ = ["app", "main"]
