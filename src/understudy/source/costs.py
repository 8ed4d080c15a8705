"""What counting a workload once costs where the rows are: passes over them, and bytes that come back.

Follows from the schema, the workload and an assumed number of rows; nothing is connected to or read.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from understudy.queries.evaluate import Clique, cells
from understudy.source.expressions import unions
from understudy.source.spark import cells_per_pass

__all__ = ["EngineCost", "engine_costs"]

_CELL_BYTES = 16  # a packed cell and its count
_MOST = 10_000


@dataclass(frozen=True)
class EngineCost:
    """One engine: how often it goes over the rows, and what it hands back at most."""

    engine: str
    passes: int
    rows: int
    """Rows gone over, all passes together."""
    bytes_back: int
    """What leaves the engine's process or server: occupied cells. Rows never do."""
    held: int
    """Bytes of encoded rows that this process keeps."""

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def engine_costs(
    shape: Sequence[int], cliques: Sequence[Clique], rows: int
) -> tuple[EngineCost, ...]:
    """For the table in memory, streamed from files by DuckDB, in a database, and on Spark.

    `rows` is an assumption. A method that looks at marginals beyond the workload counts more.
    """
    width = sum(np.min_scalar_type(max(size - 1, 0)).itemsize for size in shape)
    wanted = list(dict.fromkeys(tuple(clique) for clique in cliques))
    # Where there are very many, they are taken as they come: that groups would save a few.
    groups = list(unions(shape, wanted)) if len(wanted) <= _MOST else wanted
    back = sum(_CELL_BYTES * min(rows, cells(shape, union)) for union in groups)
    shared = len(cells_per_pass(shape, groups))
    return (
        EngineCost("memory", 1, rows, 0, rows * width),
        EngineCost("duckdb", 1, rows, 0, 0),
        EngineCost("sql", len(groups), len(groups) * rows, back, 0),
        EngineCost("spark", shared, shared * rows, back, 0),
    )
