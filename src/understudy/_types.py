"""Types that every room speaks of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Clique = tuple[int, ...]
"""Positions of modelled columns, strictly increasing: a marginal."""

Codes = NDArray[np.unsignedinteger[Any]]
"""A column as codes."""

Table = NDArray[np.float64]
"""A table of counts or shares, axes in the order of a clique."""

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Bools = NDArray[np.bool_]

Rng = np.random.Generator
"""Public randomness, from a key: what is drawn with it is never privacy noise."""

Projection = Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]]
"""Moves records that public rules forbid to the nearest that they allow; one code array per column."""
