"""Releases that no reader should trust, and what a reader of them must survive.

On its own and light, because the processes that read files have to load it.
"""

import hashlib
import json
import os
import resource
import zipfile
from fractions import Fraction
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.errors import BundleError
from understudy.releases.bundle import MANIFEST, digest, manifest_bytes


def forged(bundle, change=None, **files):
    """A zip whose manifest states the hashes of the files in it; `files` by their last names."""
    manifest = json.loads((bundle / MANIFEST).read_bytes())
    members = []
    for name, facts in manifest["files"].items():
        data = files.get(name.rpartition(".")[2], (bundle / name).read_bytes())
        facts.update(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
        members.append((f"x.release/{name}", data))
    if change is not None:
        change(manifest)
    manifest["digest"] = digest(manifest)
    return packed(*members, (f"x.release/{MANIFEST}", manifest_bytes(manifest)))


def packed(*members, compression=zipfile.ZIP_DEFLATED):
    out = BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def endless_array():
    """A model whose one array says that it has 10^15 entries."""
    head = BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(head, shape)
    return packed(("weights.npy", head.getvalue()), compression=zipfile.ZIP_STORED)


def endless_rows(times=40, of=10**7):
    """Parquet in which 4·10^8 equal rows take two megabytes."""
    out, rows = BytesIO(), pa.table({"city": pa.array(np.zeros(of, np.int64))})
    with pq.ParquetWriter(out, rows.schema, compression="zstd") as writer:
        for _ in range(times):
            writer.write_table(rows)
    return out.getvalue()


def kinds(bundle, millions=400):
    """Imports that once froze a page or filled its memory: how each is made, and what is said of it."""

    def huge(manifest):
        manifest["promise"]["epsilon"] = "1e300000000"

    def deep():
        return packed((f"x/{MANIFEST}", b'{"a":' * 200_000 + b"1" + b"}" * 200_000))

    model = (bundle / "model.npz").read_bytes()
    return {
        "rows": (lambda: forged(bundle, parquet=endless_rows(millions // 10)), ""),
        "number": (lambda: forged(bundle, huge), "an exact decimal"),
        "depth": (deep, "x.zip"),
        "bomb": (lambda: packed(("x/model.npz", bytes(60_000_000))), "unpacks to more than"),
        "array": (lambda: forged(bundle, npz=endless_array()), ""),
        "members": (
            lambda: packed(*((f"{n}.txt", b"") for n in range(10_000))), "10,000 files"
        ),
        "text": (lambda: forged(bundle, npz=model + b"x" * 10**6), ""),
    }  # fmt: skip


def burns(path, most, shown):
    """Holds the lock of its interpreter for minutes, so that nothing in the process can stop it."""
    return Fraction("1e300000000")


def greedy(path, most, shown):
    return bytearray(8 * 10**9)


def facts():
    """What a process may do."""
    space, core = (
        resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_AS, resource.RLIMIT_CORE)
    )
    return os.getpid(), space, core, os.nice(0)


def refuses():
    raise BundleError("this is no release")


def answers(sent):
    """Take over the pipe, as somebody in the reader's process could."""
    import gc
    from multiprocessing.connection import Connection

    for each in gc.get_objects():
        if isinstance(each, Connection) and each.writable:
            each.send_bytes(sent)
    os._exit(0)
