"""What every page is made of."""

from fractions import Fraction

import pytest

from tests.web.conftest import put_table
from understudy.web import site


@pytest.mark.parametrize(
    ("text", "shown"),
    [("2024-01-31T09:05:00+00:00", "31 Jan 2024, 09:05 UTC"), ("no time", "no time")],
)
def test_times_are_for_people(text, shown):
    assert site._when(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(Fraction(1, 3), "0.333333"), ("1e-9", "1e-9"), (2, "2")]
)
def test_epsilons_have_no_needless_digits(value, shown):
    assert site._exact(value) == shown


def test_messages_are_escaped_sentences_with_code_in_backticks():
    said = str(site._prose("give `a < b`, not <b>"))
    assert said == "Give <code>a &lt; b</code>, not &lt;b&gt;."
    for name in ("empty.csv is empty", "epsilon = 0 must be above 0", "diag_1 is left out"):
        assert site._prose(name) == f"{name}."


def test_a_table_has_an_account_once_its_budget_is_declared(custodian):
    put_table(custodian, name="new", epsilon=None)
    put_table(custodian)
    with custodian.site.workspace.ledger() as ledger:
        assert site.account_of(ledger, "new") is None
        account = site.account_of(ledger, "people")
    assert account is not None
    assert account.remains == 1.0


def test_the_address_of_a_style_sheet_changes_with_it(custodian):
    page = custodian.client.get("/tables").text
    assert f"?v={site.static_version()}" in page or site.static_version() in page
