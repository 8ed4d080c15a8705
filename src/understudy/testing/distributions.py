"""What every model owes, and what answers may look like: shared by the kits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from inspect import isfunction
from itertools import combinations
from typing import Any

import numpy as np

from understudy._types import Clique
from understudy.models import Measured
from understudy.players.base import (
    Answer,
    Chosen,
    CriticGradient,
    LinearCritic,
    MeasuredCell,
    MeasuredDegrees,
    MeasuredMoments,
    MeasuredTriangles,
    Model,
    PaidOff,
    PickedQuery,
    Problem,
    View,
)
from understudy.privacy.coarsened import Coarsened
from understudy.testing.checks import require

_TOLERANCE = 1e-6


def tiny_problem(shape: tuple[int, ...] = (3, 2, 1, 2), rows: int = 40) -> Problem:
    """All one- and two-way marginals over a few small columns."""
    cliques = tuple(cliques_of(len(shape), 2))
    return Problem(shape, cliques, (1.0,) * len(cliques), rows)


def cliques_of(columns: int, most: int) -> Iterator[Clique]:
    """All of up to `most` columns, the smallest first."""
    for size in range(1, most + 1):
        yield from combinations(range(columns), size)


def require_distribution(view: View, shape: tuple[int, ...], what: str = "the view") -> None:
    """Every marginal of up to three columns: non-negative, sums to one, agrees with the others."""
    tables: dict[Clique, Any] = {}
    for clique in cliques_of(len(shape), 3):
        table = np.asarray(view.marginal(clique))
        sizes = tuple(shape[i] for i in clique)
        require(
            table.shape == sizes,
            f"{what}: marginal {clique} has shape {table.shape}; expected {sizes}",
        )
        require(
            table.dtype == np.float64,
            f"{what}: marginal {clique} holds {table.dtype}; expected float64 shares",
        )
        require(bool(np.isfinite(table).all()), f"{what}: marginal {clique} is not finite")
        require(bool((table >= 0).all()), f"{what}: marginal {clique} has a share below 0")
        total = float(table.sum())
        require(
            abs(total - 1.0) <= _TOLERANCE, f"{what}: marginal {clique} sums to {total!r}, not 1"
        )
        tables[clique] = table
    for clique, table in tables.items():
        for axis, column in enumerate(clique):
            if len(clique) == 1:
                continue
            below = tuple(i for i in clique if i != column)
            off = float(np.abs(table.sum(axis=axis) - tables[below]).max())
            require(
                off <= _TOLERANCE,
                f"{what}: marginal {clique} summed over column {column} is {off:.3g} away from "
                f"marginal {below}; one distribution has one marginal",
            )


def require_rows(codes: Any, shape: tuple[int, ...], rows: int) -> None:
    """Encoded rows: one unsigned integer array per column, of that length, inside the domain."""
    require(
        isinstance(codes, list) and len(codes) == len(shape),
        f"sample({rows}): expected a list of {len(shape)} arrays of codes",
    )
    for position, (column, size) in enumerate(zip(codes, shape, strict=True)):
        where = f"sample({rows}): column {position}"
        require(
            isinstance(column, np.ndarray) and column.shape == (rows,),
            f"{where} has shape {np.shape(column)}; expected ({rows},)",
        )
        require(
            np.issubdtype(column.dtype, np.unsignedinteger),
            f"{where} holds {column.dtype}; expected unsigned integers",
        )
        require(
            rows == 0 or int(column.max()) < size, f"{where} holds a code outside 0..{size - 1}"
        )


def require_model(model: Model, shape: tuple[int, ...]) -> None:
    """A distribution of that shape, that can be sampled repeatably and written down."""
    require(
        tuple(model.shape) == shape, f"the model has shape {tuple(model.shape)}; expected {shape}"
    )
    require_distribution(model, shape, "the model")
    for rows in (0, 1, 7):
        require_rows(model.sample(rows, np.random.default_rng(rows)), shape, rows)
    many = 2_000
    first, again = (model.sample(many, np.random.default_rng(5)) for _ in range(2))
    require_rows(first, shape, many)
    require(
        all(np.array_equal(a, b) for a, b in zip(first, again, strict=True)),
        "sample: the same key gave other rows",
    )
    for i, size in enumerate(shape):
        share = np.bincount(first[i], minlength=size) / many
        off = float(np.abs(share - model.marginal((i,))).max())
        require(
            off <= 5 * math.sqrt(0.25 / many),
            f"sample: column {i} is {off:.3g} away from the model's marginal",
        )
    description, arrays = model.to_arrays()
    json.dumps(description)
    for name, array in arrays.items():
        require(
            isinstance(array, np.ndarray) and array.dtype != object,
            f"to_arrays: {name!r} is not a plain array",
        )


def fingerprint(value: Any) -> Any:
    """Answers, models and arrays as nested tuples that are equal only where every bit is."""
    match value:
        case float():
            return float(value).hex()
        case np.ndarray():
            return (str(value.dtype), value.shape, value.tobytes())
        case tuple() | list():
            return tuple(fingerprint(item) for item in value)
        case _ if isinstance(value, Model):
            description, arrays = value.to_arrays()
            held = tuple((name, fingerprint(arrays[name])) for name in sorted(arrays))
            return (json.dumps(description, sort_keys=True), held)
        case _ if is_dataclass(value) and not isinstance(value, type):
            held = (fingerprint(getattr(value, each.name)) for each in fields(value))
            return (type(value).__name__, *held)
        case _ if hasattr(value, "__array__"):
            return fingerprint(np.asarray(value))
        case _ if isfunction(value):
            return ("function", value.__qualname__)
        case _:
            return value


def _finite(values: Any) -> bool:
    return bool(np.isfinite(values).all())


def _require_clique(clique: Clique, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of its columns."""
    require(
        list(clique) == sorted(set(clique)) and all(0 <= i < len(shape) for i in clique),
        f"answered for {clique}, which are not increasing positions below {len(shape)}",
    )
    return tuple(shape[i] for i in clique)


def require_answer(answer: Answer, shape: tuple[int, ...]) -> None:
    """A released table, a released cell, a query or a critic over legal cliques."""
    require(
        isinstance(answer, Answer),
        f"answered with a {type(answer).__name__}; expected Measured, MeasuredCell, PickedQuery, "
        f"LinearCritic, MeasuredMoments or PaidOff",
    )
    match answer:
        case PaidOff(value=value, scale=scale, rounds=rounds):
            kept = math.isfinite(value) and scale > 0 and rounds > 0
            require(kept, f"answered with a payoff that is not a number with its noise: {answer}")
        case MeasuredMoments(maps=maps, values=values, sigma=sigma):
            for clique in maps.cliques:
                _require_clique(clique, shape)
            require(
                np.shape(values) == (maps.size,) and _finite(values) and sigma > 0,
                f"answered with moments that are not {maps.size} numbers with their noise",
            )
        case LinearCritic(cliques=cliques, tables=tables):
            for clique, table in zip(cliques, tables, strict=True):
                sizes = _require_clique(clique, shape)
                require(
                    np.shape(table) == sizes and _finite(table),
                    f"answered with a critic of {clique} that is not a finite table of shape {sizes}",
                )
        case MeasuredTriangles(sigma=sigma):
            require(0 < sigma < math.inf, "answered with triangles without their noise")
        case MeasuredDegrees(values=values, sigma=sigma):
            require(
                np.ndim(values) == 1 and 0 < sigma < math.inf,
                "answered with degrees that are not a list of counts with their noise",
            )
        case CriticGradient(gradient=gradient):
            require(_finite(gradient), "answered with a gradient that is not finite")
        case Chosen(checkpoints=checkpoints):
            require(bool(checkpoints), "answered with a choice of nothing")
        case Measured(clique=clique, values=values, sigma=sigma, labels=labels):
            sizes = _require_clique(clique, shape)
            sizes = sizes if labels is None else Coarsened(clique, labels).shape
            require(
                np.shape(values) == sizes,
                f"answered for {clique} with a table of shape {np.shape(values)}, not {sizes}",
            )
            require(0 < sigma < math.inf, f"answered for {clique} with sigma = {sigma}")
        case PickedQuery(clique=clique, query=query, sign=sign):
            _require_clique(clique, shape)
            require(
                all(
                    each.column in clique and 0 <= each.low <= each.high < shape[each.column]
                    for each in query.conditions
                ),
                f"answered for a query on {clique} that leaves its columns or their values",
            )
            require(sign in (-1, 1), f"answered for a query on {clique} without a side")
        case MeasuredCell(clique=clique, cell=cell, value=value):
            sizes = _require_clique(clique, shape)
            inside = len(cell.index) == len(sizes) and all(
                0 <= i < n for i, n in zip(cell.index, sizes, strict=False)
            )
            require(inside, f"answered for cell {cell.index} of {clique}, which has shape {sizes}")
            require(
                value is not None or cell.sign in (-1, 1),
                f"answered for cell {cell.index} of {clique} with neither a value nor a side",
            )
