"""Private linear models with the interface of scikit-learn.

**Guarantee.** What `fit` stores is (ε, δ)-DP for one row under `neighbours`; predictions are
post-processing. Everything that steers a fit (bounds, classes, radius, number of rows, steps, noise) is
declared or computed from declared facts; every draw is charged in a ledger before it is made. Privacy
noise takes no seed: fitting twice gives two models, and costs twice.

The arrays that `fit` is given are sealed at once; this room sees released numbers only.
"""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from understudy.errors import InputError
from understudy.learn.frank_wolfe import frank_wolfe
from understudy.learn.linear import LinearClassifier, LinearModel, LinearRegressor
from understudy.learn.plans import Facts, descent_plan, picks_plan, require_signal
from understudy.learn.rules import Rule, radius_for, rule_for
from understudy.learn.sgd import stochastic_descent
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

__all__ = ["PrivateLasso", "PrivateLogisticRegression"]

_ONE_OFF = "these rows"


class _Private(LinearModel):
    """Checks, plans, reserves, learns, settles."""

    epsilon: Any
    delta: Any
    solver: str
    steps: int | None
    rate: float | None
    clip: float | None
    neighbours: str | Relation
    rows_public: int | None
    ledger: str | Path | None
    dataset: str | None

    plan_: Plan
    spent_: accounting.Spent
    entries_: tuple[Entry, ...]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from private rows. Charges (ε, δ); what is wrong is said before anything is charged.

        Raises:
            InputError: An option, or the rows, cannot be used; the message names it and the remedy.
            BudgetExhausted: The ledger's dataset has not enough left.
        """
        relation = self._relation()
        radius = radius_for(self.solver, self.radius, classes=is_classifier(self))
        if (self.ledger is None) != (self.dataset is None):
            raise InputError("ledger and dataset go together: give both, or neither")
        rows, given = self._rows(X, y)
        box = Box.of(self.bounds, rows.shape[1], intercept=self.fit_intercept)
        loss, targets = self._problem(given, radius)
        n = self._public_rows(relation, len(rows))
        facts = Facts(n, box.width, loss, radius, relation, self._budget(n))
        rule = rule_for(facts, self.solver, self.steps, self.rate, self.clip)
        plan = (
            picks_plan(facts, rule.steps, rule.rate)
            if self.solver == "frank-wolfe"
            else descent_plan(facts, rule.steps, rule.rate, rule.clip)
        )
        require_signal(facts, plan)
        with ExitStack() as stack:
            account, dataset = self._account(stack, facts)
            noise = self._noise()
            reservation = stack.enter_context(
                account.reserve(
                    dataset,
                    facts.budget,
                    plan,
                    relation=relation,
                    private_noise=noise.private,
                    facts={"learn": type(self).__name__, "solver": self.solver},
                )
            )
            examples = Examples.seal(rows, targets, box)
            gate = Gate(examples, reservation, relation, noise)
            weights = self._learn(gate, facts, rule)
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

    def _learn(self, gate: Gate, facts: Facts, rule: Rule) -> NDArray[np.float64]:
        if self.solver == "frank-wolfe":
            return frank_wolfe(gate, facts.loss, facts.radius, rule.steps, average=rule.rate < 1)
        return stochastic_descent(gate, facts.loss, facts.rows, facts.radius, rule.steps)

    def _noise(self) -> Noise:
        return OpenDPNoise()

    def _relation(self) -> Relation:
        try:
            return Relation(self.neighbours)
        except ValueError:
            raise InputError(
                f"neighbours = {self.neighbours!r} must be 'add-remove' or 'replace'"
            ) from None

    def _public_rows(self, relation: Relation, given: int) -> int:
        """The public n: declared, or, where rows are replaced and n never moves, the table's own."""
        declared = self.rows_public
        if declared is None:
            if relation is Relation.REPLACE:
                return given
            raise InputError(
                "rows_public is missing: declare about how many rows there are, a public number by "
                "which sums are divided, or use neighbours='replace', which makes it public"
            )
        if isinstance(declared, bool) or not isinstance(declared, int | np.integer) or declared < 2:
            raise InputError(f"rows_public = {declared!r} must be a whole number of at least 2")
        return int(declared)

    def _budget(self, n: int) -> Budget:
        if self.epsilon is None:
            raise InputError(
                "epsilon is missing: state the privacy budget, for instance epsilon=1; smaller is "
                "more private"
            )
        budget = Budget.of(self.epsilon, Fraction(1, n * n) if self.delta is None else self.delta)
        if budget.delta == 0 or budget.delta >= Fraction(1, n):
            raise InputError(
                f"delta = {self.delta} must be above 0 and below 1/n = {1 / n:.3g}; "
                f"1/n² = {1 / n**2:.3g} is the default"
            )
        return budget

    def _account(self, stack: ExitStack, facts: Facts) -> tuple[Ledger, str]:
        """The ledger and dataset that were given, or an account of the fit's own."""
        if self.ledger is not None and self.dataset is not None:
            return stack.enter_context(Ledger(self.ledger)), self.dataset
        own = stack.enter_context(own_ledger())
        own.open_dataset(_ONE_OFF, facts.budget, facts.relation, "basic", facts.rows)
        return own, _ONE_OFF


class PrivateLasso(LinearRegressor, _Private):
    """Least squares within an L1 ball, (ε, δ)-DP for one row.

    epsilon        the budget; it must be stated
    bounds         (low, high) of the features, public: numbers, or one per column
    target_bounds  (low, high) of y, public
    radius         the L1 norm of the weights after features and target are scaled to [−1, 1], public
    solver         "sgd" or "frank-wolfe"; frank-wolfe for many features of which few matter
    delta          1/n² by default
    steps, rate, clip   public settings; by default a function of public facts, see `rules`: number
                   of draws, share of rows that each sees (Poisson), norm of a row's gradient (sgd)
    neighbours     "add-remove" (needs `rows_public`) or "replace" (the number of rows is public)
    rows_public    about how many rows there are; sums are divided by it
    ledger, dataset  a ledger file and a dataset in it to charge; without, an account of its own

    After `fit`: `coef_`, `intercept_` (in the features' units), `weights_` (scaled), `plan_`, `spent_`
    and `entries_` (the account, which anyone can check).
    """

    def __init__(
        self,
        epsilon: Exact | None = None,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
        radius: float | None = None,
        solver: str = "sgd",
        delta: Exact | None = None,
        steps: int | None = None,
        rate: float | None = None,
        clip: float | None = None,
        fit_intercept: bool = True,
        neighbours: str = "add-remove",
        rows_public: int | None = None,
        ledger: str | Path | None = None,
        dataset: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.radius = radius
        self.solver = solver
        self.delta = delta
        self.steps = steps
        self.rate = rate
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.neighbours = neighbours
        self.rows_public = rows_public
        self.ledger = ledger
        self.dataset = dataset


class PrivateLogisticRegression(LinearClassifier, _Private):
    """Logistic regression of two or more classes within an L1 ball, (ε, δ)-DP for one row.

    classes        all labels that may occur, public; or "in y", which declares that the set of labels
                   that occur is public

    More than two classes: the softmax with the last class as reference. Other settings and attributes
    are those of `PrivateLasso`; `radius` is the L1 norm of all weights, features scaled to [−1, 1].
    """

    def __init__(
        self,
        epsilon: Exact | None = None,
        *,
        bounds: Any = None,
        classes: Any = None,
        radius: float | None = None,
        solver: str = "sgd",
        delta: Exact | None = None,
        steps: int | None = None,
        rate: float | None = None,
        clip: float | None = None,
        fit_intercept: bool = True,
        neighbours: str = "add-remove",
        rows_public: int | None = None,
        ledger: str | Path | None = None,
        dataset: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.radius = radius
        self.solver = solver
        self.delta = delta
        self.steps = steps
        self.rate = rate
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.neighbours = neighbours
        self.rows_public = rows_public
        self.ledger = ledger
        self.dataset = dataset
