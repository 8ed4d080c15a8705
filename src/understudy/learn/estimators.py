"""Private linear models with the interface of scikit-learn.

**Guarantee.** What `fit` stores is (ε, δ)-DP for one row under `neighbours`; predictions are
post-processing. Everything that steers a fit is declared or computed from declared facts; every draw is
charged in a ledger before it is made. Privacy noise takes no seed: fitting twice gives two models, and
costs twice. The arrays that `fit` is given are sealed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from understudy.errors import InputError
from understudy.learn.linear import LinearClassifier, LinearModel, LinearRegressor, settings
from understudy.learn.plans import Facts, plan_for, radius_for, rule_for
from understudy.learn.solvers import frank_wolfe, stochastic_descent
from understudy.privacy import accounting
from understudy.privacy.budget import Budget, Exact
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Plan
from understudy.privacy.exact import Examples
from understudy.privacy.features import Box
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger, own_ledger
from understudy.privacy.noise import Noise, OpenDPNoise
from understudy.privacy.relation import Relation
from understudy.releases.options import Options, relation_of

_ONE_OFF = "these rows"


@settings
class _Private(LinearModel):
    """Checks, plans, reserves, learns, closes the account."""

    epsilon: Exact | None = None
    _: KW_ONLY
    solver: str = "sgd"
    delta: Exact | None = None
    steps: int | None = None
    rate: float | None = None
    clip: float | None = None
    delay: int | None = None
    iterate: str = "tail"
    noise: str = "gumbel"
    start: float | None = None
    neighbours: str | Relation = "add-remove"
    rows_public: int | None = None
    ledger: str | Path | None = None
    dataset: str | None = None

    plan_: Plan = field(init=False)
    spent_: accounting.Spent = field(init=False)
    entries_: tuple[Entry, ...] = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from private rows. Charges (ε, δ); what is wrong is said before anything is charged.

        Raises:
            InputError: An option, or the rows, cannot be used; the message names it and the remedy.
            BudgetExhausted: The ledger's dataset has not enough left.
        """
        relation = relation_of(self.neighbours)
        radius = radius_for(self.solver, self.radius, classes=is_classifier(self))
        options = Options(
            epsilon=self.epsilon,
            neighbours=relation,
            rows_public=self.rows_public,
            ledger=self.ledger,
            dataset=self.dataset,
        )
        rows, given = self._rows(X, y)
        box = Box.of(self.bounds, rows.shape[1], intercept=self.fit_intercept)
        loss, targets = self._problem(given, radius)
        n = _public_rows(options, len(rows))
        delta = Fraction(1, n * n) if self.delta is None else self.delta
        options = replace(options, delta=delta, rows_public=n)
        facts = Facts(n, box.width, loss, radius, relation, _budget(options, n))
        rule = rule_for(
            facts,
            self.solver,
            self.steps,
            self.rate,
            self.clip,
            delay=self.delay,
            iterate=self.iterate,
            noise=self.noise,
            start=self.start,
            intercept=self.fit_intercept,
        )
        plan = plan_for(facts, self.solver, rule)
        noise = self._noise()
        with (
            _account(options, facts) as (account, dataset),
            account.reserve(
                dataset,
                facts.budget,
                plan,
                relation=relation,
                private_noise=noise.private,
                facts={"learn": type(self).__name__, "solver": self.solver},
            ) as reservation,
        ):
            examples = Examples.seal(rows, targets, box)
            gate = Gate(examples, reservation, relation, noise)
            problem = gate, facts.loss, n, radius, rule.steps
            if self.solver == "frank-wolfe":
                weights = frank_wolfe(*problem, delay=rule.delay, kept=rule.kept)
            else:
                weights = stochastic_descent(*problem)
            reservation.settle("finished")
            self.entries_ = tuple(reservation.entries())
        self.plan_ = plan
        self.spent_ = accounting.epsilon(plan, facts.budget.delta)
        self.n_iter_ = rule.steps
        return self._set(box, weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # privacy noise takes no seed
        return tags

    def _noise(self) -> Noise:
        return OpenDPNoise()


def _public_rows(options: Options, given: int) -> int:
    """The public n: declared, or, where rows are replaced and n never moves, the table's own."""
    declared = options.rows_public
    if declared is None:
        if options.neighbours is Relation.REPLACE:
            return given
        raise InputError(
            "rows_public is missing: declare about how many rows there are, a public number by "
            "which sums are divided, or use neighbours='replace', which makes it public"
        )
    if isinstance(declared, bool) or not isinstance(declared, int | np.integer) or declared < 2:
        raise InputError(f"rows_public = {declared!r} must be a whole number of at least 2")
    return int(declared)


def _budget(options: Options, n: int) -> Budget:
    if options.epsilon is None:
        raise InputError(
            "epsilon is missing: state the privacy budget, for instance epsilon=1; smaller is "
            "more private"
        )
    budget = Budget.of(options.epsilon, options.delta)
    if budget.delta == 0 or budget.delta >= Fraction(1, n):
        raise InputError(
            f"delta = {options.delta} must be above 0 and below 1/n = {1 / n:.3g}; "
            f"1/n² = {1 / n**2:.3g} is the default"
        )
    return budget


@contextmanager
def _account(options: Options, facts: Facts) -> Iterator[tuple[Ledger, str]]:
    """The ledger and dataset that were given, or an account of the fit's own."""
    with options.account() as named:
        if named is not None and options.dataset is not None:
            yield named, options.dataset
            return
    with own_ledger(_ONE_OFF, facts.budget, facts.relation, facts.rows) as own:
        yield own, _ONE_OFF


@settings
class PrivateLasso(LinearRegressor, _Private):
    """Least squares within an L1 ball, (ε, δ)-DP for one row.

    epsilon        the budget; it must be stated
    bounds         (low, high) of the features, public: numbers, or one per column
    target_bounds  (low, high) of y, public
    radius         the L1 norm of the weights after features and target are scaled to [−1, 1], public
    solver         "sgd" or "frank-wolfe"; frank-wolfe for many features of which few matter
    delta          1/n² by default
    steps, rate, clip   public settings; by default a function of public facts, see `plans`: number
                   of draws, share of rows that each sees (Poisson), norm of a row's gradient (sgd)
    delay, iterate, noise, start   public settings of frank-wolfe, see `plans.rule_for`: 0, "last",
                   "laplace" and 0 are the textbook's steps, iterate, noise and start
    neighbours     "add-remove" (needs `rows_public`) or "replace" (the number of rows is public)
    rows_public    about how many rows there are; sums are divided by it
    ledger, dataset  a ledger file and a dataset in it to charge; without, an account of its own

    After `fit`: `coef_`, `intercept_` (in the features' units), `weights_` (scaled), `plan_`, `spent_`
    and `entries_` (the account, which anyone can check).
    """


@settings
class PrivateLogisticRegression(LinearClassifier, _Private):
    """Logistic regression of two or more classes within an L1 ball, (ε, δ)-DP for one row.

    classes        all labels that may occur, public; or "in y", which declares that the set of labels
                   that occur is public

    More than two classes: the softmax with the last class as reference. Other settings and attributes
    are those of `PrivateLasso`; `radius` is the L1 norm of all weights, features scaled to [−1, 1].
    """
