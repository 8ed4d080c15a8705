"""Types that every room speaks of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clique", "Codes", "Table"]

Clique = tuple[int, ...]
"""Positions of modelled columns, strictly increasing: a marginal."""

Codes = NDArray[np.unsignedinteger[Any]]
"""A column as codes."""

Table = NDArray[np.float64]
"""A table of counts or shares, axes in the order of a clique."""
