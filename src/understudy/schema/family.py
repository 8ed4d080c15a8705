"""Two tables, parents and their children, as one table of views: what a release of families is about.

A family is a parent row with its s children. A *view* of it is a row (parent, number of children, a
child A, a sibling B of A). Where children have no order, A and B are any two different children; where
they have one, B is the child before A, and the view says where A stands. B is null where A has no such
sibling, A where there is no child at all. Every view has a whole weight, and those of one family sum to
at most `weight`:

    children                views       weight of each
    none                    1           M
    unordered, s = 1        1           M
    unordered, s ≥ 2        s(s − 1)    ⌊M / (s(s − 1))⌋
    ordered                 s           ⌊M / s⌋

So a family is a privacy unit with at most M rows of one flat table (`understudy.units`): a table of
counts moves by at most M in L1 and L2 when a family enters or leaves, whatever the number of children
is. M is a common multiple of the divisors where that is small enough.

Rules are about one table (`age < 16 implies status = 'never'`) or about members of a family: a parent
and a child, a child and its sibling or the child before (`previous.age <= age`). Those of one table are
rules of that table's schema; of the views all of them are (`_rules`), so that the model keeps them.

Of a family with more than `max_children` children so many count: the first ones in their order, or,
without an order, a random choice that depends on the family alone (`Unit`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools, Clique
from understudy.columns import Category, Column, Identifier, Integer, Modelled
from understudy.columns.base import are_texts, is_whole, near, require_known
from understudy.constraints.deriving import Derived
from understudy.constraints.order import Order
from understudy.constraints.rule import Rule
from understudy.constraints.rules import Rules
from understudy.errors import SchemaError, UnconfirmedError
from understudy.schema import toml
from understudy.schema.naming import TABLES, Names
from understudy.schema.schema import Schema
from understudy.schema.views import POSITIONS, coherent
from understudy.units import MOST_WEIGHT, Unit, weight_of

SIBLINGS = ("same", "all", "none", "pairs")
_MOST_SIZES = 1_000
_SIBLINGS_WEIGH, _BEFORE_WEIGHS = 3.0, 8.0
"""A pair of columns of siblings, and a column with itself before, where another pair is one; chosen
on generated families (docs/families.md)."""


@dataclass(frozen=True)
class Family:
    """How two tables belong together; public.

    key           the column of the parents that names a family
    foreign_key   the column of the children that names their parent
    max_children  so many children of a family count, and are made
    min_children  0, or 1 where parents without children are left out
    order         the column that orders the children of a family; none where they have no order
    siblings      which pairs of columns of two siblings are measured: each with itself ("same"), all,
                  none, or those listed in `pairs`
    read_from_rows  what of all this a draft read from private rows, and nobody has confirmed
    """

    parent: str
    key: str
    child: str
    foreign_key: str
    max_children: int
    min_children: int = 0
    order: str | None = None
    siblings: str = "same"
    pairs: tuple[tuple[str, str], ...] = ()
    read_from_rows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("parent", "key", "child", "foreign_key"):
            text = vars(self)[name]
            if not isinstance(text, str) or not text:
                raise SchemaError(f"[[table]]: {name} = {text!r} must be a name")
        if self.parent == self.child:
            raise SchemaError(f"[[table]]: both tables are called {self.parent!r}; rename one")
        if self.min_children not in (0, 1) or isinstance(self.min_children, bool):
            raise SchemaError(
                f"table {self.child!r}: min_children = {self.min_children!r} must be 0, or 1 to leave "
                f"out {self.parent!r} without children"
            )
        most = most_children(self.min_children, ordered=self.order is not None)
        if not is_whole(self.max_children, 1, most):
            why = "there are 1,000 sizes at most, that without children included"
            if self.order is None:
                why = "the weight of a family is divided among its pairs; an order allows more"
            raise SchemaError(
                f"table {self.child!r}: max_children = {self.max_children!r} must be a whole number "
                f"from 1 to {most:,}: so many children of one {self.parent!r} count, and {why}"
            )
        if self.max_children == self.min_children:
            raise SchemaError(
                f"table {self.child!r}: max_children = 1 with min_children = 1 says that every row of "
                f"{self.parent!r} has exactly one of {self.child!r}: join them and release one table, "
                "or declare min_children = 0, or more than one child"
            )
        if self.siblings not in SIBLINGS:
            raise SchemaError(
                f"table {self.child!r}: siblings = {self.siblings!r} must be one of "
                f"{', '.join(SIBLINGS)}{near(str(self.siblings), SIBLINGS)}"
            )
        if bool(self.pairs) != (self.siblings == "pairs"):
            raise SchemaError(
                f'table {self.child!r}: siblings = "pairs" goes with pairs = [["a", "b"], ...], and '
                f"only with it"
            )
        object.__setattr__(self, "pairs", tuple(tuple(pair) for pair in self.pairs))
        known = {field.name for field in fields(self)} - {"read_from_rows"}
        if not are_texts(self.read_from_rows) or not known.issuperset(self.read_from_rows):
            raise SchemaError(
                f"table {self.child!r}: read_from_rows = {self.read_from_rows!r} must be a list of "
                "its keys"
            )
        object.__setattr__(self, "read_from_rows", tuple(self.read_from_rows))


@dataclass(frozen=True)
class Layout:
    """Where the parts of a view stand among the modelled columns; public."""

    parent: tuple[int, ...]
    size: int
    child: tuple[int, ...]
    sibling: tuple[int | None, ...]
    """For every column of the child that of its sibling, None where it is not modelled."""
    values: tuple[int, ...]
    """For every column of the child how many codes stand for a child that is there."""
    pos: int | None
    childless: bool

    @property
    def twins(self) -> tuple[Clique, ...]:
        """Columns of the child, each with that of its sibling."""
        pairs = zip(self.child, self.sibling, strict=True)
        return tuple((i, twin) for i, twin in pairs if twin is not None)

    @property
    def ordered(self) -> bool:
        """Whether the sibling is the child before."""
        return self.pos is not None


def most_children(least: int, *, ordered: bool) -> int:
    """The largest `max_children`: every size is a value, and every view weighs something."""
    if ordered:
        return _MOST_SIZES - (least == 0)
    return (1 + math.isqrt(1 + 4 * MOST_WEIGHT)) // 2  # s(s - 1) <= M


@dataclass(frozen=True)
class FamilySchema(Schema):
    """The table of views of two tables. Make it with `of`, or read it from a file of version 2.

    `columns`, `shape` and all that a plan looks at are those of the views; `parents` and `children`
    are the schemas of the two tables.
    """

    parents: Schema | None = None
    children: Schema | None = None
    family: Family | None = None

    @classmethod
    def of(
        cls,
        parents: Schema,
        children: Schema,
        family: Family,
        rows_public: int | None = None,
        rules: Sequence[Rule] = (),
    ) -> FamilySchema:
        """The views of two tables; `rows_public` is the number of parents, where that is public.

        Raises:
            SchemaError: A column that the family names is missing or of another type, a table has
                what only one by itself can have (a unit, private domains), or a rule cannot be kept.
        """
        for name, schema in ((family.parent, parents), (family.child, children)):
            _require_plain(name, schema)
        _require_identifier(parents, family.parent, "key", family.key)
        _require_identifier(children, family.child, "foreign_key", family.foreign_key)
        if family.order is not None and family.order not in _names(children):
            raise SchemaError(
                f"table {family.child!r}: order = {family.order!r} is not one of its columns"
                f"{near(family.order, _names(children))}"
            )
        weight = weight_of(family.max_children, ordered=family.order is not None)
        key = f"{family.parent}.{family.key}"
        names = _naming(parents, children, family)
        own = [[names.own(rule) for rule in rules if names.members(rule) == {m}] for m in TABLES]
        parents, children = (
            replace(schema, rules=tuple(each))
            for schema, each in zip((parents, children), own, strict=True)
        )
        alone = f"release {family.child!r} by itself, with {family.foreign_key!r} as its unit"
        counted = f"add their number to {family.parent!r} as a column, and release that table"
        _require_modelled(family.parent, parents, alone)
        _require_modelled(family.child, children, counted)
        return cls(
            (Identifier(key), *_views(parents, children, family, names.siblings(rules))),
            rows_public=None if rows_public is None else rows_public * weight,
            unit=Unit(key, weight, family=family.child),
            rules=tuple(rules),
            parents=parents,
            children=children,
            family=family,
        )

    def _check_rules(self) -> None:
        """Those of the tables were checked with them; here those about several members."""
        for order, _ in self.compared:
            if len({known.decimals for known in order.amounts}) > 1:
                names = " and ".join(map(repr, order.names))
                raise SchemaError(
                    f"rules compare {names} between members of a family, and their decimals differ; "
                    "declare the same for all of them"
                )

    @cached_property
    def compared(self) -> list[tuple[Order, tuple[Clique, Bools] | None]]:
        """The orders between members, and those that share a column with one (`Rules.orders`)."""
        if not self.rules:
            return []
        orders, found = self._rules.orders, []
        known: set[str] = set()
        while True:
            more = [o for o in orders if o not in found and self._reaches(o[0], known)]
            if not more:
                return found
            found += more
            known |= {self.stored(name) for order, _ in more for name in order.names}

    def _reaches(self, order: Order, known: set[str]) -> bool:
        members = {name.partition(".")[0] for name in order.names}
        return len(members) > 1 or any(self.stored(name) in known for name in order.names)

    def stored(self, name: str) -> str:
        """The column of parents or children that a column of views is of, as views name it."""
        _, _, family = self.tables
        table, _, own = name.partition(".")
        return f"{family.child}.{own}" if table == _sibling(family) else name

    @cached_property
    def computed(self) -> Mapping[str, Rule]:
        """None: columns that rules compute are no part of a view."""
        return {}

    @cached_property
    def derived(self) -> Mapping[str, Derived]:
        """None, as `computed`."""
        return {}

    @cached_property
    def _rules(self) -> Rules:
        """All rules about modelled columns, as rules of the views."""
        parents, children, family = self.tables
        names = _naming(parents, children, family)
        found: dict[str, Rule] = {}
        for rule in self.rules:
            lifted = rule.renamed(names.view)
            if len(names.members(rule)) > 1:
                names.require_kept(rule, {*parents.computed, *children.computed})
            elif rule.target is not None or not self._models(lifted):
                continue  # its table keeps it
            found[lifted.says] = lifted
            if family.order is None and names.mirrors(rule):
                other = rule.renamed(names.mirrored)
                found[other.says] = other
        optional = [c.name for c in self.columns if not c.name.startswith(f"{family.parent}.")]
        return Rules(list(found.values()), self, optional)

    def _models(self, rule: Rule) -> bool:
        """Whether all that a rule names is part of views."""
        return {column.name for column in self.modelled}.issuperset(rule.columns)

    @property
    def between(self) -> Rules:
        """The rules as rules of views; what generators and verifiers keep between members."""
        return self._rules

    @property
    def twins(self) -> tuple[Clique, ...]:
        """Columns of a child with the same of a sibling, whose last code says that there is none."""
        return self.layout.twins

    @property
    def constrained(self) -> bool:
        """Always: see `coherent`."""
        return True

    def project(self, codes: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Views that agree with themselves, and the nearest that keep the rules.

        Members that are there keep their table's.
        """
        moved = super().project(coherent(codes, self.layout, self.shape))
        parents, children, _ = self.tables
        for schema, places in ((parents, self.layout.parent), (children, self.layout.child)):
            if schema.rules:
                some = np.ones(len(moved[0]), np.bool_)
                for i, size in zip(places, schema.shape, strict=True):
                    some &= np.asarray(moved[i]) < size
                for i, column in zip(
                    places, schema.project([moved[i][some] for i in places]), strict=True
                ):
                    moved[i] = moved[i].copy()
                    moved[i][some] = column
        return moved

    def position(self, name: str) -> int:
        """Also of a column by its name alone, where one of the two tables has it, as in rules."""
        views = [f"{table}.{name}" for table in self.named]
        known = [view for view in views if view in self._positions]
        return super().position(known[0] if len(known) == 1 else name)

    @property
    def tables(self) -> tuple[Schema, Schema, Family]:
        """Parents, children, and how they belong together."""
        assert self.parents is not None
        assert self.children is not None
        assert self.family is not None
        return self.parents, self.children, self.family

    @property
    def named(self) -> dict[str, Schema]:
        """Parents and children by the names of their tables."""
        parents, children, family = self.tables
        return {family.parent: parents, family.child: children}

    @property
    def number_public(self) -> int | None:
        """How many parents there are."""
        return None if self.rows_public is None else self.rows_public // self.weight

    @cached_property
    def layout(self) -> Layout:
        """Where the parts of a view stand."""
        parents, children, family = self.tables
        at = {column.name: i for i, column in enumerate(self.modelled)}
        word = _sibling(family)
        return Layout(
            tuple(at[f"{family.parent}.{column.name}"] for column in parents.modelled),
            at[f"{family.child}.count"],
            tuple(at[f"{family.child}.{column.name}"] for column in children.modelled),
            tuple(at.get(f"{word}.{column.name}") for column in children.modelled),
            children.shape,
            at.get(f"{family.child}.position"),
            family.min_children == 0,
        )

    def usual_workload(self) -> Any:
        """All pairs of parent, number of children and child, and the declared pairs of siblings.

        Siblings weigh more: only some families have any, and no other table says what they share.
        With an order, a column and itself before weigh most: they are seldom far apart.
        """
        parents, children, family = self.tables
        layout, names = self.layout, [column.name for column in self.modelled]
        named = _naming(parents, children, family).siblings(self.rules)
        siblings = {twin for _, twin in layout.twins}
        weights = dict.fromkeys(siblings, _SIBLINGS_WEIGH)
        same = layout.twins if layout.ordered else ()
        free = [i for i in range(len(names)) if i not in siblings]
        wanted = list(itertools.combinations(free, 2))
        for one, other in _sibling_pairs(children, family, named):
            a, b = children.position(one), children.position(other)
            second = layout.sibling[b]
            assert second is not None
            wanted.append((layout.child[a], second))
        return [
            {
                "columns": [names[i] for i in sorted(pair)],
                "weight": _BEFORE_WEIGHS if pair in same else weights.get(max(pair), 1.0),
            }
            for pair in dict.fromkeys(wanted)
        ]

    def changed(
        self,
        tables: tuple[Schema, Schema] | None = None,
        family: Family | None = None,
        rules: Sequence[Rule] | None = None,
    ) -> FamilySchema:
        """The same with other tables, another family or other rules."""
        parents, children, own = self.tables
        first, second = (replace(t, rules=()) for t in tables or (parents, children))
        rules = self.rules if rules is None else rules
        return FamilySchema.of(first, second, family or own, self.number_public, rules)

    def with_rules(self, rules: Sequence[Rule]) -> FamilySchema:
        """The same with other rules."""
        return self.changed(rules=rules)

    def qualified(self, rule: Rule, table: str) -> Rule:
        """A rule of one table by itself, as it is written here."""
        parents, children, _ = self.tables
        both = {*_names(parents)}.intersection(_names(children))
        return rule.renamed(lambda word: f"{table}.{word}" if word in both else word)

    @property
    def marked(self) -> dict[str, tuple[str, ...]]:
        """What was read from private rows, by table and column; see `Schema`."""
        _, _, family = self.tables
        found = {family.child: family.read_from_rows} if family.read_from_rows else {}
        for name, schema in self.named.items():
            found |= {f"{name}.{column}": marks for column, marks in schema.marked.items()}
        return found

    def require_confirmed(self) -> None:
        """Refuse a schema that is not fit for a release; see `Schema`."""
        _, _, family = self.tables
        if family.read_from_rows:
            raise UnconfirmedError(
                f"how {family.parent!r} and {family.child!r} belong together was read from private "
                f"rows ({', '.join(family.read_from_rows)}); check it, and delete the `read_from_rows` "
                "line of the table, or run `understudy schema review`"
            )
        for name, schema in self.named.items():
            if schema.undeclared:
                column = schema.undeclared[0].name
                raise SchemaError(
                    f"table {name!r}: the domain of column {column!r} is to be found privately, which "
                    f"a release of families does not do; declare its values, or its bounds and bins"
                )
            try:
                schema.require_confirmed()
            except SchemaError as error:
                raise type(error)(f"table {name!r}: {error}") from None
        self._require_confirmed_rules()

    def _document(self) -> toml.Document:
        _, _, family = self.tables
        head: dict[str, Any] = {"version": 2, "rows_public": self.number_public}
        own = {
            field.name: vars(family)[field.name]
            for field in fields(family)
            if field.name not in ("parent", "key", "child")
            and vars(family)[field.name] != field.default
        }
        tables = [
            {"name": family.parent, "key": family.key},
            {"name": family.child, "parent": family.parent, **own},
        ]
        columns: list[dict[str, Any]] = []
        for name, schema in self.named.items():
            shared = {"null_values": schema.null_values} if schema.null_values else {}
            tables[name == family.child] |= shared
            columns += [{"table": name, **toml.column_facts(c)} for c in schema.columns]
        kept = {key: value for key, value in head.items() if value is not None}
        return toml.Document(kept, columns, [], [rule.facts() for rule in self.rules], tables)

    @classmethod
    def from_document(cls, document: toml.Document) -> FamilySchema:
        """The schema that a file of version 2 declares."""
        require_known(document.head, ("version", "rows_public"), "[understudy]")
        if document.geography:
            raise SchemaError("[[geography]]: places are not kept in families; leave them out")
        rows = document.head.get("rows_public")
        if rows is not None and not is_whole(rows, 1):
            raise SchemaError(f"rows_public = {rows!r} must be a whole number above zero")
        parent, child = _two(document.tables)
        known = [field.name for field in fields(Family)]
        require_known(parent, ["name", "key", "null_values"], f"table {parent['name']!r}")
        require_known(
            child, ["name", "null_values", *known[3:], "parent"], f"table {child['name']!r}"
        )
        for facts, needed in ((parent, ("key",)), (child, ("foreign_key", "max_children"))):
            for key in needed:
                if key not in facts:
                    raise SchemaError(f"table {facts['name']!r}: {key} is missing")
        stated = {key: child[key] for key in known[3:] if key in child}
        family = Family(parent["name"], parent["key"], child["name"], **stated)
        columns: dict[str, list[Column]] = {parent["name"]: [], child["name"]: []}
        for at, facts in enumerate(document.columns, 1):
            own = dict(facts)
            table = own.pop("table", None)
            if table not in columns:
                raise SchemaError(
                    f"[[column]] number {at}: table = {table!r} must be one of "
                    f"{', '.join(map(repr, columns))}"
                )
            columns[table].append(toml.build_column(own, at))
        made = [
            Schema(tuple(columns[facts["name"]]), null_values=facts.get("null_values", ()))
            for facts in (parent, child)
        ]
        return cls.of(made[0], made[1], family, rows, tuple(map(Rule.from_toml, document.rules)))

    def protecting(self, unit: Unit | None) -> FamilySchema:
        """Refused: who is protected follows from the two tables."""
        raise SchemaError(
            f"unit = {unit or 'row'}: a schema of two tables protects a family, a parent with all its "
            "children; nothing has to be said about it"
        )

    def with_nulls(self, texts: Iterable[str]) -> FamilySchema:
        """Refused: which of the two tables they are of has to be said in the file."""
        if not list(texts):
            return self
        raise SchemaError(
            "texts that stand for null are declared by table here: null_values = [...] in its "
            "[[table]], or in a [[column]]"
        )


def _views(parents: Schema, children: Schema, family: Family, named: Sequence[str]) -> list[Column]:
    """The modelled columns of a view; `named` are columns of siblings that rules speak of."""
    childless = family.min_children == 0
    found: list[Column] = [replace(c, name=f"{family.parent}.{c.name}") for c in parents.modelled]
    least = family.min_children
    # One that stands alone would leave nothing to model.
    found.append(Integer(f"{family.child}.count", lower=least, upper=family.max_children))
    found += [_perhaps(c, f"{family.child}.{c.name}", childless) for c in children.modelled]
    if family.order is not None:
        found.append(Category(f"{family.child}.position", POSITIONS, nullable=childless))
    word, paired = _sibling(family), {b for _, b in _sibling_pairs(children, family, named)}
    found += [_perhaps(c, f"{word}.{c.name}", True) for c in children.modelled if c.name in paired]
    return found


def _perhaps(column: Modelled, name: str, absent: bool) -> Column:
    """The column of a child that may not be there: null then."""
    return replace(column, name=name, nullable=column.nullable or absent)


def _naming(parents: Schema, children: Schema, family: Family) -> Names:
    return Names(
        family.parent,
        _names(parents),
        family.child,
        _names(children),
        _sibling(family),
        family.order is not None,
    )


def _sibling(family: Family) -> str:
    return "sibling" if family.order is None else "previous"


def _sibling_pairs(children: Schema, family: Family, named: Sequence[str]) -> list[tuple[str, str]]:
    """Which columns of two siblings are measured together: those declared, and what rules name."""
    names = [column.name for column in children.modelled]
    if named and family.max_children < 2:
        raise SchemaError(
            f"a rule names {_sibling(family)}.{named[0]}, and with max_children = 1 there is none"
        )
    found = _declared_pairs(names, family)
    there = {second for _, second in found}
    return found + [(name, name) for name in named if name in names and name not in there]


def _declared_pairs(names: Sequence[str], family: Family) -> list[tuple[str, str]]:
    if family.max_children < 2 or family.siblings == "none":
        return []
    if family.siblings == "same":
        return [(name, name) for name in names]
    if family.siblings == "all":
        if family.order is not None:
            return list(itertools.product(names, names))
        return list(itertools.combinations_with_replacement(names, 2))
    for name in (name for pair in family.pairs for name in pair):
        if name not in names:
            raise SchemaError(
                f"table {family.child!r}: pairs names {name!r}, which is not one of its modelled "
                f"columns{near(name, names)}"
            )
    return [(a, b) for a, b in family.pairs]


def _two(tables: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The table of parents and that of children."""
    for at, facts in enumerate(tables, 1):
        if not isinstance(facts.get("name"), str) or not facts["name"]:
            raise SchemaError(f'[[table]] number {at} has no name; add name = "..."')
    parents = [facts for facts in tables if "parent" not in facts]
    children = [facts for facts in tables if "parent" in facts]
    if len(tables) != 2 or len(parents) != 1:
        raise SchemaError(
            f"there are {len(tables)} [[table]] entries, {len(children)} of them with a parent: a "
            f"release has one table of parents and one of their children. Release a second table of "
            f"children by itself, with the same parents; its budget adds up in a ledger"
        )
    if children[0]["parent"] != parents[0]["name"]:
        raise SchemaError(
            f"table {children[0]['name']!r}: parent = {children[0]['parent']!r} is not "
            f"{parents[0]['name']!r}, the other table"
        )
    return parents[0], children[0]


def _require_plain(name: str, schema: Schema) -> None:
    if schema.unit is not None:
        raise SchemaError(f"table {name!r}: a unit is not declared; the family is the unit")
    if schema.geography:
        raise SchemaError(f"table {name!r}: places are not kept in families")


def _require_modelled(name: str, schema: Schema, otherwise: str) -> None:
    if not schema.modelled:
        raise SchemaError(
            f"table {name!r}: no column is modelled; declare at least one. Where it has nothing but "
            f"identifiers, {otherwise}"
        )
    for column in schema.modelled:
        if column.name in ("count", "position"):
            raise SchemaError(
                f"table {name!r}: column {column.name!r} has the name of a figure about families; "
                f"rename it"
            )


def _require_identifier(schema: Schema, table: str, what: str, name: str) -> None:
    found = [column for column in schema.columns if column.name == name]
    if not found:
        raise SchemaError(
            f"table {table!r}: {what} = {name!r} is not one of its columns{near(name, _names(schema))}"
        )
    if not isinstance(found[0], Identifier):
        raise SchemaError(
            f"table {table!r}: {what} = {name!r} is a column of type {found[0].kind!r}; declare it "
            f'with type = "identifier"'
        )


def _names(schema: Schema) -> list[str]:
    return [column.name for column in schema.columns]
