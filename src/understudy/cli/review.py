"""`understudy schema review`: what a draft took from private rows, one decision at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as having
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from understudy import files
from understudy.cli import options, shell, words
from understudy.cli.commands import command, quoted
from understudy.cli.options import argument, flag, option
from understudy.errors import InputError, SchemaError, UnderstudyError
from understudy.units import ROW, things

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.draft import RowsPerUnit
    from understudy.draft.answers import Choice, Decision, Option
    from understudy.schema import Column, Schema
    from understudy.units import Unit

_LETTERS = {"public": "a", "replace": "c", "private": "p", "drop": "d"}
_WORDS = {
    "replace": "Change it",
    "private": "Let releases find it privately",
    "drop": "Drop the column",
}
_UNDO: Literal["u"] = "u"
_OPEN: Literal["o"] = "o"
_READY = "w"
_TOGETHER = {
    "types": "types, empty cells and their spelling, as public",
    "family": "how the two tables belong together",
}
"""What is noted of questions that are about all columns at once."""
_SHOWN = 4
"""Columns that a line names; of more it says how many there are."""
_Answers = list[str] | None
_Keep = Callable[["Schema", str], None]
"""Writes a schema, and says what was answered."""
_Lines = Mapping[str, tuple[str, ...]]
"""The columns, or the rule, of each line of a question, by its number."""


@shell.guarded
def review(
    schema: Annotated[Path, argument("S.toml", "The schema file, as drafted.")],
    data: Annotated[
        str | None,
        argument(
            "DATA",
            "The table, or that of the children: shows how many rows people have in it, and what each "
            "limit would leave out. NOT PRIVATE.",
        ),
    ] = None,
    table: options.TableName = None,
    listed: Annotated[
        bool, flag("--list", "Print the decisions and the commands that answer them, and end.")
    ] = False,
    public: Annotated[
        _Answers, option("--public KEY", "Answer: this is public knowledge, without the table.")
    ] = None,
    replace: Annotated[
        _Answers,
        option("--set KEY=FACTS", 'Answer by your own facts: "age=0 to 120", "sex=F, M".'),
    ] = None,
    private: Annotated[
        _Answers, option("--private KEY", "Answer: releases find it privately, inside their ε.")
    ] = None,
    drop: Annotated[
        _Answers, option("--drop KEY", "Answer: leave the column out of every release.")
    ] = None,
) -> None:
    """Walk through what a draft took from private rows, the riskiest first.

    Who is protected, columns that name people, lists and bounds, then types and empty cells: each
    question says what a release would publish. Columns of one kind and risk share a question, whose
    lines can be answered one by one as well. Every answer is written to the file at once, so Ctrl-C
    loses none. KEY is the name of a decision, as --list prints it, of a column, or what a rule says.

    \b
    [bold]Example[/bold]
      understudy schema review patients.schema.toml patients.csv
      understudy schema review patients.schema.toml --list
      understudy schema review patients.schema.toml --private job --set "age=0 to 120"
    """
    from understudy.draft import children_per_parent, rows_per_unit
    from understudy.draft.answers import Choice
    from understudy.draft.people import about_rows
    from understudy.draft.review import decisions
    from understudy.schema import Schema
    from understudy.schema.family import FamilySchema
    from understudy.source import read, read_table, shown

    loaded, seen, found = Schema.load(schema), (), None
    again = resume(schema, data, table)
    if data is not None:
        found = read_table(read(data, table=table))
        if isinstance(loaded, FamilySchema):
            seen = (children_per_parent(loaded, found),)
        else:
            seen = rows_per_unit(loaded, found)
    choices = (Choice.PUBLIC, Choice.REPLACE, Choice.PRIVATE, Choice.DROP)
    given = dict(zip(choices, (public, replace, private, drop), strict=True))
    if any(given.values()):
        _answer_given(schema, given)
    elif listed:
        _list(schema, decisions(Schema.load(schema), seen))
    elif not sys.stdin.isatty():
        raise InputError(
            f"schema review asks questions, and there is no terminal. To print them with the commands "
            f"that answer each: {again} --list"
        )
    else:
        _walk(schema, seen, again, found)
    final = Schema.load(schema)
    left = decisions(final)
    if not left:
        shell.say(("✓ ", "green"), f"nothing is open in {schema}. Next")
        if data is not None and shown(data) == data and not isinstance(final, FamilySchema):
            place = [] if table is None else ["--table", table]
            shell.say(f"  {command('schema', 'check', schema, '--data', data, *place)}")
            told = "Lists the values of rows that do not fit, and what they count as. NOT PRIVATE."
            shell.say((f"  {told}", "dim"))
        say_plan(
            schema, about_rows(final, None if found is None else found.num_rows, seen), final.unit
        )
    elif not listed:
        shell.say(f"{count(left)} left in {schema}. To go on:")
        shell.say(f"  {again}")


def resume(schema: Path, data: str | None = None, table: str | None = None) -> str:
    """The command that asks what is open; with the table, unless its address holds a password."""
    from understudy.source import shown

    if data is None or shown(data) != data:
        return command("schema", "review", schema)
    return command("schema", "review", schema, data, *([] if table is None else ["--table", table]))


def say_plan(schema: Path, rows: int | None = None, unit: Unit | None = None) -> None:
    """The command that plans a release; its verdict needs a number of rows, roughly."""
    from understudy.releases.ends import sought_in_words
    from understudy.schema import Schema
    from understudy.schema.family import FamilySchema

    loaded = Schema.load(schema)
    about = [] if rows is None else ["--rows", rows]
    shell.say(f"  {command('plan', '--schema', schema, '--epsilon', 1, *about)}")
    whose = loaded.tables[-1].parent if isinstance(loaded, FamilySchema) else "the table"
    told = f"Add --rows and about how many rows {whose} has: a verdict needs it."
    if rows is not None:
        told = f"{rows:,} is about the number of {things(unit)}, read from the table"
        if isinstance(loaded, FamilySchema) and not loaded.tables[-1].min_children:
            told += f" of {loaded.tables[-1].child}: add those that have none"
        elif unit is not None and unit.weight == 1:
            told += f" (after the limit of {unit.max_rows} per {unit.column})"
    shell.say((f"  {told}", "dim"))
    if (ends := sought_in_words(loaded)) is not None:
        line = command("schema", "review", schema, "--set", "COLUMN=LEAST to MOST")
        shell.note(f"Bounds {ends}: `{line}` states them.")


def open_decisions(found: Sequence[Decision]) -> None:
    """The questions in one line each."""
    words.facts([(decision.key, decision.question) for decision in found])


def statements(found: Sequence[Decision]) -> None:
    """What is published once all of them are confirmed, in one line each."""
    named = {d.key: f": {'; '.join(d.columns)}" for d in found if d.topic == "rules"}
    words.facts([(d.key, d.reveals + named.get(d.key, "")) for d in found])


def count(found: Sequence[Decision]) -> str:
    """How many decisions, in words."""
    return f"{len(found)} {'decision' if len(found) == 1 else 'decisions'}"


# Without a terminal


def _answer_given(path: Path, given: dict[Choice, _Answers]) -> None:
    """All answers of a command, or none; those about one column or rule before those about groups."""
    from understudy.draft.answers import Choice, answered
    from understudy.draft.review import consequences, decisions
    from understudy.schema import Schema

    schema = Schema.load(path)
    keys = {decision.key for decision in decisions(schema)}
    columns = [column.name for column in schema.columns]
    asked: list[tuple[str, Choice, str]] = []
    for choice, answers in given.items():
        for answer in answers or ():
            key, text = answer, ""
            if choice is Choice.REPLACE:
                fitting = [name for name in [*keys, *columns] if answer.startswith(f"{name}=")]
                key = max(fitting, key=len, default=answer.partition("=")[0])
                text = answer[len(key) + 1 :]
            asked.append((key, choice, text))
    told: list[tuple[str, tuple[str, ...]]] = []
    for key, choice, text in sorted(asked, key=lambda each: each[0] in keys):
        decision = _named(schema, key, choice)
        before, schema = schema, answered(schema, decision, choice, text)
        told.append((_said(decision, choice, schema), consequences(before, schema, decision.key)))
    schema.save(path)
    for said, also in told:  # only now: of a command whose answers fail, none is kept
        shell.say(said)
        for line in also:
            shell.paragraph(line, indent=2)


def _named(schema: Schema, key: str, choice: Choice) -> Decision:
    """The open decision of a name; facts of one's own may also be given where nothing is open."""
    from understudy.draft.answers import Choice
    from understudy.draft.review import again, decision_named

    try:
        return decision_named(schema, key)
    except SchemaError as unknown:
        if choice is not Choice.REPLACE:
            raise
        try:
            return again(schema, key)
        except SchemaError:
            raise unknown from None


def _list(path: Path, found: Sequence[Decision]) -> None:
    if found:
        shell.say(("NOT PRIVATE. ", "bold red"), "These facts were read from private rows.")
    said = set[str]()
    for at, decision in enumerate(found, 1):
        where = f"{at} of {len(found)}"
        _ask(decision, where, _numbered(decision), advise=decision.advice not in said)
        said.add(decision.advice)
        for line, meaning in _commands(path, decision):
            shell.say(f"    {line}", (f"  # {meaning}" if meaning else "", "dim"))
        if len(decision.parts) > 1:
            how = "--drop" if decision.topic == "rules" else "--public"
            shell.say(f"    or for one of them: {how} {quoted(decision.columns[-1])}")
        if "replace" in decision.choices and decision.topic != "unit":
            name = decision.key if decision.shared else decision.columns[-1]
            such = _SUCH[decision.topic].format(*decision.columns[:1])
            if such == "A, B, C" and decision.holds[-1].partition(": ")[2][:1].isdigit():
                such = "1, 2, 3"
            facts = quoted(f"{name}={such}")
            how = "by naming those with empty cells" if name == "types" else "by your own facts"
            shell.say(f"    or {how}, such as: --set {facts}")


def _commands(path: Path, decision: Decision) -> Iterator[tuple[str, str]]:
    """The commands that answer a decision, and what those of its options mean."""
    own = [(option.text, option.words) for option in decision.options]
    if decision.topic == "unit" and not any(" " in text for text, _ in own):
        # The table was not given, with its counts.
        own = [(f"{name} 5", "") for name in decision.columns[:1]] + own
    for choice in decision.choices:
        if choice != "replace":
            yield command("schema", "review", path, f"--{choice}", decision.key), ""
            continue
        for text, meaning in own:
            if decision.topic == "unit":
                yield command("schema", "confirm", path, *_unit_options(text)), meaning
            else:
                yield command("schema", "review", path, "--set", f"{decision.key}={text}"), meaning


def _unit_options(text: str) -> list[str]:
    """The options of `schema confirm` for an answer to who is protected."""
    name, _, most = text.rpartition(" ")
    return ["--unit", name, "--max-rows", most] if name else ["--unit", text]


# At a terminal


def _numbered(decision: Decision, before: _Lines = MappingProxyType({})) -> _Lines:
    """The lines of a question; what is left of one keeps its numbers."""
    number = {name: at for at, names in before.items() for name in names}
    lines = enumerate(decision.lines, 1)
    return {number.get(names[0], str(at)): names for at, names in lines}


def _ask(
    decision: Decision, where: str, lines: _Lines, *, advise: bool = True, rest: bool = False
) -> None:
    """Print a question; of the rest of one that was just asked, only what is left."""
    shell.say()
    shell.paragraph(
        (f"{where}{', the rest' if rest else ''}  ", "dim"),
        (decision.question, "bold"),
        (f"  {decision.key}", "dim"),
    )
    if len(decision.parts) > 1:
        for at, line in zip(lines, decision.holds, strict=True):
            shell.entry(at, line, indent=2)
    else:
        for line in decision.holds:
            shell.paragraph(line, indent=2)
    if "public" in decision.choices and not rest:
        shell.paragraph(("This would publish ", "yellow"), decision.reveals, indent=2)
    if advise:
        shell.paragraph((decision.advice, "dim"), indent=2)


_INTRODUCTION = (
    "Ask of each: would I know this without the table? Only what you type makes something public; the "
    "answer marked (Enter) skips the question, or leaves columns out."
)


def _walk(
    path: Path, seen: Sequence[RowsPerUnit], again: str, table: pa.Table | None = None
) -> None:
    from understudy.draft.review import consequences, decisions, left_out, opened
    from understudy.schema import Schema

    shell.say(("NOT PRIVATE. ", "bold red"), "What follows was read from private rows.")
    shell.paragraph(_INTRODUCTION)
    skipped, opened_as, said = set[str](), "", ""
    total = left = len(decisions(Schema.load(path), seen))
    before: Decision | None = None
    lines: _Lines = {}
    answers: list[tuple[str, str]] = []  # the file before each answer, and after it
    parts: list[Decision] = []  # of the question that is open, the next at the end
    decision: Decision

    def keep(changed: Schema, said: str) -> None:
        before, text = Schema.load(path), path.read_text(encoding="utf-8")
        changed.save(path)
        answers.append((text, path.read_text(encoding="utf-8")))
        shell.say((f"  {said}", "green"))
        also = consequences(before, changed, decision.key)
        looked = decision.topic in ("values", "bounds") and not decision.table
        if table is not None and looked:  # its rows say better what a list leaves out
            also = tuple(line for line in also if line not in left_out(before, changed))
            _say_misfits(before, changed, table)
        for line in also:
            shell.paragraph(line, indent=2)

    try:
        while True:
            schema = Schema.load(path)  # as it is now: somebody may be editing it as well
            found = [d for d in decisions(schema, seen) if d.key not in skipped]
            if parts:
                more = f"and {len(parts) - 1} more" if len(parts) > 1 else "the last"
                decision, where = parts.pop(), f"one by one, {more}"
            elif found:
                total += max(0, len(found) - left)  # an answer to a part may leave two questions
                left = len(found)
                decision, where = found[0], f"{total - left + 1} of {total}"
            else:
                return
            rest = _rest_of(decision, before)
            lines = _numbered(decision, lines) if rest else _numbered(decision)
            _ask(decision, where, lines, advise=decision.advice != said, rest=rest)
            said, before = decision.advice, decision
            answer = _asked(schema, decision, lines, keep, undo=bool(answers), rest=rest)
            if answer is None:
                return
            if answer == _UNDO:
                parts.clear()
                skipped.discard(opened_as)
                before, left = None, total
                _take_back(path, answers)
            elif answer == _OPEN:
                parts = [*reversed(opened(schema, decision))]
                skipped.add(opened_as := decision.key)
            elif not answer:
                skipped.add(decision.key)
    except KeyboardInterrupt as error:
        error.add_note(f"Every answer that was kept is in {path}. To go on:\n  {again}")
        raise


def _say_misfits(before: Schema, after: Schema, table: pa.Table) -> None:
    """Whether any row of the table does not fit the facts that somebody has stated."""
    from understudy.draft.check import row_findings
    from understudy.schema import Modelled

    drafted = {c.name: having(c, read_from_rows=()) for c in before.columns}
    stated = [
        column
        for column in after.columns
        if column.name in table.schema.names
        and isinstance(column, Modelled)
        and having(column, read_from_rows=()) != drafted[column.name]
    ]
    found = [
        finding
        for column in stated
        for finding in row_findings(column, table.column(column.name), after.null_values)
    ]
    if stated and not found:
        shell.paragraph("Every row of the table fits.", indent=2)
    for finding in found[:_SHOWN]:
        shell.paragraph(("! ", "yellow"), str(finding), indent=2)


def _rest_of(decision: Decision, before: Decision | None) -> bool:
    """Whether it is what a partial answer has left of the question before."""
    if before is None or (decision.topic, decision.table) != (before.topic, before.table):
        return False
    return set(decision.columns) < set(before.columns)


def _take_back(path: Path, answers: list[tuple[str, str]]) -> None:
    """The file as before the last answer; not where somebody has edited it since."""
    before, after = answers[-1]
    if path.read_text(encoding="utf-8") != after:
        shell.complain(f"{path} was edited since that answer; change it there")
        return
    files.write(path, before)
    answers.pop()
    shell.say(("  Taken back.", "green"))


def _asked(
    schema: Schema, decision: Decision, lines: _Lines, keep: _Keep, *, undo: bool, rest: bool
) -> bool | Literal["u", "o"] | None:
    """Whether something was answered, and kept; `_UNDO` takes back the last one, `_OPEN` asks about
    each line, None ends."""
    menu = _menu(decision) | ({_UNDO: "Undo the last answer"} if undo else {})
    menu |= {"s": "Skip", "q": "Quit"}
    preset = "s" if decision.default is None else _LETTERS[decision.default]
    if rest:
        shell.say((f"    {', '.join(menu)} as before; ? explains them", "dim"))
    else:
        _show_menu(decision, menu, preset)
    while True:
        answer = _typed("> ")
        if answer is None or answer.lower() == "q":
            return None
        if answer == "?":
            _show_menu(decision, menu, preset)
            continue
        answer = _meant(decision, answer) or preset
        if answer.lower() == "s":
            shell.say(("  Skipped.", "dim"))
            return False
        if answer == _UNDO and undo:
            return _UNDO
        if answer == _OPEN and _OPEN in menu:
            return _OPEN
        if answer.lower() == "v" and "v" in menu:
            for line in decision.full or [", ".join(names) for names in decision.parts]:
                shell.paragraph(line, indent=2)
            continue
        try:
            settled = _understood(schema, decision, lines, answer, keep)
        except UnderstudyError as error:
            shell.complain(str(error))
            continue
        if settled is not None:
            return settled
        shell.say(f"  answer with {', '.join([*menu][:-1])} or q")


def _meant(decision: Decision, answer: str) -> str:
    """The letter for a yes or a no, where only one answer says that; else what was typed."""
    public = "no" if decision.yes.startswith("No") else "yes"
    asked = "public" in decision.choices and not decision.question.startswith("Which")
    return _LETTERS["public"] if asked and answer.lower() in (public, public[0]) else answer


def _show_menu(decision: Decision, menu: dict[str, str], preset: str) -> None:
    for letter, meaning in menu.items():
        enter = (("  (Enter)", "green"),) if letter == preset else ()
        shell.entry(letter, meaning, *enter, indent=4)
    if len(decision.parts) > 1 and decision.topic != "rules":
        such = _LETTERS[decision.choices[-1]]
        told = f"For some lines only, write their numbers or names behind the letter: {such} 2 3"
        shell.paragraph((told, "dim"), indent=4)


def _menu(decision: Decision) -> dict[str, str]:
    """What can be typed, and what it means."""
    said = {**_WORDS, "public": decision.yes}
    several = len(decision.columns) > 1
    if decision.topic == "rules":
        said["drop"] = (
            "Drop all of them; or, with numbers, only those: d 2" if several else "Drop it"
        )
        if several:
            said["public"] = "Public are those with these numbers, drop the others: a 1 3; or a all"
    elif several:
        said["drop"] = "Drop columns"
    menu = {_LETTERS[choice]: said[choice] for choice in decision.choices}
    if decision.topic == "unit":
        del menu["c"]
        menu |= {key: option.words for key, option in _ready(decision).items()}
        such = next(iter(decision.columns), "patient_id")
        menu[f"{such} 4"] = "another number, or column; with equal behind it, they count as one row"
        return menu
    menu |= {key: option.words for key, option in _ready(decision).items()}
    if decision.full or any(len(names) > _SHOWN for names in decision.parts):
        menu["v"] = "View all values" if decision.full else "View all names"
    if len(decision.parts) > 1:
        menu[_OPEN] = "Open: one line after the other"
    return menu


def _ready(decision: Decision) -> dict[str, Option]:
    """What is typed for each of the answers that need no typing."""
    if decision.topic == "unit":
        alone = len(decision.columns) == 1
        return {o.text.rpartition(" ")[2] if alone else o.text: o for o in decision.options}
    return dict(zip(_READY, decision.options, strict=False))


def _understood(
    schema: Schema, decision: Decision, lines: _Lines, answer: str, keep: _Keep
) -> bool | None:
    """Whether there was an answer, which is kept at once; None where it means nothing."""
    from understudy.draft.answers import Choice, answered

    letters = {_LETTERS[choice]: choice for choice in decision.choices}
    ready = {key: option.text for key, option in _ready(decision).items()}
    if decision.topic == "unit":
        del letters["c"]
        if len(decision.columns) == 1 and answer.partition(" ")[0].isdecimal():
            ready.setdefault(answer, f"{decision.columns[0]} {answer}")
        elif answer == ROW or (" " in answer and answer not in letters):
            ready.setdefault(answer, answer)
    if answer in ready:
        changed = answered(schema, decision, Choice.REPLACE, ready[answer])
        keep(changed, _said(decision, Choice.REPLACE, changed))
        return True
    letter, _, which = answer.partition(" ")
    if letter.lower() not in letters:
        return None
    choice = letters[letter.lower()]
    return _settled(schema, decision, _some_of(decision, lines, choice, which), choice, keep)


def _some_of(decision: Decision, lines: _Lines, choice: Choice, which: str) -> Decision:
    """The columns or rules of a group that are meant, by the numbers of their lines or their names."""
    topic = decision.topic
    whole = {"drop"} if topic == "rules" else {"public"}
    whole |= {"replace"} if decision.shared else set()
    if len(lines) < 2 or topic not in ("values", "bounds", "rules"):
        return decision
    if not which and choice in whole:
        return decision
    if not which and len(decision.parts) < 2:
        for at, names in lines.items():
            shell.entry(at, *names, indent=4)
    text = which or _typed("  which: numbers or names, or all: ") or ""
    text = text.removeprefix(f"{_LETTERS[choice]} ").strip()
    if text.lower() in ("a", "all"):
        return decision
    return decision.of(*_picked(text, lines))


def _picked(text: str, lines: _Lines) -> list[str]:
    """The names in the lines that were typed, by number or name, between commas or blanks."""
    known = {name: (name,) for names in lines.values() for name in names} | dict(lines)
    between_commas = [part.strip() for part in text.split(",") if part.strip()]
    typed = (
        between_commas if known.keys() >= set(between_commas) else text.replace(",", " ").split()
    )
    for word in typed:
        if word not in known:
            from understudy.columns.base import near

            raise SchemaError(
                f"{word!r} is no line and no name of this question{near(word, list(known))}; its "
                f"lines are {', '.join(lines)}. Write all, or numbers or names between commas"
            )
    return list(dict.fromkeys(name for word in typed for name in known[word]))


def _said(decision: Decision, choice: Choice, changed: Schema) -> str:
    """What was answered, and of how many columns or rules."""
    from understudy.columns.base import some
    from understudy.wording import domain

    many, topic = len(decision.columns), decision.topic
    which = some(decision.columns, _SHOWN)
    if topic == "rules":
        which = "1 rule" if many == 1 else f"{many} rules"
    if topic == "unit":
        return f"Noted: one {changed.unit or ROW} is protected."
    if topic == "identifiers":
        return f"Noted: {which}: left out."
    if choice == "drop":
        return f"Dropped: {which}."
    if choice == "private":
        return f"Noted: {which}: found privately."
    if topic in _TOGETHER:
        return f"Noted: {_TOGETHER[topic]}."
    if choice == "replace":
        return f"Noted: {which}: {domain(_first(changed, decision))}."
    return f"Noted as public: {which}."


def _first(schema: Schema, decision: Decision) -> Column:
    """The first column of a decision, as it is in a schema."""
    from understudy.schema.family import FamilySchema

    own = schema.named[decision.table] if isinstance(schema, FamilySchema) else schema
    return next(c for c in own.columns if c.name == decision.columns[0])


def _asks_for_others(stated: Schema, decision: Decision) -> bool:
    """Whether a list of texts that was typed as whole shall count other values as OTHER."""
    from understudy.schema import Category

    column = _first(stated, decision) if decision.topic in ("values", "missing") else None
    if not isinstance(column, Category) or column.other is not None:
        return False
    if not all(isinstance(value, str) for value in column.values):
        return False  # a code for others has to be stated in the file
    first = repr(column.values[0])
    while True:
        shell.paragraph(f"Any other value will count as OTHER. Enter: yes; n: as {first}", indent=2)
        answer = _typed("  : ")
        if answer is None or answer.lower() in ("n", "no"):
            return False
        if answer.lower() in ("", "y", "yes"):
            return True


def _settled(
    schema: Schema, whole: Decision, decision: Decision, choice: Choice, keep: _Keep
) -> bool:
    """Whether there was an answer about a part of the whole; each is kept at once."""
    from understudy.columns.base import some
    from understudy.draft.answers import Choice, answered

    if choice is not Choice.REPLACE:
        meant = decision is whole or bool(decision.columns)  # nobody may hold several rows
        if meant:
            changed = answered(schema, decision, choice)
            said = _said(decision, choice, changed)
            others = [each for each in whole.columns if each not in decision.columns]
            if whole.topic == "rules" and others and choice is Choice.PUBLIC:
                changed = answered(changed, whole.of(*others), Choice.DROP)
                said += f" Dropped: {len(others)} others."
            keep(changed, said)
        return meant
    asked = False
    for one in _with_one_answer(decision):
        what = some(one.columns, 4)
        wanted = _WANTED[one.topic].format(one.columns[0])
        also = f", the same for all {len(one.columns)}" if one.topic in ("values", "bounds") else ""
        also = also if len(one.columns) > 1 else ""
        shell.paragraph(
            (f"{what}: give {wanted}{also}. Enter leaves it as it is.", "dim"), indent=2
        )
        while text := _typed("  : "):
            try:
                stated = answered(schema, one, choice, text)
                if _asks_for_others(stated, one):
                    stated = answered(schema, one, choice, f"{text}, ...")
                schema = stated
            except UnderstudyError as error:
                shell.complain(str(error))
                continue
            keep(schema, _said(one, choice, schema))
            asked = True
            break
    return asked


def _with_one_answer(decision: Decision) -> list[Decision]:
    """The decision in pieces for which the same facts do: the lines of those that differ."""
    if decision.shared:
        return [decision]
    pieces = [[n for n in names if n in decision.columns] for names in decision.parts]
    return [having(decision, columns=tuple(names), shared=True) for names in pieces if names]


_SUCH = {
    "family": "max_children = 5",
    "values": "A, B, C",
    "bounds": "0 to 120",
    "missing": "A, B, C",
    "types": "{0}",
}
"""Facts of one's own, as they are typed in a command."""
_WANTED = {
    "unit": "row, or a column and how many rows of one person count, such as {0} 5, or {0} 5 equal",
    "family": "what is different, such as max_children = 5, order = none",
    "values": "all values, between commas (1 to 29 for whole numbers), with ... at the end if there "
    "may be others",
    "bounds": "bounds such as 0 to 120",
    "missing": "its values between commas, or bounds such as 0 to 120",
    "types": "columns that may have empty cells, between commas, or all",
}


def _typed(prompt: str) -> str | None:
    """A line from the terminal; None at its end."""
    try:
        return input(prompt).strip()
    except EOFError:
        return None
