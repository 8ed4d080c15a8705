"""The public nodes of a graph, and the schema of its edges that follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from understudy.columns import Category
from understudy.columns.base import MOST_CELLS
from understudy.errors import InputError
from understudy.quoting import in_our_words
from understudy.schema.schema import Schema

ENDS = ("source", "target")
PAIR = ("source_block", "target_block")
_ALL = "all"


@dataclass(frozen=True)
class Nodes:
    """Names of nodes and the block that each is in, ordered by block; all of it public.

    A block is anything that is known of a node beforehand: a department, a year, a region.
    """

    names: tuple[str, ...]
    blocks: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.blocks):
            raise InputError(f"{len(self.blocks)} blocks for {len(self.names)} nodes")
        if not 2 <= len(self.names) <= MOST_CELLS:
            raise InputError(
                f"a graph of {len(self.names)} nodes cannot be released; from 2 to {MOST_CELLS:,} can"
            )
        if len(set(self.names)) < len(self.names):  # edges by mistake, perhaps: no name is quoted
            raise InputError("a node is listed more than once; list every node once, and no edges")
        order = np.argsort(np.unique(self.blocks, return_inverse=True)[1], kind="stable")
        object.__setattr__(self, "names", tuple(self.names[i] for i in order))
        object.__setattr__(self, "blocks", tuple(self.blocks[i] for i in order))

    @classmethod
    def of(cls, nodes: int | str | Path | Iterable[object] | Mapping[object, object]) -> Nodes:
        """From a number n (0..n−1), a range "1..34", a file, names, or a mapping of names to blocks.

        A file holds one node a line, and its block after a comma or blanks where blocks are known.
        """
        if isinstance(nodes, bool):
            raise InputError(f"nodes = {nodes!r} must be a number, a range, a file or names")
        if isinstance(nodes, int):
            return cls.of(str(i) for i in range(nodes))
        if isinstance(nodes, str) and (found := _range(nodes)) is not None:
            return cls.of(str(i) for i in found)
        if isinstance(nodes, str | Path):
            return cls._read(Path(nodes))
        if isinstance(nodes, Mapping):
            return cls(tuple(map(str, nodes)), tuple(map(str, nodes.values())))
        names = tuple(map(str, nodes))
        return cls(names, (_ALL,) * len(names))

    @classmethod
    def _read(cls, path: Path) -> Nodes:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"nodes = {str(path)!r} is neither a number, a range such as 1..34, nor a file that "
                f"can be read ({in_our_words(error)})"
            ) from None
        lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
        rows = [line.replace(",", " ").split() for line in lines]
        if {len(row) for row in rows} not in ({1}, {2}):
            raise InputError(
                f"nodes = {str(path)!r}: every line must hold a node, or every line a node and its "
                "block, separated by a comma or blanks"
            )
        blocks = tuple(row[1] if len(row) == 2 else _ALL for row in rows)
        return cls(tuple(row[0] for row in rows), blocks)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The blocks, once each, in the order of the nodes."""
        return tuple(dict.fromkeys(self.blocks))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes every block has."""
        counted = Counter(self.blocks)
        return tuple(counted[kind] for kind in self.kinds)

    @cached_property
    def schema(self) -> Schema:
        """An edge as a row: its two ends and their blocks."""
        ends = (Category(name, self.names) for name in ENDS)
        return Schema((*ends, *(Category(name, self.kinds) for name in PAIR)))


def _range(text: str) -> range | None:
    first, dots, last = text.partition("..")
    if not dots or not (first.strip().isdecimal() and last.strip().isdecimal()):
        return range(int(text)) if text.strip().isdecimal() else None
    return range(int(first), int(last) + 1)
