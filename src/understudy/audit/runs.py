"""Shadow runs: in parallel, each on disk as soon as it is done, and never done twice.

A folder of runs belongs to one design: `design.json` says which, and a folder of another is refused.
A run is a dictionary of arrays in `00017.npz`, written beside and renamed, so that Ctrl-C, or a
machine that goes away, loses the runs at hand and nothing else.
"""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy import files
from understudy.errors import InputError

Arrays = Mapping[str, NDArray[Any]]
Progress = Callable[[int, int], None]


class Task(Protocol):
    """What one shadow run does. It travels to other processes, so it is plain data."""

    def describe(self) -> dict[str, Any]:
        """The design, in JSON: two tasks with the same description have the same law."""
        ...

    def run(self, number: int) -> Arrays:
        """Run `number`. Coins come from a public key; privacy noise takes no seed."""
        ...


class Runs:
    """The runs of one design in a folder."""

    def __init__(self, folder: Path, design: Mapping[str, Any]) -> None:
        self.folder = folder
        text = json.dumps(design, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
        file = folder / "design.json"
        if file.exists():
            if file.read_text(encoding="utf-8") != text:
                raise InputError(
                    f"{folder} holds shadow runs of another audit; give another --out, or remove it"
                )
            return
        folder.mkdir(parents=True, exist_ok=True)
        files.write(file, text)

    def path(self, number: int) -> Path:
        """Where a run is kept."""
        return self.folder / f"{number:05d}.npz"

    def missing(self, count: int) -> list[int]:
        """Those of the first `count` runs that are not there yet."""
        return [k for k in range(count) if not self.path(k).exists()]

    def read(self, count: int) -> dict[str, NDArray[Any]]:
        """The first `count` runs, stacked by name."""
        found = [self._one(k) for k in range(count)]
        return {name: np.stack([one[name] for one in found]) for name in found[0]}

    def _one(self, number: int) -> dict[str, NDArray[Any]]:
        try:
            with np.load(self.path(number), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (ValueError, OSError):
            raise InputError(
                f"{self.path(number)} is damaged; remove it, and the same command makes it again"
            ) from None


def collect(task: Task, runs: Runs, count: int, workers: int, progress: Progress) -> None:
    """Do the runs that are missing. `progress` hears how many are there, and how many are wanted."""
    left = runs.missing(count)
    progress(count - len(left), count)
    if workers <= 1 or len(left) <= 1:
        for done, number in enumerate(left, count - len(left) + 1):
            _do(task, number, runs.path(number))
            progress(done, count)
        return
    # Fresh processes: one that has started JAX or BLAS threads must not be forked.
    pool = ProcessPoolExecutor(
        min(workers, len(left)), mp_context=multiprocessing.get_context("spawn"), initializer=_quiet
    )
    try:
        with _one_thread_each():
            begun = [pool.submit(_do, task, number, runs.path(number)) for number in left]
        for done, each in enumerate(as_completed(begun), count - len(left) + 1):
            each.result()
            progress(done, count)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def fingerprint(*arrays: NDArray[Any]) -> str:
    """A digest of arrays, to tell designs apart."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _do(task: Task, number: int, path: Path) -> None:
    data = io.BytesIO()
    found: dict[str, Any] = dict(task.run(number))
    np.savez(data, allow_pickle=False, **found)
    files.write(path, data.getvalue())


def _quiet() -> None:
    """Ctrl-C reaches every process of the terminal; the first one decides, the others finish."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start now do linear algebra in one thread; there is one for every core."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
