"""`understudy schema review`: what a draft took from private rows, one decision at a time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from understudy.cli import options, shell, words
from understudy.cli.commands import command
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
_Answers = list[str] | None


@shell.guarded
def review(
    schema: Annotated[Path, argument("S.toml", "The schema file, as drafted.")],
    data: Annotated[
        str | None,
        argument(
            "DATA",
            "The table, or that of the children. NOT PRIVATE: shows how many rows people have in it.",
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
    loses none. KEY is the name of a decision, as --list prints it, or of a column.

    \b
    [bold]Example[/bold]
      understudy schema review patients.schema.toml
      understudy schema review patients.schema.toml --list
      understudy schema review patients.schema.toml --private job --set "age=0 to 120"
    """
    from understudy.draft import children_per_parent, rows_per_unit
    from understudy.draft.review import Choice, decisions
    from understudy.schema import Schema
    from understudy.schema.family import FamilySchema
    from understudy.source import read

    loaded, seen = Schema.load(schema), ()
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
        _walk(schema, seen)
    left = decisions(Schema.load(schema))
    if not left:
        shell.say(("✓ ", "green"), f"nothing is open in {schema}. Next")
        shell.say(f"  {command('plan', '--schema', schema, '--epsilon', 1)}")
    elif not listed:
        shell.say(f"{count(left)} left in {schema}. To go on:")
        shell.say(f"  {command('schema', 'review', schema)}")


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
    from understudy.draft.answers import Choice, answered
    from understudy.draft.review import decision_named, decisions
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
            shell.say((f"{choice}: ", "bold"), words.some(decision.columns))
            _lost(before, schema, decision)
    schema.save(path)


def _lost(before: Schema, after: Schema, decision: Decision) -> None:
    """Which rules of the draft an answer about columns took with it."""
    kept = {rule.says for rule in after.rules}
    for rule in before.rules if decision.topic != "rules" else ():
        if rule.says not in kept:
            shell.say(f"  dropped with it, as it needs what was declared: {rule.says}")


def _list(path: Path, found: Sequence[Decision]) -> None:
    if found:
        shell.say(("NOT PRIVATE. ", "bold red"), "These facts were read from private rows.")
    said = set[str]()
    for at, decision in enumerate(found, 1):
        _ask(decision, f"{at} of {len(found)}", advise=decision.advice not in said)
        said.add(decision.advice)
        for line in _commands(path, decision):
            shell.say(f"    {line}")
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
    shell.say((f"\n{where}  ", "dim"), (decision.question, "bold"), (f"  {decision.key}", "dim"))
    for line in decision.holds:
        shell.say(f"  {line}")
    if "public" in decision.choices:
        shell.say(("  This would publish ", "yellow"), decision.reveals)
    if advise:
        shell.say((f"  {decision.advice}", "dim"))


def _walk(path: Path, seen: Sequence[RowsPerUnit]) -> None:
    from understudy.draft.review import decisions
    from understudy.schema import Schema

    shell.say(("NOT PRIVATE. ", "bold red"), "What follows was read from private rows.")
    done, skipped = 0, set[str]()
    try:
        while True:
            schema = Schema.load(path)  # as it is now: somebody may be editing it as well
            found = [d for d in decisions(schema, seen) if d.key not in skipped]
            if not found:
                return
            decision = found[0]
            _ask(decision, f"{done + 1} of {done + len(found)}")
            changed = _asked(schema, decision)
            if changed is None:
                return
            if changed == schema:
                skipped.add(decision.key)
            else:
                changed.save(path)
                _lost(schema, changed, decision)
            done += 1
    except KeyboardInterrupt as error:
        error.add_note(f"The answers that you gave are in {path}.")
        raise


def _asked(schema: Schema, decision: Decision) -> Schema | None:
    """The schema after an answer, the same after none, None at the end."""
    letters = {_LETTERS[choice]: choice for choice in decision.choices}
    said = {**_WORDS, "public": decision.yes}
    several = len(decision.columns) > 1
    if decision.topic == "rules":
        said["drop"] = "Say which to drop" if several else "Drop the rule"
        said["public"] = "Say which are public knowledge" if several else decision.yes
    elif decision.topic == "unit":
        said["replace"] = "Say who is protected"
    elif several:
        said["drop"] = "Say which columns to drop"
    menu = [f"{letter}  {said[choice]}" for letter, choice in letters.items()]
    menu += ["v  View all values"] if decision.full else []
    while True:
        for line in [*menu, "s  Skip", "q  Quit"]:
            shell.say(f"    {line}")
        answer = _typed("> ")
        if answer is None or answer.lower() == "q":
            return None
        if answer.lower() in ("", "s"):
            return schema
        if answer.lower() == "v" and decision.full:
            for line in decision.full:
                shell.say(f"  {line}")
        elif answer.lower() in letters:
            choice = letters[answer.lower()]
            try:
                return _settled(schema, _some_of(decision, choice), choice)
            except UnderstudyError as error:
                shell.complain(str(error))
        else:
            shell.say(f"  answer with {', '.join([*letters, 's'])} or q")


def _some_of(decision: Decision, choice: Choice) -> Decision:
    """The columns or rules of a group that are meant."""
    whole = ("replace",) if decision.topic == "rules" else ("replace", "public")
    asked = choice not in whole and len(decision.columns) > 1
    numbered = dict(enumerate(decision.columns, 1))
    if asked:
        for at, name in numbered.items():
            shell.say(f"    {at}  {name}")
    text = (_typed("  all, or numbers: ") or "") if asked else "all"
    if text.lower() in ("a", "all"):
        return decision
    chosen = text.replace(",", " ").split()
    for word in chosen:
        if not word.isdecimal() or int(word) not in numbered:
            raise SchemaError(f"{word!r} is none of 1 to {len(numbered)}; write all, or numbers")
    return decision.of(*(numbered[int(word)] for word in chosen))


def _settled(schema: Schema, decision: Decision, choice: Choice) -> Schema:
    from understudy.draft.answers import Choice, answered

    if choice is not Choice.REPLACE:
        return answered(schema, decision, choice)
    if decision.shared:
        text = _typed(f"  {_WANTED[decision.topic]}: ")
        return answered(schema, decision, choice, text) if text else schema
    for name in decision.columns:
        one = decision.of(name)
        if text := _typed(f"  {name}, {_WANTED[decision.topic]}: "):
            schema = answered(schema, one, choice, text)
    return schema


_WANTED = {
    "unit": "row, or a column and how many rows of one person count, such as patient_id 5",
    "family": "what is different, such as max_children = 5, order = none",
    "values": "all values, between commas",
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
