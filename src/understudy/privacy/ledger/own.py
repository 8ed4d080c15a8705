"""An account for one release that nobody named a ledger for."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from understudy.privacy.ledger.ledger import Ledger

__all__ = ["own_ledger"]


@contextmanager
def own_ledger(place: Path | None = None) -> Iterator[Ledger]:
    """A ledger on disk while the release runs, at `place` or in a folder that is removed afterwards."""
    if place is not None:
        with Ledger(place) as own:
            yield own
        return
    with (
        tempfile.TemporaryDirectory(prefix="understudy-", ignore_cleanup_errors=True) as folder,
        Ledger(Path(folder) / "ledger.db") as own,
    ):
        yield own
