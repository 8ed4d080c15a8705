"""Query players: who looks where, and what it costs."""

from understudy.players.query.aim import AdaptiveRounds
from understudy.players.query.fixed import FixedMarginals, InTurn, Together
from understudy.players.query.picking import (
    CellPicker,
    ExponentialMechanism,
    NoisyVertex,
    QueryPicker,
)
from understudy.players.query.querygan import LogisticCritics, Payoffs, RandomMoments
from understudy.players.query.recycling import Recycling
from understudy.players.query.survey import Opening, Slot, Survey, Tier, WorstAgain
from understudy.players.query.tree import SpanningTree
from understudy.players.query.weights import QueryWeights

__all__ = [
    "AdaptiveRounds",
    "CellPicker",
    "ExponentialMechanism",
    "FixedMarginals",
    "InTurn",
    "LogisticCritics",
    "NoisyVertex",
    "Opening",
    "Payoffs",
    "QueryPicker",
    "QueryWeights",
    "RandomMoments",
    "Recycling",
    "Slot",
    "SpanningTree",
    "Survey",
    "Tier",
    "Together",
    "WorstAgain",
]
