"""The privacy room: relations, budgets, costs, accounting, noise, the ledger and the gate.

Review this room first. Everything that is derived from private rows leaves through here, after a
durable charge. It knows nothing of schemas, queries or methods.
"""

from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Gaussian, Laplace, Perturbation, Plan, Selection, Zcdp
from understudy.privacy.exact import ExactCounts
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger, Reservation
from understudy.privacy.noise import Noise, OpenDPNoise, SeededNoise
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive

__all__ = [
    "Budget",
    "Charge",
    "ExactCounts",
    "Gate",
    "Gaussian",
    "Laplace",
    "Ledger",
    "Noise",
    "OpenDPNoise",
    "Perturbation",
    "Plan",
    "Relation",
    "Reservation",
    "SeededNoise",
    "Selection",
    "Sensitive",
    "Zcdp",
]
