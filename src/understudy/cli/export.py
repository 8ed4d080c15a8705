"""`understudy export`: describe a release for other tools and catalogues."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from understudy import files
from understudy.cli import options, shell
from understudy.cli.options import option

_ABOUT = "What only you know"


@shell.guarded
def export(
    folder: options.Folder,
    format: Annotated[
        Literal["sdv", "frictionless", "croissant", "opendp-registry", "sheet", "csv"],
        option(
            "--format",
            "sdv: metadata for SDV's tools; frictionless: a data package; croissant: MLCommons "
            "Croissant 1.1; opendp-registry: an entry of the registry of deployments; sheet: by the "
            "headings of ISO/IEC 27559 and NIST SP 800-226; csv: the certified rows as text.",
        ),
    ],
    out: Annotated[
        Path | None,
        option("--out FILE", "Write a file instead of printing; a sheet as .md, .html or .json."),
    ] = None,
    audit: Annotated[
        Path | None,
        option("--audit DIR", "State what an audit found, the folder of `understudy audit`."),
    ] = None,
    title: Annotated[str | None, option("--title T", "A title.", _ABOUT)] = None,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", "--curator", metavar="WHO", help="Who publishes it.", rich_help_panel=_ABOUT
        ),
    ] = None,
    description: Annotated[str | None, option("--description D", "What it is.", _ABOUT)] = None,
    license: Annotated[str | None, option("--license L", "Such as CC-BY-4.0.", _ABOUT)] = None,
    url: Annotated[str | None, option("--url U", "Where it is found.", _ABOUT)] = None,
) -> None:
    """Describe a release for other tools and catalogues.

    From the release alone: types and domains, hashes, the promise and the certificate. Reads no
    private row. No field claims more than was proved; what only you can know is marked.

    \b
    [bold]Example[/bold]
      understudy export patients.release --format sdv --out metadata.json
      understudy export patients.release --format csv --out patients.synthetic.csv
      understudy export patients.release --format croissant --owner "City of Exampleton"
      understudy export patients.release --format sheet --audit patients.audit --out sheet.html
    """
    from understudy.report.exports import FILL_IN, About, describe
    from understudy.report.page import read_audit

    if out is not None:
        options.require_outside(out, "a release holds no other file")
    about = About(title, owner, description, license, url)
    shown = None if audit is None else read_audit(audit)
    text = describe(folder, format, about, out, shown)
    if out is None:
        sys.stdout.write(text)
    else:
        files.write(out, text)
        shell.say(f"wrote {out}")
    left = text.count(FILL_IN)
    if left:
        shell.note(f"{left} places are marked {FILL_IN}: only you can know them.")
