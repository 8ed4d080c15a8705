"""What a person has to decide about a draft: few questions, the riskiest first.

A draft marks every fact that it read from private rows (`read_from_rows`). `decisions` makes questions
of the marks: who is protected; columns that name people; lists and bounds that the rows showed; rules;
and, in one question for all columns, types and empty cells. Each says what confirming it would publish.
Columns of the same kind and risk share a question: lists that are alike, other short lists, lists of
two values, codes among numbers, bounds; and so do all rules. A long list, whose rare values may point
to somebody, has a question of its own. `opened` asks about every line of a shared question by itself,
`again` about what was answered. `answered` is the schema after one answer.

All are pure: they see the schema, never a row. What they say quotes the draft, and is as private.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from understudy.columns.base import near, some
from understudy.constraints.rule import Comparison, Condition, Dependency, Formula, Rule
from understudy.draft.alike import SHORT, bounded, kind_of, limits_of, similar_lists, values_of
from understudy.draft.answers import (
    FORM,
    Choice,
    Decision,
    Option,
    Topic,
    counts_as,
    possible,
    unlisted,
)
from understudy.draft.names import Name
from understudy.draft.people import RowsPerUnit
from understudy.draft.typed import shown
from understudy.errors import SchemaError
from understudy.schema import Category, Column, Identifier, Incomplete, Schema, Text
from understudy.schema.family import FamilySchema
from understudy.schema.toml import column_facts
from understudy.units import OPEN, ROW
from understudy.wording import domain, point

_LISTS = "Confirm what a form, a code book or a law lists; say which are not, and answer for those."
_UNLISTED = " A line without “others count as” holds every value of the table."
_CODES = " Releases find texts privately, not codes that are numbers: list these."
_PAIR = 2
_NAMED = 3
_SOME = _NAMED + 1
_LONG = 20
"""Lists up to this length are shown whole, so that one question is enough for several of them."""


def decisions(schema: Schema, seen: Sequence[RowsPerUnit] = ()) -> tuple[Decision, ...]:
    """What is open in a draft, the riskiest first; () where nothing is.

    Pure, and quick. Every mark of `read_from_rows` belongs to exactly one decision. `seen` are the rows
    of single people, for a custodian who may see them.
    """
    if isinstance(schema, FamilySchema):
        return _of_family(schema, seen)
    open_ = [c for c in schema.columns if _risky(c)]
    lists = [c for c in open_ if kind_of(c) == "category"]
    ordered = [c for c in open_ if kind_of(c) != "category"]
    alike = similar_lists(lists)
    pairs = [c for group in alike for c in group if len(values_of(group[0])) <= _PAIR]
    longer = [group for group in alike if len(values_of(group[0])) > _PAIR]
    short = [g[0] for g in longer if len(g) == 1 and len(values_of(g[0])) <= _LONG]
    marked = [c for c in schema.columns if isinstance(c, Identifier | Text) and c.read_from_rows]
    coded = [c for c in ordered if not bounded(c)]
    ranged = [c for c in ordered if bounded(c)]
    found = [
        *_unit(schema, seen),
        *([_left_out(marked, schema)] if marked else []),
        *(_list(group) for group in longer if group[0] not in short),
        *([_short(short)] if short else []),
        *([_codes(coded)] if coded else []),
        *([_bounds(ranged)] if ranged else []),
        *([_pairs(pairs)] if pairs else []),
        *(_missing(c) for c in schema.columns if isinstance(c, Incomplete)),
        *_rules(schema),
        *_types([c for c in schema.columns if not isinstance(c, Identifier | Text)]),
    ]
    equal = schema.unit is not None and schema.unit.equal
    return tuple(map(_declared, found) if equal else found)


def opened(schema: Schema, decision: Decision) -> tuple[Decision, ...]:
    """A question for each line of a shared one; () where there is nothing to open."""
    if isinstance(schema, FamilySchema) and decision.table:
        own = schema.named[decision.table]
        parts = opened(own, replace(decision, table=""))
        return tuple(_of_table(decision.table, part) for part in parts)
    if len(decision.parts) < _PAIR:
        return ()
    if decision.topic is Topic.RULES:
        rules = {rule.says: rule for rule in schema.rules}
        return tuple(_ruled([rules[says]]) for (says,) in decision.parts)
    columns = {column.name: column for column in schema.columns}
    bounds = _codes if decision.group else _bounds
    make = bounds if decision.topic is Topic.BOUNDS else _list
    made = [make([columns[name] for name in names]) for names in decision.parts]
    return tuple(replace(part, shared=True) for part in made)


def decision_named(schema: Schema, key: str) -> Decision:
    """The open decision of a name, or, by the name of a column, the riskiest about it alone.

    SchemaError names those that are open.
    """
    found = {decision.key: decision for decision in decisions(schema)}
    if key in found:
        return found[key]
    for decision in found.values():
        own = key.removeprefix(f"{decision.topic}:")
        own = own.removeprefix(f"{decision.table}.") if decision.table else own
        if own in decision.columns and decision.topic not in (Topic.UNIT, Topic.TYPES):
            return decision.of(own)
    waiting = ", ".join(found) or "none"
    columns = [column.name for column in schema.columns]
    name, named = key.rpartition(":")[2], [each for each in found if ":" not in each]
    if name in columns:
        what = f"nothing is open about {key!r}; to change what was answered, use --set or edit the file"
    else:
        what = f"no open decision is called {key!r}{near(name, [*named, *columns])}"
    raise SchemaError(f"{what}. Open decisions: {waiting}")


def again(schema: Schema, name: str, seen: Sequence[RowsPerUnit] = ()) -> Decision:
    """A question that may have been answered, to answer it anew: `unit`, `family`, or of a column.

    A column of two tables is named as `TABLE.COLUMN`; of one that is left out there is no question,
    as only a schema file gives it a type.

    Raises:
        SchemaError: There is no such question.
    """
    if isinstance(schema, FamilySchema):
        if name == Topic.FAMILY:
            return _belonging(schema, seen)
        for table, own in schema.named.items():
            if name.startswith(f"{table}."):
                return _of_table(table, again(own, name.removeprefix(f"{table}.")))
    elif name == Topic.UNIT:
        return _who(schema, seen)
    column = next((c for c in schema.columns if c.name == name), None)
    if column is None or isinstance(column, Identifier | Text):
        raise SchemaError(f"{name!r} is no column that a release models; edit the schema file")
    return _holding(column, "what you state", "What you state is published with every release.")


def consequences(before: Schema, after: Schema, key: str) -> tuple[str, ...]:
    """What the answer to the decision `key` did beside it, a sentence each.

    A value of the rows that a list lacks counts as another one; a rule that needs what was declared is
    dropped; and a question that has nothing left to ask is not asked.
    """
    told = left_out(before, after)
    kept, asked = {rule.says for rule in after.rules}, decisions(after)
    if not key.startswith(Topic.RULES):
        gone = [rule.says for rule in before.rules if rule.says not in kept]
        if gone:
            rules, need = f"{len(gone)} rules were", "they need"
            if len(gone) == 1:
                rules, need = "A rule was", "it needs"
            told.append(f"{rules} dropped with it, as {need} what was declared: {'; '.join(gone)}.")
    for each in decisions(before):
        still = any(
            (a.topic, a.table) == (each.topic, each.table) and set(a.columns) & set(each.columns)
            for a in asked
        )
        if each.key != key and not still and not key.startswith(each.topic):
            told.append(f"With it, a question has nothing left to ask: {each.question}")
    return tuple(told)


def left_out(before: Schema, after: Schema) -> list[str]:
    """What becomes of values that a draft read from the rows and a list leaves out."""
    if isinstance(before, FamilySchema) and isinstance(after, FamilySchema):
        pairs = zip(before.tables[:2], after.tables[:2], strict=True)
        return [line for old, new in pairs for line in left_out(old, new)]
    now, told = {column.name: column for column in after.columns}, list[str]()
    others: dict[str, list[str]] = {}
    for old in before.columns:
        new = now.get(old.name)
        if not isinstance(new, Category):
            continue
        if missing := unlisted(old, new):
            told.append(
                f"The table holds {some(missing)}, not in the list of {old.name}: rows with it count "
                f"as {counts_as(new)}."
            )
        closed = isinstance(old, Category) and old.other is not None and new.other is None
        if closed and old.read_from_rows:
            others.setdefault(counts_as(new), []).append(old.name)
    for counted, names in others.items():
        told.append(f"A value of {_some(names)} that is not listed would count as {counted}.")
    return told


def _of_family(schema: FamilySchema, seen: Sequence[RowsPerUnit]) -> tuple[Decision, ...]:
    """How the two tables belong together, then each of them; nothing is found privately."""
    _, _, family = schema.tables
    found = [_belonging(schema, seen)] if family.read_from_rows else []
    for name, table in schema.named.items():
        found += [_of_table(name, each) for each in decisions(replace(table, rules=()))]
    found += _rules(schema)
    return tuple(sorted(found, key=lambda each: list(Topic).index(each.topic)))


def _of_table(name: str, decision: Decision) -> Decision:
    decision = _declared(decision)
    return replace(decision, table=name, question=f"{name}: {decision.question}")


def _declared(decision: Decision) -> Decision:
    """The same where releases find nothing privately."""
    choices = tuple(c for c in decision.choices if c is not Choice.PRIVATE)
    default = decision.default if decision.default in choices else None
    return replace(decision, choices=choices, default=default)


def _belonging(schema: FamilySchema, seen: Sequence[RowsPerUnit]) -> Decision:
    parents, _, family = schema.tables
    own = ", ".join(column.name for column in parents.columns if column.name != family.key)
    order = "none" if family.order is None else f"by {family.order}"
    least = "at least one" if family.min_children else "perhaps none"
    return Decision(
        Topic.FAMILY,
        (family.parent, family.child),
        f"Does one row of {family.parent} have several of {family.child}?",
        (
            f"{family.child}.{family.foreign_key} names the row of {family.parent} with that "
            f"{family.key}",
            f"each has {least}, and max_children = {family.max_children} of them count",
            f"order of {family.child}: {order}",
            f"columns of {family.parent}, the same for all its {family.child}: {own}",
            *map(str, seen),
        ),
        f"that one row of {family.parent} seldom has more than {family.max_children} of {family.child}"
        + ("" if family.min_children else ", and that some may have none"),
        f"The promise protects one row of {family.parent} with all its rows of {family.child}. A "
        "larger max_children needs no more noise, and a release makes no larger family. Of more, "
        + ("the first in their order count." if family.order else "a random choice counts."),
        (Choice.PUBLIC, Choice.REPLACE),
        yes="Yes: that is how they belong together, and public",
    )


def _other(column: Column) -> Any:
    """What stands for values that are not listed; None where there is nothing."""
    return column_facts(column).get("other")


def _risky(column: Column) -> bool:
    """Whether a fact that may depend on single rows waits for an answer."""
    own = not isinstance(column, Identifier | Text | Incomplete)
    return own and not FORM.issuperset(column.read_from_rows)


# What each says


def _unit(schema: Schema, seen: Sequence[RowsPerUnit]) -> list[Decision]:
    if schema.unit_word != OPEN and "unit" not in schema.read_from_rows:
        return []
    return [_who(schema, seen)]


def _who(schema: Schema, seen: Sequence[RowsPerUnit]) -> Decision:
    open_ = schema.unit_word == OPEN
    named = [found.column for found in seen]
    named = named or [c.name for c in schema.columns if isinstance(c, Identifier)]
    named.sort(key=lambda name: not Name(name).of_a_person)
    why = "identifiers with several rows of one value" if seen else "identifiers"
    held = f"may tell people apart ({why}): {', '.join(named) or 'none found'}"
    if schema.unit is not None:
        held = f"one {schema.unit} is protected"
    elif not open_:
        held = "the draft found nobody with several rows, so one row is protected"
    return Decision(
        Topic.UNIT,
        tuple(named),
        "Does one person have several rows?",
        (held, *(found.several for found in seen)),
        "who is protected"
        + ("" if open_ else ": one row; and that no column names somebody with several"),
        "If one person has several rows, protect the person: name the column that tells people apart, "
        "and how many rows of one count. Further rows are left out of every figure; a larger number "
        'needs more noise. Rows may also count together as one (weight = "equal"), with the noise of '
        "one row, where every list and every bound is declared.",
        (Choice.REPLACE,) if open_ else (Choice.PUBLIC, Choice.REPLACE),
        yes="No: every row is another person",
        options=tuple(_units(schema, seen)),
    )


def _units(schema: Schema, seen: Sequence[RowsPerUnit]) -> Iterator[Option]:
    """Who may be protected, with what each choice costs."""
    for found in seen:
        for most, words in found.sensible():
            yield Option(f"{found.column} {most}", words)
    if schema.unit_word == OPEN:
        yield Option(ROW, "every row by itself: no two rows are of one person")


def _left_out(columns: Sequence[Column], schema: Schema) -> Decision:
    names = [column.name for column in columns]
    texts = [column.name for column in columns if isinstance(column, Text)]
    held = [", ".join(names)]
    held += [f"free text, empty, or not read: {', '.join(texts)}"] if texts else []
    if schema.unit is not None and schema.unit.column in names:
        held.append(f"({schema.unit.column} is still used to tell people apart)")
    return Decision(
        Topic.IDENTIFIERS,
        tuple(names),
        f"Is it right to leave out {_some(names)}?",
        (*held,),
        f"that {_some(names)} {'name' if len(names) > 1 else 'names'} people or things"
        f"{', or hold nothing that is modelled' if texts else ''}, and no value of them",
        "They are left out of every release. To keep one, give it another type in the schema file, "
        'such as type = "category" and values = "discover".',
        (Choice.PUBLIC,),
        yes="Yes: leave them out" if len(names) > 1 else "Yes: leave it out",
        default=Choice.PUBLIC,
    )


def _list(group: Sequence[Column]) -> Decision:
    first, names = group[0], tuple(column.name for column in group)
    values, count = values_of(first), len(values_of(first))
    seen = "values that ten rows or more have in" if _other(first) is not None else "values seen in"
    if len(group) == 1:
        question = f"Is the list of values of {first.name} public knowledge?"
        reveals = f"the {count} {seen} {first.name}{_such(values)}"
    else:
        question = f"Are the similar lists of {_some(names)} public knowledge?"
        reveals = f"the {seen} {_some(names)}{_such(values)}"
        shorter = [c for c in group if len(values_of(c)) < count <= SHORT]
        if shorter:
            lacking = [v for v in values if v not in values_of(shorter[-1])]
            few = "nobody has" if _other(shorter[-1]) is None else "hardly anybody has"
            reveals += f"; and that {few} {_quoted(lacking)} in {shorter[-1].name}"
    long = count > _LONG
    rare = "A list of many values holds rare ones, and a rare value can point to one person. "
    choices = possible(group, *Choice)
    why = "" if Choice.PRIVATE in choices else _CODES
    if long:
        order = (Choice.PRIVATE, Choice.REPLACE, Choice.DROP, Choice.PUBLIC)
        choices = tuple(choice for choice in order if choice in choices)
    holds, parts = _lines(group)
    return Decision(
        Topic.VALUES,
        names,
        question,
        holds,
        reveals,
        (rare if long else "")
        + "Confirm what a form, a code book or a law lists; replace it by that list otherwise."
        + (_UNLISTED if any(_other(column) is None for column in group) else "")
        + why,
        choices,
        _full(group),
        parts=parts,
        options=_one_list(group),
        default=Choice.PRIVATE if long and Choice.PRIVATE in choices else None,
    )


def _one_list(group: Sequence[Column]) -> tuple[Option, ...]:
    """The longest list for all of them, which does not tell them apart."""
    values = values_of(group[0])
    if len(values) > SHORT or all(set(values_of(column)) == set(values) for column in group):
        return ()
    if any(set(values_of(column)) - set(values) for column in group):
        return ()
    listed = ", ".join(shown(value) for value in values)
    words = f"Any of the {len(group)} columns may hold {listed} (hides which have fewer)"
    return (Option(listed, words),)


def _together(
    topic: Topic, columns: Sequence[Column], what: str, reveals: str, advice: str
) -> Decision:
    """One question about what several columns hold, a line for each domain."""
    names = tuple(column.name for column in columns)
    holds, parts = _lines(columns)
    choices = max((possible([column], *Choice) for column in columns), key=len)
    question = f"Are the {what} of {_some(names)} public knowledge?"
    asked = Decision(topic, names, question, holds, reveals, advice, choices, parts=parts)
    return replace(asked, shared=len(columns) == 1)


def _pairs(columns: Sequence[Column]) -> Decision:
    told = [
        f"that {c.name} is {'' if _other(c) is None else 'hardly ever anything but '}"
        f"{_quoted(values_of(c), ' or ')}"
        for c in columns[:_NAMED]
    ]
    more = [f"and so on for {len(columns) - _NAMED} more"] if len(columns) > _NAMED else []
    alone = any(len(values_of(c)) == 1 for c in columns)
    advice = "A single value tells that everybody has it." if alone else _LISTS
    return _lists(columns, "one or two values", "pairs", "; ".join(told + more), advice)


def _short(columns: Sequence[Column]) -> Decision:
    if len(columns) == 1:
        return replace(_list(columns), group="short")
    told = f"the values seen in {_some([column.name for column in columns])}"
    return _lists(columns, "short lists of values", "short", told, _LISTS)


def _lists(columns: Sequence[Column], what: str, group: str, reveals: str, advice: str) -> Decision:
    """One question about lists that differ; each can be answered by itself."""
    advice += _UNLISTED if any(_other(column) is None for column in columns) else ""
    return replace(_together(Topic.VALUES, columns, what, reveals, advice), group=group)


def _bounds(columns: Sequence[Column]) -> Decision:
    """One question about the bounds of numbers and dates, the same bounds in one line."""
    advice = (
        "The largest and the smallest value point to few people. Replace them by the limits of a form "
        "or by round numbers that anyone would choose. A draft leaves out rare values at "
        "the ends: rows that lie beyond its bounds count as the bound."
    )
    return _together(Topic.BOUNDS, columns, "bounds", _ends(columns), advice)


def _codes(columns: Sequence[Column]) -> Decision:
    """One question about codes among numbers, whose bounds are not open."""
    advice = "A code book should name them; correct them in the schema where it does not."
    asked = _together(Topic.BOUNDS, columns, "codes", _ends(columns), advice)
    return replace(asked, choices=(Choice.PUBLIC, Choice.DROP), shared=True, group="codes")


def _ends(columns: Sequence[Column]) -> str:
    more = f"; and the same of {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return "; ".join(_extremes(column) for column in columns[:_NAMED]) + more


def _extremes(column: Column) -> str:
    """What the bounds of a column tell about its rows; a draft may have rounded them outward."""
    name, (lower, upper) = column.name, map(point, limits_of(column))
    marks, codes = column.read_from_rows, ""
    if "special" in marks:
        codes = f"that {name} has the codes {_quoted(column_facts(column).get('special', ()))}"
    if not bounded(column):
        return codes or f"{', '.join(mark for mark in marks if mark not in FORM)} of {name}"
    if "edges" in marks:
        told = f"where the rows of {name} lie, by the edges of cells from {lower} to {upper}"
    else:
        told = f"that nearly all rows of {name} lie between about {lower} and {upper}"
    return f"{told}; {codes}" if codes else told


def _missing(column: Incomplete) -> Decision:
    advice = f"State its {' and '.join(column.missing)}, or leave the column out."
    return _holding(column, "nothing yet: the draft found no value", advice)


def _holding(column: Column, reveals: str, advice: str) -> Decision:
    return Decision(
        Topic.MISSING,
        (column.name,),
        f"What may {column.name} hold?",
        (f"{column.name}: {domain(column)}",),
        reveals,
        advice,
        possible([column], Choice.REPLACE, Choice.PRIVATE, Choice.DROP),
    )


_FORMS = (Dependency, Formula, Comparison, Condition)


def _rules(schema: Schema) -> list[Decision]:
    """All rules together, those of one form one after the other; a person answers for each."""
    proposed = [rule for rule in schema.rules if rule.read_from_rows]
    proposed.sort(key=lambda rule: _FORMS.index(type(rule.form)))
    return [_ruled(proposed)] if proposed else []


def _ruled(rules: Sequence[Rule]) -> Decision:
    pairs = sum(len(rule.mapping) + len(rule.values) for rule in rules)
    told = f"; and {pairs} values of one column for those of another" if pairs else ""
    says = tuple(rule.says for rule in rules)
    return Decision(
        Topic.RULES,
        says,
        f"Is the rule {rules[0].says} public knowledge?"
        if len(rules) == 1
        else f"Which of these {len(rules)} rules are public knowledge?",
        tuple(map(_how, rules)),
        f"that no row of the table breaks {'it' if len(rules) == 1 else 'them'}{told}",
        "A rule from a law, a form or arithmetic is public. One that merely held in these rows is not, "
        "and every synthetic row would keep it. A draft finds only some rules: add others to the "
        'schema file, each as two lines, [[rule]] and says = "admitted <= discharged".',
        (Choice.PUBLIC, Choice.DROP),
        parts=tuple((each,) for each in says),
    )


def _how(rule: Rule) -> str:
    """A rule, and the values that it gives, in a few words."""
    pairs = [f"{key} → {value}" for key, value in rule.mapping]
    pairs += [f"{value} from {cut}" for cut, value in zip(rule.cuts, rule.values[1:], strict=False)]
    more = f", … ({len(pairs)} in all)" if len(pairs) > _NAMED else ""
    return f"{rule.says}: {', '.join(pairs[:_NAMED])}{more}" if pairs else rule.says


_ANY_EMPTY = (Option("all", "Any column may have empty cells (hides which)"),)


def _types(columns: Sequence[Column]) -> list[Decision]:
    marked = [c for c in columns if FORM.intersection(c.read_from_rows)]
    if not marked:
        return []
    empty = [c.name for c in marked if c.nullable]
    tokens = sorted({token for c in marked for token in c.null_values})
    kinds: dict[str, list[str]] = {}
    for column in marked:
        kinds.setdefault(kind_of(column), []).append(column.name)
    types = tuple(f"{kind}: {_some(names)}" for kind, names in kinds.items())
    long = [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if len(names) > _SOME]
    filled = f"no cell is empty in {_counted(marked, 'column')}"
    if empty:
        filled = f"cells may be empty in {_some(empty)}, and in no other column"
    written = f", written as {_quoted(tokens)}" if tokens else ""
    known = {column.name: column_facts(column).get("format") for column in marked}
    formats = [f"{name} {form}" for name, form in known.items() if form]
    forms = (f"formats: {_some(formats)}",) if formats else ()
    return [
        Decision(
            Topic.TYPES,
            tuple(column.name for column in marked),
            "Are types, empty cells and their spelling right?",
            (*types, filled + written, *forms),
            f"which columns have empty cells ({len(empty)} of {len(marked)}) and how numbers and "
            "dates are written",
            "That a column has no empty cell is seldom a secret. Where it is, say that every column "
            "may have some.",
            (Choice.PUBLIC, Choice.REPLACE),
            (*long, *([f"cells may be empty in {', '.join(empty)}"] if len(empty) > _SOME else [])),
            yes="They are right, and public",
            options=() if len(empty) == len(marked) else _ANY_EMPTY,
        )
    ]


def _lines(columns: Sequence[Column]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """A line for each domain, and the columns that have it."""
    lines: dict[str, list[str]] = {}
    for column in columns:
        lines.setdefault(_domain(column, _LONG), []).append(column.name)
    holds = tuple(f"{_some(names)}: {words}" for words, names in lines.items())
    return holds, tuple(map(tuple, lines.values()))


def _domain(column: Column, most: int | None) -> str:
    values = values_of(column)
    if not values:
        return domain(replace(column, nullable=False))
    more = "" if most is None or len(values) <= most else f", … ({len(values)} in all)"
    other = _other(column)
    others = "" if other is None else f"; others count as {other}"
    return shown(values[:most]) + more + others


def _full(columns: Sequence[Column]) -> tuple[str, ...]:
    """Every value of every column, where `_lines` leaves some out."""
    if all(len(values_of(column)) <= _LONG for column in columns):
        return ()
    return tuple(f"{column.name}: {_domain(column, None)}" for column in columns)


def _counted(items: Sequence[Any], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    if len(names) <= _SOME:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def _such(values: Sequence[Any]) -> str:
    return f"{', such as' if len(values) > _NAMED else ':'} {_quoted(values)}"


def _quoted(values: Sequence[Any], between: str = ", ") -> str:
    some = between.join(shown(value) for value in values[:_NAMED])
    return some + (", …" if len(values) > _NAMED else "")
