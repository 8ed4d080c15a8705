"""Fifty people read while a release is being made: no error, and pages that cost little."""

import pytest
from bench import web


@pytest.mark.slow
def test_fifty_readers_while_a_release_runs(monkeypatch):
    """Readers who never pause wait for one another alone: fifty times what a page costs.

    That figure, unlike a time by the clock, is the same on a machine that others use too.
    """
    monkeypatch.setattr(web, "ROWS", 5_000)
    seen = web.served(pause=0.0)
    assert seen.wrong == []
    pages = sum(map(len, seen.took.values()))
    assert len(seen.took) == 9
    assert pages > 10 * web.READERS
    assert web.READERS * (seen.server + seen.readers) / pages < 0.2
