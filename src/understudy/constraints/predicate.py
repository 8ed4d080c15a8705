"""Predicates on rows, such as `age >= 65 and sex = 'F'`, resolved against a schema.

The language is the condition of an SQL `WHERE`:

    comparisons      age >= 65    sex = 'F'    65 <= age    with = == != <> < <= > >=
    of columns       start <= end    (both numbers, or both dates)
    lists, ranges    education in ('BA', 'MA')    sex not in ('F')    age between 18 and 25
    nulls            income is null    income is not null
    booleans         smoker    not smoker    smoker = true
    together         and  or  not  ( )
    columns          age    "marital-status"    `marital-status`
    values           12  -0.5  1e3  'text'  'it''s'  true  false  '2024-02-29' (dates)
    brackets         age >= 60, where values are texts in an order such as '[60-70)' or '60+'

**Nulls follow SQL.** A comparison with a null is unknown; `not` of unknown is unknown; a row counts
only if the whole predicate is true. So `not (income > 1000)` leaves out rows without an income.

**Cells.** A marginal knows rows only up to its cells, and a bin may straddle a bound. `cells` gives
both sides: the cells whose rows all satisfy the predicate and those some row of which may. For
that, each part is kept as four masks, one pair (certainly, possibly) for "true" and one for
"false"; `not` swaps the pairs. That is sound for three-valued logic, and exact wherever no bin
straddles a bound.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Clique
from understudy.columns.amounts import Amounts, Linear, amounts
from understudy.columns.base import Masks, Modelled, some
from understudy.columns.binned import Cells
from understudy.columns.category import Category, is_parent
from understudy.constraints.deriving import Domain, Mapped, Total
from understudy.constraints.tokens import NAMES, Token, fail, tokens
from understudy.errors import WorkloadError

Literal: TypeAlias = bool | int | float | str
_Spread: TypeAlias = Callable[[str, NDArray], NDArray]
"""An array over the codes of a column, laid out over cells or over rows."""

_FEW = 12
_MAX_DEPTH = 60
_LONGEST = 200_000
_MOST_TOKENS = 25_000
_LONGEST_NUMBER = 400
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NEGATED |= {"in": "not in", "is null": "is not null"}


# ---------------------------------------------------------------------------------- the tree


@dataclass(frozen=True)
class _Test:
    column: str
    op: str
    literal: Literal | tuple[Literal, ...] | None = None


@dataclass(frozen=True)
class _Sum:
    """A sum of columns compared with a number, in the units of the sum; or whether it is null."""

    linear: Linear
    op: str
    bound: Fraction = Fraction(0)


@dataclass(frozen=True)
class _Not:
    part: "_Node"


@dataclass(frozen=True)
class _Joined:
    word: str  # and, or
    parts: tuple["_Node", ...]


_Leaf: TypeAlias = _Test | _Sum
_Node: TypeAlias = _Leaf | _Not | _Joined


def _leaves(node: _Node) -> Iterator[_Leaf]:
    match node:
        case _Test() | _Sum():
            yield node
        case _Not():
            yield from _leaves(node.part)
        case _Joined():
            for part in node.parts:
                yield from _leaves(part)


def _columns(node: _Node) -> Iterator[str]:
    for leaf in _leaves(node):
        if isinstance(leaf, _Test):
            yield leaf.column
        else:
            yield from leaf.linear.names


@dataclass(frozen=True)
class _Truth:
    """What is known of a condition, elementwise; true and false may both fail for nulls."""

    certainly: Bools
    possibly: Bools
    certainly_not: Bools
    possibly_not: Bools

    def __invert__(self) -> "_Truth":
        return _Truth(self.certainly_not, self.possibly_not, self.certainly, self.possibly)

    def __and__(self, other: "_Truth") -> "_Truth":
        return _Truth(
            self.certainly & other.certainly,
            self.possibly & other.possibly,
            self.certainly_not | other.certainly_not,
            self.possibly_not | other.possibly_not,
        )

    def __or__(self, other: "_Truth") -> "_Truth":
        return ~(~self & ~other)


def _evaluate(node: _Node, leaf: Callable[[_Leaf], _Truth]) -> _Truth:
    match node:
        case _Test() | _Sum():
            return leaf(node)
        case _Not():
            return ~_evaluate(node.part, leaf)
        case _Joined():
            join = _Truth.__and__ if node.word == "and" else _Truth.__or__
            return functools.reduce(join, (_evaluate(part, leaf) for part in node.parts))


# ---------------------------------------------------------------------------- the predicate


@dataclass(frozen=True)
class Predicate:
    """A condition on rows, checked against a schema; made by `Predicate.parse`."""

    text: str
    clique: Clique
    _schema: Domain = field(repr=False, compare=False)
    _node: _Node = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, schema: Domain, *, brackets: bool = True) -> "Predicate":
        """Read a predicate.

        Args:
            text: The condition.
            schema: The columns.
            brackets: Whether a number may be compared with texts that are brackets in an order. Rules,
                which third parties check, name one of the texts instead.

        Raises:
            WorkloadError: With a caret under the place: malformed, no such column, or a value that
                does not fit its column.
        """
        return cls._of(text, schema, _Parser(text, schema, brackets=brackets).parse())

    @classmethod
    def _of(cls, text: str, schema: Domain, node: _Node) -> "Predicate":
        clique = {i for name in _columns(node) for i in schema.positions(name)}
        return cls(text, tuple(sorted(clique)), schema, node)

    def __str__(self) -> str:
        return self.text

    def cells(self, clique: Clique | None = None) -> tuple[Bools, Bools]:
        """The cells of a marginal inside the predicate, and those that it touches.

        Args:
            clique: A clique that covers the predicate's columns; by default just these.

        Returns:
            `(inner, outer)`, boolean arrays of the marginal's shape: every row in an inner cell
            satisfies the predicate, and every row that satisfies it is in an outer cell. So its
            count is at least the sum over `inner` and at most the sum over `outer`.
        """
        clique = self.clique if clique is None else tuple(clique)
        if not set(self.clique) <= set(clique):
            raise WorkloadError(
                f"the clique {clique} does not cover the columns {self.clique} of {self.text!r}"
            )
        schema = self._schema
        shape = tuple(schema.shape[i] for i in clique)

        def spread(name: str, array: NDArray) -> NDArray:
            at = schema.position(name)
            return array.reshape([schema.shape[i] if i == at else 1 for i in clique])

        return self._places(spread, shape)

    def among(self, codes: Sequence[NDArray]) -> tuple[Bools, Bools]:
        """The same for encoded rows: which lie in an inner cell, and which in an outer one."""

        def spread(name: str, array: NDArray) -> NDArray:
            return array[codes[self._schema.position(name)]]

        return self._places(spread, (len(codes[0]),))

    @property
    def conjuncts(self) -> tuple["Predicate", ...]:
        """The conditions that all have to hold for this one to hold; itself if there is but one."""
        node = self._node
        parts = node.parts if isinstance(node, _Joined) and node.word == "and" else (node,)
        return tuple(self._of(self.text, self._schema, part) for part in parts)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Which values that begin alike a condition on such as '250*' does not hold."""
        named: dict[str, list[str]] = {}
        for leaf in _leaves(self._node):
            if isinstance(leaf, _Test):
                held = leaf.literal if isinstance(leaf.literal, tuple) else (leaf.literal,)
                named.setdefault(leaf.column, []).extend(
                    each for each in held if isinstance(each, str)
                )
        found: list[str] = []
        for name, values in named.items():
            column = self._schema.column(name)
            if isinstance(column, Category):
                for value in (each for each in values if is_parent(each, column.prefixes)):
                    if beside := [each for each in column.beside(value) if each not in values]:
                        said = f"{name} = '{value}' does not hold values of their own that begin so"
                        found.append(f"{said}: {some(beside)}")
        return tuple(found)

    def _places(self, spread: _Spread, shape: tuple[int, ...]) -> tuple[Bools, Bools]:
        schema = self._schema

        def leaf(test: _Leaf) -> _Truth:
            if isinstance(test, _Sum):
                low, high, there = _ends(test.linear, schema, spread)
                return _known(test, Cells(low, high), there)
            true = _masks(schema, spread, test.column, test.op, test.literal)
            false = _masks(schema, spread, test.column, _NEGATED[test.op], test.literal)
            return _Truth(*true, *false)

        truth = _evaluate(self._node, leaf)
        return (
            np.broadcast_to(truth.certainly, shape).copy(),
            np.broadcast_to(truth.possibly, shape).copy(),
        )

    def rows(self, table: pa.Table) -> Bools:
        """Which rows of a decoded (synthetic) table satisfy the predicate.

        Agrees with `cells`: true for every row in an inner cell, and only for rows in outer cells.
        """
        schema = self._schema

        def leaf(test: _Leaf) -> _Truth:
            if isinstance(test, _Sum):
                columns = [schema.column(name) for name in test.linear.names]
                points, there = test.linear.read(columns, table)
                return _known(test, Cells(points, points), there)
            column = schema.column(test.column)
            values = table.column(test.column)
            true = column.evaluate(test.op, test.literal, values)
            false = column.evaluate(_NEGATED[test.op], test.literal, values)
            return _Truth(true, true, false, false)

        return _evaluate(self._node, leaf).certainly


def _masks(schema: Domain, spread: _Spread, name: str, op: str, literal: object) -> Masks:
    """Masks over cells or rows for a comparison of a column, or of what follows from it."""
    masks = schema.column(name).compare(op, literal)
    while isinstance(derived := schema.derived.get(name), Mapped):
        name = derived.source.name
        if isinstance(total := schema.derived.get(name), Total):
            return derived.over(masks, *_ends(total.linear, schema, spread))
        masks = derived.lifted(masks)
    return spread(name, masks[0]), spread(name, masks[1])


def _ends(linear: Linear, schema: Domain, spread: _Spread) -> tuple[NDArray, NDArray, Bools]:
    """The least and the greatest sum in cells, or in the cells of rows, and where there is one."""
    parts, ends = _parts(linear, schema), []
    there: Bools = np.ones((), np.bool_)
    for name, part in zip(linear.names, parts, strict=True):
        size = schema.shape[schema.position(name)]
        lows, highs = (
            np.append(e, np.repeat(e[:1], size - len(part))) for e in (part.lows, part.highs)
        )
        ends.append((spread(name, lows), spread(name, highs)))
        there = there & spread(name, np.arange(size) < len(part))
    low, high = linear.range(parts, ends)
    return low, high, there


def _parts(linear: Linear, schema: Domain) -> list[Amounts]:
    return [known for n in linear.names if (known := amounts(schema.column(n))) is not None]


def _known(test: _Sum, cells: Cells, there: Bools) -> _Truth:
    if test.op == "is null":
        return _Truth(~there, ~there, there, there)
    inner, outer = cells.compared("in" if test.op == "=" else test.op, [test.bound])
    return _Truth(inner & there, outer & there, ~outer & there, ~inner & there)


# ------------------------------------------------------------------------------- the parser


class _Parser:
    """Recursive descent:

    or      := and ("or" and)*
    and     := not ("and" not)*
    not     := "not" not | test
    test    := "(" or ")" | column tail? | value op column
    tail    := op value | op column | "is" "not"? "null" | "not"? "in" "(" value ("," value)* ")"
             | "not"? "between" value "and" value
    """

    def __init__(self, text: str, schema: Domain, *, brackets: bool) -> None:
        self._text = text
        self._schema = schema
        self._brackets = brackets
        if len(text) > _LONGEST:
            raise WorkloadError(
                f"the predicate has {len(text):,} characters; at most {_LONGEST:,} are read"
            )
        self._tokens = list(itertools.islice(tokens(text), _MOST_TOKENS + 1))
        if len(self._tokens) > _MOST_TOKENS:
            raise WorkloadError(
                f"the predicate has more than {_MOST_TOKENS:,} words, values and signs; ask in parts, "
                "or write a range with 'between'"
            )
        self._at = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self, *texts: str, kind: str = "keyword") -> bool:
        if self._next.kind == kind and self._next.text in texts:
            self._at += 1
            return True
        return False

    def _expect(self, text: str, kind: str, what: str) -> None:
        if not self._take(text, kind=kind):
            self._unexpected(what)

    def _fail(self, at: int, problem: object) -> NoReturn:
        fail(self._text, at, str(problem))

    def _unexpected(self, wanted: str) -> NoReturn:
        found = "the predicate ends here" if self._next.kind == "end" else "not understood"
        self._fail(self._next.start, f"{found}: expected {wanted}")

    def parse(self) -> _Node:
        if self._next.kind == "end":
            raise WorkloadError('the predicate is empty: write for instance "age >= 65"')
        node = self._or()
        if self._next.kind != "end":
            self._unexpected("'and', 'or' or the end")
        return node

    def _or(self) -> _Node:
        return self._joined("or", lambda: self._joined("and", self._not))

    def _joined(self, word: str, part: Callable[[], _Node]) -> _Node:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else _Joined(word, tuple(parts))

    def _not(self) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._fail(self._next.start, f"nested deeper than {_MAX_DEPTH} levels")
        try:
            return _Not(self._not()) if self._take("not") else self._test()
        finally:
            self._depth -= 1

    def _test(self) -> _Node:
        if self._take("(", kind="mark"):
            node = self._or()
            self._expect(")", "mark", "')'")
            return node
        if self._next.kind in NAMES:
            return self._tail(*self._column())
        if self._next.kind in ("number", "string", "mark") or self._next.text in ("true", "false"):
            value, at = self._value()
            op = self._next
            if op.kind != "op":
                self._unexpected("a comparison such as '<='")
            self._at += 1
            if self._next.kind not in NAMES:
                self._unexpected("a column")
            return self._compare(self._column()[0], _FLIPPED[op.text], value, at)
        self._unexpected("a column, 'not' or '('")

    def _tail(self, column: str, at: int) -> _Node:
        if self._next.kind == "op":
            op = self._next.text
            self._at += 1
            names = {column.name for column in self._schema.columns}
            if self._next.kind in NAMES and self._next.text in names:
                return self._between(column, op, *self._column())
            return self._compare(column, op, *self._value())
        if self._take("is"):
            negated = self._take("not")
            self._expect("null", "keyword", "'null' or 'not null'")
            total = self._total(column)
            null = _Test(column, "is null") if total is None else _Sum(total, "is null")
            return _Not(null) if negated else null
        negated = self._take("not")
        if self._take("in"):
            node = self._list(column)
        elif self._take("between"):
            low = self._compare(column, ">=", *self._value())
            self._expect("and", "keyword", "'and' and the upper bound")
            node = _Joined("and", (low, self._compare(column, "<=", *self._value())))
        elif negated:
            self._unexpected("'in' or 'between'")
        elif self._schema.column(column).kind == "boolean":
            return _Test(column, "=", True)
        elif self._next.text.lower() == "like":
            self._unlike(column)
        else:
            self._fail(at, f"column {column!r} is not boolean: compare it with a value")
        return _Not(node) if negated else node

    def _unlike(self, column: str) -> NoReturn:
        """SQL's patterns, for which a list of values stands."""
        at, pattern = self._next.start, self._tokens[self._at + 1]
        wanted = pattern.text.replace("%", "*").replace("_", "?")
        labels = self._schema.column(column).labels()
        fitting = [label for label in labels if fnmatchcase(label, wanted)][:_FEW]
        listed = ", ".join(f"'{label}'" for label in fitting) or "'…'"
        self._fail(at, f"LIKE is not understood; list the values: {column} in ({listed})")

    def _list(self, column: str) -> _Node:
        self._expect("(", "mark", "'(' and a list of values")
        values = [self._member(column)]
        while self._take(",", kind="mark"):
            values.append(self._member(column))
        self._expect(")", "mark", "',' or ')'")
        if any(isinstance(test, _Sum) for _, test in values):
            return _Joined("or", tuple(test for _, test in values))
        return _Test(column, "in", tuple(value for value, _ in values))

    def _member(self, column: str) -> tuple[Literal, _Node]:
        value, at = self._value()
        return value, self._compare(column, "=", value, at)

    def _compare(self, column: str, op: str, value: Literal, at: int) -> _Node:
        known = self._schema.column(column)
        try:
            if self._brackets:
                op, value = _at_edge(known, op, value)
            known.compare(op, value)
        except WorkloadError as error:
            self._fail(at, error)
        if (total := self._total(column)) is None:
            return _Test(column, op, value)
        return _against(total, op, known._literal(value))

    def _total(self, column: str) -> Linear | None:
        derived = self._schema.derived.get(column)
        return derived.linear if isinstance(derived, Total) else None

    def _between(self, left: str, op: str, right: str, at: int) -> _Node:
        """Two columns compared: their difference with zero."""
        units: set[str] = set()
        sides: list[Linear] = []
        for name in (left, right):
            known = amounts(self._schema.column(name))
            if known is None or isinstance(self._schema.derived.get(name), Mapped):
                self._fail(at, f"column {name!r} is no number: compare it with a value")
            units.add(known.unit)
            sides.append(self._total(name) or Linear(((name, 1),)))
        if len(units) > 1:
            self._fail(at, f"{left!r} and {right!r} are not of one kind, and have no order")
        difference = sides[0] - sides[1]
        if not difference.terms:
            self._fail(at, f"{left!r} and {right!r} are the same column, but for a constant")
        if not difference.fits(_parts(difference, self._schema)):
            self._fail(at, f"{left!r} and {right!r} have bounds too far apart to compare them")
        return _against(difference, op, Fraction(0))

    def _column(self) -> tuple[str, int]:
        token = self._next
        self._at += 1
        try:
            at = self._schema.positions(token.text)
            derived = token.text in self._schema.derived
            return token.text if derived else self._schema.modelled[at[0]].name, token.start
        except WorkloadError as error:
            rest = self._text[token.start :] if token.kind == "word" else ""
            meant = [c.name for c in self._schema.modelled if rest.startswith(c.name)]
            hint = f'; put the name in double quotes: "{max(meant, key=len)}"' if meant else ""
            self._fail(token.start, f"{error}{hint}")

    def _value(self) -> tuple[Literal, int]:
        token = self._next
        sign = 1
        if self._take("-", "+", kind="mark"):
            sign = -1 if token.text == "-" else 1
            if self._next.kind != "number":
                self._unexpected("a number")
        found = self._next
        self._at += 1
        match found.kind, found.text:
            case "number", digits if len(digits) > _LONGEST_NUMBER:
                self._fail(token.start, f"a number of {len(digits):,} characters")
            case "number", digits:
                return sign * (int(digits) if digits.isdigit() else float(digits)), token.start
            case "string", content:
                return content, token.start
            case "keyword", ("true" | "false") as word:
                return word == "true", token.start
            case "keyword", "null":
                said = "nothing equals null: write 'is null' or 'is not null'"
            case "quoted", name:
                said = f"double quotes and backticks name a column; write the value as '{name}'"
            case "word", name:
                said = f"expected a value; text goes in single quotes: '{name}'"
            case _:
                self._at -= 1
                self._unexpected("a value: a number, 'text', true or false")
        self._fail(token.start, said)


def _at_edge(column: Modelled, op: str, value: Literal) -> tuple[str, Literal]:
    """A comparison of texts that are brackets with a number, as one with a bracket."""
    return column.at_edge(op, value) if isinstance(column, Category) else (op, value)


def _against(linear: Linear, op: str, bound: Fraction) -> _Node:
    return _Not(_Sum(linear, "=", bound)) if op == "!=" else _Sum(linear, op, bound)
