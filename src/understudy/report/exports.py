"""Descriptions of a release for other tools and catalogues: public facts and released numbers alone.

SDV's metadata (spec V1), a Frictionless data package (version 2), MLCommons Croissant 1.1 with PROV-O
and its vocabulary for responsible use, an entry of the OpenDP deployments registry, the sheet of
`report.sheet`, and the certified rows as CSV. What only the custodian knows is taken from `About`;
where that is silent, `FILL_IN` stands in the registry entry and in the sheet, and the other formats
leave it out. What an audit found is stated where the audit is given, and nothing about audits
otherwise.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pyarrow import csv

from understudy.columns.binned import Binned
from understudy.errors import InputError
from understudy.releases import Release
from understudy.releases.bundle import Bundle
from understudy.report import words
from understudy.report.page import fill
from understudy.report.sheet import FILL_IN, sheet
from understudy.schema import Boolean, Category, Column, Date, Datetime, Identifier, Integer, Number

_ROWS = "synthetic.parquet"
_TYPE = "application/vnd.apache.parquet"
_CROISSANT_TYPE = "application/x-parquet"  # Croissant's own name for it; its readers know no other


@dataclass(frozen=True, slots=True)
class About:
    """What only the custodian knows."""

    title: str | None = None
    curator: str | None = None
    description: str | None = None
    license: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """A release in a folder, as every format looks at it."""

    name: str
    release: Release
    manifest: Mapping[str, Any]
    about: About
    path: str
    """Of the rows, as seen from where the description lies."""
    suffix: str = ".md"
    """Of the file that it is for."""
    audit: Mapping[str, Any] | None = None
    """What `understudy audit` found."""

    @property
    def title(self) -> str:
        return self.about.title or f"Synthetic stand-in: {self.name}"

    @property
    def created(self) -> str:
        return str(self.manifest["created"])

    @property
    def promise(self) -> str:
        """The guarantee, without brackets in brackets."""
        return self.release.promise.replace(" (one ", ": one ").removesuffix(")")

    @property
    def certificate(self) -> str:
        """The bound, as a sentence."""
        told = str(self.release.certificate)
        return told[:1].upper() + told[1:]

    @property
    def description(self) -> str:
        stated = f"{self.about.description.rstrip('.')}. " if self.about.description else ""
        made = self.release
        return (
            f"{stated}{made.rows.num_rows:,} synthetic rows with {self.promise}. {self.certificate}. "
            f"Made with understudy {self.manifest['understudy']}; the digest of the release is "
            f"sha256:{self.manifest['digest']}."
        )


def describe(
    folder: str | Path,
    format: str,
    about: About | None = None,
    out: Path | None = None,
    audit: Mapping[str, Any] | None = None,
) -> str:
    """The description of the release in `folder`, as text of one of `FORMATS`.

    `out` is the file that it is for: where the release lies below its folder, the rows are named by
    their place from there. Otherwise the description belongs beside them. `audit` is what
    `understudy audit` found (`report.page.read_audit`).

    Raises:
        InputError: The format is unknown.
        BundleError: The folder holds no release, or a damaged one.
    """
    if format not in FORMATS:
        raise InputError(f"format = {format!r} must be one of {', '.join(FORMATS)}")
    folder = Path(folder)
    bundle = Bundle.open(folder)
    name = folder.resolve().name.removesuffix(".release")
    about = about or About()
    path = _seen_from(folder / _ROWS, out)
    suffix = ".md" if out is None else out.suffix.lower()
    return FORMATS[format](
        _Subject(name, bundle.release, bundle.manifest, about, path, suffix, audit)
    )


def _seen_from(rows: Path, out: Path | None) -> str:
    """Paths that lead upwards are refused by readers of these formats."""
    rows = rows.resolve()
    if out is None or not rows.is_relative_to(out.resolve().parent):
        return _ROWS
    return rows.relative_to(out.resolve().parent).as_posix()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "release"


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def _json(body: Mapping[str, Any]) -> str:
    """As text, without what nobody stated."""
    stated = {name: value for name, value in body.items() if value is not None}
    return json.dumps(stated, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


# SDV


def _sdv(subject: _Subject) -> str:
    columns = {column.name: _sdv_column(column) for column in subject.release.schema.written}
    tables = {_slug(subject.name): {"columns": columns}}
    return _json({"METADATA_SPEC_VERSION": "V1", "tables": tables, "relationships": []})


def _sdv_column(column: Column) -> dict[str, Any]:
    match column:
        case Identifier():
            return {"sdtype": "id"}
        case Boolean():
            return {"sdtype": "boolean"}
        case _ if isinstance(column, Category) or _mixed(column):
            return {"sdtype": "categorical"}
        case Integer() | Number():
            return {"sdtype": "numerical", "computer_representation": _width(column.dtype)}
        case _:
            written = column.format if isinstance(column, Date | Datetime) else None
            default = "%Y-%m-%d" if column.kind == "date" else "%Y-%m-%d %H:%M:%S"
            return {"sdtype": "datetime", "datetime_format": written or default}


def _mixed(column: Column) -> bool:
    """Whether special texts stand among numbers or dates."""
    return isinstance(column, Binned) and any(isinstance(value, str) for value in column.special)


def _width(dtype: str) -> str:
    match = re.fullmatch(r"(u?)int(8|16|32|64)", dtype)
    return f"{'UInt' if match[1] else 'Int'}{match[2]}" if match else "Float"


# Frictionless


def _frictionless(subject: _Subject) -> str:
    about, columns = subject.about, subject.release.schema.written
    publisher = {"title": about.curator, "roles": ["publisher"]}
    rows = {
        "name": "synthetic",
        "path": subject.path,
        "format": "parquet",
        "mediatype": _TYPE,
        "hash": f"sha256:{subject.manifest['files'][_ROWS]['sha256']}",
        "schema": {"fields": [_frictionless_field(column) for column in columns]},
    }
    return _json(
        {
            "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
            "name": _slug(subject.name),
            "title": subject.title,
            "description": subject.description,
            "created": subject.created,
            "homepage": about.url or None,
            "licenses": [{"name": about.license}] if about.license else None,
            "contributors": [publisher] if about.curator else None,
            "resources": [rows],
        }
    )


def _frictionless_field(column: Column) -> dict[str, Any]:
    kind = {"category": _kind_of_category(column), "identifier": "string"}.get(
        column.kind, "string" if _mixed(column) else column.kind
    )
    field: dict[str, Any] = {"name": column.name, "type": kind}
    if column.nullable and kind in ("integer", "number"):
        field["missingValues"] = ["", "nan"]  # as the tool reads the nulls of a Parquet file
    limits: dict[str, Any] = {} if column.nullable else {"required": True}
    if isinstance(column, Category):
        limits["enum"] = [_plain(value) for value in _values(column)]
    if isinstance(column, Binned) and not column.special:
        limits |= {"minimum": _plain(column.lower), "maximum": _plain(column.upper)}
    return {**field, "constraints": limits} if limits else field


def _values(column: Category) -> tuple[Any, ...]:
    return column.values if column.other is None else (*column.values, column.other)


def _kind_of_category(column: Column) -> str:
    values = _values(column) if isinstance(column, Category) else ()
    kinds = {"boolean": bool, "integer": int, "number": int | float, "date": date}
    for name, kind in kinds.items():
        if values and all(isinstance(value, kind) for value in values):
            return name
    return "string"


# Croissant

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "conformsTo": "dct:conformsTo",
} | {
    term: f"cr:{term}"
    for term in re.findall(
        r"\w+",
        """annotation arrayShape citeAs column containedIn equivalentProperty excludes extract field
        fileObject fileProperty fileSet format includes isArray isLiveDataset jsonPath key md5
        parentField path readLines recordSet references regex repeated replace samplingRate sdVersion
        separator source subField transform unArchive value""",
    )
}
"""The whole context of the specification: readers compare it with theirs."""
_DATA_TYPES = {
    "string": "sc:Text",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
}


def _croissant(subject: _Subject) -> str:
    stated, about = subject.manifest["files"][_ROWS], subject.about
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{column.name}",
            "name": column.name,
            "dataType": _DATA_TYPES[_frictionless_field(column)["type"]],
            "source": {"fileObject": {"@id": _ROWS}, "extract": {"column": column.name}},
        }
        for column in subject.release.schema.written
    ]
    creator = {"@type": "sc:Organization", "name": about.curator}
    return _json(
        {
            "@context": _CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.1",
            "name": _slug(subject.name),
            "description": subject.description,
            "version": "1.0.0",
            "datePublished": subject.created[:10],
            "url": about.url or None,
            "license": about.license or None,
            "creator": creator if about.curator else None,
            "citeAs": f"{subject.title}. understudy {subject.manifest['understudy']}. "
            f"sha256:{subject.manifest['digest']}",
            "dateCreated": subject.created,
            "sdVersion": "1.0.0",
            **_provenance(subject),
            **_limitations(subject),
            "distribution": [
                {
                    "@type": "cr:FileObject",
                    "@id": _ROWS,
                    "name": _ROWS,
                    "contentUrl": subject.path,
                    "contentSize": f"{stated['bytes']} B",
                    "encodingFormat": _CROISSANT_TYPE,
                    "sha256": stated["sha256"],
                }
            ],
            "recordSet": [
                {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}
            ],
        }
    )


def _provenance(subject: _Subject) -> dict[str, Any]:
    """Where the rows come from, by PROV-O."""
    made, tool = subject.release, f"understudy {subject.manifest['understudy']}"
    private = {
        "@type": "prov:Entity",
        "prov:label": "A private table, which is not part of this dataset",
    }
    activity = {
        "@type": "prov:Activity",
        "prov:label": f"Release by the method {made.method.get('name')} with {subject.promise}",
        "prov:endedAtTime": subject.created,
        "prov:wasAssociatedWith": {"@type": "prov:SoftwareAgent", "prov:label": tool},
    }
    found: dict[str, Any] = {"prov:wasDerivedFrom": private, "prov:wasGeneratedBy": activity}
    if subject.about.curator:
        found["prov:wasAttributedTo"] = {"@type": "prov:Agent", "prov:label": subject.about.curator}
    return found


def _limitations(subject: _Subject) -> dict[str, str]:
    """What it is not good for, by Croissant's vocabulary for responsible use."""
    made = subject.release
    found = {
        "rai:personalSensitiveInformation": f"Synthetic rows, drawn from a model of noisy answers. "
        f"{subject.promise}. {words.promise(made)}",
        "rai:dataLimitations": f"{subject.certificate}. The certificate covers {words.tables(made)} of "
        "the rows in this dataset. Groups of fewer rows than this error are mostly noise; tables "
        "outside the workload have no certificate.",
        "rai:dataManipulationProtocol": "Noise was added to answers about the private table, a model "
        "was fitted to them, and the rows were drawn from it. The ledger in the release lists every "
        "draw; anyone can verify it offline.",
    }
    return found


# OpenDP's registry of deployments


def _registry(subject: _Subject) -> str:
    made, unit = subject.release, words.whose(subject.release)
    public = ["names, types, categories and bounds of the columns"]
    if made.rows_public is not None:
        public.append(f"the number of rows, {made.rows_public}")
    text = fill(
        "registry.yaml",
        subject=subject,
        made=made,
        slug=_slug(subject.name),
        curator=subject.about.curator or FILL_IN,
        fill_in=FILL_IN,
        domain="; ".join(f"{c.name} ({c.kind}, {c.size} values)" for c in made.schema.modelled),
        public="; ".join(public),
        unit="Row-level" if unit == "row" else f"{unit}-level",
        promise=words.promise(made),
        mechanisms="; ".join(f"{c.purpose}: {type(c.event).__name__}" for c in made.plan),
        audited=""
        if subject.audit is None
        else f" Audit: {subject.audit['words']} {subject.audit['limits']}",
    )
    return text + "\n"


# The sheet


def _sheet(subject: _Subject) -> str:
    facts = [
        ("release", subject.name),
        ("created", subject.created),
        ("digest", f"sha256:{subject.manifest['digest']}"),
        ("made with", f"understudy {subject.manifest['understudy']}"),
    ]
    about = subject.about
    made = sheet(subject.release, subject.title, facts, subject.audit, about.curator)
    match subject.suffix:
        case ".html":
            return made.to_html()
        case ".json":
            return made.to_json()
        case ".md":
            return made.to_markdown()
        case other:
            raise InputError(
                f"out ends in {other!r} and must end in .md, .html or .json for a sheet; that chooses "
                "its form"
            )


def _csv(subject: _Subject) -> str:
    text = io.BytesIO()
    csv.write_csv(subject.release.rows, text)
    return text.getvalue().decode()


FORMATS: dict[str, Callable[[_Subject], str]] = {
    "sdv": _sdv,
    "frictionless": _frictionless,
    "croissant": _croissant,
    "opendp-registry": _registry,
    "sheet": _sheet,
    "csv": _csv,
}
"""The formats, and what writes each."""
