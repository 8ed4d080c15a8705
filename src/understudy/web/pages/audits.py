"""Audits: attacks on a release, run on its own synthetic rows."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy.errors import InputError
from understudy.web.guard import session_of
from understudy.web.pages.tables import whole
from understudy.web.site import Here, Site, Typed
from understudy.web.workspace import read_json

router = APIRouter(default_response_class=HTMLResponse)

_MOST_RUNS = 10_000
_MOST_CANARIES = 1_000
_BACKGROUND = 2_000


def audits_of(site: Site, release: str | None = None) -> list[tuple[str, dict[str, object]]]:
    """`(id, audit.json)` of every audit, or of those of one release."""
    audits = []
    for identity in site.workspace.identities("audits"):
        folder = site.workspace.path("audits", identity)
        audit, of = read_json(folder / "audit.json"), read_json(folder / "of.json")
        if not isinstance(audit, dict) or not isinstance(of, dict):
            continue
        if release is None or of.get("release") == release:
            audits.append((identity, {**audit, "name": of.get("name", identity)}))
    return audits


@router.get("/audits")
async def list_audits(request: Request, site: Here) -> Response:
    """Audits that were made, and the form for another."""
    jobs = [job for job in site.jobs.all() if job.kind == "audit" and job.state != "finished"]
    whole_ones = [summary for summary in site.storage.summaries() if not summary.problem]
    known = {"audits": audits_of(site), "jobs": jobs, "releases": whole_ones}
    return site.page(request, "audits.html", here="audits", **known)


@router.get("/audits/{identity}")
async def show_audit(request: Request, site: Here, identity: str) -> Response:
    """What an audit found."""
    folder = site.workspace.path("audits", identity)
    audit = read_json(folder / "audit.json")
    if not isinstance(audit, dict):
        raise InputError("this audit is damaged: its audit.json cannot be read; run it again")
    of = read_json(folder / "of.json") or {}
    known = {"audit": audit, "title": of.get("name", identity), "release": of.get("release", "")}
    return site.page(request, "audit.html", here="audits", **known)


@router.post("/audits")
def start_audit(
    request: Request, site: Here, release: Typed = "", runs: Typed = "48", canaries: Typed = "20"
) -> Response:
    """Begin an audit, in a process of its own; no protected row is read and nothing is charged."""
    title = site.storage.summary(release).title
    site.storage.release(release)  # there, and whole
    facts = {
        "release": release,
        "runs": whole(runs, "runs") or 48,
        "canaries": whole(canaries, "planted records") or 20,
        "background": _BACKGROUND,
        "by": session_of(request).shown,
    }
    if facts["runs"] > _MOST_RUNS or facts["canaries"] > _MOST_CANARIES:
        raise InputError(
            f"an audit has at most {_MOST_RUNS:,} runs and {_MOST_CANARIES:,} planted records"
        )
    job = site.jobs.start("audit", f"audit of {title}", facts, {})
    return RedirectResponse(f"/jobs/{job.id}", 303)
