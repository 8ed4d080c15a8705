"""A small binary classifier for attacks: standardised inputs, one hidden layer, Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

__all__ = ["Network", "train"]

Floats = NDArray[np.float64]

_HIDDEN, _EPOCHS, _BATCH, _RATE, _DECAY = 16, 200, 256, 0.01, 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """v·tanh(W(x − mean)/spread + b) + c, the log odds of "member", as scikit-learn fits them."""

    scaler: Any
    classifier: Any

    def score(self, features: Floats) -> Floats:
        """The probability of "member" for every row."""
        return self.classifier.predict_proba(self.scaler.transform(features))[:, 1]


def train(features: Floats, members: NDArray[np.bool_], *, key: int) -> Network:
    """Fit by cross-entropy with weight decay. `key` is public: shadows hold no protected row."""
    if features.ndim != 2 or len(features) != len(members):
        raise InputError(
            f"features {features.shape} and {len(members)} labels do not belong together"
        )
    if members.all() or not members.any():
        raise InputError("the attack's network needs members and others to learn from")
    if not np.isfinite(features).all():
        raise InputError("a feature of the attack is not finite; the model's predictions are not")
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(features)
    batch = min(_BATCH, len(features))
    classifier = MLPClassifier(
        (_HIDDEN,),
        activation="tanh",
        batch_size=batch,  # type: ignore[arg-type]  # its stub knows "auto" alone
        learning_rate_init=_RATE,
        alpha=_DECAY * batch,  # it divides the penalty by the size of a batch
        random_state=int(np.random.default_rng(key).integers(1 << 32)),
    )
    scaled = scaler.transform(features)
    for _ in range(_EPOCHS):  # all of them: an attack has no rows to spare for stopping early
        classifier.partial_fit(scaled, members, classes=[False, True])
    return Network(scaler, classifier)
