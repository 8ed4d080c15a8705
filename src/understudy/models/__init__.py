"""Distributions that post-processing fits. Nothing here meets private data."""

from understudy.models.decomposable import Decomposable
from understudy.models.measured import Measured, simplex

__all__ = ["Decomposable", "Measured", "simplex"]
