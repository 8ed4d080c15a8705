"""What a person has to decide about a draft: few questions, the riskiest first.

A draft marks every fact that it read from private rows (`read_from_rows`). `decisions` makes questions
of the marks: who is protected; columns that name people; lists and bounds that the rows showed; rules;
and, in one question for all columns, types and empty cells. Columns that are alike share a question.
Each says what confirming it would publish. `answered` is the schema after one answer.

Both are pure: they see the schema, never a row. What they say quotes the draft, and is as private.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from understudy.columns.unmodelled import DISCOVER
from understudy.constraints.rule import Comparison, Condition, Dependency, Formula, Rule
from understudy.draft.people import RowsPerUnit
from understudy.draft.typed import parsed, shown
from understudy.errors import SchemaError
from understudy.schema import Column, Identifier, Incomplete, Schema, Text
from understudy.schema.toml import build_column, column_facts
from understudy.units import OPEN, ROW, Unit
from understudy.wording import domain

__all__ = [
    "Choice",
    "Decision",
    "Topic",
    "answered",
    "decision_named",
    "decisions",
]


class Topic(StrEnum):
    """What a decision is about, the riskiest first."""

    UNIT = "unit"
    IDENTIFIERS = "identifiers"
    VALUES = "values"
    BOUNDS = "bounds"
    MISSING = "missing"
    RULES = "rules"
    TYPES = "types"


class Choice(StrEnum):
    """What can be answered."""

    PUBLIC = "public"
    """It is public knowledge as it stands."""
    REPLACE = "replace"
    """Other facts, typed by a person, are."""
    PRIVATE = "private"
    """A release finds it privately, inside its ε."""
    DROP = "drop"
    """The columns are left out."""


@dataclass(frozen=True)
class Decision:
    """One question about a draft: about `columns`, or about rules, by what they say.

    `holds` are lines that say what the draft holds, one or more columns each, and `full` all of it
    where they do not; `reveals` is what answering "public" would publish, `yes` that answer in words,
    `advice` what to think of. NOT PRIVATE, as the draft itself.
    """

    topic: Topic
    columns: tuple[str, ...]
    question: str
    holds: tuple[str, ...]
    reveals: str
    advice: str
    choices: tuple[Choice, ...]
    full: tuple[str, ...] = ()
    yes: str = "It is public knowledge"
    shared: bool = True
    """Whether the same facts would do for all of its columns."""
    form: str = ""
    """Of rules, which are told apart by what they say: their common form."""

    @property
    def key(self) -> str:
        """Its name in a command; the same until it is answered."""
        one = self.topic in (Topic.UNIT, Topic.IDENTIFIERS, Topic.TYPES)
        return str(self.topic) if one else f"{self.topic}:{self.form or self.columns[0]}"

    def of(self, *columns: str) -> Decision:
        """The same about some of its columns alone."""
        return replace(self, columns=columns)


_BOUNDS = ("lower", "upper", "edges", "bins")
_FORM = {
    "type", "dtype", "nullable", "null_values", "decimals", "format", "resolution", "ordinal",
    "other", "max_values", "action",
}  # fmt: skip
"""Facts that hardly depend on single rows; all others have a question of their own."""
_SHORT = 8
"""Lists up to this length are alike where one holds the other; longer ones, by half their values."""
_PAIR = 2
_BINS = 32
_NAMED = 3
_LISTED = 12


def decisions(schema: Schema, seen: Sequence[RowsPerUnit] = ()) -> tuple[Decision, ...]:
    """What is open in a draft, the riskiest first; () where nothing is.

    Pure, and quick. Every mark of `read_from_rows` belongs to exactly one decision. `seen` are the rows
    of single people, for a custodian who may see them.
    """
    open_ = [c for c in schema.columns if _risky(c)]
    lists = [c for c in open_ if _kind(c) == "category"]
    ordered = [c for c in open_ if _kind(c) != "category"]
    alike = _similar_lists(lists)
    pairs = [c for group in alike for c in group if len(_values(group[0])) <= _PAIR]
    found = [
        *_unit(schema, seen),
        *_left_out([c for c in schema.columns if isinstance(c, Identifier | Text)]),
        *(_list(group) for group in alike if len(_values(group[0])) > _PAIR),
        *(_range(group) for group in _similar_ranges(ordered)),
        *([_pairs(pairs)] if pairs else []),
        *(_missing(c) for c in schema.columns if isinstance(c, Incomplete)),
        *_rules(schema),
        *_types([c for c in schema.columns if not isinstance(c, Identifier | Text)]),
    ]
    return tuple(found)


def decision_named(schema: Schema, key: str) -> Decision:
    """The open decision of a name, or, by the name of a column, the riskiest about it alone.

    SchemaError names those that are open.
    """
    found = {decision.key: decision for decision in decisions(schema)}
    if key in found:
        return found[key]
    for decision in found.values():
        if key in decision.columns and decision.topic is not Topic.UNIT:
            return decision.of(key)
    waiting = ", ".join(found) or "none"
    raise SchemaError(f"no open decision is called {key!r}; open are: {waiting}")


# Which columns belong together


def _kind(column: Column) -> str:
    return column_facts(column)["type"]


def _values(column: Column) -> tuple[Any, ...]:
    values = column_facts(column).get("values")
    return values if isinstance(values, tuple) else ()


def _other(column: Column) -> Any:
    """What stands for values that are not listed; None where there is nothing."""
    return column_facts(column).get("other")


def _risky(column: Column) -> bool:
    """Whether a fact that may depend on single rows waits for an answer."""
    own = not isinstance(column, Identifier | Text | Incomplete)
    return own and not _FORM.issuperset(column.read_from_rows)


def _similar_lists(columns: Iterable[Column]) -> list[list[Column]]:
    """Columns whose lists nearly agree together, the longest list of each group and of all first."""
    lists = {column.name: frozenset(_values(column)) for column in columns}
    holders: dict[Any, set[int]] = {}
    """Which groups hold a value: only those can be near."""
    groups: list[list[Column]] = []
    for column in sorted(columns, key=lambda c: -len(lists[c.name])):
        own = lists[column.name]
        candidates = sorted(set().union(*(holders.get(value, ()) for value in own)))
        fitting = [
            at for at in candidates if any(_near(lists[other.name], own) for other in groups[at])
        ]
        at = max(fitting, key=lambda at: len(groups[at]), default=len(groups))
        if at == len(groups):
            groups.append([])
        groups[at].append(column)
        for value in own:
            holders.setdefault(value, set()).add(at)
    return groups


def _near(longer: frozenset[Any], values: frozenset[Any]) -> bool:
    nested = values <= longer and len(longer) <= _SHORT
    return nested or 2 * len(longer & values) >= len(longer | values)


def _similar_ranges(columns: Sequence[Column]) -> list[list[Column]]:
    """Columns of one sort whose names begin or end alike, or else whose bounds agree."""
    marks = {column.name: _marks(column) for column in columns}
    left, groups = list(columns), list[list[Column]]()
    for by_name in (True, False):
        while True:
            found: dict[Any, list[Column]] = {}
            for column in left:
                for mark in marks[column.name]:
                    if (mark[1] != "bounds") is by_name:
                        found.setdefault(mark, []).append(column)
            group = max(found.values(), key=len, default=[])
            if len(group) < 2:
                break
            groups.append(group)
            taken = {column.name for column in group}
            left = [column for column in left if column.name not in taken]
    groups += [[column] for column in left]
    order = {column.name: at for at, column in enumerate(columns)}
    return sorted(groups, key=lambda group: order[group[0].name])


def _marks(column: Column) -> list[tuple[str, str, Any]]:
    sort = "day" if _kind(column).startswith("date") else "number"
    sort = sort if _bounded(column) else "codes"
    words = _words(column.name)
    ends = [(sort, "first", words[0]), (sort, "last", words[-1])] if words else []
    return [*ends, (sort, "bounds", tuple(map(repr, _limits(column))))]


def _bounded(column: Column) -> bool:
    """Whether its bounds wait for an answer, not only codes beside them."""
    return not {"lower", "upper", "edges"}.isdisjoint(column.read_from_rows)


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]


def _limits(column: Column) -> tuple[Any, Any]:
    facts = column_facts(column)
    edges = facts.get("edges")
    return (edges[0], edges[-1]) if edges else (facts.get("lower"), facts.get("upper"))


# What each says


def _unit(schema: Schema, seen: Sequence[RowsPerUnit]) -> list[Decision]:
    open_ = schema.unit_word == OPEN
    if not open_ and "unit" not in schema.read_from_rows:
        return []
    named = [column.name for column in schema.columns if isinstance(column, Identifier)]
    several = [found.column for found in seen]
    named = sorted(named, key=lambda name: name not in several)
    held = f"may tell people apart: {', '.join(named)}"
    if not open_:
        held = "the draft found nobody with several rows, so one row is protected"
    return [
        Decision(
            Topic.UNIT,
            tuple(named),
            "Does one person have several rows?",
            (held, *map(str, seen)),
            "who is protected"
            + ("" if open_ else ": one row; and that no column names somebody with several"),
            "If one person has several rows and every row is protected by itself, the promise is "
            "weaker than it sounds: name the column that tells people apart, and how many rows of "
            "one person may count. More rows need more noise; rows beyond the number are left out.",
            (Choice.REPLACE,) if open_ else (Choice.PUBLIC, Choice.REPLACE),
            yes="No: every row is another person",
        )
    ]


def _left_out(columns: Sequence[Column]) -> list[Decision]:
    marked = [column for column in columns if column.read_from_rows]
    if not marked:
        return []
    names = [column.name for column in marked]
    texts = [column.name for column in marked if isinstance(column, Text)]
    held = [f"{', '.join(names)}"] + ([f"free text: {', '.join(texts)}"] if texts else [])
    return [
        Decision(
            Topic.IDENTIFIERS,
            tuple(names),
            f"Is it right to leave out {_some(names)}?",
            (*held,),
            f"that {_some(names)} {'name' if len(names) > 1 else 'names'} people or things, or "
            f"{'are' if len(names) > 1 else 'is'} free text; none of the values",
            "A column whose values belong to one or few rows each cannot be released. Give a column "
            "that should be modelled another type in the schema file.",
            (Choice.PUBLIC,),
            yes="Yes: leave them out" if len(names) > 1 else "Yes: leave it out",
        )
    ]


def _list(group: Sequence[Column]) -> Decision:
    first, names = group[0], tuple(column.name for column in group)
    values, count = _values(first), len(_values(first))
    seen = "values that many rows have in" if _other(first) is not None else "values seen in"
    if len(group) == 1:
        question = f"Is the list of values of {first.name} public knowledge?"
        reveals = f"the {count} {seen} {first.name}{_such(values)}"
    else:
        question = f"Are the similar lists of {_some(names)} public knowledge?"
        reveals = f"the {seen} each of {len(group)} columns{_such(values)}"
        shorter = [c for c in group if len(_values(c)) < count <= _SHORT]
        if shorter:
            lacking = [v for v in values if v not in _values(shorter[-1])]
            few = "nobody has" if _other(shorter[-1]) is None else "hardly anybody has"
            reveals += f"; and that {few} {_quoted(lacking)} in {shorter[-1].name}"
    long = count > 4 * _SHORT
    rare = "A list of many values holds rare ones, and a rare value can point to one person. "
    choices = (Choice.PUBLIC, Choice.REPLACE, Choice.PRIVATE, Choice.DROP)
    if long:
        choices = (Choice.PRIVATE, Choice.REPLACE, Choice.DROP, Choice.PUBLIC)
    return Decision(
        Topic.VALUES,
        names,
        question,
        _held(group),
        reveals,
        (rare if long else "")
        + "Confirm what a form, a code book or a law lists; replace it by that list otherwise.",
        _possible(group, *choices),
        _full(group),
    )


def _pairs(columns: Sequence[Column]) -> Decision:
    names = tuple(column.name for column in columns)
    return Decision(
        Topic.VALUES,
        names,
        f"Are the one or two values of {_some(names)} public knowledge?",
        _held(columns),
        "; ".join(f"{c.name} is {_quoted(_values(c), ' or ')}" for c in columns[:_NAMED])
        + (f"; and so on for {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""),
        "A single value tells that everybody has it.",
        _possible(columns, Choice.PUBLIC, Choice.REPLACE, Choice.PRIVATE, Choice.DROP),
        shared=False,
    )


def _range(group: Sequence[Column]) -> Decision:
    names = tuple(column.name for column in group)
    reveals = "; ".join(_extremes(column) for column in group[:_NAMED])
    more = f"; and the same of {len(group) - _NAMED} more" if len(group) > _NAMED else ""
    bounded = _bounded(group[0])
    choices = (Choice.PUBLIC, Choice.REPLACE, Choice.PRIVATE, Choice.DROP)
    return Decision(
        Topic.BOUNDS,
        names,
        f"Are the {'bounds' if bounded else 'codes'} of {_some(names)} public knowledge?",
        _held(group),
        reveals + more,
        "The largest and the smallest value are often one person's. Replace them by the limits of a "
        "form or by round numbers that anyone would choose."
        if bounded
        else "A code book should name them; correct them in the schema file where it does not.",
        _possible(group, *choices) if bounded else (Choice.PUBLIC, Choice.DROP),
        shared=False,
    )


def _extremes(column: Column) -> str:
    """What the bounds of a column tell about its rows; a draft may have rounded them outward."""
    name, (lower, upper) = column.name, (shown(limit) for limit in _limits(column))
    marks, codes = column.read_from_rows, ""
    if "special" in marks:
        codes = f"that {name} has the codes {_quoted(column_facts(column).get('special', ()))}"
    if not _bounded(column):
        return codes or f"{', '.join(mark for mark in marks if mark not in _FORM)} of {name}"
    if "edges" in marks:
        told = f"where the rows of {name} lie, by the edges of cells from {lower} to {upper}"
    elif _kind(column).startswith("date"):
        told = f"that {name} goes from about {lower} to about {upper}"
    else:
        least = "" if lower in ("0", "0.0", "1", "1.0") else f", and somebody {lower}"
        told = f"that somebody has {name} of about {upper}{least}"
    return f"{told}; {codes}" if codes else told


def _missing(column: Incomplete) -> Decision:
    facts = " and ".join(column.missing)
    return Decision(
        Topic.MISSING,
        (column.name,),
        f"What may {column.name} hold?",
        (f"{column.name}: {domain(column)}",),
        "nothing yet: the draft found no value",
        f"State its {facts}, or leave the column out.",
        _possible([column], Choice.REPLACE, Choice.PRIVATE, Choice.DROP),
    )


_RULES = {
    Dependency: "mappings",
    Formula: "sums",
    Comparison: "comparisons",
    Condition: "conditions",
}


def _rules(schema: Schema) -> list[Decision]:
    """Rules of one form together; a person answers for each."""
    groups: dict[str, list[Rule]] = {}
    for rule in schema.rules:
        if rule.read_from_rows:
            groups.setdefault(_RULES[type(rule.form)], []).append(rule)
    return [_ruled(form, groups[form]) for form in _RULES.values() if form in groups]


def _ruled(form: str, group: Sequence[Rule]) -> Decision:
    one = len(group) == 1
    pairs = sum(len(rule.mapping) + len(rule.values) for rule in group)
    told = f"; and {pairs} values of one column for those of another" if pairs else ""
    says = tuple(rule.says for rule in group)
    more = f", and {len(says) - _NAMED} more" if len(says) > _NAMED else ""
    broken = ", ".join(f"“{rule}”" for rule in says[:_NAMED]) + more
    return Decision(
        Topic.RULES,
        says,
        f"Is the rule {group[0].says} public knowledge?"
        if one
        else f"Which of these {len(group)} rules are public knowledge?",
        tuple(map(_how, group)),
        f"that no row of the table breaks {broken}{told}",
        "A rule from a law, a form or arithmetic is public. One that merely held in these rows is not, "
        "and every synthetic row would keep it.",
        (Choice.PUBLIC, Choice.DROP),
        form=form,
    )


def _how(rule: Rule) -> str:
    """A rule, and the values that it gives, in a few words."""
    pairs = [f"{key} → {value}" for key, value in rule.mapping]
    pairs += [f"{value} from {cut}" for cut, value in zip(rule.cuts, rule.values[1:], strict=False)]
    more = f", … ({len(pairs)} in all)" if len(pairs) > _NAMED else ""
    return f"{rule.says}: {', '.join(pairs[:_NAMED])}{more}" if pairs else rule.says


def _types(columns: Sequence[Column]) -> list[Decision]:
    marked = [c for c in columns if _FORM.intersection(c.read_from_rows)]
    if not marked:
        return []
    empty = [c.name for c in marked if c.nullable]
    tokens = sorted({token for c in marked for token in c.null_values})
    kinds: dict[str, int] = {}
    for column in marked:
        kinds[_kind(column)] = kinds.get(_kind(column), 0) + 1
    words = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    filled = f"no cell is empty in {_counted(marked, 'column')}"
    if empty:
        filled = f"cells may be empty in {_some(empty)}, and in no other column"
    written = f", written as {_quoted(tokens)}" if tokens else ""
    return [
        Decision(
            Topic.TYPES,
            tuple(column.name for column in marked),
            "Are types, empty cells and their spelling right?",
            (f"types: {words}", filled + written),
            f"which columns have empty cells ({len(empty)} of {len(marked)}) and how numbers and "
            "dates are written",
            "That a column has no empty cell is seldom a secret. Where it is, say that every column "
            "may have some.",
            (Choice.PUBLIC, Choice.REPLACE),
            yes="They are right, and public",
        )
    ]


def _held(columns: Sequence[Column]) -> tuple[str, ...]:
    """A line for each domain, with the columns that have it."""
    lines: dict[str, list[str]] = {}
    for column in columns:
        lines.setdefault(_domain(column, _LISTED), []).append(column.name)
    return tuple(f"{_some(names)}: {words}" for words, names in lines.items())


def _domain(column: Column, most: int | None) -> str:
    values = _values(column)
    if not values:
        return domain(replace(column, nullable=False))
    more = "" if most is None or len(values) <= most else f", … ({len(values)} in all)"
    other = "" if _other(column) is None else "; all others are one value"
    return shown(values[:most]) + more + other


def _full(columns: Sequence[Column]) -> tuple[str, ...]:
    """Every value of every column, where `_held` leaves some out."""
    if all(len(_values(column)) <= _LISTED for column in columns):
        return ()
    return tuple(f"{column.name}: {_domain(column, None)}" for column in columns)


def _counted(items: Sequence[Any], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    if len(names) <= _NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def _such(values: Sequence[Any]) -> str:
    return f"{', such as' if len(values) > _NAMED else ':'} {_quoted(values)}"


def _quoted(values: Sequence[Any], between: str = ", ") -> str:
    some = between.join(shown(value) for value in values[:_NAMED])
    return some + (", …" if len(values) > _NAMED else "")


# Answers


def answered(schema: Schema, decision: Decision, choice: Choice, text: str = "") -> Schema:
    """The schema after an answer, with the marks that it settles cleared.

    `text` goes with `Choice.REPLACE`: values between commas; bounds as "0 to 120"; a column and the
    number of its rows that count as "patient_id 5"; of types, the columns whose cells may be empty, or
    "all". It holds for every column of the decision; `Decision.of` makes one of a single column.

    Raises:
        InputError: The choice is not one of the decision's, or the text cannot be one.
    """
    if choice not in decision.choices:
        known = ", ".join(decision.choices)
        raise SchemaError(f"{decision.key} cannot be answered by {choice}; choose one of: {known}")
    if choice is Choice.REPLACE and not decision.shared and len(decision.columns) > 1:
        raise SchemaError(
            f"{decision.key} is about {len(decision.columns)} columns that differ; give new facts for "
            f"one at a time, by its name: {', '.join(decision.columns)}"
        )
    if decision.topic is Topic.UNIT:
        return _protected(schema, choice, text)
    if decision.topic is Topic.RULES:
        return _about_rules(schema, decision.columns, choice)
    changed: dict[str, Column] = {}
    for column in schema.columns:
        if column.name in decision.columns:
            changed[column.name] = _answer(column, decision.topic, choice, text)
    if decision.topic is Topic.TYPES and choice is Choice.REPLACE:
        changed = _empty(changed, text)
    try:
        return schema.resolved(changed)
    except SchemaError:  # what a draft read from rows about these columns does not hold any more
        proposed = [r.says for r in schema.rules if r.read_from_rows and r.words & set(changed)]
        if not proposed:
            raise
        return _about_rules(schema, proposed, Choice.DROP).resolved(changed)


def _about_rules(schema: Schema, says: Sequence[str], choice: Choice) -> Schema:
    """The schema with rules of a draft confirmed, or without them."""
    rules: list[Rule] = []
    for rule in schema.rules:
        if rule.says not in says or not rule.read_from_rows:
            rules.append(rule)
        elif choice is Choice.PUBLIC:
            rules.append(replace(rule, read_from_rows=False))
    return replace(schema, rules=tuple(rules))


def _answer(column: Column, topic: Topic, choice: Choice, text: str) -> Column:
    if choice is Choice.DROP:
        return Identifier(column.name)
    if topic is Topic.TYPES:
        return _unmarked(column, _FORM)
    if choice is Choice.PUBLIC:
        every = topic is Topic.IDENTIFIERS
        settled = set(column.read_from_rows) - (set() if every else _FORM)
        return _unmarked(column, settled)
    return _openly(column) if choice is Choice.PRIVATE else _replaced(column, text)


def _unmarked(column: Column, settled: Iterable[str]) -> Column:
    left = tuple(mark for mark in column.read_from_rows if mark not in set(settled))
    return replace(column, read_from_rows=left)


def _protected(schema: Schema, choice: Choice, text: str) -> Schema:
    """The schema with an answer to who is protected; what tells people apart is never modelled."""
    if choice is Choice.PUBLIC or text.strip() == ROW:
        return schema.protecting(None)
    name, _, most = text.strip().rpartition(" ")
    found = {column.name: column for column in schema.columns}.get(name)
    if found is None or not (most.isascii() and most.isdigit()):
        raise SchemaError(
            f"{text.strip()!r} does not say who is protected; write {ROW}, or the column that tells "
            "people apart and how many rows of one of them count, such as patient_id 5"
        )
    if not isinstance(found, Identifier):
        schema = schema.resolved({name: Identifier(name)})
    return schema.protecting(Unit(name, int(most)))


def _empty(columns: Mapping[str, Column], text: str) -> dict[str, Column]:
    names = list(columns) if text.strip() == "all" else [n.strip() for n in text.split(",")]
    for name in names:
        if name and name not in columns:
            raise SchemaError(f"{name!r} is none of the columns in question; write names, or all")
    return {name: replace(c, nullable=name in names) for name, c in columns.items()}


def _rebuilt(column: Column, without: Iterable[str], **facts: Any) -> Column:
    """The column with other facts in place of some; what waited because of those is settled."""
    gone = {*without, *facts}
    kept = {key: value for key, value in column_facts(column).items() if key not in gone}
    marks = [mark for mark in column.read_from_rows if mark not in gone]
    kept["missing"] = [key for key in kept.get("missing", ()) if key not in gone]
    return build_column({**kept, **facts, "read_from_rows": marks})


def _openly(column: Column) -> Column:
    """The column without a domain: a release finds it."""
    if _kind(column) == "category":
        other = column_facts(column).get("other", "OTHER")
        return _rebuilt(column, ("ordinal",), values=DISCOVER, other=other)
    return _rebuilt(column, _BOUNDS)


def _replaced(column: Column, text: str) -> Column:
    """The column with the facts that somebody typed."""
    kind = _kind(column)
    if not text.strip():
        raise SchemaError(f"column {column.name!r}: nothing was given in place of its facts")
    if kind == "category":
        values = parsed(column, "values", kind, text, commas=True)
        return _rebuilt(column, (), values=values)
    limits = re.split(r"\s+to\s+|\.\.", text.strip())
    if len(limits) != 2:
        raise SchemaError(
            f"column {column.name!r}: {text.strip()!r} must be two bounds, such as 0 to 120"
        )
    lower, upper = (
        parsed(column, key, kind, limit)
        for key, limit in zip(("lower", "upper"), limits, strict=True)
    )
    cuts = {key: v for key, v in column_facts(column).items() if key == "bins"}
    for bins in (cuts, {}):
        try:
            return _rebuilt(column, _BOUNDS, lower=lower, upper=upper, **bins)
        except SchemaError:
            continue
    return _rebuilt(column, _BOUNDS, lower=lower, upper=upper, bins=_BINS)


def _possible(columns: Sequence[Column], *choices: Choice) -> tuple[Choice, ...]:
    """Those of the choices that the columns can be answered by."""
    try:
        for column in columns:
            _openly(column)
    except SchemaError:  # only texts can be discovered
        return tuple(choice for choice in choices if choice is not Choice.PRIVATE)
    return choices
