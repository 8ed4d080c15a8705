"""Query players: who looks where, and what it costs."""

from understudy.players.query.exponential import ExponentialMechanism
from understudy.players.query.fixed import FixedMarginals
from understudy.players.query.recycling import Recycling
from understudy.players.query.tree import SpanningTree
from understudy.players.query.vertex import NoisyVertex
from understudy.players.query.weights import QueryWeights

__all__ = [
    "ExponentialMechanism", "FixedMarginals", "NoisyVertex", "QueryWeights", "Recycling",
    "SpanningTree",
]  # fmt: skip
