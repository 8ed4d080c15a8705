"""Releases: publish, read, ask, check, download. All of it is free.

Custodians see every release, analysts those that a custodian has published; of the others they do not
learn that they exist.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from understudy.draft.typed import listed as shown_values
from understudy.errors import BundleError, InputError, UnderstudyError
from understudy.estimates import Estimate, Independence
from understudy.releases import Answer, Release
from understudy.releases.bundle import read_manifest
from understudy.releases.families import FamilyRelease
from understudy.releases.verify import Verification
from understudy.report.estimated import headlines
from understudy.report.words import promise
from understudy.units import scope, things
from understudy.web.errors import Missing, status_of
from understudy.web.guard import session_of, wants_page
from understudy.web.imports import EVERY, PARTS, TARGET
from understudy.web.pages.audits import audits_of
from understudy.web.pages.tables import family_of, whole
from understudy.web.people import Role
from understudy.web.site import Here, Site, Typed
from understudy.web.uploads import received
from understudy.web.workspace import without_paths
from understudy.wording import between, domain


def _may_see(site: Site, request: Request, identity: str) -> bool:
    return session_of(request).custodian or bool(site.workspace.published(identity))


async def _only_published(request: Request, site: Here) -> None:
    """An analyst who names another release is told what is told of one that is not there."""
    identity = request.path_params.get("identity")
    if identity is not None and not _may_see(site, request, identity):
        raise Missing("there is no such release here; it may have been removed")


router = APIRouter(default_response_class=HTMLResponse, dependencies=[Depends(_only_published)])

T = TypeVar("T")
Key = Annotated[int | None, Query(ge=0, lt=10**18)]
_MOST_SAMPLE = 10_000_000
_MOST_FAMILIES = 100_000  # Their children change places before the first of them is sent
_LONGEST_QUESTION = 2_000
# Scripts stay forbidden; without its origin, the link back would come without the strict cookie.
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox allow-same-origin"
)


@router.get("/releases")
async def list_releases(request: Request, site: Here) -> Response:
    """Every release that whoever asks may see, the newest first."""
    titled = [
        (summary, site.workspace.published(summary.id))
        for summary in site.storage.summaries()
        if _may_see(site, request, summary.id)
    ]
    return site.page(request, "releases.html", here="releases", summaries=titled)


@router.get("/releases/{identity}")
def show_release(request: Request, site: Here, identity: str, q: str = "", s: str = "") -> Response:
    """The promise, the certificate, boxes for questions and statistics, and downloads."""
    return _shown(request, site, identity, q, s)


def _shown(
    request: Request, site: Site, identity: str, q: str = "", s: str = "", **drawn: str
) -> Response:
    """The page; `drawn` are the rows that were asked for in vain, and why."""
    release = site.storage.release(identity)
    asked = {"q": q, "s": s, "answer": None, "problem": ""}
    asked |= _asked(site, release, q) if q.strip() else {}
    asked |= _estimated(site, release, s) if s.strip() else {}
    judged, question = site.storage.guide(identity)
    known = {
        "release": release,
        "summary": site.storage.summary(identity),
        "published": site.workspace.published(identity),
        "analysts": Role.ANALYST in site.people.users().values(),
        "columns": [(c.name, domain(c), shown_values(c)) for c in release.schema.modelled],
        "promise": promise(release),
        "verdict": judged,
        "example": question,
        "parts": [
            name for name in EVERY if (site.workspace.path("releases", identity) / name).is_file()
        ],
        "audits": audits_of(site, identity),
        "family": family_of(release.schema),
        "statistic": _statistic(release),
        "scope": scope(release.schema.unit),
        "drawn": drawn,
    }
    status = 422 if asked["problem"] or drawn else 200
    return site.page(request, "release.html", status, here="releases", **known, **asked)


@router.post("/releases/{identity}/publish")
async def publish(request: Request, site: Here, identity: str, sure: Typed = "") -> Response:
    """Open a release to analysts."""
    if not sure:
        raise InputError("tick the box that says that analysts are to see the release")
    site.workspace.publish(identity, session_of(request).name)
    return RedirectResponse(f"/releases/{identity}", 303)


def _tried(site: Site, ask: Callable[[str], T], text: str) -> tuple[T | None, str]:
    """What a question gives, or what is wrong with it, in a line."""
    try:
        if len(text) > _LONGEST_QUESTION:
            raise InputError(f"a question has at most {_LONGEST_QUESTION:,} characters")
        return ask(text.strip()), ""
    except UnderstudyError as error:
        # what follows the first line points at a place, in fixed width
        return None, site.problem(error)[0].partition("\n")[0]
    except RecursionError:
        return None, "the question has too many brackets inside each other"


def _asked(site: Site, release: Release, q: str) -> dict[str, Any]:
    """The answer to a question, as the page shows it, or what is wrong with it."""
    answer, problem = _tried(site, release.answer, q)
    if answer is None:
        return {"q": q, "answer": None, "problem": problem}
    return {
        "q": q,
        "answer": {**_drawn(release, answer), **_narrower(site, release, answer)},
        "problem": "",
    }


def _narrower(site: Site, release: Release, answer: Answer) -> dict[str, Any]:
    """The interval of the share's estimate, where it is narrower than the certified one."""
    found, _ = _tried(site, release.estimate, f"share({answer.predicate})")
    if not isinstance(found, Estimate) or found.low is None or found.high is None:
        return {"estimated": ""}
    certified = 1.0 if answer.low is None or answer.high is None else answer.high - answer.low
    narrower = found.high - found.low < certified
    return {"estimated": between(found.low, found.high) if narrower else "", "level": found.level}


def _statistic(release: Release) -> str:
    """Something to estimate: the mean of the first number, or the share of a value."""
    return next(headlines(release), "")


def _estimated(site: Site, release: Release, s: str) -> dict[str, Any]:
    """What was estimated, as the page shows it, or what is wrong with the question."""
    found, problem = _tried(site, release.estimate, s)
    if found is None:
        return {"s": s, "problem": problem}
    if isinstance(found, Independence):
        return {"s": s, "problem": "", "test": found}
    every = [found] if isinstance(found, Estimate) else list(found)
    of = things(release.schema.unit)
    return {"s": s, "problem": "", "test": None, "estimates": every, "of": of}


def _drawn(release: Release, answer: Answer) -> dict[str, Any]:
    """An answer with the picture of its error bar."""
    low = answer.estimate if answer.low is None else answer.low
    high = answer.estimate if answer.high is None else answer.high
    return {
        "question": answer.predicate,
        "estimate": answer.estimate,
        "low": answer.low,
        "high": answer.high,
        "interval": between(low, high),
        "certified": answer.certified,
        "confidence": answer.confidence,
        "by": answer.by,
        "rows": round(answer.estimate * release.number),
        "of": things(release.schema.unit),
        "wide": high - low > 0.2 and release.certificate.variations is None,
    }


@router.get("/releases/{identity}/answer")
def ask(request: Request, site: Here, identity: str, q: str = "") -> Response:
    """One question, answered; as a piece of the page or as JSON."""
    release = site.storage.release(identity)
    if not q.strip():
        raise InputError("ask something: a condition on rows, as in SQL's WHERE")
    found = _asked(site, release, q)
    status = 422 if found["problem"] else 200
    if wants_page(request):
        return site.page(request, "_answer.html", status, **found)
    if found["problem"]:
        return JSONResponse({"error": found["problem"]}, status)
    kept = ("question", "estimate", "low", "high", "certified", "confidence", "by", "rows")
    return JSONResponse({key: found["answer"][key] for key in kept}, status)


@router.get("/releases/{identity}/estimate")
def estimate(request: Request, site: Here, identity: str, q: str = "") -> Response:
    """One statistic, estimated; as a piece of the page or as JSON."""
    release = site.storage.release(identity)
    if not q.strip():
        raise InputError(f"ask for something, such as {_statistic(release)}")
    found = _estimated(site, release, q)
    status = 422 if found["problem"] else 200
    if wants_page(request):
        return site.page(request, "_estimate.html", status, **found)
    if found["problem"]:
        return JSONResponse({"error": found["problem"]}, status)
    told = [found["test"]] if found["test"] else found["estimates"]
    return JSONResponse([each.to_json() for each in told], status)


@router.get("/releases/{identity}/verify")
def check(request: Request, site: Here, identity: str) -> Response:
    """Every check that `understudy verify` makes, and what it found."""
    verdict = site.storage.verification(identity)
    return _checks(request, site, verdict, identity, site.storage.summary(identity).title)


def _checks(
    request: Request, site: Site, verdict: Verification, identity: str, title: str
) -> Response:
    root = site.workspace.folder
    checks = [(c.name, c.passed, without_paths(c.detail, root)) for c in verdict.checks]
    known = {"checks": checks, "passed": verdict.passed, "digest": verdict.digest or ""}
    status = 200 if identity else status_of(BundleError())
    what = {"identity": identity, "title": title}
    return site.page(request, "verify.html", status, here="releases", **known, **what)


@router.get("/releases/{identity}/report")
def report(site: Here, identity: str) -> Response:
    """The report: one page without scripts."""
    audits = audits_of(site, identity)
    audit = audits[-1][1] if audits else None
    text = site.storage.report(identity, audit)
    return HTMLResponse(text, headers={"content-security-policy": _REPORT_POLICY})


# Downloads


def _saved_as(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


def _streamed(parts: Iterator[bytes], kind: str, name: str) -> Response:
    return StreamingResponse(parts, media_type=kind, headers=_saved_as(name))


@router.get("/releases/{identity}/files/{name}", response_class=FileResponse)
async def download(site: Here, identity: str, name: str) -> Response:
    """One file of the bundle."""
    folder = site.workspace.path("releases", identity)
    if name not in EVERY or not (folder / name).is_file():
        raise Missing(f"a release holds {', '.join(PARTS)}; there is no such file among them")
    return FileResponse(folder / name, headers=_saved_as(f"{identity}-{name}"))


@router.get("/releases/{identity}/bundle.zip", response_class=StreamingResponse)
async def bundle(site: Here, identity: str) -> Response:
    """The whole folder; unpacked, `understudy verify` takes it."""
    folder = site.workspace.path("releases", identity)
    read_manifest(folder)
    named = f"{identity}.release"
    parts = [
        (f"{named}/{name}", _chunks(folder / name)) for name in EVERY if (folder / name).is_file()
    ]
    return _streamed(_zipped(parts), "application/zip", f"{named}.zip")


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


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(1 << 20):
            yield chunk


def _zipped(members: Iterable[tuple[str, Iterator[bytes]]]) -> Iterator[bytes]:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED) as archive:
        for name, chunks in members:
            with archive.open(name, "w") as into:
                for chunk in chunks:
                    into.write(chunk)
                    yield pipe.take()
    yield pipe.take()


@router.get("/releases/{identity}/rows", response_class=StreamingResponse)
def rows(site: Here, identity: str) -> Response:
    """The certified synthetic rows: as CSV, or parents and children as a zip of two."""
    release = site.storage.release(identity)
    if isinstance(release, FamilyRelease):
        return _both(release, (release.parents, release.children), identity)
    return _streamed(_as_csv(iter([release.rows])), "text/csv", f"{identity}.csv")


@router.get("/releases/{identity}/sample", response_class=StreamingResponse)
def sample(
    request: Request,
    site: Here,
    identity: str,
    rows: str = "1000",
    key: Key = None,
    where: str = "",
) -> Response:
    """Fresh rows or families from the released model, perhaps of one kind: as private, and free."""
    try:
        return _sampled(site, identity, rows, key, where)
    except InputError as error:
        if not wants_page(request):
            raise
        said, _ = site.problem(error)
        return _shown(request, site, identity, rows=rows[:40], where=where, said=said)


def _sampled(site: Site, identity: str, rows: str, key: int | None, where: str) -> Response:
    release, named = site.storage.release(identity), f"{identity}-sample"
    if isinstance(release, FamilyRelease):
        if where.strip():
            raise InputError("a condition on fresh rows is for one table, and this release has two")
        drawn = release.sample(_count(rows, _MOST_FAMILIES), key=key)
        return _both(release, drawn, named)
    count = _count(rows, _MOST_SAMPLE)

    def begun(condition: str) -> Iterator[bytes]:
        drawn = _as_csv(release.stream(count, where=condition or None, key=key))
        return chain([next(drawn)], drawn)  # so that a condition without rows is told

    drawn, problem = _tried(site, begun, where)
    if drawn is None:
        raise InputError(problem)
    return _streamed(drawn, "text/csv", f"{named}.csv")


def _both(release: FamilyRelease, tables: Sequence[Any], named: str) -> Response:
    _, _, family = release.families.schema.tables
    files = zip((family.parent, family.child), tables, strict=True)
    members = [(f"{named}/{name}.csv", _as_csv(iter([table]))) for name, table in files]
    return _streamed(_zipped(members), "application/zip", f"{named}.zip")


def _count(rows: str, most: int) -> int:
    """How many fresh rows somebody asks for."""
    count = whole(rows, "rows") or 1000
    if count > most:
        raise InputError(
            f"rows = {count:,}: the web app makes at most {most:,} at once; use `understudy sample` "
            f"for more"
        )
    return count


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
async def import_form(request: Request, site: Here) -> Response:
    """The form for a bundle that was made elsewhere."""
    return site.page(request, "import.html", here="releases", most=site.settings.max_upload)


@router.post("/import")
async def import_bundle(request: Request, site: Here) -> Response:
    """Take a bundle, check everything that it states, and keep it among the releases."""
    async with received(request, _zip_name) as form:
        (file,) = form.files
        most, who = site.settings.max_upload, session_of(request).name
        verdict = await site.workers.check(file.path, most, file.filename, who)
        if not verdict.passed:
            return _checks(request, site, verdict, "", file.filename)
        stem = file.filename.removesuffix(".zip").removesuffix(".release")
        identity = site.workspace.new_identity(stem, "releases", "jobs", "audits")
        site.storage.put(file.path.with_name(TARGET), identity, verdict)
    return RedirectResponse(f"/releases/{identity}", 303)


def _zip_name(filename: str, at: int) -> str:
    if not filename.lower().endswith(".zip"):
        raise InputError(
            f"{filename[:80]} is not a bundle: give the .zip of the folder of a release, as the "
            "page of a release offers it"
        )
    return "bundle.zip"
