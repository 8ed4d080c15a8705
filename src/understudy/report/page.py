"""One page about a release, for people. Self-contained, and made of released quantities alone.

It is saved in the release and covered by its digest, or made again elsewhere.

What it says is in templates/report.html, which escapes whatever it is given: column names and values
come from a schema that somebody else may have written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from understudy import files, wording
from understudy._types import Clique
from understudy._version import __version__
from understudy.errors import InputError, WorkError
from understudy.markup import environment
from understudy.privacy import accounting
from understudy.privacy.budget import decimal
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Charge, Event, Plan, event_from_json
from understudy.progress import Progress, Watch, silent
from understudy.releases import Release
from understudy.releases.agreement import contradiction
from understudy.releases.bundle import Bundle
from understudy.releases.ends import found_in_words
from understudy.releases.form import LARGEST
from understudy.releases.outline import ACCOUNTING, buys, noise_in_rows, shown
from understudy.releases.static_html import HEAD, NAME, require_static
from understudy.releases.verdict import verdict
from understudy.report import charts, words
from understudy.report.estimated import dependent, estimates
from understudy.report.facts import Column, Pair, cell_sizes, columns, pairs
from understudy.report.layout import arranged, brief
from understudy.report.training import Panel, panels
from understudy.units import group, scope
from understudy.wording import at_most, bound, nothing, number, percent, points, unbroken, up

_BARS = 60
_LETTERS = 1_200_000  # About what the charts may take of a page that stays under two megabytes
_MOST_COLUMNS = 200
_MOST_PAIRS = 200
_WIDEST_MATRIX = 24  # Columns of a heat map that is seen at once; a larger one is folded
_MOST_ENTRIES = 60  # A longer ledger is shown by purpose


@dataclass(frozen=True)
class About:
    """What only people know about a release."""

    title: str | None = None
    owner: str | None = None


def render(
    release: Release,
    *,
    name: str | None = None,
    digest: str | None = None,
    created: str | None = None,
    about: About | None = None,
    audit: Mapping[str, Any] | None = None,
    back: str = "",
) -> str:
    """The whole page.

    name     what the release is called, such as the name of its folder
    about    a title and an owner, which only people know
    digest   that of its manifest, for verifying and citing; known once it is saved, so the report
             that is saved with the release, and is covered by its digest, does not state it
    created  when it was saved, an ISO time
    audit    what `understudy audit` found (its audit.json)
    back     the address of the page that it was opened from, to go back to

    Everything in it comes from the release (and the audit): no private row is read, nothing is
    charged, and the page is as private as the release.
    """
    about = about or About()
    drawn = min(len(release.schema.modelled), _MOST_COLUMNS)
    # Fewer bars where there are many columns, so that the page stays small.
    every = columns(release, max(8, min(_BARS, _LETTERS // (130 * max(drawn, 1)))))
    found, trained, reserved = pairs(release), panels(release), _reserved(release)
    headings, sizes = _sizes(release)
    return fill(
        "report.html",
        release=release,
        name=name,
        digest=digest,
        created=created,
        names=[column.name for column in release.schema.modelled],
        widest=max(len(clique) for clique in release.workload.cliques),
        title=about.title,
        owner=about.owner,
        verdict=verdict(release),
        scope=scope(release.schema.unit, brief=True),
        columns=every[:_MOST_COLUMNS],
        layout=arranged(every[:_MOST_COLUMNS]),
        more_columns=len(every[_MOST_COLUMNS:]),
        others=release.others,
        contradiction=contradiction(release.diagnostics),
        pairs=found,
        sources=_sources(release, found),
        estimates=estimates(release),
        ends=found_in_words(release),
        dependent=partial(dependent, release),
        size_headings=headings,
        sizes=sizes,
        ledger=_ledger(release, reserved),
        cost=accounting.epsilon(reserved, release.budget.delta, group(release.schema.unit)),
        panels=trained,
        course=_course(trained),
        parameters=[(k, _value(v)) for k, v in sorted(release.method.items()) if k != "name"],
        diagnostics=[
            (f"of the fit: {key.replace('_', ' ')}", _value(value))
            for key, value in release.diagnostics.items()
            if not isinstance(value, Mapping)  # curves, which are drawn
        ],
        audit=audit,
        attacks=[] if audit is None else _attacks(audit["attacks"]),
        back=back,
    )


def save(
    release: Release,
    folder: str | Path,
    *,
    about: About | None = None,
    name: str | None = None,
    progress: Watch = silent,
) -> Path:
    """Save a release with its report, under the title and owner of `about`.

    name      what its readers will call the folder; by default as it is called here
    progress  is told how far it is

    The rows are paid for and the page can be made again: where it cannot be made, the release is
    saved without one.
    """
    folder = Path(folder)
    progress(Progress("reporting", 0, 1))
    try:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        page = render(release, name=name or folder.resolve().name, created=now, about=about)
        require_static(page.encode())
        if len(page.encode()) > LARGEST[NAME]:
            page = None
    except Exception:  # noqa: BLE001 - whatever it is, `understudy report` will say it
        page = None
    progress(Progress("saving", 0, 1))
    return release.save(folder, report=page)


def write(
    folder: str | Path,
    *,
    out: str | Path | None = None,
    about: About | None = None,
    audit: Mapping[str, Any] | None = None,
) -> Path:
    """Make the report of the release in `folder` again, whole or not at all; an older one is replaced.

    out    where to; by default beside the folder, under its name with .html at the end. Never into
           a release, whose digest covers the report that is in it
    about  a title and an owner
    audit  what an audit found, see `read_audit`
    """
    folder = Path(folder)
    home = folder.resolve()
    path = home.parent / f"{home.name}.html" if out is None else Path(out)
    _require_place(path)
    bundle = Bundle.open(folder)
    stated = {key: str(bundle.manifest[key]) for key in ("digest", "created")}
    page = render(bundle.release, name=home.name, about=about, audit=audit, **stated)
    try:
        files.write(path, page)
    except OSError as error:
        raise WorkError(
            f"{path} could not be written ({error.strerror or error}); give another place with --out"
        ) from None
    return path


def _require_place(path: Path) -> None:
    """A page, and not in a release: nothing else is ever replaced."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"out = {path} must end in .html")
    if (path.resolve().parent / "release.json").is_file():
        raise InputError(
            f"out = {path} lies in a release, whose digest covers its files: choose another folder"
        )


def read_audit(path: str | Path) -> dict[str, Any]:
    """An audit.json, or the folder that holds one."""
    file = Path(path)
    file = file / "audit.json" if file.is_dir() else file
    if not file.is_file():
        raise InputError(
            f"audit = {path} has no audit.json; make one with `understudy audit release`"
        )
    try:
        found = json.loads(file.read_bytes())
        known = found["what"].startswith("understudy audit")
        _ = (found["claim"]["epsilon"], found["lower_bound"]["epsilon"], found["attacks"])
    except (ValueError, KeyError, TypeError, AttributeError):
        known, found = False, {}
    if not known:
        raise InputError(f"audit = {file} was not written by `understudy audit`, or is damaged")
    return found


def fill(template: str, **context: Any) -> str:
    """A page of its own, with the style in it and nothing to load."""
    return _TEMPLATES.get_template(template).render(context)


def _numbers(column: Column) -> Iterable[tuple[str, str, str]]:
    for i, (label, share) in enumerate(zip(column.labels, column.shares, strict=True)):
        noisy = "–"
        if column.measured is not None and column.band is not None:
            noisy = f"{100 * column.measured[i]:z.2f} ± {100 * column.band[i]:.2f} %"
        yield label, f"{100 * share:.2f} %", noisy


_HOW = {
    "table": "measured, every cell",
    "merged": "measured, values counted together",
    "cells": "single cells measured",
    "queries": "compared: queries selected",
    "": "inferred",
}


def _pair_row(pair: Pair, dependent: Callable[[Clique], str]) -> tuple[str, str, str, str]:
    error = "–" if pair.error is None else percent(pair.error).removesuffix(" %")
    return " × ".join(pair.names), error, dependent(pair.clique), _HOW[pair.measured]


def _sources(release: Release, found: Sequence[Pair]) -> Iterable[tuple[str, str]]:
    """Which marginals were measured, and which are model."""
    names = len(release.schema.modelled)
    alone = {m.clique[0] for m in release.measurements if len(m.clique) == 1}
    total = math.comb(names, 2)
    counts = {kind: sum(pair.measured == kind for pair in found) for kind in _HOW if kind}
    counts[""] = total - sum(counts.values())
    larger = {m.clique for m in release.measurements if len(m.clique) > 2}
    if not release.measurements:
        yield "measured", "nothing that this release records"
    if alone:
        yield "columns measured", f"{'all' if len(alone) == names else f'{len(alone)} of'} {names}"
    for kind, count in counts.items():
        if count:
            yield f"pairs: {_HOW[kind]}", f"{count:,} of {total:,}"
    if larger:
        yield "larger tables measured", f"{len(larger):,}"
    yield "everything else", "follows from the model, which was fitted to these"


def _sizes(release: Release) -> tuple[list[str], list[list[str]]]:
    """Errors by the size of a group, without the columns that nothing is known for.

    Of the sizes at which every number may be wrong by more than itself, the largest stands for all.
    """
    sizes, certified = cell_sizes(release), "certified, at most"
    errors = {
        "a value of one column: expected": [size.column for size in sizes],
        "a cell of two columns: expected": [size.pair for size in sizes],
        certified: [size.certified for size in sizes],
    }
    known = {heading: each for heading, each in errors.items() if any(e is not None for e in each)}
    rows = [
        [
            f"{size.rows:,} {words.counted(release)}",
            *(_relative(each[i], heading == certified) for heading, each in known.items()),
        ]
        for i, size in enumerate(sizes)
    ]
    hopeless = sum(set(row[1:]) <= {"over 100 %", "–"} for row in rows)
    return ["a group of", *known], rows[max(hopeless - 1, 0) :]


def _relative(error: float | None, bound: bool) -> str:
    """An error of a share, as a part of it; a bound is rounded up."""
    if error is None:
        return "–"
    if error >= 1:
        return "over 100 %"
    if bound and error:
        unit = 10.0 ** (math.floor(math.log10(error)) - 1)
        error = math.ceil(error / unit - 1e-9) * unit
    return f"± {100 * error:.0f} %" if error >= 0.1 else f"± {100 * error:.2g} %"


# The ledger


def _reserved(release: Release) -> Plan:
    """The plan that was reserved before anything was read, with zCDP filters that were filled later."""
    bodies = (e.body for e in release.entries if e.kind == "reserve" and e.body is not None)
    first = next(bodies, None)
    return release.plan if first is None else Plan.from_json(list(first["plan"]))


def _ledger(release: Release, reserved: Plan) -> list[tuple[str, ...]]:
    planned = {charge.purpose: charge for charge in release.plan}
    size = group(release.schema.unit)
    total = accounting.total_rho(reserved, size) or Fraction(1)

    def share(events: Iterable[Event]) -> float:
        return float(accounting.total_rho(events, size) / total)

    return [
        (
            _places(entries),
            *_said(entries, planned, share, release.schema.weight),
            _stamp(entries[-1].hash[:12]),
        )
        for entries in _alike(release.entries)
    ]


_stamp = Markup('<code class="hash">{}</code>').format


def _alike(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries in order; charges for one purpose stand together where they follow each other, and
    everywhere in a long ledger."""

    def what(entry: Entry) -> tuple[str, str]:
        if entry.kind == "charge" and entry.body is not None:
            return "charge", str(entry.body["purpose"])
        return str(entry.kind), "" if entry.kind is None else str(entry.seq)

    found = [list(group) for _, group in groupby(entries, what)]
    if len(found) <= _MOST_ENTRIES:
        return found
    together: dict[tuple[str, str], list[Entry]] = {}
    for run in found:
        together.setdefault(what(run[0]), []).extend(run)
    return list(together.values())


def _places(entries: Sequence[Entry]) -> str:
    first, last = entries[0].seq, entries[-1].seq
    if len(entries) == 1:
        return str(first)
    return f"{first}–{last}" if last - first == len(entries) - 1 else f"from {first}"


def _said(
    entries: Sequence[Entry],
    planned: Mapping[str, Charge],
    share: Callable[[Iterable[Event]], float],
    weight: int,
) -> tuple[str, str, str]:
    """What, noise and share of the budget."""
    first = entries[0]
    if first.kind == "charge" and first.body is not None:
        charge = Charge(first.body["purpose"], event_from_json(first.body["event"]))
        spread = noise_in_rows(charge, weight)
        part = share(event_from_json(e.body["event"]) for e in entries if e.body)
        bought = buys(planned.get(charge.purpose, charge))
        times = "" if len(entries) == 1 else f" ({len(entries):,} draws)"
        what = f"{shown(charge.purpose)}{times}" + (f": {bought}" if bought else "")
        return what, "–" if spread is None else f"± {number(spread)}", percent(part)
    said = {
        "reserve": "the whole plan is reserved, before a row is counted",
        "refine": "what was found decides the rest of the plan, within the budget set aside for it",
        "redraw": "drawn under the charge above, whose rows could not be counted at first",
        "settle": "the account is settled",
        None: "another release's entry, withheld",
    }.get(first.kind, str(first.kind))
    return said, "", ""


# How it was made


def _course(shown: Sequence[Panel]) -> Iterable[tuple[str, str, str]]:
    """A few points of every curve."""
    for panel in shown:
        for curve in panel.curves:
            last = len(curve.steps) - 1
            name = panel.title if len(panel.curves) == 1 else f"{panel.title}: {curve.name}"
            for i in sorted({round(last * k / 4) for k in range(5)}):
                yield name, f"{curve.steps[i]:,}", number(curve.values[i])


def _value(value: object) -> str:
    if value is None:
        return "chosen by the method"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def _attacks(attacks: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """What an audit's attacks reached, best first."""

    def rate(attack: Mapping[str, Any], level: str) -> str:
        value = attack.get("tpr_at_fpr", {}).get(level)
        return "–" if value is None else f"{100 * value:.2f} %"

    return [
        (
            str(each["name"]),
            f"{each['auc']:.3f}",
            f"{each['advantage']:.3f}",
            rate(each, "0.01"),
            rate(each, "0.001"),
        )
        for each in sorted(attacks, key=lambda each: -each["auc"])
    ]


def _quoted(text: str) -> Markup:
    """A text as JSON has it, which is YAML as well."""
    return Markup(json.dumps(text, ensure_ascii=False))


def _real(value: float) -> str:
    """A float as YAML has it: 1.0e-09, for 1e-09 would be a text."""
    return repr(value) if "." in repr(value) else repr(value).replace("e", ".0e")


_TEMPLATES = environment("understudy.report")
_TEMPLATES.filters |= {
    "at_most": at_most,
    "bound": bound,
    "brief": brief,
    "count": "{:,}".format,
    "decimal": decimal,
    "family_rows": lambda family: [
        (name, *("–" if share is None else percent(share) for share in shares))
        for name, shares in family.rows
    ],
    "nothing": nothing,
    "number": number,
    "numbers": _numbers,
    "estimate_row": lambda each: (each.name, *each.shown),
    "pair_row": _pair_row,
    "percent": percent,
    "points": points,
    "quoted": _quoted,
    "real": _real,
    "shell": wording.quoted,
    "short": charts.short,
    "tick": charts.tick,
    "unbroken": unbroken,
    "up": up,
}
_TEMPLATES.globals |= {
    "accounting": ACCOUNTING,
    "geometry": charts,
    "head": Markup(HEAD),
    "most_pairs": _MOST_PAIRS,
    "version": __version__,
    "widest_matrix": _WIDEST_MATRIX,
    "wording": wording,
    "words": words,
}
