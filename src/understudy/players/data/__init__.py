"""Data players: how a distribution learns from released answers."""

from understudy.players.data.ftpl import PerturbedLeader
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
]
