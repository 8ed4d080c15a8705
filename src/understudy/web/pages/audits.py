"""Audits: attacks on a release, run on its own synthetic rows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy.errors import InputError
from understudy.web.guard import session_of
from understudy.web.pages.tables import whole
from understudy.web.site import Site, site_of
from understudy.web.workspace import read_json

router = APIRouter(default_response_class=HTMLResponse)

_MOST_RUNS = 10_000
_MOST_CANARIES = 1_000
_BACKGROUND = 2_000


def audits_of(site: Site, release: str | None = None) -> list[tuple[str, dict[str, object]]]:
    """`(id, audit.json)` of every audit, or of those of one release."""
    found = []
    for identity in site.workspace.identities("audits"):
        folder = site.workspace.path("audits", identity)
        audit, of = read_json(folder / "audit.json"), read_json(folder / "of.json")
        if not isinstance(audit, dict) or not isinstance(of, dict):
            continue
        if release is None or of.get("release") == release:
            found.append((identity, {**audit, "release": of.get("release")}))
    return found


@router.get("/audits")
async def list_audits(request: Request) -> Response:
    """Audits that were made, and the form for another."""
    site = site_of(request)
    jobs = [job for job in site.jobs.all() if job.kind == "audit" and job.state != "finished"]
    spines = [spine for spine in site.shelf.spines() if not spine.problem]
    return site.page(
        request, "audits.html", here="audits", audits=audits_of(site), jobs=jobs, releases=spines
    )


@router.get("/audits/{identity}")
async def show_audit(request: Request, identity: str) -> Response:
    """What an audit found."""
    site = site_of(request)
    folder = site.workspace.path("audits", identity)
    audit = read_json(folder / "audit.json")
    if not isinstance(audit, dict):
        raise InputError("this audit is damaged: its audit.json cannot be read; run it again")
    of = read_json(folder / "of.json") or {}
    return site.page(
        request, "audit.html", here="audits", audit=audit, identity=identity,
        release=of.get("release", ""),
    )  # fmt: skip


@router.post("/audits")
def start_audit(
    request: Request,
    release: Annotated[str, Form()] = "",
    runs: Annotated[str, Form()] = "48",
    canaries: Annotated[str, Form()] = "20",
) -> Response:
    """Begin an audit, in a process of its own; no protected row is read and nothing is charged."""
    site, session = site_of(request), session_of(request)
    site.shelf.release(release)  # there, and whole
    count, planted = whole(runs, "runs") or 48, whole(canaries, "planted records") or 20
    if count > _MOST_RUNS or planted > _MOST_CANARIES:
        raise InputError(
            f"an audit has at most {_MOST_RUNS:,} runs and {_MOST_CANARIES:,} planted records"
        )
    job = site.jobs.start(
        "audit",
        f"audit of {release}",
        {
            "release": release,
            "runs": count,
            "canaries": planted,
            "background": _BACKGROUND,
            "by": session.shown,
        },
        {},
    )
    return RedirectResponse(f"/jobs/{job.id}", 303)
