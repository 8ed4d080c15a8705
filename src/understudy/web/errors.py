"""Refusals of the page's own, and how every error reads there."""

from __future__ import annotations

from understudy.errors import (
    BudgetExhausted,
    BundleError,
    InputError,
    PrivacyError,
    UnderstudyError,
    WorkError,
)


class Missing(InputError):
    """There is nothing of that name; also what a name that cannot be one gets."""


class TooLarge(InputError):
    """More was sent than is taken."""


class Refused(UnderstudyError):
    """Somebody may not do this."""


class NotReady(InputError):
    """No release can be planned before somebody has seen to the schema, at the address `link`."""

    def __init__(self, message: str, link: str = "") -> None:
        super().__init__(message)
        self.link = link


class Busy(WorkError):
    """Too much is waiting already; nothing was begun."""


_USUAL = "This does not work as given"
_KINDS: tuple[tuple[type[UnderstudyError], int, str], ...] = (
    (Missing, 404, "There is nothing here"),
    (TooLarge, 413, "This is too large"),
    (Refused, 403, "This may not be done"),
    (BudgetExhausted, 409, "The budget does not allow this"),
    (NotReady, 409, "The schema is not ready for a release"),
    (PrivacyError, 409, _USUAL),
    (BundleError, 422, "This release cannot be opened"),
    (InputError, 422, _USUAL),
    (Busy, 503, "The web app is busy"),
    (UnderstudyError, 507, _USUAL),
)
"""Kind, status and headline; the first that fits."""


def status_of(error: UnderstudyError) -> int:
    """The status that says what kind of refusal it is."""
    return next(status for kind, status, _ in _KINDS if isinstance(error, kind))


def headline_of(error: UnderstudyError) -> str:
    """What the page says above the message."""
    return next(headline for kind, _, headline in _KINDS if isinstance(error, kind))
