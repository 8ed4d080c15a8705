"""Sums over the rows of public random features, with discrete Gaussian noise.

A row adds an integer vector of bounded L2 norm: see `understudy.privacy.random_features`.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import PrivacyError
from understudy.privacy.cost import SampledGaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import Counts, Table, require_cliques
from understudy.privacy.random_features import GRID, RandomFeatures, covers, summed

__all__ = ["Moments"]


@dataclass(frozen=True, slots=True)
class Moments:
    """Noisy sums of all features, in rows."""

    maps: RandomFeatures

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """The norm of a row's features."""
        maps = self.maps
        if type(maps) is not RandomFeatures:  # a subclass might compute longer vectors
            raise PrivacyError(f"features must come as RandomFeatures, got {type(maps).__name__}")
        require_cliques(maps.cliques, facts)
        if maps.shape != facts.shape:
            raise PrivacyError(f"the features speak of {maps.shape} values, not {facts.shape}")
        return Need(
            (SampledGaussian,),
            lambda e: covers(e, maps, facts.relation),
            f"{maps.size} sums of {maps.kind} features on {len(maps.cliques)} marginals",
            (maps.size,),
        )

    def exact(self, rows: Tables, event: SampledGaussian) -> Counts:
        """On the grid of features."""
        return summed(self.maps, rows.sparse(self.maps.cliques))

    def decode(self, drawn: Counts, facts: Facts) -> Table:
        """In rows."""
        return drawn / GRID
