"""The command line: a thin shell over the rooms. Every command is one file.

Exit codes: 0 fine, 1 the work failed, 2 wrong use or input, 130 stopped by Ctrl-C.
Results go to stdout; progress, notes and errors go to stderr.
"""

from understudy.cli.app import app, main

__all__ = ["app", "main"]
