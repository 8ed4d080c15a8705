"""Tests that others can use: exact privacy on tiny domains, and conformance kits.

* `exact` compares whole output laws on all neighbours; `game_law` is the law of a whole game
* `check_query_player`, `check_data_player`, `check_method`, `check_source` hold a new part against
  the contract of its kind; the `*_checks` generators yield the same checks one by one, named
"""

from understudy.testing.checks import Check, ContractBroken
from understudy.testing.exact import (
    Chooser,
    ChoosingNoise,
    PrivacyViolation,
    check,
    compare,
    discrete_gaussian_law,
    discrete_laplace_law,
    enumerate_transcripts,
    neighbours,
    product_law,
    unit_neighbours,
)
from understudy.testing.methods import check_method, game_law, method_checks, tiny_design
from understudy.testing.players import (
    check_data_player,
    check_query_player,
    data_player_checks,
    query_player_checks,
)
from understudy.testing.sources import check_source, source_checks
from understudy.testing.stand_ins import (
    RecordingNoise,
    SeededNoise,
    StillNoise,
    StrictCharges,
    Tape,
    TinyCounts,
)

__all__ = [
    "Check",
    "Chooser",
    "ChoosingNoise",
    "ContractBroken",
    "PrivacyViolation",
    "RecordingNoise",
    "SeededNoise",
    "StillNoise",
    "StrictCharges",
    "Tape",
    "TinyCounts",
    "check",
    "check_data_player",
    "check_method",
    "check_query_player",
    "check_source",
    "compare",
    "data_player_checks",
    "discrete_gaussian_law",
    "discrete_laplace_law",
    "enumerate_transcripts",
    "game_law",
    "method_checks",
    "neighbours",
    "product_law",
    "query_player_checks",
    "source_checks",
    "tiny_design",
    "unit_neighbours",
]
