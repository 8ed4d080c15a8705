"""A check says what was promised and what was seen; all of them are run in one go."""

import pytest

from understudy.testing.checks import Check, ContractBroken, require, run_all


def fails():
    require(False, "seen")


def raises():
    raise ZeroDivisionError("by nothing")


def test_a_check_that_is_kept_is_silent_and_has_its_name():
    check = Check("promise", lambda: require(True, "never said"))
    check()
    assert str(check) == "promise"


@pytest.mark.parametrize(
    ("run", "said"),
    [(fails, "promise: seen"), (raises, "promise: raised ZeroDivisionError: by nothing")],
)
def test_whatever_goes_wrong_breaks_the_contract(run, said):
    with pytest.raises(ContractBroken, match=said):
        Check("promise", run)()


def test_all_are_run_up_to_the_first_that_fails():
    done = []
    fine = Check("fine", lambda: done.append(1))
    assert run_all([fine, fine]) == 2
    with pytest.raises(ContractBroken):
        run_all([fine, Check("promise", fails), fine])
    assert len(done) == 3
