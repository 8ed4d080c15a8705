"""What may be asked of private rows: each with its guarantee and its exact answer.

A question is a frozen, public request. `need` checks it and says which planned events cover it, `exact`
computes integers from the opened rows, `decode` is post-processing. Only `exact` is privileged, and it
is reviewed for one thing: that a neighbour moves its integers by no more than `need` says.
"""

from understudy.privacy.questions.best_models import BestModels
from understudy.privacy.questions.certificates import (
    VARIATION_GRID,
    TotalVariations,
    WorstError,
    WorstErrorOfRows,
    WorstQueryError,
    variation_step,
)
from understudy.privacy.questions.counts import CellCounts, Marginals, RowCount, ThresholdedErrors
from understudy.privacy.questions.critic import Critic
from understudy.privacy.questions.gradient import NetworkGradient
from understudy.privacy.questions.graphs import Degrees, Triangles
from understudy.privacy.questions.moments import Moments
from understudy.privacy.questions.rejection import BernoulliRejection, Payoff, rejection_scale
from understudy.privacy.questions.requests import GRID, MOST_SYNTHETIC, Cell
from understudy.privacy.questions.selections import (
    LARGEST_WEIGHT,
    PickedCells,
    PickedQueries,
    WorstCell,
    WorstMarginals,
)
from understudy.privacy.questions.values import Values

__all__ = [
    "GRID",
    "LARGEST_WEIGHT",
    "MOST_SYNTHETIC",
    "VARIATION_GRID",
    "BernoulliRejection",
    "BestModels",
    "Cell",
    "CellCounts",
    "Critic",
    "Degrees",
    "Marginals",
    "Moments",
    "NetworkGradient",
    "Payoff",
    "PickedCells",
    "PickedQueries",
    "RowCount",
    "ThresholdedErrors",
    "TotalVariations",
    "Triangles",
    "Values",
    "WorstCell",
    "WorstError",
    "WorstErrorOfRows",
    "WorstMarginals",
    "WorstQueryError",
    "rejection_scale",
    "variation_step",
]
