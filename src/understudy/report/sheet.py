"""A sheet for whoever has to decide on a release, by the headings of two documents.

ISO/IEC 27559:2022 (a framework for de-identification) and NIST SP 800-226 (guidelines for evaluating
differential privacy) ask about context, data, identifiability, mitigation and governance. What a
release or its audit proves is filled in, with where it comes from. What only a person can know is
`FILL_IN`, and listed at the end. The sheet is no statement of conformity: nobody has assessed anything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy import wording
from understudy.privacy import accounting
from understudy.releases import Release
from understudy.report import words
from understudy.report.page import fill
from understudy.schema import Identifier, Text
from understudy.units import group

FILL_IN = "(fill in)"
_NOTICE = (
    "Filled in from the release by understudy. It is no statement of conformity with either document, "
    "and no assessment: a person completes and signs it."
)


@dataclass(frozen=True, slots=True)
class Item:
    """One answer, the heading it belongs to, and where it comes from."""

    about: str
    answer: str
    source: str = "release"
    where: str = ""
    """Clauses of ISO/IEC 27559 and topics of NIST SP 800-226."""

    @property
    def left(self) -> bool:
        """Whether a person has to fill it in."""
        return FILL_IN in self.answer


@dataclass(frozen=True, slots=True)
class Section:
    """Items under one heading."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The whole sheet, in three forms."""

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]

    @property
    def left(self) -> tuple[str, ...]:
        """What a person has to fill in."""
        return tuple(f"{s.title}: {i.about}" for s in self.sections for i in s.items if i.left)

    def to_json(self) -> str:
        """As JSON."""
        body = {
            "sheet": "ISO/IEC 27559:2022 and NIST SP 800-226",
            "notice": _NOTICE,
            "title": self.title,
            **dict(self.facts),
            "sections": [
                {
                    "title": section.title,
                    "items": [
                        {
                            "about": item.about,
                            "answer": item.answer,
                            "source": "person" if item.left else item.source,
                            "headings": item.where,
                        }
                        for item in section.items
                    ],
                }
                for section in self.sections
            ],
            "to_fill_in": list(self.left),
        }
        return json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """As Markdown: a table a section."""
        return "\n".join(self._lines()) + "\n"

    def to_html(self) -> str:
        """As one page without scripts."""
        return fill("sheet.html", sheet=self, notice=_NOTICE, fill_in=FILL_IN)

    def _lines(self) -> Iterator[str]:
        yield f"# {_plain(self.title)}"
        yield ""
        yield _NOTICE
        yield ""
        for name, value in self.facts:
            yield f"- {name}: {_plain(value)}"
        for section in self.sections:
            yield ""
            yield f"## {section.title}"
            yield ""
            yield "| | answer | from | headings |"
            yield "|---|---|---|---|"
            for item in section.items:
                source = "a person" if item.left else item.source
                cells = (item.about, item.answer, source, item.where)
                yield f"| {' | '.join(map(_plain, cells))} |"
        yield ""
        yield f"## Left to fill in: {len(self.left)}"
        yield ""
        for name in self.left:
            yield f"- [ ] {name}"


def _plain(text: str) -> str:
    """Text in a cell of a Markdown table; markup in it stays text."""
    one = " ".join(text.split())
    for mark in "\\`*_[]<>|#":
        one = one.replace(mark, "\\" + mark)
    return one


def sheet(
    release: Release,
    title: str,
    facts: Sequence[tuple[str, str]],
    audit: Mapping[str, Any] | None = None,
    curator: str | None = None,
) -> Sheet:
    """The sheet of a release and, if there is one, of its audit (an audit.json)."""
    return Sheet(
        title,
        tuple(facts),
        (
            Section("Context", _context()),
            Section("Data", _data(release)),
            Section("The guarantee", _guarantee(release)),
            Section("Attacks and identifiability", _attacks(release, audit)),
            Section("Accuracy and bias", _accuracy(release)),
            Section("Implementation", _implementation(release)),
            Section("Governance", _governance(curator or FILL_IN)),
        ),
    )


def _context() -> tuple[Item, ...]:
    return (
        Item("purpose, recipients, and how they get it", FILL_IN, where="ISO 6.1, 6.3"),
        Item("security and privacy practices of recipients", FILL_IN, where="ISO 6.2.2"),
        Item("motives and capacity to re-identify", FILL_IN, where="ISO 6.2.3"),
        Item(
            "what the guarantee assumes of recipients",
            "Nothing: it holds whatever they know, and for every use of the release",
            "the definition of differential privacy",
            "ISO 6.2; NIST: threat model",
        ),
        Item("engagement of the people concerned, possible harms", FILL_IN, where="ISO 6.3"),
    )


def _data(release: Release) -> tuple[Item, ...]:
    schema = release.schema
    kinds = Counter(column.kind for column in schema.modelled)
    kept = {column.name for column in schema.written}
    unmodelled = [c.name for c in schema.columns if isinstance(c, Identifier | Text)]
    left_out = ", ".join(name for name in unmodelled if name not in kept)
    anew = ", ".join(name for name in unmodelled if name in kept)
    never = [f"left out: {left_out}"] * bool(left_out) + [f"written anew: {anew}"] * bool(anew)
    protected = "" if schema.unit is None else f"one for each value of {schema.unit.column}; "
    rows = (
        f"{release.number:,}, declared public"
        if release.rows_public is not None
        else f"private; about {release.number:,} (measured with noise)"
    )
    return (
        Item("data principals: whom the rows are about", protected + FILL_IN, where="ISO 7.2.2"),
        Item("number of original rows", rows, where="ISO 7.2.5"),
        Item(
            "columns",
            ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())),
            where="ISO 7.2.3",
        ),
        Item(
            "direct identifiers, and other columns that are not modelled",
            f"{'; '.join(never)}. Which of them identify a person: {FILL_IN}"
            if never
            else "none declared",
            where="ISO 7.2.4",
        ),
        Item("sensitive and indirectly identifying columns", FILL_IN, where="ISO 7.2.4"),
        Item(
            "how the rows were collected, and who had access",
            FILL_IN,
            where="NIST: data collection",
        ),
        Item(
            "public facts that the release rests on",
            "names, types, categories and bounds of the columns in its schema, as the custodian states "
            "them; that they were not taken from the rows is the custodian's word",
            where="NIST: hazards (data-dependent choices)",
        ),
    )


def _guarantee(release: Release) -> tuple[Item, ...]:
    unit = release.schema.unit
    spent = accounting.epsilon(release.plan, release.budget.delta, group(unit))
    promised = f"ε = {release.epsilon:g}, δ = {wording.small(release.delta)}"
    kind = "approximate" if release.delta else "pure"
    others = f"{FILL_IN}; their ε adds up, see the ledger"
    trust = "central: the custodian holds the rows; recipients need not be trusted"
    noise = "not seeded" if release.private else "SEEDED TEST NOISE: this release is NOT PRIVATE"
    return (
        Item("privacy parameters", promised, where="ISO 7.3.4, 8.2.2; NIST: ε, δ"),
        Item("definition", f"{kind} differential privacy", where="NIST: privacy guarantee"),
        Item("unit of privacy", release.promise, where="NIST: unit of privacy"),
        Item("what that means", words.promise(release), "a theorem", "ISO 8.2.2"),
        Item(
            "recomputed from the plan",
            f"ε = {spent.epsilon:.4g} at δ = {wording.small(float(spent.delta))}, by {spent.by}",
            where="NIST: composition",
        ),
        Item("other releases of the same rows", others, where="NIST: composition"),
        Item("trust model", trust, "documentation", "NIST: trust model"),
        Item("noise", noise),
    )


def _attacks(release: Release, audit: Mapping[str, Any] | None) -> tuple[Item, ...]:
    worst = "the worst case over all people and all attackers, not an average"
    by = "the definition of differential privacy"
    drawn = (
        f"rows are drawn from a model fitted to noisy answers (method {release.method.get('name')}); "
        "one may equal an original row by chance"
    )
    common = (
        Item("risk that is bounded", worst, by, "ISO 7.3.2, 7.3.3"),
        Item("transformation", drawn, where="ISO 8.3.3"),
        Item("other measures in the recipients' environment", FILL_IN, where="ISO 8.3.2"),
    )
    if audit is None:
        none = Item("adversarial testing", f"{FILL_IN}; no audit was given", where="ISO 8.2.3")
        return (*common, none)
    found = audit["lower_bound"]["epsilon"]
    shown = "no lower bound above 0" if not found else f"ε is at least {found:.3g} by these attacks"
    verdict = "REFUTED" if audit.get("refuted") else "not refuted"
    claimed = audit["claim"]["epsilon"]
    said = f"the claim of ε = {claimed:g} is {verdict}; {shown}" if claimed is not None else shown
    return (
        *common,
        Item("adversarial testing", said, "audit", "ISO 8.2.3"),
        Item("runs and canaries", f"{audit['runs']} runs, {audit['canaries']} canaries", "audit"),
        Item("rows that were attacked", str(audit["rows_used"]), "audit"),
        Item("what an audit cannot show", str(audit["limits"]), "audit"),
    )


def _accuracy(release: Release) -> tuple[Item, ...]:
    covered = (
        f"{words.tables(release)}; the rows in the release alone, not rows that are drawn later, and "
        "nothing about tables outside the workload"
    )
    small = "groups of fewer rows than the error are mostly noise and model"
    return (
        Item("certified error", f"{release.certificate}", where="NIST: utility"),
        Item("what it covers", covered, where="NIST: utility"),
        Item("small groups", small, "documentation", "NIST: bias (statistical)"),
        Item("bias in the original rows and in their use", FILL_IN, where="NIST: bias"),
        Item("whether that is accurate enough for the purpose", FILL_IN, where="NIST: utility"),
    )


def _implementation(release: Release) -> tuple[Item, ...]:
    events = Counter(type(charge.event).__name__ for charge in release.plan)
    drawn = ", ".join(f"{number} × {name}" for name, number in sorted(events.items()))
    ledger = f"{len(release.entries)} entries, each charged before its draw; head {release.head}"
    verify = "understudy verify DIR; a second verifier of one file is tools/verify_release.py"
    hazards = (
        "counts get discrete noise on integers; timing is not defended against: the custodian's "
        "machine is trusted"
    )
    side, told = "NIST: hazards (side channels)", "documentation"
    return (
        Item("mechanisms", drawn, where="NIST: algorithms"),
        Item("ledger", ledger, where="NIST: composition; ISO 9"),
        Item("how anybody checks it", verify, told, "ISO 8.3.4"),
        Item("floating-point noise, timing", hazards, told, side),
        Item("access control and security where the rows are", FILL_IN, where="NIST: security"),
    )


def _governance(curator: str) -> tuple[Item, ...]:
    budget = "budget for all releases of these rows, and what is left of it"
    return (
        Item("responsible", curator, "custodian", "ISO 9.2.2"),
        Item("policies, approval and its date", FILL_IN, where="ISO 9.2.3"),
        Item("agreements with recipients", FILL_IN, where="ISO 9.2"),
        Item("review after publication, incidents, withdrawal", FILL_IN, where="ISO 9.3"),
        Item(budget, FILL_IN, where="NIST: composition"),
    )
