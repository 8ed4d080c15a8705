"""Results that are written whole, whatever is pressed meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["undisturbed"]


@contextmanager
def undisturbed() -> Iterator[None]:
    """A short step that Ctrl-C does not cut in two; it takes effect right after."""
    pending: list[int] = []
    kept: dict[int, Any] = {}
    for each in (signal.SIGINT, signal.SIGTERM):
        if callable(signal.getsignal(each)):
            try:
                kept[each] = signal.signal(each, lambda number, frame: pending.append(number))
            except ValueError:  # not the main thread, which no signal reaches
                break
    try:
        yield
    finally:
        for each, handler in kept.items():
            signal.signal(each, handler)
        if pending:
            signal.raise_signal(pending[0])
