"""`understudy export`: describe a release for other tools and catalogues."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from understudy import files
from understudy.cli import options, shell
from understudy.cli.outside import require_outside

__all__ = ["export"]

_ABOUT = "What only you know"


class Formats(StrEnum):
    """The formats, for the help."""

    SDV = "sdv"
    FRICTIONLESS = "frictionless"
    CROISSANT = "croissant"
    REGISTRY = "opendp-registry"


@shell.guarded
def export(
    folder: options.Folder,
    format: Annotated[
        Formats,
        typer.Option(
            "--format",
            help="sdv: metadata for SDV's tools; frictionless: a data package; croissant: MLCommons "
            "Croissant; opendp-registry: an entry of the registry of deployments.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write a file instead of printing."),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="T", help="A title.", rich_help_panel=_ABOUT)
    ] = None,
    curator: Annotated[
        str | None,
        typer.Option("--curator", metavar="WHO", help="Who publishes it.", rich_help_panel=_ABOUT),
    ] = None,
    description: Annotated[
        str | None,
        typer.Option("--description", metavar="D", help="What it is.", rich_help_panel=_ABOUT),
    ] = None,
    license: Annotated[
        str | None,
        typer.Option("--license", metavar="L", help="Such as CC-BY-4.0.", rich_help_panel=_ABOUT),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="U", help="Where it is found.", rich_help_panel=_ABOUT),
    ] = None,
) -> None:
    """Describe a release for other tools and catalogues.

    From the release alone: types and domains, hashes, the promise and the certificate. Reads no
    private row.

    \b
    [bold]Example[/bold]
      understudy export patients.release --format sdv --out metadata.json
      understudy export patients.release --format croissant --curator "City of Exampleton"
    """
    from understudy.report.exports import FILL_IN, About, describe

    if out is not None:
        require_outside(out, "a release holds no other file")
    about = About(title, curator, description, license, url)
    text = describe(folder, format.value, about, out)
    if out is None:
        sys.stdout.write(text)
    else:
        files.write(out, text)
        shell.out().print(f"wrote {out}", soft_wrap=True)
    left = text.count(FILL_IN)
    if left:
        shell.note(f"{left} places are marked {FILL_IN}: only you can know them.")
