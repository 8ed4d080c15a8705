"""Processes for what takes long or may crash: drafts of uploaded files, and plans.

A file that is made to break a reader takes a worker down, not the page; a plan that computes for
seconds leaves the page to others. Plans are pure functions of public facts, so they are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from understudy.errors import InputError, SourceError, UnderstudyError
from understudy.quoting import unquoted

__all__ = ["Workers", "draft_file", "plan_release"]

_KEPT = 512


class Workers:
    """Two processes, started when they are first needed and again if one dies."""

    def __init__(self, processes: int = 2) -> None:
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._plans: OrderedDict[str, Any] = OrderedDict()

    async def draft(self, path: Path, shown: str) -> dict[str, Any]:
        """`{"schema", "columns"}` of an uploaded file that is called `shown` in messages.

        Raises:
            InputError: It cannot be read; the message holds no value of a row.
        """
        try:
            return await self._run(draft_file, str(path), shown)
        except BrokenProcessPool:
            raise SourceError(
                f"{shown} cannot be read: it brought its reader down, so it is damaged or made to "
                "do so. Write the table anew, as CSV in UTF-8 or as Parquet"
            ) from None

    async def plan(
        self, schema: str, choices: Mapping[str, Any], rows: int | None
    ) -> dict[str, Any]:
        """What `understudy plan --json` says, with the ε that was found for a target error."""
        asked = json.dumps([schema, dict(choices), rows], sort_keys=True, default=str)
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key not in self._plans:
            for _ in range(2):
                try:
                    made = await self._run(plan_release, schema, dict(choices), rows)
                    break
                except BrokenProcessPool:  # by somebody else's file
                    continue
            else:
                raise InputError("the plan could not be computed; try again")
            self._plans[key] = made
            while len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
        return self._plans[key]

    async def _run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._processes, context, initializer=_quiet)
        pool = self._pool
        try:
            return await asyncio.wrap_future(pool.submit(work, *arguments))
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = None
            pool.shutdown(wait=False)
            raise

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _quiet() -> None:
    """Ctrl-C is for the server; and a worker whose server is gone goes too."""
    import warnings

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # what libraries warn of may depend on private rows
    server = multiprocessing.parent_process()

    def follow() -> None:
        if server is not None:
            server.join()
        os._exit(0)

    threading.Thread(target=follow, daemon=True).start()


def draft_file(path: str, shown: str) -> dict[str, Any]:
    """Draft a schema; in a process of its own, because files can be made to break readers."""
    from understudy.schema import draft
    from understudy.source import read

    try:
        with unquoted(shown):
            header = read(path).columns  # it is one, before its names are taken for columns
            made = draft(path)
            names = tuple(column.name for column in made.columns)
            if names != tuple(header):
                raise SourceError(
                    f"{shown}: its first line names {len(header)} columns, but the rows are read as "
                    f"{len(names)}; save it with commas between the cells, or as Parquet"
                )
            return {"schema": made.dumps(), "columns": len(made.columns)}
    except UnderstudyError as error:
        raise type(error)(_called(str(error), path, shown)) from None
    except MemoryError:
        raise SourceError(f"{shown} does not fit the memory of this machine") from None


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
    from understudy.schema import Schema

    try:
        prepared = prepare(Schema.loads(schema), rows=rows, **choices)
        return {**outline(prepared, rows), "epsilon": decimal(prepared.budget.epsilon)}
    except UnderstudyError:
        raise
    except (MemoryError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"no plan can be made for these choices ({type(error).__name__}); ask for fewer or "
            "smaller tables"
        ) from None
