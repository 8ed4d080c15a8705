"""What may be asked of private rows: one mechanism a file, with its guarantee and its exact answer.

A question is a frozen, public request. `need` checks it and says which planned events cover it, `exact`
computes integers from the opened rows, `decode` is post-processing. Only `exact` is privileged, and it
is reviewed for one thing: that a neighbour moves its integers by no more than `need` says.
"""

from understudy.privacy.questions.best_models import BestModels
from understudy.privacy.questions.cells import CellCounts, RowCount
from understudy.privacy.questions.certificates import (
    VARIATION_GRID,
    TotalVariations,
    WorstError,
    WorstErrorOfRows,
    WorstQueryError,
    variation_step,
)
from understudy.privacy.questions.critic import Critic
from understudy.privacy.questions.degrees import Degrees
from understudy.privacy.questions.errors import ThresholdedErrors
from understudy.privacy.questions.gradient import NetworkGradient
from understudy.privacy.questions.marginals import Marginals
from understudy.privacy.questions.moments import Moments
from understudy.privacy.questions.payoff import Payoff
from understudy.privacy.questions.picked_cells import PickedCells
from understudy.privacy.questions.picked_queries import Picked, PickedQueries
from understudy.privacy.questions.rejection import BernoulliRejection, rejection_scale
from understudy.privacy.questions.requests import GRID, Cell
from understudy.privacy.questions.triangles import Triangles
from understudy.privacy.questions.values import Values
from understudy.privacy.questions.worst_cell import WorstCell
from understudy.privacy.questions.worst_marginals import LARGEST_WEIGHT, WorstMarginals

__all__ = [
    "GRID",
    "LARGEST_WEIGHT",
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
    "Picked",
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
