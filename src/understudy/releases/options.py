"""What somebody chooses about a release: one list of options for every shell that makes one."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from understudy.errors import InputError
from understudy.game.methods import Method
from understudy.privacy.budget import Exact
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation
from understudy.privacy.stores import Place
from understudy.queries import WorkloadLike

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Options:
    """Public, all of them; `prepare` looks at those that a plan follows from.

    epsilon      the budget; or `target_error`, a forecast error for which the least ε is taken, see
                 `epsilon_for`
    target_of    what the target speaks of: "worst" (the worst cell of the workload) or "mean" (the
                 mean total variation of its marginals)
    delta        far below 1/n
    workload     what must come out well and is certified: "marginals:3", `marginals(3)`, a list of
                 column tuples, a file; all pairs by default; other classes of queries are in
                 `understudy.workload`
    purpose      what the rows are for, added to the workload as tables that come first:
                 "model:TARGET", "regression:Y ~ A + B" or "subgroups:COLUMN", or a list of them
    method       "auto" (`maxent`) or another of `understudy methods`; `parameters` are its public
                 settings
    neighbours   "add-remove" or "replace" of one row, or of one unit with all its rows where the
                 schema declares a unit; by default that of the dataset, or "add-remove"
    rows_public  the number of rows, if it may be known; otherwise it is measured and charged
    rows         how many synthetic rows to make, by default as many as there seem to be; a forecast
                 takes it for the number of rows where that is private
    beta         the certificate may fail with this probability
    certificate_share  of the budget
    variations   also certify the total variation of every marginal, for answers with error bars
    key          makes the public randomness (sampling) repeatable; privacy noise takes no seed
    public       rows that anybody may know, in the same schema, for methods that start from such
    ledger       a ledger (a file, or `postgresql://user@host/database`) and `dataset`, a name in it,
                 to count against a total budget; without, the release keeps an account of its own
    expect_head  a head of the dataset (`Ledger.head`) that was kept elsewhere: the release is refused
                 unless the account contains it
    checkpoint   a folder for what is released on the way: the same call with the same folder goes on
                 after a crash, without spending again
    reservation  what the ledger shall call the release, 16 hexadecimal digits; random by default
    """

    epsilon: Exact | None = None
    target_error: float | None = None
    target_of: str = "worst"
    delta: Exact = "1e-9"
    workload: WorkloadLike | None = None
    purpose: str | Sequence[str] | None = None
    method: str | Method = "auto"
    parameters: Mapping[str, Any] | None = None
    neighbours: str | Relation | None = None
    rows_public: int | None = None
    rows: int | None = None
    beta: float = 0.05
    certificate_share: Exact = "0.02"
    variations: bool = False
    key: int | None = None
    public: Any = None
    ledger: Ledger | str | Place | None = None
    dataset: str | None = None
    expect_head: str | None = None
    checkpoint: str | Path | None = None
    reservation: str | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise InputError(f"rows = {self.rows} must be at least 1")
        if (self.ledger is None) != (self.dataset is None):
            raise InputError("ledger and dataset go together: give both, or neither")
        if self.expect_head is not None and self.ledger is None:
            raise InputError("expect_head is of a dataset in a ledger; give ledger and dataset too")

    @property
    def purposes(self) -> tuple[str, ...]:
        """The purposes, none, one or several."""
        if self.purpose is None:
            return ()
        return (self.purpose,) if isinstance(self.purpose, str) else tuple(self.purpose)

    @classmethod
    def of(cls, choices: Mapping[str, Any]) -> Self:
        """From keywords; a name that is not an option is refused with the nearest one that is."""
        for name in choices:
            if name not in _NAMES:
                near = difflib.get_close_matches(name, _NAMES, 1)
                raise InputError(
                    f"{name!r} is not an option of a release"
                    + (f"; did you mean {near[0]!r}?" if near else f": {', '.join(_NAMES)}")
                )
        return cls(**choices)

    @contextmanager
    def account(self) -> Iterator[Ledger | None]:
        """The ledger that was named, open; closed again unless it was given open."""
        if self.ledger is None or isinstance(self.ledger, Ledger):
            yield self.ledger
        else:
            with Ledger(self.ledger) as opened:
                yield opened

    def resolved(self) -> Self:
        """With what the dataset's account decides: relation and public number of rows, if left open.

        Raises:
            LedgerError: The account does not contain `expect_head`.
        """
        with self.account() as ledger:
            if ledger is None or self.dataset is None:
                return replace(self, neighbours=self.neighbours or Relation.ADD_REMOVE)
            if self.expect_head is not None:
                ledger.require_head(self.dataset, self.expect_head)
            known = ledger.dataset(self.dataset)
        rows = known.rows_public if self.rows_public is None else self.rows_public
        return replace(self, neighbours=self.neighbours or known.relation, rows_public=rows)


_NAMES = tuple(field.name for field in dataclasses.fields(Options))


def relation_of(neighbours: str | Relation) -> Relation:
    """The neighbouring relation that somebody named."""
    try:
        return Relation(neighbours)
    except ValueError:
        raise InputError(f"neighbours = {neighbours!r} must be 'add-remove' or 'replace'") from None


def takes_options(function: Function) -> Function:
    """Lets `help` and editors show the options where a function takes them as `**choices`."""
    kept = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    own = {parameter.name for parameter in kept}
    more = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in dataclasses.fields(Options)
        if field.name not in own
    ]
    function.__signature__ = inspect.Signature([*kept, *more])  # type: ignore[attr-defined]
    return function
