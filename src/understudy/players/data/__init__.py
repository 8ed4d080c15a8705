"""Data players: how a distribution learns from released answers."""

from understudy.players.data.adaptive import Adaptive, AdaptiveEntropy
from understudy.players.data.ftpl import PerturbedLeader
from understudy.players.data.ftpl_generator import FTPLGenerator
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.data.multiplicative import MultiplicativeWeights
from understudy.players.data.particles import Particles
from understudy.players.data.reconstruction import Reconstruction
from understudy.players.data.response import BestResponse
from understudy.players.data.softmax import SoftmaxResponse

__all__ = [
    "Adaptive",
    "AdaptiveEntropy",
    "BestResponse",
    "FTPLGenerator",
    "MaximumEntropy",
    "MultiplicativeWeights",
    "Particles",
    "PerturbedLeader",
    "Reconstruction",
    "SoftmaxResponse",
]  # fmt: skip
