"""From a released model to rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Rng
from understudy.models import Weighted
from understudy.models.copula import copula_of
from understudy.players.base import Model
from understudy.schema import Schema


def together(schema: Schema, model: Model) -> Model:
    """The model, which then also says how values lie together inside wide cells."""
    if not isinstance(model, Weighted) or not schema.wide:
        return model
    facts = zip(schema.shape, schema.ordered, schema.apart, strict=True)
    ordered = [size - apart if order else 0 for size, order, apart in facts]
    rng = np.random.default_rng(0)
    return replace(model, copula=copula_of(model.codes, model.weights, ordered, schema.wide, rng))


def drawn_rows(
    schema: Schema, model: Model, rows: int, key: int
) -> tuple[list[NDArray[Any]], pa.Table]:
    """(codes, rows): what a model gives for a key. The rows of a release are those of its own key.

    A generator of their own, so that whoever has model and key has the rows; docs/bundle.md says how.
    """
    rng = np.random.default_rng(np.random.SeedSequence(key, spawn_key=(0,)))
    return fresh_rows(schema, model, rows, rng)


def fresh_rows(
    schema: Schema, model: Model, rows: int, rng: Rng, first: int = 1
) -> tuple[list[NDArray[Any]], pa.Table]:
    """(codes, rows) of a model, whose values lie together as it says."""
    codes = schema.project(model.sample(rows, rng))
    copula = model.copula if isinstance(model, Weighted) else None
    scores = {} if copula is None else copula.scores(codes, rng)
    return codes, schema.decode(codes, rng, first=first, scores=scores)
