"""A reservation charges its plan, draw by draw, and nothing else."""

import pytest

from tests.privacy.ledger.test_books import assert_spent_rho
from tests.privacy.ledger.test_ledger import kinds, pure_plan, reserve
from understudy.errors import BudgetExhausted, LedgerError, PrivacyError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Discovery, Gaussian, Laplace, Plan, Selection, Zcdp
from understudy.privacy.ledger import Ledger


def test_a_charge_returns_the_event_of_the_plan(ledger):
    plan = Plan((Charge("a", Selection(90.0, k=2)), Charge("b", Laplace(40.0), times=2)))
    reservation = reserve(ledger, plan=plan)
    assert reservation.charge("a") == Selection(90.0, k=2)
    assert reservation.charge("b") == Laplace(40.0)
    assert reservation.charge("b") == Laplace(40.0)
    for purpose in ("a", "b"):
        with pytest.raises((LedgerError, BudgetExhausted), match=purpose):
            reservation.charge(purpose)
    assert kinds(ledger).count("charge") == 3


def test_an_unknown_purpose_is_refused(ledger):
    reservation = reserve(ledger)
    with pytest.raises(LedgerError, match="measure"):
        reservation.charge("measure")
    assert "charge" not in kinds(ledger)


@pytest.mark.parametrize("outcome", ["finished", "aborted"])
def test_a_settled_reservation_is_closed(ledger, outcome):
    reservation = reserve(ledger)
    reservation.settle(outcome)
    with pytest.raises(LedgerError):
        reservation.charge("count")
    assert kinds(ledger) == ["open", "reserve", "settle"]
    assert ledger.entries("people")[-1].body["outcome"] == outcome


def test_the_context_aborts_on_an_exception(ledger):
    with pytest.raises(ZeroDivisionError), reserve(ledger) as reservation:
        1 / 0  # noqa: B018
    assert ledger.entries("people")[-1].body["outcome"] == "aborted"
    with pytest.raises(LedgerError):
        reservation.charge("count")


def test_the_context_aborts_without_settle_and_keeps_a_settle(ledger):
    with reserve(ledger):
        pass
    assert ledger.entries("people")[-1].body["outcome"] == "aborted"
    with reserve(ledger) as reservation:
        reservation.settle("finished")
    assert ledger.entries("people")[-1].body["outcome"] == "finished"


def test_a_filter_is_drawn_down_and_no_further(zledger):
    plan = Plan((Charge("adaptive", Zcdp(0.01)), Charge("fixed", Gaussian(100.0))))
    reservation = reserve(zledger, Budget.of("0.9", "1e-9"), plan)
    draw = Gaussian(10.0)  # rho 0.005
    assert reservation.charge("adaptive", draw) == draw
    assert reservation.charge("adaptive", draw) == draw
    with pytest.raises(LedgerError):
        reservation.charge("adaptive", Gaussian(1e6))
    with pytest.raises(PrivacyError):
        reservation.charge("fixed", Gaussian(1e6))  # another event than the one reserved
    reservation.settle("finished")
    assert_spent_rho(zledger, 2 * accounting.rho(draw))


def test_a_filter_refuses_one_draw_that_is_too_large(ledger):
    plan = Plan((Charge("adaptive", Zcdp(0.00001)),))
    reservation = reserve(ledger, plan=plan)
    with pytest.raises(LedgerError):
        reservation.charge("adaptive", Gaussian(200.0))
    assert "charge" not in kinds(ledger)


def test_a_filter_of_rho_pays_for_no_delta(ledger):
    """A discovery costs δ by itself, which a filter does not hold, however small its ρ is."""
    shown = Discovery(1000.0, 3000)
    assert accounting.rho(shown) < 0.00001 < shown.delta
    reservation = reserve(ledger, plan=Plan((Charge("adaptive", Zcdp(0.00001)),)))
    with pytest.raises(LedgerError):
        reservation.charge("adaptive", shown)
    with pytest.raises(PrivacyError, match="costs more than its filter allows"):
        reservation.refine("adaptive", Plan((Charge("values", shown),)), {})
    assert set(kinds(ledger)) == {"open", "reserve"}


def test_noise_that_is_not_private_is_on_record(ledger):
    reserve(ledger, private_noise=True, facts={"method": "x"})
    reserve(ledger, private_noise=False, facts={"method": "x"})
    bodies = [dict(entry.body) for entry in ledger.entries("people") if entry.kind == "reserve"]
    for body in bodies:
        assert body["facts"] == {"method": "x"}
        for own in ("time", "reservation"):
            body.pop(own, None)
    assert bodies[0] != bodies[1]


def test_reservations_have_names_of_their_own(ledger):
    assert (
        len({reserve(ledger, Budget.of("0.01", 0), pure_plan("0.01")).id for _ in range(20)}) == 20
    )


def charges_seen(path, name="people"):
    with Ledger(path) as other:
        return [entry.body for entry in other.entries(name) if entry.kind == "charge"]


def test_a_charge_is_seen_by_others_before_it_returns(ledger, path):
    reservation = reserve(ledger, plan=Plan((Charge("a", Laplace(40.0), times=3),)))
    for made in range(1, 4):
        reservation.charge("a")
        assert len(charges_seen(path)) == made
