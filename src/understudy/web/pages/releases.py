"""Releases: read, ask, check, download. Everything here is released; all of it is free."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from understudy.errors import BundleError, InputError, UnderstudyError
from understudy.releases import Answer, Release
from understudy.releases.bundle import SIGNATURE, read_manifest
from understudy.releases.outline import example
from understudy.report import NAME as REPORT
from understudy.report.words import promise
from understudy.web.guard import session_of, status_of, wants_page
from understudy.web.imports import PARTS, TARGET
from understudy.web.pages.audits import audits_of
from understudy.web.pages.tables import whole
from understudy.web.site import Site, site_of
from understudy.web.uploads import received
from understudy.web.workspace import Missing, read_json, without_paths
from understudy.wording import domain

router = APIRouter(default_response_class=HTMLResponse)

_MOST_SAMPLE = 10_000_000
_LONGEST_QUESTION = 2_000
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


def title_of(site: Site, identity: str) -> str:
    """The name that a release was given; its name in addresses where it came from elsewhere."""
    facts = read_json(site.workspace.folder / "jobs" / identity / "job.json")
    return facts["name"] if isinstance(facts, dict) and "name" in facts else identity


@router.get("/releases")
async def list_releases(request: Request) -> Response:
    """Every release, the newest first."""
    site = site_of(request)
    spines = [(spine, title_of(site, spine.id)) for spine in site.shelf.spines()]
    return site.page(request, "releases.html", here="releases", spines=spines)


@router.get("/releases/{identity}")
def show_release(request: Request, identity: str, q: str = "") -> Response:
    """The promise, the certificate, a box for questions, and downloads."""
    site = site_of(request)
    release = site.shelf.release(identity)
    spine = site.shelf.spine(identity)
    found, problem = _asked(site, release, q)
    columns = [(column.name, domain(column)) for column in release.schema.modelled]
    return site.page(
        request, "release.html", 422 if problem else 200, here="releases", release=release,
        spine=spine, title=title_of(site, identity), columns=columns, q=q,
        answer=None if found is None else _drawn(release, found), problem=problem,
        parts=PARTS, promise=promise(release), example=example(release.schema),
        audits=audits_of(site, identity),
    )  # fmt: skip


def _asked(site: Site, release: Release, q: str) -> tuple[Answer | None, str]:
    """The answer to a question, or what is wrong with it."""
    question = q.strip()
    if not question:
        return None, ""
    if len(question) > _LONGEST_QUESTION:
        return None, f"a question has at most {_LONGEST_QUESTION:,} characters"
    try:
        return release.answer(question), ""
    except UnderstudyError as error:
        first = str(error).partition("\n")[0]  # what follows points at a place, in fixed width
        return None, without_paths(first, site.workspace.folder)
    except RecursionError:
        return None, "the question has too many brackets inside each other"


def _drawn(release: Release, found: Answer) -> dict[str, Any]:
    """An answer with the picture of its error bar, on an axis around it."""
    low = found.estimate if found.low is None else found.low
    high = found.estimate if found.high is None else found.high
    room = max((high - low) * 0.6, 0.005)
    left, right = max(0.0, low - room), min(1.0, high + room)

    def at(share: float) -> float:
        return round(100 * (share - left) / (right - left), 2)

    return {
        "question": found.predicate,
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
        "certified": found.certified,
        "confidence": found.confidence,
        "by": found.by,
        "rows": round(found.estimate * release.rows_estimate),
        "of": release.rows_estimate,
        "left": left,
        "right": right,
        "from": at(low),
        "width": max(0.6, round(at(high) - at(low), 2)),
        "mark": at(found.estimate),
        "wide": high - low > 0.2 and release.certificate.variations is None,
    }


@router.get("/releases/{identity}/answer")
def ask(request: Request, identity: str, q: str = "") -> Response:
    """One question, answered; as a piece of the page or as JSON."""
    site = site_of(request)
    release = site.shelf.release(identity)
    if not q.strip():
        raise InputError("ask something, such as " + example(release.schema))
    found, problem = _asked(site, release, q)
    if not wants_page(request):
        if found is None:
            return JSONResponse({"error": problem}, 422)
        drawn = _drawn(release, found)
        kept = ("question", "estimate", "low", "high", "certified", "confidence", "by", "rows")
        return JSONResponse({key: drawn[key] for key in kept})
    answer = None if found is None else _drawn(release, found)
    return site.page(
        request, "_answer.html", 422 if found is None else 200, answer=answer, problem=problem, q=q
    )


@router.get("/releases/{identity}/verify")
def check(request: Request, identity: str) -> Response:
    """Every check that `understudy verify` makes, and what it found."""
    site = site_of(request)
    found = site.shelf.verification(identity)
    return site.page(
        request, "verify.html", here="releases", identity=identity, title=title_of(site, identity),
        checks=[
            (each.name, each.passed, without_paths(each.detail, site.workspace.folder))
            for each in found.checks
        ],
        passed=found.passed, digest=found.digest or "",
    )  # fmt: skip


@router.get("/releases/{identity}/report")
def report(request: Request, identity: str) -> Response:
    """The report: one page without scripts."""
    site = site_of(request)
    text = site.shelf.report(identity, title_of(site, identity), _audit(site, identity))
    return HTMLResponse(text, headers={"content-security-policy": _REPORT_POLICY})


def _audit(site: Site, identity: str) -> dict[str, Any] | None:
    found = audits_of(site, identity)
    return found[-1][1] if found else None


# Downloads


def _saved_as(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


@router.get("/releases/{identity}/files/{name}", response_class=FileResponse)
async def download(request: Request, identity: str, name: str) -> Response:
    """One file of the bundle."""
    folder = site_of(request).workspace.path("releases", identity)
    if name not in PARTS or not (folder / name).is_file():
        raise Missing(f"a release holds {', '.join(PARTS)}; there is no such file among them")
    return FileResponse(folder / name, headers=_saved_as(f"{identity}-{name}"))


@router.get("/releases/{identity}/bundle.zip", response_class=StreamingResponse)
async def bundle(request: Request, identity: str) -> Response:
    """The whole folder; unpacked, `understudy verify` takes it."""
    folder = site_of(request).workspace.path("releases", identity)
    read_manifest(folder)
    named = f"{identity}.release"
    return StreamingResponse(
        _zipped(folder, named), media_type="application/zip", headers=_saved_as(f"{named}.zip")
    )


class _Pipe(io.RawIOBase):
    """What a zip writes, to be taken away piece by piece."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


def _zipped(folder: Path, named: str) -> Iterator[bytes]:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED) as archive:
        for name in (*PARTS, SIGNATURE, REPORT):
            if not (folder / name).is_file():
                continue
            with (folder / name).open("rb") as source, archive.open(f"{named}/{name}", "w") as into:
                while chunk := source.read(1 << 20):
                    into.write(chunk)
                    yield pipe.take()
    yield pipe.take()


@router.get("/releases/{identity}/rows.csv", response_class=StreamingResponse)
def rows_csv(request: Request, identity: str) -> Response:
    """The certified synthetic rows, as CSV."""
    release = site_of(request).shelf.release(identity)
    return StreamingResponse(
        _as_csv(iter([release.rows])), media_type="text/csv",
        headers=_saved_as(f"{identity}.csv"),
    )  # fmt: skip


@router.get("/releases/{identity}/sample.csv", response_class=StreamingResponse)
def sample_csv(request: Request, identity: str, rows: str = "1000", key: str = "") -> Response:
    """Fresh synthetic rows from the released model: as private, and free."""
    release = site_of(request).shelf.release(identity)
    count = whole(rows, "rows") or 1000
    if count > _MOST_SAMPLE:
        raise InputError(f"rows = {count:,}: the page makes at most {_MOST_SAMPLE:,} at once; use "
                         "`understudy sample` for more")  # fmt: skip
    seed = None
    if key.strip():
        if not re.fullmatch(r"[0-9]{1,18}", key.strip()):
            raise InputError(f"key = {key[:40]!r} must be a whole number")
        seed = int(key)
    return StreamingResponse(
        _as_csv(release.stream(count, key=seed)), media_type="text/csv",
        headers=_saved_as(f"{identity}-sample.csv"),
    )  # fmt: skip


def _as_csv(tables: Iterator[Any]) -> Iterator[bytes]:
    from pyarrow import csv

    first = True
    for table in tables:
        for at in range(0, max(table.num_rows, 1), 50_000):
            out = io.BytesIO()
            options = csv.WriteOptions(include_header=first)
            csv.write_csv(table.slice(at, 50_000), out, options)
            first = False
            yield out.getvalue()


# From elsewhere


@router.get("/import")
async def import_form(request: Request) -> Response:
    """The form for a bundle that was made elsewhere."""
    site = site_of(request)
    return site.page(request, "import.html", here="releases", most=site.settings.max_upload)


@router.post("/import")
async def import_bundle(request: Request) -> Response:
    """Take a bundle, check everything that it states, and put it on the shelf."""
    site = site_of(request)
    async with received(request, _zip_name) as file:
        shown = file.filename
        most, who = site.settings.max_upload, session_of(request).name
        found = await site.workers.check(file.path, most, shown, who)
        if not found.passed:
            checks = [(each.name, each.passed, each.detail) for each in found.checks]
            return site.page(
                request, "verify.html", status_of(BundleError()), here="releases", identity="",
                title=shown, checks=checks, passed=False, digest=found.digest or "",
            )  # fmt: skip
        stem = shown.removesuffix(".zip").removesuffix(".release")
        identity = site.workspace.new_identity(stem, "releases", "jobs", "audits")
        site.shelf.put(file.path.with_name(TARGET), identity, found)
    return RedirectResponse(f"/releases/{identity}", 303)


def _zip_name(filename: str) -> str:
    if not filename.lower().endswith(".zip"):
        raise InputError(
            f"{filename[:80]} is not a bundle: give the .zip of the folder of a release, as the "
            "page of a release offers it"
        )
    return "bundle.zip"
