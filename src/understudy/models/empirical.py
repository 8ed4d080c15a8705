"""A distribution given by listed records, equally weighted: what oracle-efficient methods end with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Codes, Rng, Table
from understudy.errors import InputError
from understudy.models import _kernels as kernels
from understudy.models.measured import View

_MAX_CELLS = 10**8


@dataclass(frozen=True, eq=False)
class Records(View):
    """Encoded records, one code array per column, kept in the smallest type that holds its codes."""

    shape: tuple[int, ...]
    codes: tuple[Codes, ...]

    def __post_init__(self) -> None:
        if len(self.codes) != len(self.shape):
            raise InputError(f"{len(self.codes)} columns of codes for {len(self.shape)} columns")
        size = np.size(self.codes[0])
        packed: list[Codes] = []
        for column, (codes, values) in enumerate(zip(self.codes, self.shape, strict=True)):
            array = np.asarray(codes)
            if array.shape != (size,) or size == 0:
                raise InputError("a model of records needs at least one, in columns of one length")
            if not np.issubdtype(array.dtype, np.integer):
                raise InputError(f"column {column} of the model does not hold codes")
            if int(array.min()) < 0 or int(array.max()) >= values:
                raise InputError(f"column {column} of the model leaves its domain")
            packed.append(array.astype(np.min_scalar_type(values - 1)))
        object.__setattr__(self, "codes", tuple(packed))

    @property
    def size(self) -> int:
        """How many records."""
        return int(self.codes[0].size)

    def tabulated(self, clique: Clique, weights: NDArray[Any] | None = None) -> NDArray[Any]:
        """How many records, or which weight of them, every cell has; axes in the order of `clique`."""
        shape = tuple(self.shape[i] for i in clique)
        cells = math.prod(shape)
        if cells > _MAX_CELLS:
            raise InputError(f"the marginal of columns {clique} has {cells:.1e} cells: too many")
        packed = np.zeros(self.size, np.uint32)
        for at, column in enumerate(clique):
            if at:
                packed *= np.uint32(self.shape[column])
            packed += self.codes[column]
        if weights is None:
            return np.bincount(packed, minlength=cells).reshape(shape)
        parts = kernels.parts(cells)
        kernels.weigh(packed, weights, parts)
        return parts.sum(axis=0).reshape(shape)


@dataclass(frozen=True, eq=False)
class Empirical(Records):
    """The uniform distribution over a multiset of records."""

    @classmethod
    def of(cls, shape: tuple[int, ...], records: NDArray[np.integer[Any]]) -> Empirical:
        """From one record a row."""
        types = [np.min_scalar_type(size - 1) for size in shape]
        return cls(shape, tuple(records[:, i].astype(t) for i, t in enumerate(types)))

    def marginal(self, clique: Clique) -> Table:
        """Shares of the records, axes in the order of `clique`."""
        return self.tabulated(clique) / self.size

    def sample(self, rows: int, rng: Rng) -> list[Codes]:
        """Every record equally often, up to one; the rest drawn without replacement."""
        times, rest = divmod(rows, self.size)
        extra = rng.permutation(self.size)[:rest]
        which = np.concatenate([np.tile(np.arange(self.size), times), extra])
        which = rng.permutation(which)
        return [column[which] for column in self.codes]

    def to_arrays(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """(description, arrays)."""
        description: dict[str, object] = {"kind": "empirical", "shape": list(self.shape)}
        return description, {f"column_{i}": codes for i, codes in enumerate(self.codes)}
