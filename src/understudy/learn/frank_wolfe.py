"""Private Frank-Wolfe on an L1 ball: from noisy vertex to noisy vertex.

    w_{t+1} = w_t + 2/(t+2)·(s_t − w_t),  w_0 = 0,  s_t a vertex ±r·e_j picked privately.

The step at t = 0 is 1, so w_t = 2r/(t(t+1))·A_t with whole numbers A_{t+1} = A_t + (t+1)·(±e_j):
iterates are kept as A_t, exactly, have at most t entries that are not 0, and stay in the ball.

Error over all rows: E F(w_T) − F* ≤ (2Δ/ε0)·ln K + 2·L1·diam²/(T+2), where Δ = c·r·L0/n (c = 1
add-remove, 2 replace), K = 2·outputs·p vertices, diam = 2r, and ε0 is what one pick costs.
"""

from __future__ import annotations

import numpy as np

from understudy.learn.plans import PICK
from understudy.privacy.gate import Gate
from understudy.privacy.losses import Loss
from understudy.privacy.questions.descent import Reals, SteepestVertex, Weights

__all__ = ["frank_wolfe"]


def frank_wolfe(
    gate: Gate, loss: Loss, radius: float, steps: int, *, average: bool = False
) -> Reals:
    """Weights (outputs, width) after `steps` picks; their average over all steps if asked for.

    The average is what the theory of stochastic Frank-Wolfe speaks of, where picks see samples.
    """
    whole = np.zeros((loss.outputs, gate.facts.shape[0]), np.int64)
    total = np.zeros(whole.shape)
    for t in range(steps):
        unit = 2 * radius / (t * (t + 1)) if t else radius
        picked = gate.ask(PICK, SteepestVertex(loss, Weights(whole, unit)))
        whole[picked.output, picked.feature] += (t + 1) * picked.sign
        if average:
            total += Weights(whole, 2 * radius / ((t + 1) * (t + 2))).values
    if average:
        return total / steps
    return Weights(whole, 2 * radius / (steps * (steps + 1))).values
