"""A list of edges as a table that can be counted: one row an edge, with the public blocks of its ends.

Unit: one edge. An edge is an unordered pair of two declared nodes, however often and in whichever
direction its rows name it; loops and pairs with an undeclared end are no edges. So a row that comes or
goes moves at most one edge, and the guarantee for edges holds for rows of the file as well.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.columns.base import near
from understudy.errors import InputError, SourceError
from understudy.schema.nodes import ENDS, PAIR, Nodes
from understudy.source import read
from understudy.source.base import Source, fold
from understudy.source.frames import frame_source

_BARE = (".txt", ".edges", ".edgelist")


def edge_source(edges: Any, nodes: Nodes, ends: tuple[str, str] | None = None) -> Source:
    """The edges of a CSV or Parquet file, of a bare list (.txt: two names a line), or of a frame.

    `ends` names the two columns; by default the first two. Nothing about the rows is told: not a cell
    of them is quoted by an error, and a header that may itself be a row is not quoted either.
    """
    number = {name: at for at, name in enumerate(nodes.names)}
    bare = isinstance(edges, str | Path) and Path(edges).suffix.lower() in _BARE
    cells = _bare(Path(edges)) if bare else _columns(edges, ends)
    at = [
        np.array([-1 if cell is None else number.get(str(cell).strip(), -1) for cell in side], int)
        for side in cells
    ]
    low, high = np.minimum(*at), np.maximum(*at)
    kept = (low >= 0) & (low != high)
    pairs = np.unique(low[kept] * len(nodes.names) + high[kept])
    found = np.divmod(pairs, len(nodes.names))
    labels = np.array(nodes.names, object), np.array(nodes.blocks, object)
    columns = [of[each] for of in labels for each in found]
    made = [pa.array(column.tolist(), pa.string()) for column in columns]
    return frame_source(pa.table(made, names=[*ENDS, *PAIR]), ())


def _columns(edges: Any, ends: tuple[str, str] | None) -> tuple[list[Any], list[Any]]:
    source = read(edges)
    names = source.columns
    if ends is None:
        if len(names) < 2:
            raise InputError("an edge has two ends; the table of edges has one column")
        ends = (names[0], names[1])
    for end, other in (ends, ends[::-1]):
        if end not in names:
            hint = near(end, names) if other in names else ""
            raise InputError(f"ends: there is no column {end!r} in the table of edges{hint}")
    batches = fold(source, ends, list[pa.RecordBatch], list.append)
    first, second = (
        [cell for batch in batches for cell in batch.column(end).to_pylist()] for end in ends
    )
    return first, second


def _bare(path: Path) -> tuple[list[Any], list[Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        raise SourceError(f"{path}: there is no such file") from None
    except OSError:
        raise SourceError(f"{path}: cannot be read") from None
    rows = [line.split() for line in text.splitlines() if line.strip() and line[0] not in "#%"]
    pairs = [row[:2] for row in rows if len(row) > 1]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
