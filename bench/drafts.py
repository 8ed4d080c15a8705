"""`python -m bench drafts [FOLDER …]`: what a draft decides about every column, and how often well.

NOT PRIVATE: it prints facts that were read from the rows. For public tables, to judge a draft by eye,
and for the generated ones of `bench.raw`, which say what is right. Of five public tables the decisions
were judged by hand: the wrong ones are named, and all others were right when they were looked at.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.raw import TABLES, rare, write, wrong
from understudy.draft import draft
from understudy.errors import SourceError
from understudy.schema import Schema
from understudy.wording import domain

ENDINGS = (".csv", ".tsv", ".csv.gz", ".parquet")
BY_HAND = {
    "diabetes": "",
    "adult_raw": "",
    "loans_raw": "debt_settlement_flag_date settlement_date",
    "kc_house": "",
    "stroke": "DMAJNCHX DSIDEX DNOSTRKX DDEADX FDEADX CNTRYNUM",
}
"""The wrong ones: months that are texts; codes for texts and countries that look like numbers."""


def main(folders: list[str]) -> None:
    """Print a Markdown table for each table of the folders, and the totals."""
    totals: list[tuple[str, int, list[str]]] = []
    for folder in map(Path, folders):
        files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
        for file in (file for file in files if file.name.endswith(ENDINGS)):
            try:
                schema = draft(file)
            except SourceError as error:
                print(f"\n### {file.name}: {error}")
                continue
            print(f"\n### {file.parent.name}/{file.name}, unit = {schema.unit_word}\n")
            print("\n".join(decided(schema)))
            if file.parent.name in BY_HAND and file.stem != "schema":
                bad = BY_HAND[file.parent.name].split()
                totals.append((file.parent.name, len(schema.columns), bad))
    totals += [generated(name) for name in TABLES]
    print("\n| table | columns | right | wrong |\n|---|---|---|---|")
    for name, columns, bad in [*totals, ("all", *_added(totals))]:
        print(f"| {name} | {columns} | {columns - len(bad)} | {', '.join(bad) or '–'} |")


def _added(totals: list[tuple[str, int, list[str]]]) -> tuple[int, list[str]]:
    return sum(columns for _, columns, _ in totals), [name for *_, bad in totals for name in bad]


def generated(name: str) -> tuple[str, int, list[str]]:
    """How many columns a generated table has, and those about which its draft is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path, made = write(name, Path(folder))
        schema = draft(path)
    bad = {
        column.name
        for column, (_, expected) in zip(schema.columns, made.values(), strict=True)
        if wrong(column, expected)
    }
    return name, len(schema.columns), sorted(bad | {column for column, _ in rare(schema, made)})


def decided(schema: Schema) -> list[str]:
    """The rows of a table: column, type, what it may hold, what was read from the rows."""
    lines = ["| column | type | holds | read from rows |", "|---|---|---|---|"]
    for column in schema.columns:
        ordered = " (in order)" if "ordinal" in column.read_from_rows else ""
        marks = ", ".join(
            mark for mark in column.read_from_rows if mark not in ("type", "nullable")
        )
        holds = domain(column).replace("|", "\\|") + ordered
        lines.append(f"| {column.name} | {column.kind} | {holds} | {marks or '–'} |")
    return lines
