"""Distributions that post-processing fits. Nothing here meets private data."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.models.decomposable import Decomposable
from understudy.models.empirical import Empirical
from understudy.models.measured import Measured, View, simplex
from understudy.models.weighted import Weighted

__all__ = ["Decomposable", "Empirical", "Measured", "View", "Weighted", "from_arrays", "simplex"]

_KINDS = {"decomposable": Decomposable, "empirical": Empirical, "weighted": Weighted}


def from_arrays(
    description: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]
) -> Decomposable | Empirical | Weighted:
    """The model that a description and its arrays stand for."""
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"model kind {kind!r} is not known here; known: {', '.join(_KINDS)}")
    return _KINDS[kind].from_arrays(description, arrays)
