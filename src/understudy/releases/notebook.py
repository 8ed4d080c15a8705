"""Releases in notebooks: what they show of themselves, and progress while one is made.

Outside a notebook nothing of this is used; IPython is never imported, only met where it runs already.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from understudy.markup import Html, notebook, progress_bars
from understudy.progress import Progress, Watch, silent
from understudy.wording import bound, duration, nothing, number, percent, points, small

if TYPE_CHECKING:
    from understudy.releases.certificate import Certificate
    from understudy.releases.plan import Prepared
    from understudy.releases.release import Release

_PREVIEW = 5
_SOON = 0.25  # Seconds between two updates of a cell


def certificate_card(certificate: Certificate) -> str:
    """The bound, what it speaks of and how sure it is."""
    facts: list[tuple[str, str]] = [
        ("worst error", bound(certificate.bound)),
        ("over", f"{certificate.cells:,} {certificate.of} of the workload"),
        ("confidence", f"{100 * (1 - certificate.beta):g} %"),
    ]
    if certificate.variations is not None:
        facts.append(("total variation of every marginal", bound(max(certificate.variations))))
    if certificate.population is not None:
        facts.append(("against the population", bound(certificate.population)))
    return notebook("Certificate", facts)


def release_card(release: Release) -> str:
    """The promise, the certificate, and the first synthetic rows."""
    rows = release.rows
    facts: list[tuple[str, str]] = [
        ("promise", release.promise),
        ("certificate", str(release.certificate)),
        (
            "rows",
            f"{rows.num_rows:,} × {rows.num_columns} columns, by {release.method.get('name')}",
        ),
    ]
    if release.forecast is not None:
        facts.append(("expected", str(release.forecast)))
    if release.theorem is not None:
        facts.append(("theorem", str(release.theorem)))
    if release.proofs is not None:
        facts.append(("oracle", release.proofs))
    head = rows.slice(0, _PREVIEW).to_pydict()
    names = list(head)
    some = [
        ["" if head[name][i] is None else str(head[name][i]) for name in names]
        for i in range(min(_PREVIEW, rows.num_rows))
    ]
    return notebook("Release", facts, (names, some), fold="The first synthetic rows")


def plan_card(prepared: Prepared) -> str:
    """What a release would charge, and how good it would be."""
    from understudy.releases.outline import outline

    seen: dict[str, Any] = outline(prepared)
    forecast = seen["forecast"]
    expected = prepared.forecast(forecast["rows"]).errors
    facts: list[tuple[str, str]] = [
        ("promise", f"{prepared.budget}-differential privacy"),
        (
            "neighbours",
            prepared.design.relation.describe(
                rows_public=prepared.design.rows, unit=prepared.schema.unit
            ),
        ),
        ("method", prepared.method.name),
        (
            "all of it costs",
            f"ε = {seen['cost']['epsilon']:.6g} at δ = {small(seen['cost']['delta'])}",
        ),
        (
            "certificate",
            f"adds {points(forecast['certificate_margin'])} to the true worst error of "
            f"{forecast['rows']:,} rows{' (assumed)' if forecast['rows_assumed'] else ''}"
            f"{nothing(forecast['certificate_margin'])}",
        ),
        *([] if expected is None else [("expected error", str(expected))]),
        *([] if forecast["verdict"] is None else [("verdict", forecast["verdict"]["verdict"])]),
        *([] if forecast["theorem"] is None else [("theorem", forecast["theorem"]["words"])]),
        ("time", f"about {duration(forecast['seconds'])}"),
    ]
    charges = [
        (
            charge["shown"],
            f"{charge['times']:,}",
            "–" if charge["noise_rows"] is None else f"± {number(charge['noise_rows'])}",
            percent(charge["share_of_rho"]),
            charge["buys"],
        )
        for charge in seen["charges"]
    ]
    headings = ("charge", "draws", "noise in rows", "share of the budget", "buys")
    return notebook("Plan; nothing is spent", facts, (headings, charges))


# Progress


def progress_here() -> Watch:
    """Progress in the cell of a notebook, where this runs in one; otherwise none."""
    python = sys.modules.get("IPython")
    shell = None if python is None else python.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return silent
    return InCell(sys.modules["IPython"].display.display)


class InCell:
    """Stages of a release, in one output that is updated; `display` is IPython's."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None
        self._stages: dict[str, Progress] = {}
        self._part = ""
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        """Show how far it is."""
        done, total = progress.done, progress.total
        self._part = progress.part if done != total else ""
        new = not progress.part and progress.stage not in self._stages
        if not progress.part:
            self._stages[progress.stage] = progress
        now = time.monotonic()
        if not (new or done >= total or now - self._last > _SOON):
            return
        self._last = now
        if self._handle is None:
            self._handle = self._display(self._shown(), display_id=True)
        else:
            self._handle.update(self._shown())

    def _shown(self) -> Html:
        return progress_bars(self._stages.values(), self._part)
