"""`understudy schema review`: what a draft took from private rows, one decision at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from understudy import files
from understudy.cli import options, shell, words
from understudy.cli.commands import command, quoted
from understudy.cli.options import argument, flag, option
from understudy.errors import InputError, SchemaError, UnderstudyError

if TYPE_CHECKING:
    from understudy.draft import RowsPerUnit
    from understudy.draft.review import Choice, Decision
    from understudy.schema import Schema

_LETTERS = {"public": "a", "replace": "c", "private": "p", "drop": "d"}
_WORDS = {
    "replace": "Change it",
    "private": "Let releases find it privately",
    "drop": "Drop the column",
}
_UNDO: Literal["u"] = "u"
_FEW = 4
"""Columns that a question names; of more it says how many there are."""
_Answers = list[str] | None
_Keep = Callable[["Schema", str], None]
"""Writes a schema, and says what was answered."""


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
    question says what a release would publish. Every answer is written to the file at once, so Ctrl-C
    loses none. KEY is the name of a decision, as --list prints it, of a column, or what a rule says.

    \b
    [bold]Example[/bold]
      understudy schema review patients.schema.toml patients.csv
      understudy schema review patients.schema.toml --list
      understudy schema review patients.schema.toml --private job --set "age=0 to 120"
    """
    from understudy.draft import children_per_parent, rows_per_unit
    from understudy.draft.review import Choice, decisions
    from understudy.schema import Schema
    from understudy.schema.family import FamilySchema
    from understudy.source import read

    loaded, seen = Schema.load(schema), ()
    again = resume(schema, data, table)
    if data is not None and isinstance(loaded, FamilySchema):
        seen = (children_per_parent(loaded, read(data, table=table)),)
    elif data is not None:
        seen = rows_per_unit(loaded, read(data, table=table))
    given = {
        Choice.PUBLIC: public, Choice.REPLACE: replace, Choice.PRIVATE: private, Choice.DROP: drop
    }  # fmt: skip
    if any(given.values()):
        _answer_given(schema, given)
    elif listed:
        _list(schema, decisions(Schema.load(schema), seen))
    elif not sys.stdin.isatty():
        raise InputError(
            "schema review asks questions, and there is no terminal; use --list to print them with "
            "the commands that answer each"
        )
    else:
        _walk(schema, seen, again)
    left = decisions(Schema.load(schema))
    if not left:
        shell.say(("✓ ", "green"), f"nothing is open in {schema}. Next")
        say_plan(schema)
    elif not listed:
        shell.say(f"{count(left)} left in {schema}. To go on:")
        shell.say(f"  {again}")


def resume(schema: Path, data: str | None = None, table: str | None = None) -> str:
    """The command that asks what is open; with the table, unless its address holds a password."""
    from understudy.source import shown

    if data is None or shown(data) != data:
        return command("schema", "review", schema)
    return command("schema", "review", schema, data, *([] if table is None else ["--table", table]))


def say_plan(schema: Path) -> None:
    """The command that plans a release; its verdict needs a number of rows, roughly."""
    shell.say(f"  {command('plan', '--schema', schema, '--epsilon', 1, '--rows', 10_000)}")
    shell.say(("  Instead of 10000: your number of rows, roughly.", "dim"))


def open_decisions(found: Sequence[Decision]) -> None:
    """The questions in one line each."""
    words.facts([(decision.key, decision.question) for decision in found])


def statements(found: Sequence[Decision]) -> None:
    """What is published once all of them are confirmed, in one line each."""
    words.facts([(decision.key, decision.reveals) for decision in found])


def count(found: Sequence[Decision]) -> str:
    """How many decisions, in words."""
    return f"{len(found)} {'decision' if len(found) == 1 else 'decisions'}"


# Without a terminal


def _answer_given(path: Path, given: dict[Choice, _Answers]) -> None:
    """All answers of a command, or none."""
    from understudy.columns.base import some
    from understudy.draft.answers import Choice, answered
    from understudy.draft.review import consequences, decision_named, decisions
    from understudy.schema import Schema

    schema = Schema.load(path)
    for choice, answers in given.items():
        for answer in answers or ():
            key, text = answer, ""
            if choice is Choice.REPLACE:
                known = [d.key for d in decisions(schema)] + [c.name for c in schema.columns]
                fitting = [name for name in known if answer.startswith(f"{name}=")]
                key = max(fitting, key=len, default=answer.partition("=")[0])
                text = answer[len(key) + 1 :]
            decision = decision_named(schema, key)
            before, schema = schema, answered(schema, decision, choice, text)
            shell.say((f"{choice}: ", "bold"), some(decision.columns, 4))
            for line in consequences(before, schema, decision.key):
                shell.paragraph(line, indent=2)
    schema.save(path)


def _list(path: Path, found: Sequence[Decision]) -> None:
    if found:
        shell.say(("NOT PRIVATE. ", "bold red"), "These facts were read from private rows.")
    said = set[str]()
    for at, decision in enumerate(found, 1):
        _ask(decision, f"{at} of {len(found)}", advise=decision.advice not in said)
        said.add(decision.advice)
        for line in _commands(path, decision):
            shell.say(f"    {line}")
        for rule in decision.columns[1:2] if decision.topic == "rules" else ():
            shell.say(f"    or for one of them: --drop {quoted(rule)}")
        if "replace" in decision.choices and decision.topic != "unit":
            name = decision.key if decision.shared else decision.columns[0]
            shell.say(f"    or by your own facts: --set '{name}=…'")


def _commands(path: Path, decision: Decision) -> list[str]:
    """The commands that answer a decision."""
    made = []
    for choice in decision.choices:
        if choice != "replace":
            made.append(command("schema", "review", path, f"--{choice}", decision.key))
        elif decision.topic == "unit":
            units = [[name, "--max-rows", 5] for name in decision.columns[:1]]
            made += [command("schema", "confirm", path, "--unit", *u) for u in [*units, ["row"]]]
    return made


# At a terminal


def _ask(decision: Decision, where: str, *, advise: bool = True) -> None:
    shell.say()
    shell.paragraph(
        (f"{where}  ", "dim"), (decision.question, "bold"), (f"  {decision.key}", "dim")
    )
    for line in decision.holds:
        shell.paragraph(line, indent=2)
    if "public" in decision.choices:
        shell.paragraph(("This would publish ", "yellow"), decision.reveals, indent=2)
    if advise:
        shell.paragraph((decision.advice, "dim"), indent=2)


def _walk(path: Path, seen: Sequence[RowsPerUnit], again: str) -> None:
    from understudy.draft.review import consequences, decisions
    from understudy.schema import Schema

    shell.say(("NOT PRIVATE. ", "bold red"), "What follows was read from private rows.")
    done, skipped = 0, set[str]()
    answers: list[tuple[str, str]] = []  # the file before each answer, and after it

    def keep(changed: Schema, said: str) -> None:
        before, text = Schema.load(path), path.read_text(encoding="utf-8")
        changed.save(path)
        answers.append((text, path.read_text(encoding="utf-8")))
        shell.say((f"  {said}", "green"))
        for line in consequences(before, changed, decision.key):
            shell.paragraph(line, indent=2)

    try:
        while True:
            schema = Schema.load(path)  # as it is now: somebody may be editing it as well
            found = [d for d in decisions(schema, seen) if d.key not in skipped]
            if not found:
                return
            decision = found[0]
            _ask(decision, f"{max(done, 0) + 1}, and {len(found) - 1} more")
            answer = _asked(schema, decision, keep, undo=bool(answers))
            if answer is None:
                return
            if answer == _UNDO:
                done -= _take_back(path, answers)
                continue
            if not answer:
                skipped.add(decision.key)
            done += 1
    except KeyboardInterrupt as error:
        error.add_note(f"Every answer that was kept is in {path}. To go on: {again}")
        raise


def _take_back(path: Path, answers: list[tuple[str, str]]) -> bool:
    """Whether the file is as before the last answer again: not where somebody has edited it since."""
    before, after = answers[-1]
    if path.read_text(encoding="utf-8") != after:
        shell.complain(f"{path} was edited since that answer; change it there")
        return False
    files.write(path, before)
    answers.pop()
    shell.say(("  Taken back.", "green"))
    return True


def _asked(
    schema: Schema, decision: Decision, keep: _Keep, *, undo: bool
) -> bool | Literal["u"] | None:
    """Whether something was answered, and kept; `_UNDO` takes back the last one, None ends."""
    letters = {_LETTERS[choice]: choice for choice in decision.choices}
    said = {**_WORDS, "public": decision.yes}
    several = len(decision.columns) > 1
    if decision.topic == "rules":
        said["drop"] = "Drop all of them" if several else "Drop the rule"
        if several:
            said["public"] = "Say which are public knowledge; the others are dropped"
    elif decision.topic == "unit":
        said["replace"] = "Say who is protected"
    elif several:
        said["drop"] = "Say which columns to drop"
    menu = [f"{letter}  {said[choice]}" for letter, choice in letters.items()]
    full = decision.full
    if not full and len(decision.columns) > _FEW and _counted(decision):
        full = (", ".join(decision.columns),)
    menu += ["v  View all values" if decision.full else "v  View all names"] if full else []
    menu += ["u  Undo the last answer"] if undo else []
    while True:
        for line in [*menu, "s  Skip", "q  Quit"]:
            shell.say(f"    {line}")
        answer = _typed("> ")
        if answer is None or answer.lower() == "q":
            return None
        if answer.lower() == _UNDO and undo:
            return _UNDO
        if answer.lower() in ("", "s"):
            return False
        if answer.lower() == "v" and full:
            for line in full:
                shell.paragraph(line, indent=2)
        elif answer.lower() in letters:
            choice = letters[answer.lower()]
            try:
                return _settled(schema, decision, choice, keep)
            except UnderstudyError as error:
                shell.complain(str(error))
        else:
            more = [*(["v"] if full else []), *([_UNDO] if undo else []), "s"]
            shell.say(f"  answer with {', '.join([*letters, *more])} or q")


def _some_of(decision: Decision, choice: Choice) -> Decision:
    """The columns or rules of a group that are meant, by their numbers or names."""
    whole = {"drop"} if decision.topic == "rules" else {"public"}
    whole |= {"replace"} if decision.shared else set()
    if choice in whole or len(decision.columns) == 1:
        return decision
    for at, name in enumerate(decision.columns, 1):
        shell.paragraph(f"{at}  {name}", indent=4)
    what = "numbers" if decision.topic == "rules" else "numbers or names"
    text = _typed(f"  which: {what}, or all: ") or ""
    if text.lower() in ("a", "all"):
        return decision
    return decision.of(*_picked(text, decision.columns))


def _picked(text: str, columns: Sequence[str]) -> list[str]:
    """What was typed, by number or name, between commas or blanks."""
    known = {name: name for name in columns} | {str(at): n for at, n in enumerate(columns, 1)}
    between_commas = [part.strip() for part in text.split(",") if part.strip()]
    words = (
        between_commas if known.keys() >= set(between_commas) else text.replace(",", " ").split()
    )
    for word in words:
        if word not in known:
            from understudy.columns.base import near

            raise SchemaError(
                f"{word!r} is none of 1 to {len(columns)}, nor one of these names"
                f"{near(word, list(columns))}; write all, or numbers or names between commas"
            )
    return list(dict.fromkeys(known[word] for word in words))


def _counted(decision: Decision) -> bool:
    """Whether an answer covers its columns or rules, rather than choosing among them."""
    return decision.topic not in ("unit", "family")


def _said(decision: Decision, choice: Choice) -> str:
    """That an answer was kept, and how many columns or rules it covers."""
    done, many = "Dropped" if choice == "drop" else "Kept", len(decision.columns)
    what = "rules" if decision.topic == "rules" else "columns"
    return f"{done}: {many} {what}." if many > 1 and _counted(decision) else f"{done}."


def _settled(schema: Schema, decision: Decision, choice: Choice, keep: _Keep) -> bool:
    """Whether there was an answer; each is kept at once."""
    from understudy.draft.answers import Choice, answered

    whole, decision = decision, _some_of(decision, choice)
    if choice is not Choice.REPLACE:
        meant = decision is whole or bool(decision.columns)  # nobody may hold several rows
        if meant:
            changed = answered(schema, decision, choice)
            said = _said(decision, choice)
            others = [each for each in whole.columns if each not in decision.columns]
            if whole.topic == "rules" and others:
                changed = answered(changed, whole.of(*others), Choice.DROP)
                said += f" Dropped: {len(others)} others."
            keep(changed, said)
        return meant
    wanted = _WANTED[decision.topic].format(decision.columns[0])
    if decision.topic == "values" and decision.shared and len(decision.columns) > 1:
        wanted += f", the same for all {len(decision.columns)} columns"
    shell.paragraph((f"Give {wanted}. Enter leaves it as it is.", "dim"), indent=2)
    asked = False
    for one in [decision] if decision.shared else map(decision.of, decision.columns):
        while text := _typed("  : " if decision.shared else f"  {one.columns[0]}: "):
            try:
                schema = answered(schema, one, choice, text)
            except UnderstudyError as error:
                shell.complain(str(error))
                continue
            keep(schema, _said(one, choice))
            asked = True
            break
    return asked


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
