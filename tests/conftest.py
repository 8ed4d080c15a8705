"""What every test shares."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.tools import both

both.install()

# The first example pays for imports and busy machines; what property tests judge is never the time.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that fork come first: a process must not fork once JAX has started its threads."""
    items.sort(key=lambda item: item.get_closest_marker("forks") is None)
