"""At most k rows of every privacy unit, chosen where the rows are; `understudy.units` says why.

`Unit` says which, the same on every engine. Rows without a unit are dropped: a row that belongs to
nobody known is protected by nothing but its absence. Here DuckDB's window functions choose, on codes in
memory; of files larger than that, the units are taken in turns, as many at a time as fit.
"""

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Whole
from understudy.units import Unit

ROW_BYTES = 256
"""About what choosing takes in memory for a row, besides its codes."""


def chosen(
    codes: Sequence[NDArray[np.unsignedinteger]], units: pa.Array | pa.ChunkedArray, unit: Unit
) -> Whole:
    """The positions of the rows that count, increasing; at most `unit.kept` for each unit.

    Rows of one unit that are alike are exchangeable: which of them is kept moves no count.
    """
    import duckdb

    names = [f"c{i}" for i in range(len(codes))]
    rows = pa.table(
        [pa.array(np.arange(len(units), dtype=np.int64)), units, *(pa.array(c) for c in codes)],
        names=["i", "u", *names],
    )
    cells, listed = ", ".join(names), " || ',' || ".join(names)
    text = f"$salt || '|' || {listed} || '|' || n || '|' || u"
    with duckdb.connect(":memory:", config={"temp_directory": ""}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("kept", rows)
        found = connection.execute(
            f"""
            WITH many AS (SELECT u FROM kept WHERE u IS NOT NULL GROUP BY u HAVING count(*) > $most),
            numbered AS (
                SELECT i, u, {cells}, row_number() OVER (PARTITION BY u, {cells} ORDER BY i) AS n
                FROM kept SEMI JOIN many USING (u)
            )
            SELECT i FROM kept ANTI JOIN many USING (u) WHERE u IS NOT NULL
            UNION ALL
            SELECT i FROM numbered
            QUALIFY row_number() OVER (PARTITION BY u ORDER BY md5({text}), {cells}, n) <= $most
            """,
            {"salt": unit.salt, "most": unit.kept},
        ).fetchnumpy()["i"]
    return np.sort(np.asarray(found, dtype=np.int64))


def shares(units: pa.Array | pa.ChunkedArray, unit: Unit) -> Whole:
    """What each of the rows that count weighs: ⌊M / s⌋ for each of the s of its unit."""
    encoded = units.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    index = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return unit.max_rows // np.bincount(index)[index] if index.size else index


def turn(units: pa.Array, at: int, turns: int) -> Bools:
    """Which rows belong to units that are looked at in turn `at` of `turns`; none without a unit."""
    encoded = units.dictionary_encode()
    hit = [zlib.crc32(text.encode()) % turns == at for text in encoded.dictionary.to_pylist()]
    index = encoded.indices.fill_null(len(hit)).to_numpy(zero_copy_only=False)
    return np.array([*hit, False])[index]
