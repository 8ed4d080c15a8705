"""The privacy room: relations, budgets, costs, accounting, noise, the ledger and the gate.

Review this room first. Everything that is derived from private rows leaves through here, after a
durable charge. It knows nothing of schemas, queries or methods.
"""

from understudy.privacy.budget import Budget
from understudy.privacy.exact import ExactCounts
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation

__all__ = ["Budget", "ExactCounts", "Ledger", "Relation"]
