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
    shape, cliques = description.get("shape"), description.get("cliques", [])
    if not isinstance(shape, list) or not isinstance(cliques, list):
        raise InputError("model description lacks its shape or cliques")
    parts = tuple(tuple(int(i) for i in clique) for clique in cliques)
    return _KINDS[kind].from_arrays(tuple(int(size) for size in shape), parts, arrays)
