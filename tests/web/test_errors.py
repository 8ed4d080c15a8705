"""How errors read on the page."""

import pytest

from understudy.errors import (
    BudgetExhausted,
    BundleError,
    InputError,
    RelationError,
    SchemaError,
    UnderstudyError,
    WorkError,
)
from understudy.web.errors import Busy, Missing, NotReady, Refused, TooLarge, headline_of, status_of


@pytest.mark.parametrize(
    ("kind", "status", "headline"),
    [
        (Missing, 404, "There is nothing here"),
        (TooLarge, 413, "This is too large"),
        (Refused, 403, "This may not be done"),
        (BudgetExhausted, 409, "The budget does not allow this"),
        (NotReady, 409, "The schema is not ready for a release"),
        (RelationError, 409, "This does not work as given"),
        (BundleError, 422, "This release cannot be opened"),
        (SchemaError, 422, "This does not work as given"),
        (InputError, 422, "This does not work as given"),
        (Busy, 503, "The web app is busy"),
        (WorkError, 507, "This does not work as given"),
        (UnderstudyError, 507, "This does not work as given"),
    ],
)
def test_every_kind_has_a_status_and_a_headline(kind, status, headline):
    assert (status_of(kind("x")), headline_of(kind("x"))) == (status, headline)
