"""What every test shares."""

from __future__ import annotations

import pytest

from tests.tools import both

both.install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that fork come first: a process must not fork once JAX has started its threads."""
    items.sort(key=lambda item: item.get_closest_marker("forks") is None)
