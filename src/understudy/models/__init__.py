"""Distributions that post-processing fits. Nothing here meets private data."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.models.copula import Copula
from understudy.models.decomposable import Decomposable
from understudy.models.empirical import Empirical
from understudy.models.measured import Measured, View, simplex
from understudy.models.weighted import MOST_SWAPS, Weighted

__all__ = ["Decomposable", "Empirical", "Measured", "View", "Weighted", "from_arrays", "simplex"]

_KINDS = ("decomposable", "empirical", "weighted")


def from_arrays(
    description: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]
) -> Decomposable | Empirical | Weighted:
    """The model that a description and its arrays stand for."""
    kind = description.get("kind")
    if kind not in _KINDS:
        raise InputError(f"model kind {kind!r} is not known here; known: {', '.join(_KINDS)}")
    sizes, cliques = description.get("shape"), description.get("cliques", [])
    swaps = description.get("swaps", MOST_SWAPS)  # what all had before they were written down
    if not (isinstance(sizes, list) and isinstance(cliques, list) and isinstance(swaps, int)):
        raise InputError("model description lacks its shape or cliques")
    shape = tuple(int(size) for size in sizes)
    parts = tuple(tuple(int(i) for i in clique) for clique in cliques)
    if kind == "decomposable":
        return Decomposable(shape, parts, tuple(arrays[f"table_{i}"] for i in range(len(parts))))
    codes = tuple(arrays[f"column_{i}"] for i in range(len(shape)))
    if kind == "empirical":
        return Empirical(shape, codes)
    copula = description.get("copula")
    copula = Copula.from_json(copula) if isinstance(copula, dict) else None
    return Weighted(shape, codes, arrays["weights"], parts, swaps, copula)
