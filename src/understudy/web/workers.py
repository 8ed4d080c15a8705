"""Processes for what takes long or may crash: uploaded files, and plans.

**Files** are made by strangers: each is read in a process of its own, with limits on memory and time.
One that is made to break its reader, or to keep it busy, is refused, and does no more. **Plans** take
seconds and leave the page to others meanwhile; they are pure functions of public facts, and are kept.
**Turns** say whose file is read next: a few at a time, and nobody waits for all that another sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import os
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from understudy.draft.people import RowsPerUnit
from understudy.errors import BundleError, InputError, SourceError, UnderstudyError
from understudy.quoting import unquoted
from understudy.releases.verify import Check, Verification
from understudy.schema import Schema
from understudy.web.confined import Limits, Stopped, follow_server, run_confined
from understudy.web.errors import Busy
from understudy.web.imports import check_file

_KEPT = 512
_SPAWN = multiprocessing.get_context("spawn")
TABLE = Limits(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2, 600)
"""To draft a schema."""
RELEASE = Limits(2 * 10**9, 60)
"""To check all that a release states."""


class Turns:
    """At most `at_once` turns at a time. People take turns; one person's wait in their order.

    So a person with one file waits for at most one file of every other person, however many each of
    them sent. At most `waiting` of one person wait; more are refused.
    """

    def __init__(self, at_once: int, waiting: int = 64) -> None:
        self._free = at_once
        self._most = waiting
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it for as long as this lasts.

        Raises:
            Busy: `who` has too much waiting already.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(who)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, who: str) -> None:
        queue = self._queues.setdefault(who, deque())
        if len(queue) >= self._most:
            raise Busy(f"{len(queue)} of your files are waiting to be read; send this one later")
        called = asyncio.get_running_loop().create_future()
        queue.append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._next()  # called and gone at the same moment
            raise

    def _next(self) -> None:
        """Call the first of whoever was served longest ago; those who went away are passed over."""
        while self._queues:
            who, queue = self._queues.popitem(last=False)
            called = queue.popleft()
            if queue:
                self._queues[who] = queue
            if not called.done():
                called.set_result(None)
                return
        self._free += 1


class Workers:
    """Two processes for plans, and at most two for files, one file each."""

    def __init__(self, processes: int = 2, release: Limits = RELEASE) -> None:
        self._processes = processes
        self._release = release
        self._turns = Turns(processes)
        self._pool: ProcessPoolExecutor | None = None
        self._plans: OrderedDict[str, Any] = OrderedDict()

    async def draft(
        self, files: Sequence[tuple[Path, str]], who: str = "", split: str = ""
    ) -> dict[str, Any]:
        """`{"schema", "columns", "units", "parents"}` of files that `who` sent, under these names.

        Of two files one has the parents, number `parents`; one file may be split by a column.

        Raises:
            InputError: It cannot be read; the message holds no value of a row.
            Busy: Too many files of `who` are waiting.
        """
        every = " or ".join(shown for _, shown in files)
        try:
            async with self._turns.turn(who):
                named = [(str(path), shown) for path, shown in files]
                return await self._alone(TABLE, draft_files, named, split)
        except Stopped:
            raise SourceError(
                f"{every} cannot be read: it brought its reader down, or took more than "
                f"{TABLE.words}, so it is damaged or made to do so. Write the table anew, as CSV in "
                "UTF-8 or as Parquet"
            ) from None

    async def check(self, path: Path, most: int, shown: str, who: str = "") -> Verification:
        """Unpack a release that `who` sent beside it, to at most `most` bytes, and check it.

        Raises:
            BundleError: It is no release, or takes more than checking one may take.
            Busy: Too many files of `who` are waiting.
        """
        try:
            async with self._turns.turn(who):
                verdict = await self._alone(self._release, check_file, str(path), most, shown)
            return Verification(
                tuple(Check(**each) for each in verdict["checks"]), verdict["digest"]
            )
        except Stopped:
            raise BundleError(
                f"{shown} is refused: it brought its reader down, or took more than "
                f"{self._release.words}, so it is damaged or made to do so. Get the release anew from "
                "whoever made it"
            ) from None

    async def plan(
        self, schema: str, choices: Mapping[str, Any], rows: int | None
    ) -> dict[str, Any]:
        """What `understudy plan --json` says, with the ε that was found, and what it means."""
        asked = json.dumps([schema, dict(choices), rows], sort_keys=True, default=str)
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key not in self._plans:
            try:
                outline = await self._run(plan_release, schema, dict(choices), rows)
            except BrokenProcessPool:
                raise InputError("the plan could not be computed; try again") from None
            self._plans[key] = outline
            while len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
        return self._plans[key]

    async def _run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._processes, _SPAWN, initializer=follow_server)
        pool = self._pool
        try:
            return await asyncio.wrap_future(pool.submit(work, *arguments))
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = None
            pool.shutdown(wait=False)
            raise

    async def _alone(self, limits: Limits, work: Callable[..., Any], *arguments: Any) -> Any:
        return await run_confined(limits, work, *arguments)

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def draft_files(files: Sequence[tuple[str, str]], split: str = "") -> dict[str, Any]:
    """Draft a schema; in a process of its own, because files can be made to break readers."""
    from understudy.source.files import FileSource, find

    shown = " or ".join(name for _, name in files)
    try:
        with unquoted(shown):
            for path, _ in files:
                FileSource(find(path)).require_utf8()
            if len(files) > 1 or split:
                return _draft_families(files, split)
            return _draft_one(files[0][0])
    except UnderstudyError as error:
        message = str(error)
        for path, name in files:
            message = _called(message, path, name)
        raise type(error)(message) from None
    except MemoryError:
        raise SourceError(f"{shown} does not fit the memory of this machine") from None


def _draft_one(path: str) -> dict[str, Any]:
    from understudy.draft import draft
    from understudy.draft.people import counted
    from understudy.source import read, read_table

    schema, table = draft(path), read_table(read(path))
    asked = [found for found in counted(schema, table) if found.repeats]
    return _drafted(schema, len(schema.columns), table.num_rows, asked)


def _draft_families(files: Sequence[tuple[str, str]], split: str) -> dict[str, Any]:
    from understudy.draft import children_per_parent, draft_families, draft_split
    from understudy.draft.families import table_name
    from understudy.source import read, read_table

    if len(files) > 1 and split:
        raise InputError(f"split = {split[:60]!r} is for one file that holds both levels")
    paths, names = [path for path, _ in files], [table_name(name) for _, name in files]
    if split:
        schema = draft_split(paths[0], split, name=names[0])
    else:
        schema = draft_families(paths[0], paths[1], names=names)
    parents, children, family = schema.tables
    at = int(not split and family.parent != names[0])
    counted = children_per_parent(schema, paths[-1 - at])
    columns = len(parents.columns) + len(children.columns)
    # a parent without children counts too
    rows = counted.units if split else read_table(read(paths[at])).num_rows
    return {**_drafted(schema, columns, rows, [counted]), "parents": at}


def _drafted(
    schema: Schema, columns: int, rows: int, seen: Iterable[RowsPerUnit]
) -> dict[str, Any]:
    units = {"rows": rows, "units": [asdict(found) for found in seen]}
    return {"schema": schema.dumps(), "columns": columns, "units": units, "parents": 0}


def _called(message: str, path: str, shown: str) -> str:
    """A message about an uploaded file, with the name that it had instead of its place here."""
    for place in (repr(path), path):
        message = message.replace(place, shown)
    return message.replace(f"file {shown}", shown)


def plan_release(schema: str, choices: dict[str, Any], rows: int | None) -> dict[str, Any]:
    """The outline of a plan: public facts alone."""
    from understudy.privacy.budget import decimal
    from understudy.releases import prepare
    from understudy.releases.outline import outline
    from understudy.report.words import meaning

    try:
        prepared = prepare(Schema.loads(schema), rows=rows, **choices)
        budget, design = prepared.budget, prepared.design
        unit = prepared.schema.unit
        means = meaning(float(budget.epsilon), float(budget.delta), unit, design.relation)
        own = {"epsilon": decimal(budget.epsilon), "meaning": means}
        return {**outline(prepared, rows), **own}
    except UnderstudyError:
        raise
    except (MemoryError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"no plan can be made for these choices ({type(error).__name__}); ask for fewer or "
            "smaller tables"
        ) from None
