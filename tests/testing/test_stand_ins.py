"""Stand-ins are as strict as what they stand for, and tell what was asked of them."""

import numpy as np
import pytest

from tests.exact_privacy import ChoosingNoise, enumerate_transcripts
from understudy.errors import BudgetExhausted, InputError, PrivacyError
from understudy.privacy.cost import Charge, Gaussian, Plan, Zcdp
from understudy.privacy.gate import Gate
from understudy.privacy.questions import RowCount
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import reveal
from understudy.testing import (
    ContractBroken,
    RecordingNoise,
    StillNoise,
    StrictCharges,
    Tape,
    TinyCounts,
)
from understudy.testing.stand_ins import Front

ROWS = [(0, 1), (1, 1), (1, 2)]
PLAN = Plan((Charge("rows", Gaussian(1.0), 2), Charge("allowance", Zcdp(0.5))))


def asked(noise, charges=None, rows=ROWS):
    return Gate(
        TinyCounts((2, 3), rows), charges or StrictCharges(PLAN), Relation.ADD_REMOVE, noise
    )


def test_tiny_counts_are_those_of_the_rows():
    counts = TinyCounts((2, 3), ROWS)
    assert reveal(counts.marginals([()]))[0] == 3
    assert reveal(counts.marginals([(0, 1)]))[0].tolist() == [[0, 1, 0], [0, 1, 1]]
    ((cells, found),) = reveal(counts.sparse([(1,)]))
    assert (cells.tolist(), found.tolist()) == ([1, 2], [2, 1])
    assert [column.tolist() for column in reveal(counts.records())] == [[0, 1, 1], [1, 1, 2]]


def test_a_plan_is_not_passed():
    charges = StrictCharges(PLAN)
    charges.charge("rows")
    charges.charge("rows")
    with pytest.raises(BudgetExhausted, match="all 2 planned draws"):
        charges.charge("rows")
    with pytest.raises(PrivacyError, match="needs the event to draw"):
        charges.charge("allowance")
    charges.charge("allowance", Gaussian(2.0))
    with pytest.raises(BudgetExhausted, match="used up"):
        charges.charge("allowance", Gaussian(1.0))
    assert [purpose for purpose, _ in charges.charged] == ["rows", "rows", "allowance"]


def test_still_noise_adds_nothing_and_another_is_recorded():
    noise = StillNoise()
    assert asked(noise).ask("rows", RowCount()) == 3
    ((kind, values, scale),) = noise.asked
    assert (kind, values.tolist(), scale) == ("gaussian", [3], 1.0)
    recording = RecordingNoise(StillNoise())
    asked(recording).ask("rows", RowCount())
    assert [np.ravel(numbers).tolist() for numbers in recording.released] == [[3]]
    assert not recording.private


def test_given_noise_gives_what_was_given_and_no_more():
    def run(chooser):
        gate = asked(ChoosingNoise(chooser, [np.array([7])]))
        found = gate.ask("rows", RowCount())
        with pytest.raises(InputError, match="cannot be enumerated"):
            gate.ask("rows", RowCount())
        return found

    assert list(enumerate_transcripts(run)) == [7]


def test_a_tape_is_played_again_whatever_the_rows():
    tape = Tape()
    gate, _ = Front.around(asked(StillNoise()), tape)
    assert gate.ask("rows", RowCount()) == 3
    replay = tape.again()
    gate, _ = Front.around(asked(StillNoise(), rows=[]), replay)
    assert not replay.faithful  # nothing was asked yet
    assert gate.ask("rows", RowCount()) == 3
    assert replay.faithful
    with pytest.raises(PrivacyError, match="another question"):
        gate.ask("rows", RowCount())
    assert not replay.faithful


def test_nothing_behind_the_front_is_reached():
    gate, trespasses = Front.around(asked(StillNoise()))
    with pytest.raises(ContractBroken, match="'_rows' of the gate"):
        _ = gate._rows
    assert trespasses == ["_rows"]
