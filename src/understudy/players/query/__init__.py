"""Query players: who looks where, and what it costs."""

from typing import TYPE_CHECKING

from understudy._lazy import lazily

if TYPE_CHECKING:
    from understudy.players.query.aim import AdaptiveRounds
    from understudy.players.query.critic import CriticSteps
    from understudy.players.query.fixed import FixedMarginals, InTurn, Together
    from understudy.players.query.graph import DegreesAndBlocks
    from understudy.players.query.interactions import Interactions
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
    "CriticSteps",
    "DegreesAndBlocks",
    "ExponentialMechanism",
    "FixedMarginals",
    "InTurn",
    "Interactions",
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

__getattr__ = lazily(
    __name__,
    {
        "AdaptiveRounds": "aim",
        "CellPicker": "picking",
        "CriticSteps": "critic",
        "DegreesAndBlocks": "graph",
        "ExponentialMechanism": "picking",
        "FixedMarginals": "fixed",
        "InTurn": "fixed",
        "Interactions": "interactions",
        "LogisticCritics": "querygan",
        "NoisyVertex": "picking",
        "Opening": "survey",
        "Payoffs": "querygan",
        "QueryPicker": "picking",
        "QueryWeights": "weights",
        "RandomMoments": "querygan",
        "Recycling": "recycling",
        "Slot": "survey",
        "SpanningTree": "tree",
        "Survey": "survey",
        "Tier": "survey",
        "Together": "fixed",
        "WorstAgain": "survey",
    },
)
