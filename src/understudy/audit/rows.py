"""Scores of records against synthetic rows and released models; larger means more like a member.

Records are codes, one column of integers per modelled column, as everywhere in understudy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy._types import Floats, Whole
from understudy.errors import InputError
from understudy.players.base import Model

_CELLS = 4_000_000  # of one slice of records × rows
_LEAST = 1e-12


def distance(records: Whole, rows: Whole, shape: Sequence[int], ordered: Sequence[bool]) -> Floats:
    """−(distance to the closest row), Gower's; 0 for a record that is there itself.

    1 for another category, |difference|/(size − 1) for columns with an order, mean over columns.
    """
    _require_some(rows)
    found = np.empty(len(records))
    for part in _slices(len(records), len(rows)):
        apart = np.zeros((part.stop - part.start, len(rows)))
        for column, (size, order) in enumerate(zip(shape, ordered, strict=True)):
            gap = np.abs(records[part, column, None] - rows[None, :, column])
            apart += gap / max(1, size - 1) if order else gap > 0
        found[part] = -apart.min(axis=1) / len(shape)
    return found


def density(records: Whole, rows: Whole, reference: Whole, shape: Sequence[int]) -> Floats:
    """ln of the ratio of two kernel estimates (Aitchison and Aitken's, van Breugel et al. 2023).

    K(x, r) = Π over columns of 1 − λ where they agree, λ/(size − 1) where not, with
    λ = (1 − 1/size)·n^(−2/(4 + columns)), n the number of reference rows, for both.
    """
    _require_some(rows)
    fade = len(reference) ** (-2 / (4 + len(shape)))
    return _log_kernel(records, rows, shape, fade) - _log_kernel(records, reference, shape, fade)


def likelihood(records: Whole, model: Model, cliques: Sequence[tuple[int, ...]]) -> Floats:
    """Σ over marginals of ln p̂(x's cell): the released model asked about every marginal it serves."""
    found = np.zeros(len(records))
    for clique in cliques:
        table = model.marginal(clique)
        found += np.log(np.maximum(table[tuple(records[:, c] for c in clique)], _LEAST))
    return found


def _log_kernel(records: Whole, rows: Whole, shape: Sequence[int], fade: float) -> Floats:
    found = np.empty(len(records))
    for part in _slices(len(records), len(rows)):
        weight = np.ones((part.stop - part.start, len(rows)))
        for column, size in enumerate(shape):
            if size < 2:
                continue
            miss = (1 - 1 / size) * fade
            same = records[part, column, None] == rows[None, :, column]
            weight *= np.where(same, 1 - miss, miss / (size - 1))
        found[part] = np.log(np.maximum(weight.mean(axis=1), np.finfo(float).tiny))
    return found


def _slices(records: int, rows: int) -> list[slice]:
    step = max(1, _CELLS // max(1, rows))
    return [slice(at, min(at + step, records)) for at in range(0, records, step)]


def _require_some(rows: Whole) -> None:
    if len(rows) == 0:
        raise InputError("there are no synthetic rows to compare with")
