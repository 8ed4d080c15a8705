"""Jobs: how far they are, what they spent, stop, go on."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from understudy.progress import STAGES
from understudy.web.jobs import Job, Spent
from understudy.web.site import Here
from understudy.wording import duration

router = APIRouter(default_response_class=HTMLResponse)

_STATES = {
    "starting": "Starting",
    "waiting": "Waiting for another job to end",
    "running": "Running",
    "cancelling": "Stopping",
    "finished": "Finished",
    "failed": "It did not work",
    "cancelled": "Cancelled",
    "killed": "Killed",
}

_BUSY = 3
"""Seconds of waiting for one of computing that only a busy machine explains."""


@router.get("/jobs")
async def list_jobs(request: Request, site: Here) -> Response:
    """Every job, the newest first."""
    return site.page(request, "jobs.html", here="jobs", jobs=site.jobs.all(), states=_STATES)


@router.get("/jobs/{identity}")
async def show_job(request: Request, site: Here, identity: str) -> Response:
    """One job."""
    job = site.jobs.look(identity)
    spent = site.jobs.spent(job)
    known = {"states": _STATES, "stages": _stages(job), "now": _now(job, spent)}
    account = {"spent": spent, "resumable": site.jobs.resumable(job)}
    return site.page(request, "job.html", here="jobs", job=job, **known, **account)


def _stages(job: Job) -> list[tuple[str, str, str]]:
    """`(key, words, state)` of every stage: done, now or ahead."""
    if job.kind != "release":
        return []
    names = list(STAGES)
    current = job.progress.get("stage", "checking")
    at = names.index(current if current in names else "playing")  # networks train while they play
    if job.state == "finished":
        at = len(names)
    return [
        (name, STAGES[name], "done" if n < at else "now" if n == at else "ahead")
        for n, name in enumerate(names)
    ]


def _now(job: Job, spent: Spent) -> dict[str, object]:
    """What the page asks for again and again."""
    minutes, seconds = divmod(round(job.seconds), 60)
    clock = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    about, computed = job.progress.get("about"), job.progress.get("computed", 0.0)
    if about and job.active:
        expected = f"{'more than' if computed > about else 'of'} the expected {duration(about)}"
        clock += f" so far: {duration(computed)} of computing, {expected}"
        if job.seconds > _BUSY * (computed + 1):
            clock += "; other work on this machine slows it down"
    return {
        "state": job.state,
        "words": _STATES[job.state],
        "active": job.active,
        "stage": job.progress.get("stage", ""),
        "doing": job.progress.get("doing", ""),
        "step": job.step and f"this stage: {job.step}",
        "cost": spent.if_cancelled if job.kind == "release" else "Nothing is charged for an audit.",
        "clock": clock,
        "share": job.share,
    }


@router.get("/jobs/{identity}/state", response_class=JSONResponse)
async def job_state(site: Here, identity: str) -> Response:
    """The same for a program."""
    job = site.jobs.look(identity)
    return JSONResponse(_now(job, site.jobs.spent(job)))


@router.post("/jobs/{identity}/cancel")
async def cancel(site: Here, identity: str) -> Response:
    """Stop a job; what it has drawn stays charged, the rest is free again."""
    site.jobs.cancel(site.jobs.look(identity))
    return RedirectResponse(f"/jobs/{identity}", 303)


@router.post("/jobs/{identity}/resume")
async def resume(site: Here, identity: str) -> Response:
    """Let a killed job go on from what it had; nothing is charged twice."""
    site.jobs.resume(site.jobs.look(identity))
    return RedirectResponse(f"/jobs/{identity}", 303)


@router.post("/jobs/{identity}/close")
async def close(site: Here, identity: str) -> Response:
    """Close the account of a job that is gone."""
    site.jobs.give_up(site.jobs.look(identity))
    return RedirectResponse(f"/jobs/{identity}", 303)
