"""Data players: how a distribution learns from released answers."""

from typing import TYPE_CHECKING

from understudy._lazy import lazily

if TYPE_CHECKING:
    from understudy.players.data.ftpl import PerturbedLeader, UnitLeader
    from understudy.players.data.ftpl_generator import FTPLGenerator
    from understudy.players.data.maxent import MaximumEntropy
    from understudy.players.data.particles import Particles
    from understudy.players.data.reconstruction import Reconstruction
    from understudy.players.data.response import BestResponse
    from understudy.players.data.universe import MultiplicativeWeights, SoftmaxResponse

__all__ = [
    "BestResponse",
    "FTPLGenerator",
    "MaximumEntropy",
    "MultiplicativeWeights",
    "Particles",
    "PerturbedLeader",
    "Reconstruction",
    "SoftmaxResponse",
    "UnitLeader",
]

__getattr__ = lazily(
    __name__,
    {
        "BestResponse": "response",
        "FTPLGenerator": "ftpl_generator",
        "MaximumEntropy": "maxent",
        "MultiplicativeWeights": "universe",
        "Particles": "particles",
        "PerturbedLeader": "ftpl",
        "Reconstruction": "reconstruction",
        "SoftmaxResponse": "universe",
        "UnitLeader": "ftpl",
    },
)
