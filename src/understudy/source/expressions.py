"""Forms as expressions: the encoding of every column, and the packed cell of a marginal.

One compiler for every engine that has columns, comparisons and CASE. An engine offers `Operations`;
what is compiled holds public values alone: bounds, categories, codes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from understudy.columns.forms import BLANKS, Form, Pieces, Words, unit_steps
from understudy.queries.evaluate import Clique, cells

__all__ = ["Operations", "encoded", "packed", "unions"]

JOINT_CELLS = 1 << 16
"""Marginals are counted together where their columns have at most so many cells together."""


_RECENT = 8


class Operations(Protocol):
    """What an engine can do with a column; `x` is one of its own expressions."""

    def missing(self, x: Any, form: Form) -> Any:
        """Whether it is null, or NaN."""
        ...

    def at_least(self, x: Any, start: Any, form: Pieces) -> Any:
        """x ≥ start, in the physical type of the form."""
        ...

    def among(self, x: Any, texts: Sequence[str]) -> Any:
        """Whether it is one of these texts, letter by letter."""
        ...

    def trimmed(self, x: Any, blanks: str) -> Any:
        """Without these characters at either end."""
        ...

    def clamped(self, x: Any, low: int, high: int) -> Any:
        """A whole number, moved into low..high."""
        ...

    def cases(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """CASE WHEN condition THEN code ... ELSE otherwise END."""
        ...

    def whole(self, code: int) -> Any:
        """A code as a 64-bit integer."""
        ...


def encoded(x: Any, form: Form, ops: Operations) -> Any:
    """The code of the value x, as an expression."""
    code = _words(x, form, ops) if isinstance(form, Words) else _pieces(x, form, ops)
    return ops.cases([(ops.missing(x, form), ops.whole(form.missing))], code)


def _pieces(x: Any, form: Pieces, ops: Operations) -> Any:
    if (steps := unit_steps(form)) is not None:
        low, high = steps
        return ops.clamped(x, low, high) - ops.whole(low)

    def between(first: int, last: int) -> Any:
        """The code among pieces first..last, by halving."""
        if first == last:
            return ops.whole(form.codes[first])
        middle = (first + last + 1) // 2
        reached = ops.at_least(x, form.starts[middle - 1], form)
        return ops.cases([(reached, between(middle, last))], between(first, middle - 1))

    return between(0, len(form.starts))


def _words(x: Any, form: Words, ops: Operations) -> Any:
    bare = ops.trimmed(x, BLANKS)
    branches = _listed(x, form.exact, ops)
    if form.missing != form.otherwise or form.trimmed:
        blank = ops.among(x, form.blanks) | ops.among(bare, form.blanks)
        branches.append((blank, ops.whole(form.missing)))
    branches += _listed(bare, form.trimmed, ops)
    return ops.cases(branches, ops.whole(form.otherwise))


def _listed(x: Any, codes: Mapping[str, int], ops: Operations) -> list[tuple[Any, Any]]:
    by_code: dict[int, list[str]] = {}
    for text, code in codes.items():
        by_code.setdefault(code, []).append(text)
    return [(ops.among(x, texts), ops.whole(code)) for code, texts in by_code.items()]


def packed(codes: Sequence[Any], shape: Sequence[int], clique: Clique, ops: Operations) -> Any:
    """The cell of the marginal of `clique` as one integer, as `queries.evaluate` packs it."""
    cell = ops.whole(0)
    for depth, column in enumerate(clique):
        cell = codes[column] if depth == 0 else cell * ops.whole(shape[column]) + codes[column]
    return cell


def unions(shape: Sequence[int], cliques: Sequence[Clique]) -> dict[Clique, list[Clique]]:
    """Cliques that are counted together: the union of each group, and its members.

    A union has at most `JOINT_CELLS` cells, or is itself one of the cliques: so no more comes back
    than a marginal, and nothing as fine as rows. Every clique joins the group that grows least by
    it, of the last few: cliques that begin alike follow each other.
    """
    groups: dict[Clique, list[Clique]] = {}
    recent: list[Clique] = []
    for clique in sorted(set(cliques)):
        best: tuple[int, Clique, Clique] | None = None
        for union in recent:
            joined = tuple(sorted({*union, *clique}))
            size = cells(shape, joined)
            if joined in (union, clique) or size <= JOINT_CELLS:
                grown = size - cells(shape, union)
                if best is None or grown < best[0]:
                    best = (grown, union, joined)
        if best is None:
            joined, members = clique, [clique]
        else:
            joined, members = best[2], [*groups.pop(best[1]), clique]
            recent.remove(best[1])
        if joined in groups:  # two groups have grown into one
            members = [*groups.pop(joined), *members]
            recent = [union for union in recent if union != joined]
        groups[joined] = members
        recent = [*recent[1 - _RECENT :], joined]
    return groups
