"""A call in a process of its own, with limits on memory and time that the kernel keeps.

A library in C that holds the interpreter's lock stops every thread of its process, and memory that is
taken is taken from all: so what a stranger's file may do to its reader, it may do to one process only.
That process is forked from one that has loaded the libraries and nothing else, in milliseconds; it
holds no row and no key of the page. An alarm ends it even if the server is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import signal
import threading
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.errors import UnderstudyError
from understudy.source.addresses import VARIABLE as DATABASES
from understudy.wording import byte_size

_FORK = multiprocessing.get_context("forkserver")
_FORK.set_forkserver_preload(["understudy.web.workers", "pyarrow.parquet", "pandas"])
"""Loaded once; pyarrow asks for pandas where it is installed."""
_KINDER = 5
_THREADS = 4
_LONGEST = 1 << 26  # Bytes of an answer: the schema of a table of very many columns
_SLACK = 5  # Seconds after its time that the alarm rings, where nobody is left to end the process


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one file may take: bytes beyond those of the libraries, and seconds."""

    memory: int
    seconds: int

    @property
    def words(self) -> str:
        """For people."""
        return f"{byte_size(self.memory)} of memory and {self.seconds} seconds"


class Stopped(Exception):
    """The process died, or was ended at the end of its time."""


async def run_confined(limits: Limits, work: Callable[..., Any], *arguments: Any) -> Any:
    """`work(*arguments)` under limits, as JSON; its process is gone afterwards, whatever happened.

    JSON, because a file that has taken its reader over may answer anything, and must not be obeyed.

    Raises:
        Stopped: It died, took too long, or failed as nobody foresaw. The `UnderstudyError` that `work`
            raises is raised here.
    """
    here, there = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_answer, args=(there, limits, work, arguments), daemon=True)
    starting = asyncio.ensure_future(asyncio.to_thread(process.start))  # the first takes seconds
    try:
        await asyncio.shield(starting)
        there.close()
        await asyncio.to_thread(here.recv_bytes, 1)  # it has loaded what it needs: its time begins
        async with asyncio.timeout(limits.seconds):
            answer = await asyncio.to_thread(here.recv_bytes, _LONGEST)
    except (EOFError, OSError, TimeoutError):
        raise Stopped from None
    finally:
        if process.pid is not None:  # otherwise the server stops just now; it ends what is begun
            process.kill()
            await asyncio.to_thread(process.join)  # gigabytes take a moment to give back
    return heard(answer)


def heard(told: bytes) -> Any:
    """What was told: the answer, or the error that is raised; `Stopped` for anything else."""
    try:
        body = json.loads(told)
    except (ValueError, RecursionError):
        raise Stopped from None
    match body:
        case {"answer": answer}:
            return answer
        case {"error": str(name), "message": str(message)} if name in (known := _errors()):
            raise known[name](message)
        case _:
            raise Stopped


def tell(work: Callable[..., Any], *arguments: Any) -> bytes:
    """Do it, and put into JSON what comes of it."""
    try:
        answer = work(*arguments)
        body = {"answer": asdict(answer) if is_dataclass(answer) else answer}  # type: ignore[arg-type]
    except UnderstudyError as error:
        body = {"error": type(error).__name__, "message": str(error)}
    except Exception as error:  # noqa: BLE001 - its message may hold a row
        body = {"error": type(error).__name__, "message": ""}
    return json.dumps(body).encode()


def _errors(root: type[UnderstudyError] = UnderstudyError) -> dict[str, type[UnderstudyError]]:
    """Every kind of error that is meant for people, by name."""
    kinds = {root.__name__: root}
    for each in root.__subclasses__():
        kinds |= _errors(each)
    return kinds


def _answer(
    there: Connection, limits: Limits, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    _confine(limits)
    there.send_bytes(b"")
    there.send_bytes(tell(work, *arguments))


def _confine(limits: Limits) -> None:
    follow_server()
    os.nice(_KINDER)  # pages go first
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the kernel ends it, whatever Python is doing
    signal.alarm(limits.seconds + _SLACK)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pa.set_cpu_count(min(_THREADS, pa.cpu_count()))  # each takes address space, used or not
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:  # not Linux: there, libraries count too
        pages = 0
    most = pages * resource.getpagesize() + limits.memory
    with contextlib.suppress(ValueError, OSError):  # a system without this limit
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def follow_server() -> None:
    """In a worker: Ctrl-C is for the server, and a worker whose server is gone goes too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ[DATABASES] = ""  # it reads uploaded files alone
    warnings.simplefilter("ignore")  # what libraries warn of may depend on private rows
    server = multiprocessing.parent_process()

    def follow() -> None:
        if server is not None:
            server.join()
        os._exit(0)

    threading.Thread(target=follow, daemon=True).start()
