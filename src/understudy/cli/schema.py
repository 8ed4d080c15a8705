"""`understudy schema`: draft, review, import and check the public facts about a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from understudy.cli import options, shell, words
from understudy.cli import review as reviewing
from understudy.cli.options import argument, flag, option, read_as
from understudy.errors import InputError
from understudy.units import OPEN

if TYPE_CHECKING:
    from understudy.schema import Schema
    from understudy.source import Source

app = typer.Typer(
    help="Draft, review, import and check the public facts about a table.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_SchemaArgument = Annotated[Path, argument("S.toml", "The schema file.")]
_MOST_FINDINGS = 200


@app.command()
@shell.guarded
def draft(
    files: Annotated[
        list[str],
        argument(
            "FILE [FILE]",
            "A CSV or Parquet file with the private rows; or, with --table, a database. Two files "
            "are parents and children, such as patients and visits.",
        ),
    ],
    out: Annotated[
        Path | None, option("--out S.toml", "The schema to write; by default FILE.schema.toml.")
    ] = None,
    split: Annotated[
        str | None,
        option(
            "--split COLUMN",
            "Make two levels of one file: this column, which repeats, tells parents apart.",
        ),
    ] = None,
    table: options.TableName = None,
    null: options.NullTexts = None,
) -> None:
    """Guess a schema from a table, for you to review.

    A draft reads private rows, so it is private itself: every fact it took from them is marked, and
    no release accepts it before you have confirmed that those facts are public.

    \b
    [bold]Example[/bold]
      understudy schema draft patients.csv
      understudy schema draft patients.csv --null -9 --null income=X
      understudy schema draft patients.csv visits.csv
      understudy schema draft visits.csv --split patient_id
      understudy schema draft postgresql://ann@db.example/clinic --table visits.patients
    """
    if len(files) > 2 or (len(files) == 2 and (table is not None or split is not None)):
        raise InputError(
            f"{len(files)} files: give one, or two that are parents and children, without --table and "
            "--split; a second table of children has a schema of its own, with the same parents"
        )
    from understudy.source.files import ragged, stem

    file = files[0]
    named = Path(file) if table is None else Path(table.rpartition(".")[2].strip('"'))
    target = out if out is not None else named.parent / f"{stem(named) or 'table'}.schema.toml"
    options.require_new(target)
    if len(files) == 2 or split is not None:
        _draft_two(files, split, target, null or ())
        return
    from understudy.draft import draft as make
    from understudy.source import read

    source = read(file, table=table)
    schema = make(source, null_values=null or ())
    schema.save(target)
    shell.out().print(words.columns_table(schema.columns, marks=False))
    shell.say(("wrote ", "bold"), str(target))
    _private("This draft, on screen and on disk, holds facts from private rows.")
    if (found := ragged(source)) is not None:
        shell.say(("✗ ", "red"), str(found))
    if "\ufffd" in schema.dumps():
        shell.say(("✗ ", "red"), "some values are not UTF-8 text (\ufffd): save the file in UTF-8")
    _next_step(target, schema, reviewing.resume(target, file, table), source)


app.command("review")(reviewing.review)


def _draft_two(files: Sequence[str], split: str | None, target: Path, null: Sequence[str]) -> None:
    """A draft of parents and children."""
    from understudy.draft import children_per_parent, draft_families, draft_split
    from understudy.draft.families import table_name

    if split is not None:
        schema = draft_split(files[0], split, null_values=null)
    else:
        schema = draft_families(files[0], files[1], null_values=null)
    schema.save(target)
    parents, children, family = schema.tables
    for name, table in ((family.parent, parents), (family.child, children)):
        shell.say((f"\n{name}", "bold"))
        shell.out().print(words.columns_table(table.columns, marks=False))
    shell.say(("wrote ", "bold"), str(target))
    _private("This draft, on screen and on disk, holds facts from private rows.")
    own = [file for file in files if table_name(file) == family.child] or [files[-1]]
    asked = f"How many rows of {family.child} does one of {family.parent} have?"
    shell.say((f"\n{asked}", "bold"), " In the table:")
    words.bullets([str(children_per_parent(schema, own[0]))])
    _next_step(target, schema, reviewing.resume(target, own[0]))


@app.command()
@shell.guarded
def confirm(
    schema: _SchemaArgument,
    column: Annotated[
        list[str] | None, option("--column NAME", "A column; may be given several times.")
    ] = None,
    everything: Annotated[bool, flag("--all", "Every column.")] = False,
    unit: Annotated[
        str | None,
        option("--unit COLUMN", "Who is protected: the column that tells people apart, or: row."),
    ] = None,
    max_rows: Annotated[
        int | None,
        option("--max-rows K", "With --unit COLUMN: how many rows of one of its values count."),
    ] = None,
    equal: Annotated[
        bool,
        flag(
            "--equal",
            "With --max-rows: they count together as one, with the noise of one row. Every list and "
            "every bound must then be declared.",
        ),
    ] = False,
) -> None:
    """State that the facts of a draft are public, and who is protected.

    Do this once you have read the file and replaced what is not public knowledge. Your own comments
    in the file are kept. Where one person may have several rows, a draft asks who is protected; only
    --unit answers that, --all does not. `--unit row` protects single rows.

    \b
    [bold]Example[/bold]
      understudy schema confirm patients.schema.toml --column age --column sex
      understudy schema confirm patients.schema.toml --unit patient_id --max-rows 5
      understudy schema confirm patients.schema.toml --all
    """
    from understudy.columns.base import some
    from understudy.draft import confirm as clear
    from understudy.draft.answers import Choice
    from understudy.draft.review import decisions
    from understudy.schema import Schema

    loaded = Schema.load(schema)
    open_facts = loaded.marked
    if everything and column:
        raise InputError("give --all or --column, not both")
    if not everything and not column and unit is None and max_rows is None and not equal:
        waiting = some([f"{n} ({', '.join(f)})" for n, f in open_facts.items()], 4) or "nothing"
        raise InputError(
            f"say which facts are public: --column NAME for single columns, or --all; "
            f"--unit says who is protected. "
            f"Waiting in {schema}: {waiting}"
        )
    chosen = None if everything else column or ()
    wanted = clear(loaded, chosen, unit=unit, max_rows=max_rows, equal=equal)
    wanted.save(schema)
    done = {n: f for n, f in open_facts.items() if everything or n in (column or ())}
    if unit is not None:
        done = {"who is protected": (f"one {wanted.unit or unit}",), **done}
    stated = [d for d in decisions(loaded) if Choice.PUBLIC in d.choices] if everything else []
    if stated:
        reviewing.statements(stated)
        shell.say(("You have stated that all of this is public, in ", "bold"), str(schema))
    elif done:
        words.facts([(name, ", ".join(read)) for name, read in done.items()])
        shell.say(("confirmed as public in ", "bold"), str(schema))
    else:
        shell.say(f"nothing was waiting for confirmation in {schema}")
    _next_step(schema, wanted)


@app.command("import")
@shell.guarded
def import_(
    file: Annotated[Path, argument("FILE", "The other tool's JSON file.")],
    source: Annotated[
        Literal["mbi", "sdv"],
        option("--from", "mbi: a domain, {column: size}; sdv: metadata of one table."),
    ],
    out: Annotated[Path, option("--out S.toml", "The schema to write.")],
) -> None:
    """Make a schema from another tool's file.

    \b
    [bold]Example[/bold]
      understudy schema import domain.json --from mbi --out adult.schema.toml
    """
    options.require_new(out)
    from understudy.schema import import_mbi, import_sdv

    schema = import_mbi(file) if source == "mbi" else import_sdv(file)
    schema.save(out)
    shell.out().print(words.columns_table(schema.columns, marks=False))
    shell.say(("wrote ", "bold"), str(out))
    _next_step(out, schema)


@app.command()
@shell.guarded
def check(
    schema: _SchemaArgument,
    data: Annotated[
        str | None,
        option(
            "--data FILE",
            "Compare with this table. NOT PRIVATE: prints values and counts of its rows.",
        ),
    ] = None,
    children: Annotated[
        str | None,
        option("--children FILE", "Of a schema of two tables: the children, beside --data."),
    ] = None,
    table: options.TableName = None,
    null: options.NullTexts = None,
    drop_other_columns: options.DropOthers = False,
) -> None:
    """Show what a schema declares and whether a release would accept it.

    With --data it also lists what in the rows does not fit. That look is for a custodian who may see
    the rows: its output is not private. A release never prints such things. Exits with 1 if
    something does not fit.

    \b
    [bold]Example[/bold]
      understudy schema check patients.schema.toml
      understudy schema check patients.schema.toml --data patients.csv
    """
    from understudy.schema import Schema

    loaded = read_as(Schema.load(schema), null, drop_other_columns)
    if data is not None:
        _compare(loaded, schema, [data, *([] if children is None else [children])], table)
        return
    marked = bool(loaded.marked)
    shell.out().print(words.columns_table(loaded.columns, marks=marked))
    shell.say(_summary(loaded))
    _next_step(schema, loaded)


def _compare(schema: Schema, path: Path, files: Sequence[str], table: str | None) -> None:
    from dataclasses import replace

    from understudy.draft import check as look
    from understudy.draft import rows_left_out
    from understudy.schema.family import FamilySchema
    from understudy.source import read, shown
    from understudy.source.files import ragged

    parts = [schema]
    if isinstance(schema, FamilySchema):
        parts = [*schema.tables[:2]]
        if len(files) == 1:  # a flat file, of which each level has some columns
            parts = [replace(part, drop_other_columns=True) for part in parts]
            files = [files[0], files[0]]
    elif len(files) > 1:
        raise InputError(f"--children {files[1]} goes with a schema of two tables, version = 2")
    opened = {file: read(file, table=table) for file in files}
    sources = [opened[file] for file in files]
    _private("What follows was read from private rows. Do not publish it.")
    findings: list[object] = [f for rows in sources if (f := ragged(rows)) is not None]
    findings += [f for part, rows in zip(parts, sources, strict=True) for f in look(part, rows)]
    if isinstance(schema, FamilySchema) and sources[0] is not sources[1]:
        findings += rows_left_out(schema, *sources)
    if not findings:
        told = " and ".join(shown(file) for file in dict.fromkeys(files))
        shell.say(("✓ ", "green"), f"every value of {told} fits {path}")
        return
    for finding in findings[:_MOST_FINDINGS]:
        mark = ("! ", "yellow") if _counts(finding) else ("✗ ", "red")
        shell.say(mark, str(finding))
    if len(findings) > _MOST_FINDINGS:
        shell.say(f"  and {len(findings) - _MOST_FINDINGS} more")
    count = len(findings)
    shell.say(f"\n{count} {'thing does' if count == 1 else 'things do'} not fit {path}.")
    if all(map(_counts, findings)):
        shell.say("None of it would stop a release: such values count as is said above.")
    raise typer.Exit(shell.FAILED)


def _counts(finding: object) -> bool:
    """Whether it is about values in some rows, which a release corrects, and not about the header."""
    from understudy.draft import Finding

    return isinstance(finding, Finding) and finding.count > 0


# What is said


def _private(text: str) -> None:
    shell.say(("NOT PRIVATE. ", "bold red"), text)


def _summary(schema: Schema) -> str:
    import math

    found = len(schema.undeclared)
    modelled = len(schema.shape) + found
    told = f"{len(schema.columns)} columns, {modelled} modelled"
    if found:
        told += f", {found} of them with values that a release finds privately"
    else:
        told += f"; 10^{math.log10(math.prod(schema.shape) or 1):.1f} possible rows"
    return f"{told}; {modelled * (modelled - 1) // 2:,} pairs of columns"


def _next_step(
    path: Path, schema: Schema, review: str | None = None, source: Source | None = None
) -> None:
    """What stands between this schema and a release; `source` are the rows, for a custodian."""
    from understudy.draft import rows_per_unit
    from understudy.draft.review import decisions

    shell.say()
    found = decisions(schema)
    if not found:
        shell.say(("✓ ", "green"), "ready for a release. Next")
        reviewing.say_plan(path)
        return
    order = ", the riskiest first" if len(found) > 1 else ""
    shell.say((f"Before a release: {reviewing.count(found)}{order}", "bold"))
    reviewing.open_decisions(found)
    if source is not None and schema.unit_word == OPEN:
        shell.say(("\nDoes one person have several rows?", "bold"), " In the table:")
        words.bullets(map(str, rows_per_unit(schema, source)))
    words.next_commands(review or reviewing.resume(path))
