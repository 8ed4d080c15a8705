"""`understudy schema rules`: what every synthetic row keeps, to confirm or drop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from understudy.cli import shell, words
from understudy.cli.options import argument, flag, option
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.constraints import Rule

_SHOWN = 6


@shell.guarded
def rules(
    schema: Annotated[Path, argument("S.toml", "The schema file.")],
    drop: Annotated[
        list[str] | None,
        option("--drop RULE", "A rule to take out: its number in the list, or what it says."),
    ] = None,
    confirm: Annotated[
        bool, flag("--confirm", "State that the rules that are left are public knowledge.")
    ] = False,
) -> None:
    """List the rules that every synthetic row keeps; confirm or drop those of a draft.

    A draft proposes rules that hold in every private row. Keep those that anybody could know without
    the rows, and drop the others. A column that a dropped rule computed is modelled again. Your own
    comments in the file are kept.

    \b
    [bold]Example[/bold]
      understudy schema rules patients.schema.toml
      understudy schema rules patients.schema.toml --drop 3 --drop "start <= end" --confirm
    """
    from understudy.draft.rules import confirm_rules, drop_rule
    from understudy.schema import Schema

    loaded = Schema.load(schema)
    wanted = loaded
    for each in drop or ():
        wanted = drop_rule(wanted, _meant(each, loaded.rules))
    if confirm:
        wanted = confirm_rules(wanted)
    if wanted != loaded:
        wanted.save(schema)
    if not wanted.rules:
        shell.say(f"no rules in {schema}")
        return
    listed = words.table("", "rule", "how", "")
    for at, rule in enumerate(wanted.rules, 1):
        listed.add_row(f"{at}", rule.says, _how(rule), "read from rows" * rule.read_from_rows)
    shell.out().print(listed)
    waiting = sum(rule.read_from_rows for rule in wanted.rules)
    if waiting:
        shell.say(
            f"{waiting} to confirm as public knowledge (--confirm) or to drop (--drop NUMBER)"
        )


def _meant(text: str, known: tuple[Rule, ...]) -> str:
    if not text.isdigit():
        return text
    if not 1 <= int(text) <= len(known):
        raise InputError(f"--drop {text}: there are {len(known)} rules; nothing was dropped")
    return known[int(text) - 1].says


def _how(rule: Rule) -> str:
    """Its values, in a few words."""
    from understudy.columns.base import some

    pairs = [f"{key} → {value}" for key, value in rule.mapping]
    if rule.cuts:
        pairs = [rule.values[0]]
        pairs += [f"{value} from {c}" for c, value in zip(rule.cuts, rule.values[1:], strict=True)]
    return some(pairs, _SHOWN)
