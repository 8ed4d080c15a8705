"""Tests that others can use: conformance kits, and stand-ins for what they play on.

`check_query_player`, `check_data_player`, `check_method` and `check_source` hold a new part against the
contract of its kind; the `*_checks` generators yield the same checks one by one, named.
"""

from understudy.testing.checks import Check, ContractBroken
from understudy.testing.methods import check_method, method_checks, tiny_design
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
    "ContractBroken",
    "RecordingNoise",
    "SeededNoise",
    "StillNoise",
    "StrictCharges",
    "Tape",
    "TinyCounts",
    "check_data_player",
    "check_method",
    "check_query_player",
    "check_source",
    "data_player_checks",
    "method_checks",
    "query_player_checks",
    "source_checks",
    "tiny_design",
]
