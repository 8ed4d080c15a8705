"""One page about a release, for people. Self-contained, and made of released quantities alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from understudy._version import __version__
from understudy.markup import Child, Html, join, table, tag
from understudy.privacy import accounting
from understudy.privacy.budget import decimal
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Charge, Plan, event_from_json
from understudy.releases import Release
from understudy.releases.outline import ACCOUNTING, buys, noise_in_rows
from understudy.releases.static_html import HEAD
from understudy.report import charts, words
from understudy.report.facts import Column, Pair, cell_sizes, columns, pairs
from understudy.report.style import sheet
from understudy.report.training import Panel, panels
from understudy.units import group
from understudy.wording import number, percent

__all__ = ["document", "render"]

_BARS = 60
_LETTERS = 1_200_000
"""About what the charts may take of a page that stays under two megabytes."""
_MOST_COLUMNS = 200
_MOST_PAIRS = 200
_MOST_ENTRIES = 60
"""A longer ledger is shown by purpose."""


def render(
    release: Release,
    *,
    name: str | None = None,
    digest: str | None = None,
    created: str | None = None,
    audit: Mapping[str, Any] | None = None,
) -> str:
    """The whole page.

    name     what the release is called, such as the name of its folder
    digest   that of its manifest, for verifying and citing; known once it is saved, so the report
             that is saved with the release, and is covered by its digest, does not state it
    created  when it was saved, an ISO time
    audit    what `understudy audit` found (its audit.json)

    Everything in it comes from the release (and the audit): no private row is read, nothing is
    charged, and the page is as private as the release.
    """
    title = f"Report on {name}" if name else "Report on a synthetic table"
    shown = columns(release, _bars(len(release.schema.modelled)))
    found = pairs(release)
    body = tag(
        "main",
        _top(release, name),
        _promise(release),
        _certificate(release),
        _columns(shown, release),
        _pairs(release, found),
        _limits(release),
        _ledger(release),
        _training(release),
        _method(release),
        _audit(audit),
        _verify(release, name, digest, created),
        tag(
            "footer",
            f"Made by understudy {__version__} from the release alone: this page reads no private "
            f"row, costs nothing, and can be made again with ",
            tag("code", f"understudy report {name or 'DIR'}"),
            ".",
        ),
    )
    return document(title, body)


def document(title: str, body: Html) -> str:
    """A page of its own, with the style in it and nothing to load."""
    head = join(tag("title", title), tag("style", Html(sheet())))
    return f"{HEAD}{head}</head>{tag('body', body)}</html>\n"


def _bars(count: int) -> int:
    """Fewer bars where there are many columns, so that the page stays small."""
    return max(8, min(_BARS, _LETTERS // (130 * max(min(count, _MOST_COLUMNS), 1))))


def _section(identity: str, heading: str, *children: Child, lead: Child = None) -> Html:
    return tag(
        "section",
        tag("h2", heading, id=identity),
        None if lead is None else tag("p", lead, class_="lead"),
        children,
        aria_labelledby=identity,
    )


def _facts(pairs: Sequence[tuple[str, str]]) -> Html:
    """Names and what they are, in a table without a head."""
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", said)) for name, said in pairs]
    return tag("table", tag("tbody", rows), class_="facts")


# The top: three things to know


def _top(release: Release, name: str | None) -> Html:
    size = f"{release.rows.num_rows:,} synthetic rows × {release.rows.num_columns} columns"
    return tag(
        "header",
        tag("p", f"{name}: {size}" if name else size, class_="eyebrow"),
        None
        if release.private
        else tag(
            "p",
            "NOT PRIVATE: made with seeded test noise, for tests. It protects nobody.",
            class_="alarm",
            role="alert",
        ),
        tag("h1", words.promise(release)),
        tag("div", _promised(release), _wrong(release), _not_for(release), class_="cards"),
    )


def _card(heading: str, big: str, *children: Child) -> Html:
    return tag("div", tag("h2", heading), tag("p", big, class_="big"), children, class_="card")


def _promised(release: Release) -> Html:
    return _card(
        "What is promised",
        f"ε = {decimal(release.budget.epsilon)}",
        tag(
            "p",
            f"Differential privacy for every {words.whose(release)}: {words.strength(release.epsilon)}"
            f", {words.chance(release.delta)} (δ = {words.small(release.delta)}).",
        ),
        tag("p", tag("a", "The promise in full", href="#promise")),
    )


def _wrong(release: Release) -> Html:
    certificate = release.certificate
    rows = number(certificate.bound * release.rows_estimate)
    what = "No answer to the" if certificate.of != "cells" else "No share in the"
    return _card(
        "How wrong a number can be",
        f"± {_points(certificate.bound)}",
        tag(
            "p",
            f"{what} {words.tables(release)} is off by more than that share of all rows, about "
            f"{rows} rows, with {100 * (1 - certificate.beta):g} % confidence.",
        ),
        tag("p", tag("a", "The certificate", href="#certificate")),
    )


def _not_for(release: Release) -> Html:
    bound, n = release.certificate.bound, release.rows_estimate
    widest = max(len(clique) for clique in release.workload.cliques)
    beyond = (
        f"Tables of more than {widest} {'column' if widest == 1 else 'columns'} together: plausible, "
        f"not certified."
    )
    return _card(
        "What not to use it for",
        f"Under {number(bound * n)} rows",
        tag(
            "ul",
            tag("li", "Groups as small as that: their numbers may be all noise."),
            tag("li", "Single people: no row here is anybody's."),
            tag("li", beyond) if widest < len(release.schema.modelled) else None,
        ),
        tag("p", tag("a", "Which groups, in numbers", href="#limits")),
    )


def _points(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


# Sections


def _promise(release: Release) -> Html:
    entries = [
        (tag("dt", term), tag("dd", [tag("p", text) for text in texts]))
        for term, texts in words.order(release)
    ]
    return _section(
        "promise",
        "The promise in full",
        tag("dl", [part for entry in entries for part in entry]),
        lead="In the order in which NIST SP 800-226 evaluates such promises.",
    )


def _certificate(release: Release) -> Html:
    certificate, n = release.certificate, release.rows_estimate
    lines: list[tuple[str, str]] = [
        ("worst error, certified", f"at most {certificate.bound:.4f} of the rows"),
        ("confidence", f"{100 * (1 - certificate.beta):g} %, over the noise of the certificate"),
        ("speaks of", f"{words.tables(release)}: {certificate.cells:,} {certificate.of}"),
        ("compares", f"the private table and the {certificate.rows:,} rows of synthetic.parquet"),
    ]
    if certificate.variations is not None:
        lines.append(
            ("total variation of every table", f"at most {max(certificate.variations):.4f}")
        )
    if certificate.population is not None:
        lines.append(("against the population", f"at most {certificate.population:.4f}"))
    if release.forecast is not None:
        lines.append(
            ("worst error, expected", f"about {percent(release.forecast.worst)}; no guarantee")
        )
    if release.theorem is not None:
        lines.append(
            ("by theorem, before the run", f"at most {percent(min(release.theorem.bound, 1.0))}")
        )
    caption = (
        f"Every share in the certified tables is within {percent(certificate.bound)} of all rows of "
        f"the truth. For a group that is itself smaller than this, that says nothing; for one ten "
        f"times as large, the number is right to within a tenth."
    )
    return _section(
        "certificate",
        "How wrong can a number be?",
        tag(
            "figure",
            charts.gauge(certificate.bound, n),
            tag("figcaption", caption),
        ),
        _facts(lines),
        lead="The worst error was measured privately and is published with the rows.",
    )


def _columns(shown: Sequence[Column], release: Release) -> Html:
    drawn = shown[:_MOST_COLUMNS]
    measured = any(column.measured is not None for column in drawn)
    figures = [
        tag(
            "figure",
            tag("h3", column.name, " ", tag("span", _kind(column))),
            charts.column(column),
            _numbers(column),
        )
        for column in drawn
    ]
    more = len(shown) - len(drawn)
    lead = (
        "Where a bar's end lies outside its band, the model has moved the column: it makes tables "
        "agree with each other and corrects noise that cannot be true."
        if measured
        else "This method measured no column by itself; the bars are what the synthetic rows say."
    )
    return _section(
        "columns",
        "The columns",
        charts.key(measured),
        tag("div", figures, class_="columns"),
        tag("p", f"{more:,} further columns are not drawn.", class_="small") if more else None,
        lead=lead,
    )


def _kind(column: Column) -> str:
    return column.kind if column.together == 1 else f"{column.kind}, values taken together"


def _numbers(column: Column) -> Html:
    def row(i: int) -> tuple[str, ...]:
        noisy = "–"
        if column.measured is not None and column.band is not None:
            noisy = f"{100 * column.measured[i]:.2f} ± {100 * column.band[i]:.2f} %"
        return column.labels[i], f"{100 * column.shares[i]:.2f} %", noisy

    return tag(
        "details",
        tag("summary", f"{column.name} in numbers"),
        table(
            ("value", "synthetic", "measured"),
            [row(i) for i in range(len(column.labels))],
            right=(1, 2),
        ),
    )


def _pairs(release: Release, found: Sequence[Pair]) -> Html | None:
    names = [column.name for column in release.schema.modelled]
    if len(names) < 2:
        return None
    known = [pair for pair in found if pair.error is not None]
    certified = release.certificate.variations is not None
    title = f"{'Certified' if certified else 'Expected'} error of every pair of columns"
    parts: list[Child] = []
    if known and len(names) <= 90:
        caption = (
            "In percent of all rows: how much of the table of two columns would have to move to "
            "another cell (total variation). "
            + (
                "Certified, all of them together."
                if certified
                else "Expected from the noise that was drawn; only the certificate above is a bound."
            )
        )
        parts.append(
            tag("figure", charts.matrix(names, found, title), charts.legend(found),
                tag("figcaption", caption))
        )  # fmt: skip
    elif not known:
        parts.append(
            tag("p", "This method states no error for single pairs; the certificate above holds "
                "for all tables of the workload.")
        )  # fmt: skip
    parts.append(_measured_words(release, found))
    worst = sorted(known, key=lambda pair: -(pair.error or 0)) or list(found)
    rows = [
        (
            f"{pair.names[0]} × {pair.names[1]}",
            "–" if pair.error is None else percent(pair.error),
            _HOW[pair.measured],
        )
        for pair in worst[:_MOST_PAIRS]
    ]
    cut = f", the worst {_MOST_PAIRS} of {len(worst):,}" if len(worst) > _MOST_PAIRS else ""
    parts.append(
        tag("details", tag("summary", f"Pairs in numbers{cut}"),
            table(("pair", "error", "comes from"), rows, right=(1,)))
    )  # fmt: skip
    return _section("pairs", "Pairs of columns", parts)


_HOW = {
    "table": "measured, every cell",
    "merged": "measured, values counted together",
    "cells": "single cells measured",
    "queries": "looked at: queries selected",
    "": "model alone",
}


def _measured_words(release: Release, found: Sequence[Pair]) -> Html:
    """Which marginals were measured, and which are model."""
    names = [column.name for column in release.schema.modelled]
    alone = {m.clique[0] for m in release.measurements if len(m.clique) == 1}
    total = math.comb(len(names), 2)
    counts = {kind: sum(pair.measured == kind for pair in found) for kind in _HOW if kind}
    counts[""] = total - sum(counts.values())
    larger = {m.clique for m in release.measurements if len(m.clique) > 2}
    rows: list[tuple[str, str]] = []
    if not release.measurements:
        rows.append(("measured", "nothing that this release records"))
    if alone:
        every = "all" if len(alone) == len(names) else f"{len(alone)} of"
        rows.append(("columns measured", f"{every} {len(names)}"))
    rows += [
        (f"pairs: {_HOW[kind]}", f"{count:,} of {total:,}")
        for kind, count in counts.items()
        if count
    ]
    if larger:
        rows.append(("larger tables measured", f"{len(larger):,}"))
    rows.append(("everything else", "follows from the model, which was fitted to these"))
    return join(tag("h3", "What was measured, and what is model"), _facts(rows))


def _limits(release: Release) -> Html:
    sizes = cell_sizes(release)
    with_column = any(size.column is not None for size in sizes)
    with_pair = any(size.pair is not None for size in sizes)
    headings = ["a group of"]
    if with_column:
        headings.append("a value of one column: expected")
    if with_pair:
        headings.append("a cell of two columns: expected")
    headings.append("certified, at most")
    rows = []
    for size in sizes:
        row = [f"{size.rows:,} rows"]
        if with_column:
            row.append("–" if size.column is None else _relative(size.column))
        if with_pair:
            row.append("–" if size.pair is None else _relative(size.pair))
        row.append(_relative(size.certified))
        rows.append(row)
    widest = max(len(clique) for clique in release.workload.cliques)
    never = [
        "Do not look anybody up: rows are invented, and one that looks like a person you know says "
        "nothing about them.",
        "Do not decide about single people, and do not report a group whose error above is of its own "
        "size. Rare groups are the first to be lost, and may be missing or invented.",
        f"Do not rely on tables of more than {widest} columns together, on extremes (minimum, maximum, "
        f"outliers) or on values inside a cell: only the workload was certified.",
        "Do not join it with another table row by row, and do not ask it about people who were not in "
        "the table.",
        "Fresh rows from the model (understudy sample) are as private, but the certificate speaks of "
        "synthetic.parquet alone.",
    ]
    return _section(
        "limits",
        "What not to use it for",
        tag("ul", [tag("li", text) for text in never]),
        tag("h3", "Expected relative error by the size of a group"),
        tag(
            "div",
            table(headings, rows, right=range(1, len(headings)), class_="sizes"),
            class_="scroll",
        ),
        tag(
            "p",
            "Expected: from the noise of the measurements, for a typical table. Certified: for every "
            "cell of the workload at once. Above 100 % the number says nothing.",
            class_="small",
        ),
        lead="Noise does not shrink with the group: the smaller the group, the less is left of it.",
    )


def _relative(error: float) -> str:
    if error >= 1:
        return "over 100 %"
    return f"± {100 * error:.0f} %" if error >= 0.1 else f"± {100 * error:.2g} %"


# The ledger


def _ledger(release: Release) -> Html:
    reserved = _reserved(release)
    total = float(accounting.total_rho(reserved)) or 1.0
    planned = {charge.purpose: charge for charge in release.plan}
    rows: list[Sequence[Child]] = []
    for entries in _alike(release.entries):
        rows.append(_entry(entries, planned, total))
    cost = accounting.epsilon(reserved, release.budget.delta, group(release.schema.unit))
    return _section(
        "ledger",
        "The ledger",
        tag(
            "div",
            table(
                ("entry", "what", "noise, in rows", "share of the budget", "hash"),
                rows,
                right=(2, 3),
                class_="ledger",
            ),
            class_="scroll",
        ),
        tag(
            "p",
            f"All of it costs ε = {cost.epsilon:.6g} at δ = {words.small(cost.delta)}, recomputed by "
            f"{ACCOUNTING[cost.by]}; {decimal(release.budget.epsilon)} was promised. Shares are shares "
            f"of ρ, in which charges add up (zCDP).",
            class_="small",
        ),
        lead="Whatever depended on a private row is an entry here, written before anything was drawn.",
    )


def _reserved(release: Release) -> Plan:
    """The plan that was reserved before anything was read, with allowances that were filled later."""
    bodies = (e.body for e in release.entries if e.kind == "reserve" and e.body is not None)
    first = next(bodies, None)
    return release.plan if first is None else Plan.from_json(list(first["plan"]))


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


def _entry(
    entries: Sequence[Entry], planned: Mapping[str, Charge], total: float
) -> tuple[Child, ...]:
    first, last = entries[0], entries[-1]
    whole = last.seq - first.seq == len(entries) - 1
    seq = f"{first.seq}–{last.seq}" if whole else f"from {first.seq}"
    seq = f"{first.seq}" if first is last else seq
    stamp = tag("code", last.hash[:12], class_="hash")
    if first.kind == "charge" and first.body is not None:
        event = event_from_json(first.body["event"])
        charge = Charge(first.body["purpose"], event)
        spread = noise_in_rows(charge)
        share = sum(
            float(accounting.rho(event_from_json(e.body["event"]))) for e in entries if e.body
        )
        bought = buys(planned.get(charge.purpose, charge))
        times = "" if len(entries) == 1 else f" ({len(entries):,} draws)"
        what = f"{charge.purpose}{times}" + (f": {bought}" if bought else "")
        noise = "–" if spread is None else f"± {number(spread)}"
        return seq, what, noise, percent(share / total), stamp
    said = {
        "reserve": "the whole plan is reserved, before a row is counted",
        "refine": "what was found decides the rest of the plan, within its allowance",
        "redraw": "drawn under the charge above, whose rows could not be counted at first",
        "settle": "the account is settled",
        None: "another release's entry, withheld",
    }.get(first.kind, first.kind)
    return seq, said, "", "", stamp


# How it was made


def _training(release: Release) -> Html | None:
    """Curves of a network's training; most methods have none."""
    shown = panels(release)
    if not shown:
        return None
    figures = [
        tag("figure", tag("h3", panel.title), charts.curves(panel), charts.names(panel))
        for panel in shown
    ]
    return _section(
        "training",
        "How training went",
        tag("div", figures, class_="columns two"),
        tag("details", tag("summary", "Training in numbers"), _course(shown)),
        lead="Against steps of the critic. Losses and thresholds follow from noisy gradients, which "
        "the ledger above has charged; noise and ε from the plan.",
    )


def _course(shown: Sequence[Panel]) -> Html:
    """A few points of every curve."""
    rows: list[tuple[str, ...]] = []
    for panel in shown:
        for curve in panel.curves:
            last = len(curve.steps) - 1
            places = sorted({round(last * k / 4) for k in range(5)})
            name = panel.title if len(panel.curves) == 1 else f"{panel.title}: {curve.name}"
            rows += [(name, f"{curve.steps[i]:,}", number(curve.values[i])) for i in places]
    return table(("what", "step", "value"), rows, right=(1, 2))


def _method(release: Release) -> Html:
    parameters = [
        (key, _value(value)) for key, value in sorted(release.method.items()) if key != "name"
    ]
    facts = [
        ("workload", f"{words.tables(release)}, {release.certificate.cells:,} "
                     f"{release.certificate.of}"),
        ("rows of the table", _rows_words(release)),
        ("synthetic rows", f"{release.rows.num_rows:,}"),
        ("key of the public randomness", str(release.facts.get("key", "–"))),
        ("understudy", str(release.facts.get("understudy", __version__))),
    ]  # fmt: skip
    remarks = [
        (str(key).replace("_", " "), _value(value))
        for key, value in release.remarks.items()
        if not isinstance(value, Mapping)  # curves, which are drawn
    ]
    return _section(
        "method",
        "Method and parameters",
        _facts([("method", str(release.method.get("name"))), *parameters, *facts, *remarks]),
        lead="All of it is public and was fixed before a row was counted.",
    )


def _rows_words(release: Release) -> str:
    if release.rows_public is not None:
        return f"{release.rows_public:,}, declared public"
    return f"private; measured with noise as {release.certificate.rows_measured:,}"


def _value(value: object) -> str:
    if value is None:
        return "chosen by the method"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def _audit(audit: Mapping[str, Any] | None) -> Html | None:
    """Attacks and what they reached; `audit` is the content of an audit.json."""
    if audit is None:
        return None
    found, top, claimed = audit["lower_bound"], audit.get("ceiling"), audit["claim"]["epsilon"]
    attacks = [
        (
            str(each["name"]),
            f"{each['auc']:.3f}",
            f"{each['advantage']:.3f}",
            _tpr(each, "0.01"),
            _tpr(each, "0.001"),
        )
        for each in sorted(audit["attacks"], key=lambda each: -each["auc"])
    ]
    said = str(audit["words"])
    lines = [
        ("ε at least", number(found["epsilon"])),
        ("ε claimed", "none" if claimed is None else f"{claimed:g}"),
        ("confidence", f"{100 * (1 - audit['claim']['beta']):g} %"),
        ("runs and planted records", f"{audit['runs']:,} and {audit['canaries']:,}"),
        ("rows", str(audit["rows_used"])),
    ]  # fmt: skip
    if top is not None:
        lines.append(("best attack that ε allows", f"advantage {top['advantage']:.3f}"))
    return _section(
        "audit",
        "The audit",
        tag("p", said[:1].upper() + said[1:] + ".", class_="alarm" if audit["refuted"] else None),
        _facts(lines),
        tag("div", table(("attack", "AUC", "advantage", "TPR at FPR 1 %", "TPR at FPR 0.1 %"),
                         attacks, right=(1, 2, 3, 4)), class_="scroll"),
        tag("p", "AUC 0.5 and advantage 0 are a coin's.", class_="small"),
        lead=str(audit["limits"]),
    )  # fmt: skip


def _tpr(attack: Mapping[str, Any], level: str) -> str:
    value = attack.get("tpr_at_fpr", {}).get(level)
    return "–" if value is None else f"{100 * value:.2f} %"


def _verify(release: Release, name: str | None, digest: str | None, created: str | None) -> Html:
    folder = name or "DIR"
    command = f"understudy verify {folder}" + (f" --digest {digest}" if digest else "")
    cite = (
        f"{folder}: synthetic table of {release.rows.num_rows:,} rows, {release.promise}. Made with "
        f"understudy {release.facts.get('understudy', __version__)}"
        + (f", {created[:10]}" if created else "")
        + (f". sha256:{digest}" if digest else "")
        + "."
    )
    return _section(
        "verify",
        "Verify and cite",
        tag("p", "Anyone can check, offline, that ε follows from the ledger, the bound from its "
            "measurement, and that no byte was changed:"),
        tag("pre", tag("code", command)),
        tag("p", "In the release this page is covered by the digest too; a copy from elsewhere can be "
            "made again from the release. To be sure that it is the custodian's release, compare the "
            "digest, which verify prints, with the one that the custodian published, or ask for a "
            "signature."),
        tag("h3", "Cite as"),
        tag("pre", tag("code", cite)),
    )  # fmt: skip
