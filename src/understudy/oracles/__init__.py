"""Best responses to weighted queries over one-hot records. Nothing here meets private data."""

from understudy.oracles.annealed import Annealed
from understudy.oracles.base import Oracle, Proofs
from understudy.oracles.history import History, objective
from understudy.oracles.noise import Law, LazyNoise

__all__ = ["Annealed", "History", "Law", "LazyNoise", "Oracle", "Proofs", "objective"]
