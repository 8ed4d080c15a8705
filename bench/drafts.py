"""`python -m bench drafts FOLDER …`: what a draft decides about every column of the tables in folders.

NOT PRIVATE: it prints facts that were read from the rows. For public tables, to judge the rules of a
draft by eye; docs/drafts.md holds such a table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from understudy.draft import draft
from understudy.errors import SourceError
from understudy.schema import Schema
from understudy.wording import domain

ENDINGS = (".csv", ".tsv", ".csv.gz", ".parquet")


def main(folders: list[str]) -> None:
    """Print a Markdown table for each table of the folders."""
    if not folders:
        sys.exit("usage: python -m bench drafts FOLDER ...")
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
