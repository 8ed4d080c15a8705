"""What attacks learn from shadow runs: laws of a score, a small network, a discriminant.

LiRA, the likelihood-ratio attack (Carlini et al. 2022), has normal laws of a score with and without a
row. Its `scores` and `inside` are arrays of runs × rows: the score of every row under every shadow
model, and whether the row was in its training set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from understudy._types import Bools, Floats
from understudy.errors import InputError

_POOL_BELOW = 64  # Fewer shadows than this on a side give no variance of their own: rows share one
_LEAST = 1e-12


def lira_online(target: Floats, scores: Floats, inside: Bools) -> Floats:
    """ln N(φ; μ_in, s_in²) − ln N(φ; μ_out, s_out²) for every row of a target model, or of several.

    Rows that were always in, or never, have no law to compare with and get 0.
    """
    mean_in, spread_in = _law(scores, inside)
    mean_out, spread_out = _law(scores, ~inside)
    found = _log_normal(target, mean_in, spread_in) - _log_normal(target, mean_out, spread_out)
    return np.where(np.isfinite(found), found, 0.0)


def lira_offline(target: Floats, scores: Floats, inside: Bools) -> Floats:
    """Φ((φ − μ_out)/s_out): how unusual the score is for a model that never saw the row."""
    mean, spread = _law(scores, ~inside)
    found = special.ndtr((target - mean) / np.sqrt(spread))
    return np.where(np.isfinite(found), found, 0.5)


def _law(scores: Floats, chosen: Bools) -> tuple[Floats, Floats]:
    """Mean and variance of every row over the chosen runs; NaN where there is none."""
    count = chosen.sum(axis=0).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(chosen, scores, 0.0).sum(axis=0) / count
        squares = np.where(chosen, (scores - mean) ** 2, 0.0).sum(axis=0)
        own = squares / (count - 1)
    if count.min(initial=np.inf) < _POOL_BELOW:
        several = count > 1
        freedom = float((count[several] - 1).sum())
        pooled = float(squares[several].sum()) / freedom if freedom else np.nan
        own = np.full_like(mean, pooled)
    return mean, np.maximum(own, _LEAST)


def _log_normal(x: Floats, mean: Floats, variance: Floats) -> Floats:
    return -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)


# --- networks ------------------------------------------------------------------------------------

_HIDDEN, _EPOCHS, _BATCH, _RATE, _DECAY = 16, 200, 256, 0.01, 1e-3


def train_network(features: Floats, members: Bools, *, key: int) -> Callable[[Floats], Floats]:
    """The probability of "member" for rows: v·tanh(W(x − mean)/spread + b) + c are its log odds.

    Fitted by cross-entropy with weight decay, to some members and some others. `key` is public:
    shadows hold no protected row.
    """
    if not np.isfinite(features).all():
        raise InputError("a feature of the attack is not finite; the model's predictions are not")
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
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
    return lambda rows: make_pipeline(scaler, classifier).predict_proba(rows)[:, 1]


# --- discriminants --------------------------------------------------------------------------------

_SHRINK = 0.1  # Towards the diagonal, so that few runs and equal features do no harm


def fit_discriminant(vectors: Floats, inside: Bools) -> Callable[[Floats], Floats]:
    """Fisher's: w·(x − middle) of vectors, above 0 where one is nearer to those with the record.

    Learnt from runs with and without it, at least two of each. The best test between two sets of
    vectors that are normal with one covariance, which is what Gaussian noise on counts makes of two
    neighbours. By hand, since scikit-learn's gives no weight to a feature that never moves within a
    class: a mechanism that forgot its noise would look safe.
    """
    with_, without = vectors[inside], vectors[~inside]
    apart = with_.mean(axis=0) - without.mean(axis=0)
    centred = np.vstack([with_ - with_.mean(axis=0), without - without.mean(axis=0)])
    shared = centred.T @ centred / (len(vectors) - 2)
    scale = np.diag(shared)
    floor = np.maximum(scale, max(1e-12, 1e-9 * float(scale.max(initial=0.0))))
    shrunk = (1 - _SHRINK) * shared + np.diag(_SHRINK * scale + (floor - scale))
    middle = (with_.mean(axis=0) + without.mean(axis=0)) / 2
    weights = np.linalg.solve(shrunk, apart)
    return lambda seen: (seen - middle) @ weights
