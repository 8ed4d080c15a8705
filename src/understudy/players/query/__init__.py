"""Query players: who looks where, and what it costs."""

from understudy.players.query.aim import AdaptiveRounds
from understudy.players.query.cells import CellPicker
from understudy.players.query.classes import QueryPicker
from understudy.players.query.exponential import ExponentialMechanism
from understudy.players.query.fixed import FixedMarginals
from understudy.players.query.levels import Level, MarginalLevels
from understudy.players.query.logistic import LogisticCritics
from understudy.players.query.moments import RandomMoments
from understudy.players.query.payoffs import Payoffs
from understudy.players.query.recycling import Recycling
from understudy.players.query.survey import Slot, Survey, Tier
from understudy.players.query.tree import SpanningTree
from understudy.players.query.turns import InTurn, Together
from understudy.players.query.vertex import NoisyVertex
from understudy.players.query.weights import QueryWeights

__all__ = [
    "AdaptiveRounds", "CellPicker", "ExponentialMechanism", "FixedMarginals", "InTurn", "Level",
    "LogisticCritics",
    "MarginalLevels", "NoisyVertex", "Payoffs", "QueryPicker", "QueryWeights", "RandomMoments",
    "Recycling", "Slot", "SpanningTree", "Survey", "Tier", "Together",
]  # fmt: skip
