"""A check says what was promised and what was seen; all of them are run in one go."""

import pytest

from understudy.testing.checks import Check, ContractBroken, all_of, require


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
    assert all_of(lambda: iter([fine, fine]))() == 2
    with pytest.raises(ContractBroken):
        all_of(lambda: iter([fine, Check("promise", fails), fine]))()
    assert len(done) == 3
