"""Best responses to weighted queries over one-hot records. Nothing here meets private data."""

from understudy.oracles.annealed import Annealed
from understudy.oracles.base import (
    History,
    Law,
    LazyNoise,
    Literal,
    Noise,
    Oracle,
    Proofs,
    Records,
    Split,
    objective,
)

__all__ = [
    "Annealed", "History", "Law", "LazyNoise", "Literal", "Noise", "Oracle", "Proofs", "Records",
    "Split", "objective",
]  # fmt: skip
