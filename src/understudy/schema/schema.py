"""A schema: every public fact about a table, in one frozen value."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Clique, Rng
from understudy.columns import (
    Category,
    Column,
    Identifier,
    Incomplete,
    Modelled,
    Undeclared,
    UndeclaredCategory,
    UndeclaredShape,
)
from understudy.columns.base import are_texts, encoded, is_whole, near, some
from understudy.columns.binned import Binned, decoded
from understudy.columns.reading import flat, nulled, pc, same_stored, shown, type_name, valid_of
from understudy.constraints.deriving import Derived, Domain, derived_columns, targets
from understudy.constraints.geography import Geography, Places
from understudy.constraints.rule import Condition, Dependency, Rule, compared
from understudy.constraints.rules import Rules
from understudy.errors import InputError, SchemaError, UnconfirmedError, WorkError
from understudy.files import write
from understudy.schema import toml
from understudy.units import EQUAL, OPEN, ROW, Unit

_LISTED = 60


@dataclass(frozen=True)
class Schema(Domain):
    """Public facts about the columns of a table, in the table's order.

    `rows_public` is the number of rows where that is public; `null_values` are texts that stand for
    null in every column that arrives as text. `unit` says who is protected where somebody may have
    several rows: an identifier column, and how many rows of one of its values count; without it one row
    is protected, by an explicit choice where `unit_word` is "row"; where it is "?", nobody has chosen,
    and no release accepts the schema. `read_from_rows` holds "unit" where a draft chose it and nobody
    has confirmed it. `geography` names pairs of columns that are places, `rules` are what every
    synthetic row keeps. With `drop_other_columns` the table may have columns that are not listed; they
    are never read.

    Nothing here depends on private rows, except in a draft, which says so (`require_confirmed`).
    """

    rows_public: int | None = None
    null_values: tuple[str, ...] = ()
    unit: Unit | None = None
    geography: tuple[Geography, ...] = ()
    rules: tuple[Rule, ...] = ()
    unit_word: str = ""
    read_from_rows: tuple[str, ...] = ()
    drop_other_columns: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns:
            raise SchemaError("the schema has no columns; add a [[column]] for each of the table's")
        if name := _twice(column.name for column in self.columns):
            raise SchemaError(f"column {name!r} is declared more than once; keep one of them")
        rows = self.rows_public
        if rows is not None and not is_whole(rows, 1):
            raise SchemaError(
                f"rows_public = {rows!r} must be a whole number above zero; "
                "leave it out where the number of rows is not public"
            )
        tokens = self.null_values
        if not are_texts(tokens):
            raise SchemaError(f'null_values = {tokens!r} must be a list of texts, such as ["?"]')
        object.__setattr__(self, "null_values", tuple(tokens))
        for column in self.columns:
            if isinstance(column, UndeclaredCategory):
                column.check_nulls(tokens)
            if both := set(tokens).intersection(_stated(column)):
                raise SchemaError(
                    f"column {column.name!r}: {sorted(map(str, both))[0]!r} is both one of its "
                    "values and one of the schema's null_values; take it out of one of the two"
                )
        if not isinstance(self.drop_other_columns, bool):
            raise SchemaError(
                f"drop_other_columns = {self.drop_other_columns!r} must be true or false"
            )
        self._check_protection()
        object.__setattr__(self, "geography", tuple(self.geography))
        if name := _twice(self._placed):
            raise SchemaError(f"[[geography]]: column {name!r} is used more than once")
        assert len(self._places) == len(self.geography)  # worked out: a mask without any is refused
        object.__setattr__(self, "rules", tuple(self.rules))
        self._check_rules()

    def _check_rules(self) -> None:
        """Rules are worked out at once, so that those that cannot be kept are refused here."""
        if not self.rules:
            return
        unknown = {c.name for c in self.undeclared if not isinstance(c, UndeclaredShape)}
        for rule in self.rules:
            if isinstance(rule.form, Condition | Dependency) and rule.target is None:
                for name in (c.name for c in self.undeclared if c.name in rule.words & unknown):
                    raise rule.refuse(
                        f"the domain of column {name!r} is found privately, and a rule needs to "
                        "know it; declare its values or edges"
                    )
        if self.undeclared:
            self.largest()  # with edges where rules need them; worked out there
            return
        named = self._rules.columns.union(self.computed)
        if both := sorted(named.intersection(self._placed)):
            raise SchemaError(f"column {both[0]!r} is part of a place, which no rule may move")

    @cached_property
    def computed(self) -> Mapping[str, Rule]:
        """The rules that compute a column from others, by its name; its domain may be unknown yet."""
        return targets(self.rules)

    @cached_property
    def derived(self) -> Mapping[str, Derived]:
        """The columns that rules compute from others, each after those that it follows from.

        They are part of the table, and neither modelled nor paid for.
        """
        return derived_columns(self.rules, self.columns)

    @cached_property
    def modelled(self) -> tuple[Modelled, ...]:
        """The columns with codes that do not follow from others, in order."""
        found = (column for column in self.columns if isinstance(column, Modelled))
        return tuple(column for column in found if column.name not in self.computed)

    @cached_property
    def _rules(self) -> Rules:
        return Rules(self.rules, self)

    @property
    def _placed(self) -> list[str]:
        return [n for place in self.geography for n in (place.latitude, place.longitude)]

    @cached_property
    def _places(self) -> tuple[Places, ...]:
        columns = {column.name: column for column in self.columns}
        return tuple(place.bind(columns) for place in self.geography)

    def _check_protection(self) -> None:
        if self.unit is not None:
            self._check_unit(self.unit)
        if self.unit_word not in ("", ROW, OPEN) or (self.unit is not None and self.unit_word):
            raise SchemaError(f"unit_word = {self.unit_word!r} must be {ROW!r} or {OPEN!r}")
        marks = self.read_from_rows
        if not are_texts(marks) or set(marks) - {"unit"}:
            raise SchemaError(f'[understudy] read_from_rows = {marks!r} can only be ["unit"]')
        object.__setattr__(self, "read_from_rows", tuple(marks))

    def protecting(self, unit: Unit | None) -> Schema:
        """The schema with an answer to who is protected: a unit, or None for one row."""
        word = ROW if unit is None else ""
        return replace(self, unit=unit, unit_word=word, read_from_rows=())

    def _check_unit(self, unit: Unit) -> None:
        found = [column for column in self.columns if column.name == unit.column]
        if not found:
            raise SchemaError(
                f"unit = {unit.column!r} is not a column of the schema"
                f"{near(unit.column, [column.name for column in self.columns])}; "
                'declare it as a [[column]] with type = "identifier"'
            )
        if not isinstance(found[0], Identifier):
            raise SchemaError(
                f"unit = {unit.column!r} is a column of type {found[0].kind!r}; what tells people "
                'apart is never modelled: declare it with type = "identifier"'
            )
        open_ones = [column.name for column in self.columns if isinstance(column, Undeclared)]
        if unit.equal and open_ones:
            raise SchemaError(
                f'weight = "{EQUAL}": the domain of column {open_ones[0]!r} is to be found privately, '
                "which counts rows without weights; declare its values, or its bounds and bins"
            )

    @property
    def weight(self) -> int:
        """What one whom the promise speaks of weighs among the rows: 1, or M (`units`)."""
        return 1 if self.unit is None else self.unit.weight

    @property
    def number_public(self) -> int | None:
        """How many rows, or of whom the promise speaks where they have weights; None if private."""
        return self.rows_public

    def usual_workload(self) -> Any:
        """What is measured and certified unless somebody says otherwise: all pairs of columns."""
        return f"marginals:{min(2, len(self.modelled))}"

    @cached_property
    def undeclared(self) -> tuple[Undeclared, ...]:
        """The columns whose domain a release finds privately, in order."""
        found = (column for column in self.columns if isinstance(column, Undeclared))
        return tuple(column for column in found if column.name not in self.computed)

    def largest(self, cells: int | None = None) -> Schema:
        """The schema with the largest domains that may be found for undeclared ones; for planning.

        With `cells`, shapes have that many.
        """
        domains: dict[str, Column] = {c.name: c.largest() for c in self.undeclared}
        shaped = (c for c in self.undeclared if isinstance(c, UndeclaredShape))
        for column in shaped:
            most = () if cells is None else (cells,)
            domains[column.name] = column.largest(self.cuts(column.name), *most)
        return self.resolved(domains)

    def cuts(self, name: str) -> tuple[tuple[str, Any], ...]:
        """What rules compare a column with, which needs edges there: operators and values."""
        found = [found for rule in self.rules for found in compared(rule.says, name)]
        for rule in self.rules:
            if isinstance(rule.form, Dependency) and rule.form.source == name:
                found += [(">=", cut) for cut in rule.cuts]
        return tuple(found)

    def with_rules(self, rules: Sequence[Rule]) -> Schema:
        """The schema with other rules."""
        return replace(self, rules=tuple(rules))

    @property
    def marked(self) -> dict[str, tuple[str, ...]]:
        """What was read from private rows and is not confirmed, by column, or "[understudy]"."""
        found = {"[understudy]": self.read_from_rows} if self.read_from_rows else {}
        return found | {c.name: c.read_from_rows for c in self.columns if c.read_from_rows}

    def resolved(self, domains: Mapping[str, Column]) -> Schema:
        """The schema with columns replaced by those whose domain was found."""
        return replace(self, columns=tuple(domains.get(c.name, c) for c in self.columns))

    def with_nulls(self, texts: Iterable[str]) -> Schema:
        """The schema with more texts that stand for null: "TOKEN" for all, "COLUMN=TOKEN" for one.

        SchemaError where a column cannot be null, or has the text as a value.
        """
        names, texts = [column.name for column in self.columns], list(texts)
        own = [text for text in texts if _column_of(text, names)]
        more = tuple(dict.fromkeys((*self.null_values, *(t for t in texts if t not in own))))
        changed: dict[str, Column] = {}
        for column in self.columns:
            told = nulls_by_column(own, names)[column.name]
            if told and not column.nullable:
                raise SchemaError(
                    f"column {column.name!r} cannot be null, so no text of it can stand for null; "
                    "set nullable = true in the schema"
                )
            tokens = tuple(dict.fromkeys((*column.null_values, *told)))
            changed[column.name] = replace(column, null_values=tokens) if told else column
        return replace(self.resolved(changed), null_values=more)

    @cached_property
    def written(self) -> tuple[Column, ...]:
        """The columns of the output: modelled and derived ones, and identifiers made by a pattern."""
        made = (c for c in self.columns if not (isinstance(c, Identifier) and c.dropped))
        kinds = Modelled | Identifier
        return tuple(c for c in made if isinstance(c, kinds) or c.name in self.derived)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Names, types and nullability of the output."""
        return pa.schema([pa.field(c.name, c.arrow_type, c.nullable) for c in self.written])

    def _overview(self) -> tuple[list[tuple[str, str]], list[tuple[str, str, str, str]]]:
        """Facts about the table; name, type, values and what is to be confirmed of each column."""

        def domain(column: Column) -> str:
            if column.name in self.computed:
                return f"computed: {self.computed[column.name].says}"
            if isinstance(column, Undeclared):
                return "found privately"
            if not isinstance(column, Modelled):
                return "not modelled"
            labels = column.labels()
            ends = ", ".join(labels) if len(labels) <= 4 else f"{labels[0]}, {labels[1]}, …"
            return f"{column.size:,}: {ends}"

        shown = [(c.name, c.kind, domain(c), ", ".join(c.read_from_rows)) for c in self.columns]
        rows = "private" if self.rows_public is None else f"{self.rows_public:,}, public"
        facts = [("columns", f"{len(self.columns)}"), ("number of rows", rows)]
        said = str(self.unit or self.unit_word)
        if said:
            facts.append(("privacy unit", "not said yet" if said == OPEN else said))
        return facts, shown

    def _repr_html_(self) -> str:
        from understudy.markup import notebook

        facts, shown = self._overview()
        some = 4 if any(waiting for *_, waiting in shown) else 3
        heads = ("column", "type", "values", "to confirm")[:some]
        return notebook("Schema", facts, (heads, [row[:some] for row in shown]))

    def __repr__(self) -> str:
        facts, shown = self._overview()
        lines = ["Schema, " + ", ".join(f"{name}: {said}" for name, said in facts)]
        wide = [max(len(row[i]) for row in shown[:_LISTED]) if shown else 0 for i in (0, 1)]
        for name, kind, values, waiting in shown[:_LISTED]:
            line = f"  {name:{wide[0]}}  {kind:{wide[1]}}  {values}"
            lines.append(line + (f"  (to confirm: {waiting})" if waiting else ""))
        if len(shown) > _LISTED:
            lines.append(f"  … and {len(shown) - _LISTED:,} more")
        return "\n".join(lines)

    # Codes

    def encode(self, batch: pa.RecordBatch | pa.Table) -> list[NDArray[np.unsignedinteger]]:
        """The codes of every modelled column; columns are found by name.

        Never fails on a value and never tells about one (see `Modelled`); a header that lacks a
        column, or has it twice, is a SchemaError, since headers are public.
        """
        return encoded(self.modelled, batch, self.null_values)

    def units(self, batch: pa.RecordBatch | pa.Table) -> pa.Array:
        """The unit of every row as text without blanks around, null where it has none.

        What counts as null is what `null_values` and empty cells say. Never fails on a value.
        """
        if self.unit is None:
            raise SchemaError("the schema declares no unit; every row is one")
        return pc.utf8_trim_whitespace(nulled(batch.column(self.unit.column), self.null_values))

    def texts(self, batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
        """The cells of a column as texts, null where they say so. Never fails on a value."""
        (own,) = (column.null_values for column in self.columns if column.name == name)
        return nulled(batch.column(name), (*self.null_values, *own))

    @property
    def twins(self) -> tuple[Clique, ...]:
        """Columns with the same of a sibling: none, but in families."""
        return ()

    @property
    def constrained(self) -> bool:
        """Whether `project` may move a row."""
        return bool(self.rules or self.geography)

    def project(self, codes: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The codes projected onto the constraints: those that `decode` gives rows for.

        Rows that break a rule, and places off their mask, are moved to the nearest that do not.
        """
        moved = self._rules.project(codes) if self.rules else list(codes)
        for places in self._places:
            y, x = (self.position(c.name) for c in (places.latitude, places.longitude))
            moved[y], moved[x] = places.project(np.asarray(moved[y]), np.asarray(moved[x]))
        return moved

    @cached_property
    def wide(self) -> Clique:
        """Ordered columns with a cell of more than one value, but for places on a mask."""
        masked = {c.name for p in self._places for c in (p.latitude, p.longitude)}
        return tuple(
            i
            for i, column in enumerate(self.modelled)
            if isinstance(column, Binned) and column.wide and column.name not in masked
        )

    def decode(
        self,
        codes: Sequence[NDArray[np.integer]],
        rng: Rng,
        *,
        first: int = 1,
        scores: Mapping[int, NDArray[Any]] = MappingProxyType({}),
    ) -> pa.Table:
        """A table with the declared types, nulls and order; identifiers dropped or made anew.

        Fresh identifiers are numbered from `first` on, for tables that are made in parts. The values
        of a cell are in the order of `scores`, where there are any for a column.
        `encode(decode(codes, rng))` gives the projected codes back.
        """
        if len(codes) != len(self.modelled):
            raise SchemaError(f"{len(codes)} arrays of codes for {len(self.modelled)} columns")
        if len({len(array) for array in codes}) > 1:
            raise SchemaError("the arrays of codes differ in length")
        rows = len(codes[0]) if codes else 0
        names = [column.name for column in self.modelled]
        by_name = dict(zip(names, self.project(codes), strict=True))
        arrays: dict[str, pa.Array] = {}
        for places in self._places:
            y, x = places.latitude.name, places.longitude.name
            arrays[y], arrays[x] = places.decode(by_name.pop(y), by_name.pop(x), rng)
        ordered = {names[i]: scores[i] for i in self.wide if i in scores}
        arrays |= decoded(self.modelled, by_name, rng, ordered)
        if self.rules:
            arrays |= self._rules.mended(arrays, by_name, rng)
        for name, derived in self.derived.items():
            arrays[name] = derived.computed(arrays)
        for column in self.written:
            if isinstance(column, Identifier):
                arrays[column.name] = column.generate(rows, first)
        return pa.Table.from_arrays(
            [arrays[column.name] for column in self.written], schema=self.arrow_schema
        )

    def illegal(self, table: pa.Table) -> list[str]:
        """Why the table is not one that `decode` can return; an empty list if it is.

        Meant for synthetic rows, which are public: the answer holds counts.
        """
        names, expected = table.schema.names, self.arrow_schema.names
        if names != expected:
            return [f"the columns are {some(names)} and must be {some(expected)}, in this order"]
        found: list[str] = []
        for column, array in zip(self.written, table.columns, strict=True):
            if not same_stored(column.arrow_type, array.type):
                found.append(
                    f"column {column.name!r} has dtype {type_name(array.type)!r} "
                    f"and must have {column.dtype!r}"
                )
                continue
            if array.null_count and not column.nullable:
                found.append(
                    f"column {column.name!r} has {array.null_count} nulls and must have none"
                )
            if column.name in self.derived:  # what it must be is a rule
                continue
            assert isinstance(column, Modelled | Identifier)
            bad = ~column.legal(array) & np.concatenate([valid_of(part) for part in flat(array)])
            if count := int(bad.sum()):
                example = shown(array[int(bad.argmax())])
                found.append(
                    f"column {column.name!r} has {count} values outside its domain, "
                    f"such as {example}"
                )
        if not found:
            for places in self._places:
                y, x = places.latitude.name, places.longitude.name
                if off := int((~places.legal(table.column(y), table.column(x))).sum()):
                    found.append(f"columns {y!r} and {x!r} have {off} places off their mask")
            if self.rules:
                found += self._rules.illegal(table)
        return found

    def breaking(self, table: pa.Table) -> dict[str, Bools]:
        """Which rows of a table break each rule, by what it says: NOT PRIVATE where the rows are.

        Mappings of columns whose values are still to be found are left out.
        """
        if not self.rules:
            return {}
        tokens = {c.name: (*c.null_values, *self.null_values) for c in self.columns}
        own = {c.name: replace(c, null_values=tokens[c.name]) for c in self.columns}
        known = self.resolved(own).largest()
        unknown = {c.name for c in self.undeclared if isinstance(c, UndeclaredCategory)}
        found = known._rules.breaking(table)
        return {r.says: found[r.says] for r in self.rules if not r.words & unknown}

    # Drafts

    @classmethod
    def draft(
        cls, table: Any, *, null_values: Sequence[str] = (), split: str | None = None
    ) -> Schema:
        """A schema to review, from a table: whatever `understudy.read` takes.

        A pair of tables, parents and children in any order, gives a schema of both; so does one table
        in which the column `split` tells parents apart.

        NOT PRIVATE: it reads the rows, and marks in `read_from_rows` what it took from them. No
        release accepts it before `confirm`. `null_values` are texts that stand for null: "TOKEN" in
        every column, "COLUMN=TOKEN" in one.
        """
        from understudy.draft import draft, draft_families, draft_split

        if split is not None:
            return draft_split(table, split, null_values=null_values)
        if isinstance(table, tuple) and len(table) == 2:
            return draft_families(*table, null_values=null_values)
        return draft(table, null_values=null_values)

    def confirm(
        self,
        columns: Iterable[str] | None = None,
        *,
        unit: str | None = None,
        max_rows: int | None = None,
        equal: bool = False,
    ) -> Schema:
        """The same with the marks of a draft cleared, of these columns or of all.

        Whoever calls it states that the marked facts are public. `unit` says who is protected: a
        column that tells people apart, of whose rows `max_rows` count, with `equal` together as one,
        or "row".
        """
        from understudy.draft import confirm

        return confirm(self, columns, unit=unit, max_rows=max_rows, equal=equal)

    def require_confirmed(self) -> None:
        """Refuse a schema that is not fit for a release.

        UnconfirmedError while nobody has said who is protected or it holds facts read from private
        rows, SchemaError while facts are missing or no column is modelled.
        """
        if self.unit_word == OPEN:
            raise UnconfirmedError(self._unanswered())
        if blank := [column for column in self.columns if isinstance(column, Incomplete)]:
            listed = some([f"{c.name!r} ({', '.join(c.missing)})" for c in blank])
            raise SchemaError(
                f"the schema lacks facts: {listed}; fill them in and delete the `missing` lines, "
                "or run `understudy schema draft` on the table"
            )
        if self.marked:
            named = {n: n if n == "[understudy]" else repr(n) for n in self.marked}
            listed = some([f"{named[n]} ({', '.join(m)})" for n, m in self.marked.items()], 3)
            raise UnconfirmedError(
                f"the schema holds facts that were read from private rows: {listed}; check each, "
                "replace what is not public, and delete the `read_from_rows` lines"
            )
        self._require_confirmed_rules()
        if not self.modelled and not self.undeclared:
            raise SchemaError("no column is modelled; declare at least one with a domain")

    def _require_confirmed_rules(self) -> None:
        if read := [repr(rule.says) for rule in self.rules if rule.read_from_rows]:
            raise UnconfirmedError(
                f"the schema holds rules that were read from private rows: {some(read)}; keep those "
                "that are public knowledge and drop the others (understudy schema review)"
            )

    def _unanswered(self) -> str:
        names = [repr(column.name) for column in self.columns if isinstance(column, Identifier)]
        several = f": people may have several rows, told apart by {some(names)}" if names else ""
        return (
            f'the schema leaves open who is protected (unit = "{OPEN}"){several}. Answer with '
            f"`understudy schema review`, or schema.confirm(unit=COLUMN, max_rows=K), where K rows of "
            f"each count, or unit={ROW!r} if one row is all of a person"
        )

    # Files

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema file; SchemaError names the file, the column, the value and the remedy."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SchemaError(
                f"{path}: there is no such file; make one with `understudy schema draft`"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(f"{path}: cannot be read as a schema: {error}") from None
        try:
            return cls.loads(text, Path(path).parent)
        except SchemaError as error:
            raise type(error)(f"{path}: {error}") from None

    @classmethod
    def loads(cls, text: str, folder: Path | None = None) -> Schema:
        """Read a schema from the text of a file; masks that it names are looked up in `folder`."""
        document = toml.parse(text)
        if document.tables:
            from understudy.schema.family import FamilySchema

            return FamilySchema.from_document(document)
        head = document.head
        return cls(
            tuple(toml.build_column(facts, at) for at, facts in enumerate(document.columns, 1)),
            rows_public=head.get("rows_public"),
            null_values=head.get("null_values", ()),
            unit=_unit(head),
            unit_word=_unit_word(head),
            read_from_rows=head.get("read_from_rows", ()),
            geography=tuple(Geography.from_toml(facts, folder) for facts in document.geography),
            rules=tuple(map(Rule.from_toml, document.rules)),
            drop_other_columns=head.get("drop_other_columns", False),
        )

    def _document(self) -> toml.Document:
        """The tables of its file."""
        head: dict[str, Any] = {"rows_public": self.rows_public, "null_values": self.null_values}
        if self.unit is not None:
            head |= {"unit": self.unit.column, "max_rows": self.unit.kept}
            head |= {"weight": EQUAL if self.unit.equal else None}
            head["unit_salt"] = self.unit.salt or None
        elif self.unit_word:
            head["unit"] = self.unit_word
        head["drop_other_columns"] = self.drop_other_columns or None
        head["read_from_rows"] = self.read_from_rows
        return toml.Document(
            {"version": toml.VERSION, **{k: v for k, v in head.items() if v not in (None, ())}},
            [toml.column_facts(column) for column in self.columns],
            [place.facts() for place in self.geography],
            [rule.facts() for rule in self.rules],
        )

    def dumps(self, *, comments: bool = True) -> str:
        """The text of a schema file; `Schema.loads(schema.dumps()) == schema`."""
        return toml.write(self._document(), comments=comments)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a schema file whole or not at all.

        Where there is one of the same columns already, what a person wrote into it is kept: comments,
        order and spelling of all that stays as it was.
        """
        path = Path(path)
        try:
            write(path, self._edited(path))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
            raise SchemaError(f"{path}: cannot be written: {error.strerror}") from None
        except OSError as error:
            raise WorkError(f"{path}: was not written: {error.strerror}") from None

    def _edited(self, path: Path) -> str:
        """The text of the file that is there, with the facts of this schema."""
        try:
            text = path.read_text(encoding="utf-8")
            before = Schema.loads(text, path.parent)
            if before.dumps() != text:
                changed = toml.edited(text, before._document(), self._document())
                if Schema.loads(changed, path.parent) == self:
                    return changed
        except (OSError, UnicodeDecodeError, SchemaError):
            pass
        return self.dumps()

    def digest(self) -> str:
        """SHA-256 of the canonical text: equal for equal schemas, whatever the comments."""
        return hashlib.sha256(self.dumps(comments=False).encode()).hexdigest()


def _unit_word(head: Mapping[str, Any]) -> str:
    """What the head of a file says in place of a column; a column of that name has max_rows."""
    said = head.get("unit")
    return said if said in (ROW, OPEN) and "max_rows" not in head else ""


def _unit(head: Mapping[str, Any]) -> Unit | None:
    """The privacy unit that the head of a file declares."""
    if "unit" not in head or _unit_word(head):
        for key in ("max_rows", "unit_salt", "weight"):
            if key in head:
                raise SchemaError(
                    f"{key} = {head[key]!r} says nothing without a unit; name the column that tells "
                    'people apart, such as unit = "patient_id"'
                )
        return None
    if "max_rows" not in head:
        raise SchemaError(
            f"unit = {head['unit']!r} needs max_rows: how many rows of one {head['unit']} may count, "
            "for instance max_rows = 5; the noise grows with it, rows beyond it are left out. "
            f'unit = "{ROW}" protects single rows'
        )
    if head.get("weight", EQUAL) != EQUAL:
        raise SchemaError(
            f'weight = {head["weight"]!r} must be "{EQUAL}", where all rows of one {head["unit"]} '
            "weigh as much as one row; leave it out where every row counts one"
        )
    make = Unit.sharing if "weight" in head else Unit
    try:
        return make(head["unit"], head["max_rows"], head.get("unit_salt", ""))
    except InputError as error:
        raise SchemaError(str(error)) from None


def _stated(column: Column) -> list[Any]:
    """Values that a column names one by one, special ones as texts."""
    if isinstance(column, Binned):
        return column.labels()[column.size - column.apart : column.cells]
    return [*column.values] if isinstance(column, Category) else []


def nulls_by_column(texts: Iterable[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The texts that stand for null in each column; SchemaError where one names no column."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for text in texts:
        name = _column_of(text, names)
        for each in names if name is None else [name]:
            found[each].append(text if name is None else text[len(name) + 1 :])
    return {name: tuple(dict.fromkeys(tokens)) for name, tokens in found.items()}


def _column_of(text: str, names: Sequence[str]) -> str | None:
    """The column that "COLUMN=TOKEN" names; None for "TOKEN"."""
    if "=" not in text:
        return None
    for name in sorted(names, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name
    name = text.partition("=")[0]
    raise SchemaError(
        f"null {text!r}: there is no column {name!r}{near(name, names)}; write TOKEN, or COLUMN=TOKEN"
    )


def _twice(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)
