"""Bad bundles, made of a good one: each must be refused by every verifier, soon and with a reason.

`corpus(good)` lists them by name. Hand-written ones attack limits and forms; generated ones take every
field of the manifest in turn, drop it, give it another type or put an unknown one beside it. Unless an
item is about hashes, it is forged consistently: hashes of files, the chain of the ledger and the digest
of the manifest are those of the forged content. `mutated` changes one field at random; of such a
bundle nothing is said but that verifiers must agree on it.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
import os
import pickle
import random
import shutil
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Change = Callable[[dict[str, Any]], Any]
TABLES = "measurements.npz"
FILES = (TABLES, "model.json", "model.npz", "report.html", "schema.toml", "synthetic.parquet")


@dataclass(frozen=True)
class Bad:
    """One bad bundle. `costly`: a careless verifier would hang on it or run out of memory."""

    name: str
    make: Callable[[Path, Path], None]
    costly: bool = False


# -- a forger's tools ----------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def pretty(value: Any) -> bytes:
    return (json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2) + "\n").encode()


def linked(good: Path, bad: Path) -> None:
    """A folder with the same files; release.json is the folder's own."""
    bad.mkdir(parents=True)
    for item in good.iterdir():
        if item.name != "release.json":
            try:
                os.link(item, bad / item.name)
            except OSError:  # on another device
                shutil.copy(item, bad / item.name)
    (bad / "release.json").write_bytes((good / "release.json").read_bytes())


def rehashed(manifest: dict[str, Any]) -> None:
    """Chain and digest as a forger would compute them; what cannot be hashed is left."""
    try:
        entries = manifest["ledger"]["entries"]
        prev = entries[0]["prev"]
        for entry in entries:
            if "body" in entry:
                entry["digest"] = sha256(canonical({"body": entry["body"], "kind": entry["kind"]}))
            entry["prev"] = prev
            link = {"digest": entry["digest"], "prev": prev, "seq": entry["seq"]}
            prev = entry["hash"] = sha256(canonical(link))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        pass


def sealed(manifest: dict[str, Any]) -> bytes:
    """With its digest, in its one byte form."""
    rest = {name: value for name, value in manifest.items() if name != "digest"}
    if "digest" in manifest:
        manifest["digest"] = sha256(canonical(rest))
    return pretty(manifest)


def forged(change: Change, *, chain: bool = True) -> Callable[[Path, Path], None]:
    """The bundle with a changed manifest."""

    def make(good: Path, bad: Path) -> None:
        linked(good, bad)
        manifest = json.loads((good / "release.json").read_bytes())
        change(manifest)
        if chain:
            rehashed(manifest)
        (bad / "release.json").write_bytes(sealed(manifest))

    return make


def raw(change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    """The bundle with other bytes for release.json."""

    def make(good: Path, bad: Path) -> None:
        linked(good, bad)
        (bad / "release.json").write_bytes(change((good / "release.json").read_bytes()))

    return make


def with_file(
    name: str, change: Callable[[bytes], bytes], *, schema: bool = False, rows: int | None = None
) -> Callable[[Path, Path], None]:
    """The bundle with another file, listed as such; `schema`: the ledger, too, says it is this one."""

    def make(good: Path, bad: Path) -> None:
        data = change((good / name).read_bytes())

        def restate(manifest: dict[str, Any]) -> None:
            manifest["files"][name] = {"bytes": len(data), "sha256": sha256(data)}
            if schema:
                text = data[max(0, data.find(b"[understudy]\n")) :]
                manifest["ledger"]["entries"][0]["body"]["facts"]["schema"] = sha256(text)
            if rows is not None:
                manifest["rows"] = manifest["certificate"]["rows"] = rows

        forged(restate)(good, bad)
        (bad / name).unlink()
        (bad / name).write_bytes(data)

    return make


def repacked(act: Callable[[dict[str, bytes]], Any], packed: bool = False) -> Any:
    """An .npz with its members changed."""

    def change(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        act(members)
        out = io.BytesIO()
        how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        with zipfile.ZipFile(out, "w", how) as archive:
            for name, member in members.items():
                archive.writestr(name, member)
        return out.getvalue()

    return change


def beside(act: Callable[[Path], Any]) -> Callable[[Path, Path], None]:
    """The bundle with something done to its folder."""

    def make(good: Path, bad: Path) -> None:
        linked(good, bad)
        act(bad)

    return make


# -- by hand -------------------------------------------------------------------------------------


def _replaced(name: str, by: Callable[[Path], Any]) -> Callable[[Path, Path], None]:
    def act(bad: Path) -> None:
        (bad / name).unlink(missing_ok=True)
        by(bad / name)

    return beside(act)


def _symlink(path: Path) -> None:
    """To a copy of the file itself, which lies outside the folder."""
    outside = path.parent.parent / f"{path.parent.name}.{path.name}"
    outside.write_bytes(b"<p>elsewhere")
    path.symlink_to(outside)


def _files() -> Iterator[Bad]:
    for name in (*FILES, "release.json"):
        yield Bad(f"{name} is a folder", _replaced(name, Path.mkdir))
        yield Bad(f"{name} is a link", _replaced(name, _symlink))
        yield Bad(f"{name} is a pipe", _replaced(name, lambda p: os.mkfifo(p)), costly=True)
    for name in (*FILES, "release.json"):
        yield Bad(f"{name} is missing", beside(lambda bad, name=name: (bad / name).unlink()))
        yield Bad(f"{name} is empty", _replaced(name, lambda p: p.write_bytes(b"")))
        yield Bad(f"{name} is sparse and huge", _replaced(name, _huge), costly=True)
    for name in FILES:

        def unlisted(m: dict[str, Any], name: str = name) -> None:
            del m["files"][name]

        yield Bad(f"{name} is not listed", forged(unlisted))
    for name in ("notes.txt", ".hidden", "model.pkl", "RELEASE.JSON", "report.html.exe"):
        yield Bad(
            f"there is {name}", beside(lambda bad, name=name: (bad / name).write_text("hello"))
        )
    yield Bad("there is a folder", beside(lambda bad: (bad / "more").mkdir()))
    for name in ("../model.npz", "/etc/passwd", "a/../model.npz", "model.npz\0"):

        def elsewhere(m: dict[str, Any], name: str = name) -> None:
            m["files"][name] = m["files"].pop("model.npz")

        yield Bad(f"files lists {name!r}", forged(elsewhere))


def _huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(2**33)


def _bytes() -> Iterator[Bad]:
    yield Bad("a BOM", raw(lambda data: b"\xef\xbb\xbf" + data))
    yield Bad("UTF-16", raw(lambda data: data.decode().encode("utf-16")))
    yield Bad("not UTF-8", raw(lambda data: data.replace(b"understudy release", b"under\xff")))
    yield Bad("no newline", raw(lambda data: data[:-1]))
    yield Bad("two newlines", raw(lambda data: data + b"\n"))
    yield Bad("CRLF", raw(lambda data: data.replace(b"\n", b"\r\n")))
    yield Bad("compact", raw(lambda data: canonical(json.loads(data))))
    yield Bad("escapes", raw(lambda data: data.replace("ε".encode(), rb"\u03b5")))
    yield Bad("a comment", raw(lambda data: b"// hello\n" + data))
    yield Bad("a key twice", raw(lambda data: data.replace(b"{", b'{\n  "rows": 1,', 1)))
    yield Bad("a version twice", raw(lambda data: data[:-2] + b',\n  "version": 1\n}\n'))
    for value in (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" * 5000, b"1" * 31,
                  b"1e300000000", b"0." + b"1" * 100, b"01", b"+1", b"0x10"):  # fmt: skip
        shown = value[:20].decode()
        yield Bad(
            f"rows_estimate: {shown} ({len(value)} bytes)",
            raw(lambda data, v=value: _with_raw(data, b'"rows_estimate": ', v)),
        )
    for depth in (65, 1000, 200_000, 10_000_000):
        for left, right in ((b"[", b"]"), (b'{"a":', b"}")):

            def nest(
                _: bytes, left: bytes = left, right: bytes = right, depth: int = depth
            ) -> bytes:
                return left * depth + b"1" + right * depth

            yield Bad(
                f"remarks nested {depth} deep, {left[:1].decode()}",
                raw(lambda data, nest=nest: _with_raw(data, b'"remarks": ', nest(data))),
                costly=True,
            )
            yield Bad(f"nothing but {depth} {left.decode()}", raw(nest), costly=True)
    for value in (b"[]", b"{}", b"0", b'{"a":{}}', b'""'):

        def many(data: bytes, value: bytes = value) -> bytes:
            listed = b",".join([value] * 6_000_000)
            return _with_raw(data, b'"remarks": ', b'{"a":[' + listed + b"]}")

        yield Bad(f"six million {value.decode()}", raw(many), costly=True)

    def long(data: bytes) -> bytes:
        return _with_raw(data, b'"created": ', b'"' + b"x" * 50_000_000 + b'"')

    yield Bad("a long text", raw(long), costly=True)
    for whole in (b"null", b"[]", b"{}", b'"understudy release"', b"1", b"not JSON", b"\0" * 100):
        yield Bad(f"release.json is {whole[:20]!r}", raw(lambda _, whole=whole: whole))


def _without(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key != name}


def _with_raw(data: bytes, key: bytes, value: bytes) -> bytes:
    """Another value, in its bytes, for a field on the outermost level."""
    start = data.index(b"\n  " + key) + 3 + len(key)
    end = data.index(b",\n  " + b'"', start)
    return data[:start] + value + data[end:]


def _set(path: str, value: Any) -> Change:
    """Set one field; every place of the same name in the ledger's facts stays as it is."""

    def change(manifest: dict[str, Any]) -> None:
        *way, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        at: Any = manifest
        for step in way:
            at = at[step]
        at[last] = value

    return change


def _both(name: str, value: Any) -> Change:
    """An ε or δ, in the promise and in the ledger."""

    def change(manifest: dict[str, Any]) -> None:
        manifest["promise"][name] = value
        manifest["ledger"]["entries"][0]["body"]["budget"][name] = value

    return change


def _events(change: Callable[[dict[str, Any]], Any], kind: str) -> Change:
    """The same to every event of a kind, planned and charged."""

    def all_of(manifest: dict[str, Any]) -> None:
        for entry in manifest["ledger"]["entries"]:
            body = entry.get("body", {})
            for event in [s["event"] for s in body.get("plan", ())] + [body.get("event", {})]:
                if event.get("kind") == kind:
                    change(event)

    return all_of


def _numbers() -> Iterator[Bad]:
    long = "9" * 10_000_000
    for name in ("epsilon", "delta"):
        for text in ("1e300000000", "1E+999999999", "1e-300000000", "1E-99999999", "1_0", " 1", "1 ",
                     "\uff11", "nan", "inf", "-1", "0x1", "", "1/0", "1e", ".5", "5.", "1//2", "+1",
                     "0." + "1" * 500, "1" * 401, "1E+9999"):  # fmt: skip
            yield Bad(
                f"{name} is {text[:20]!r} ({len(text)})", forged(_both(name, text)), costly=True
            )
        for value in (1, 1.0, True, None, [], {}):
            yield Bad(f"{name} is {value!r}", forged(_both(name, value)))
        yield Bad(f"{name} has ten million digits", forged(_both(name, long)), costly=True)
        yield Bad(f"{name} is a long fraction", forged(_both(name, f"1/{long}")), costly=True)
    for text in ("0", "1000000", "0.0001"):
        yield Bad(f"epsilon: {text}", forged(_both("epsilon", text)))
    for text in ("1", "2", "1.0000001"):
        yield Bad(f"delta: {text}", forged(_both("delta", text)))
    for field in ("worst", "rows_measured", "cells", "rows"):
        for value in (10**30, -(10**30), 10**18, -(10**18), True, 1.5, "1"):
            yield Bad(
                f"certificate {field} is {value!r}", forged(_set(f"certificate/{field}", value))
            )
    for field in ("bound", "beta"):
        for value in (-1, 0, 2, 1e300, -0.5, True, "0.1", None, 1e-300):
            yield Bad(
                f"certificate {field} is {value!r}", forged(_set(f"certificate/{field}", value))
            )
    for value in (-1, 10**15, 10**30, 2**63, 4 * 10**8, True, 1.0, "387"):
        yield Bad(f"rows is {value!r}", forged(_set("rows", value)), costly=True)

        def everywhere(m: dict[str, Any], value: Any = value) -> None:
            m["rows"] = m["certificate"]["rows"] = value

        yield Bad(f"rows is {value!r}, everywhere", forged(everywhere), costly=True)
    for field in ("sigma", "step", "changes"):
        for value in (0, -1, 10**30, 1e300, 1e-300, True, "1", None, 2**62):
            change = _events(lambda e, f=field, v=value: e.update({f: v}), "gaussian")
            yield Bad(f"{field} is {value!r}", forged(change), costly=True)
        change = _events(lambda e, f=field: e.pop(f), "gaussian")
        yield Bad(f"events without {field}", forged(change))
    for field in ("scale", "l1"):
        for value in (0, -1, 10**30, 1e300, 1e25, 1e19, 1e-300, True, "1", None):
            change = _events(lambda e, f=field, v=value: e.update({f: v}), "laplace")
            yield Bad(f"{field} is {value!r}", forged(change), costly=True)
        change = _events(lambda e, f=field: e.pop(f), "laplace")
        yield Bad(f"events without {field}", forged(change))
    for times in (0, -1, 10**6, 10**9, 10**15, 10**30, True, 1.0, "1", None):
        where = "ledger/entries/0/body/plan/1/times"
        yield Bad(f"times is {times!r}", forged(_set(where, times)), costly=True)
    for kind in ("magic", "", None, 1, [], "Gaussian"):
        change = _events(lambda e, kind=kind: e.update(kind=kind), "gaussian")
        yield Bad(f"events of kind {kind!r}", forged(change))


def _ledger() -> Iterator[Bad]:
    def entries(act: Callable[[list[Any]], Any]) -> Change:
        return lambda m: act(m["ledger"]["entries"])

    yield Bad("no entries", forged(entries(list.clear)))
    yield Bad(
        "a chain that is not rehashed", forged(_set("ledger/entries/1/prev", "0" * 64), chain=False)
    )
    for value in (b"1", b"null", b'"' + b"A" * 64 + b'"', b'"' + b"0" * 64 + b'"', b'""', b"[]"):
        change = lambda data, value=value: _with_raw(data, b'"digest": ', value)  # noqa: E731
        yield Bad(f"the digest is {value[:8].decode()}", raw(change))
    yield Bad("no digest", raw(lambda data: pretty(_without(json.loads(data), "digest"))))
    for i in range(6):
        yield Bad(f"without entry {i}", forged(entries(lambda e, i=i: e.pop(i))))
        yield Bad(
            f"entry {i} twice", forged(entries(lambda e, i=i: e.insert(i, copy.deepcopy(e[i]))))
        )
        yield Bad(f"entry {i} is null", forged(_set(f"ledger/entries/{i}", None)))
        yield Bad(f"entry {i} half withheld", forged(entries(lambda e, i=i: e[i].pop("kind"))))
        yield Bad(f"entry {i} without body", forged(entries(lambda e, i=i: e[i].pop("body"))))
        for kind in ("publish", "reserve", "open", None):
            if (i, kind) != (0, "reserve"):
                change = _set(f"ledger/entries/{i}/kind", kind)
                yield Bad(f"entry {i} is of kind {kind!r}", forged(change))
    yield Bad("not finished", forged(_set("ledger/entries/5/body/outcome", "failed")))
    yield Bad("seeded noise", forged(_set("ledger/entries/0/body/noise", "seeded, NOT PRIVATE")))
    slots = lambda m: m["ledger"]["entries"][0]["body"]["plan"]  # noqa: E731
    yield Bad("an empty plan", forged(lambda m: slots(m).clear()))
    yield Bad("a slot twice", forged(lambda m: slots(m).append(slots(m)[0])))
    yield Bad(
        "a million slots", forged(lambda m: slots(m).extend(slots(m)[:1] * 10**6)), costly=True
    )
    yield Bad("a workload of nothing", forged(_set("workload", [])))
    yield Bad("a long name", forged(_set("workload/0/columns/0", "x" * 10**6)))


def _schema() -> Iterator[Bad]:
    def text(act: Callable[[str], str]) -> Callable[[bytes], bytes]:
        return lambda data: act(data.decode()).encode()

    comment = text(lambda schema: schema + "# a comment\n")
    yield Bad("a comment after the schema", with_file("schema.toml", comment))
    yield Bad(
        "a comment in it", with_file("schema.toml", text(lambda s: s.replace("\n[[", "\n#\n[[", 1)))
    )
    changes: dict[str, Callable[[str], str]] = {
        "a BOM": lambda s: "\ufeff" + s,
        "a column above": lambda s: '[[column]]\nname = "x"\ntype = "boolean"\n' + s,
        "no head": lambda s: s.replace("[understudy]", "[other]"),
        "a name in another Unicode form": lambda s: s.replace('"age"', '"a\\u0301ge"'),
        "another name": lambda s: s.replace('"age"', '"agé"'),
        "a column twice": lambda s: s + '[[column]]\nname = "age"\ntype = "boolean"\n',
        "a size of 10^18": lambda s: s.replace("upper = 4", f"upper = {10**18}"),
        "a size of 10^30": lambda s: s.replace("upper = 4", f"upper = {10**30}"),
        "10^15 bins": lambda s: s.replace("bins = 10", f"bins = {10**15}"),
        "no bounds": lambda s: s.replace("upper = 4", ""),
        "bounds that are NaN": lambda s: s.replace("upper = 4", "upper = nan"),
        "deep nests": lambda s: s + "x = " + "[" * 100_000 + "]" * 100_000,
        "a long number": lambda s: s.replace("upper = 4", "upper = " + "4" * 100_000),
        "other values": lambda s: s.replace('["F", "M"]', '["F"]'),
        "nothing": lambda s: "",
    }  # fmt: skip
    for name, act in changes.items():
        yield Bad(f"schema: {name}", with_file("schema.toml", text(act)), costly=True)
        rewritten = with_file("schema.toml", text(act), schema=True)
        yield Bad(f"schema: {name}, as the ledger says", rewritten, costly=True)


def _model() -> Iterator[Bad]:
    def described(act: Change) -> Callable[[bytes], bytes]:
        def change(data: bytes) -> bytes:
            model = json.loads(data)
            act(model)
            return canonical(model) + b"\n"

        return change

    for name, act in {
        "kind": lambda m: m.update(kind="magic"),
        "empirical": lambda m: m.update(kind="empirical"),
        "no kind": lambda m: m.pop("kind"),
        "no shape": lambda m: m.pop("shape"),
        "no cliques": lambda m: m.pop("cliques"),
        "more": lambda m: m.update(more=1),
        "shape": lambda m: m["shape"].append(2),
        "negative": lambda m: m.update(shape=[-1, *m["shape"][1:]]),
        "floats": lambda m: m.update(shape=[float(s) for s in m["shape"]]),
        "huge": lambda m: m.update(shape=[10**15, *m["shape"][1:]]),
        "clique out of range": lambda m: m["cliques"].append([99]),
        "clique negative": lambda m: m.update(cliques=[[-4], *m["cliques"][1:]]),
        "clique twice": lambda m: m["cliques"].append([0, 0]),
        "cliques of text": lambda m: m.update(cliques=["0"]),
        "true for 1": lambda m: m.update(cliques=[[0], [True], *m["cliques"][2:]]),
        "swaps": lambda m: m.update(swaps=21),
        "swaps negative": lambda m: m.update(swaps=-1),
        "swaps of text": lambda m: m.update(swaps="6"),
    }.items():  # fmt: skip
        yield Bad(f"model.json: {name}", with_file("model.json", described(act)))
    for name, data in {
        "NaN": b'{"kind": NaN}',
        "a list": b"[]",
        "deep": b"[" * 200_000,
        "a key twice": b'{"kind":"decomposable","kind":"decomposable"}',
        "many": b"[" + b"[]," * 5_000_000 + b"[]]",
        "not JSON": b"PK",
    }.items():
        yield Bad(f"model.json: {name}", with_file("model.json", lambda _, d=data: d), costly=True)

    def first(array: Any, **header: Any) -> Callable[[dict[str, bytes]], Any]:
        return lambda members: members.update({"table_0.npy": npy(array, **header)})

    ten = np.full(10, 0.1)
    for name, act in {
        "claims 10^15": first(ten, shape=(10**15,)),
        "claims 10^30": first(ten, shape=(10**15, 10**15)),
        "claims less": first(ten, shape=(5,)),
        "negative shape": first(ten, shape=(-10,)),
        "objects": first(ten, descr="|O"),
        "void": first(ten, descr="|V8"),
        "text": first(ten, descr="<U2"),
        "complex": first(ten, descr="<c16"),
        "wide items": first(ten, descr=f"|V{2**31 - 1}"),
        "integers": first(np.ones(10, dtype=np.int64)),
        "not 1": first(np.full(10, 0.2)),
        "below 0": first(np.array([-0.1, 0.3] + [0.1] * 8)),
        "NaN": first(np.array([math.nan] + [0.1] * 9)),
        "infinite": first(np.array([math.inf] + [0.1] * 9)),
        "one too few": lambda members: members.pop("table_0.npy"),
        "one too many": lambda members: members.update({"table_9.npy": npy(ten)}),
        "a path": lambda members: members.update({"../table_0.npy": members.pop("table_0.npy")}),
        "no .npy": lambda members: members.update({"table_0": members.pop("table_0.npy")}),
        "no header": lambda members: members.update({"table_0.npy": b"hello"}),
        "another shape": first(np.full((2, 5), 0.1)),
    }.items():
        yield Bad(f"model.npz: {name}", with_file("model.npz", repacked(act)), costly=True)
    bomb = repacked(lambda members: first(np.zeros(2**25))(members), packed=True)
    yield Bad("model.npz: a bomb", with_file("model.npz", bomb), costly=True)
    yield Bad("model.npz: packed", with_file("model.npz", repacked(lambda _: None, packed=True)))
    yield Bad("model.npz: not a zip", with_file("model.npz", lambda data: data[10:-30]))
    yield Bad("model.npz: one array", with_file("model.npz", lambda _: npy(ten)))


def _measured() -> Iterator[Bad]:
    def other(name: str, change: Any, **header: Any) -> Callable[[dict[str, bytes]], Any]:
        def act(members: dict[str, bytes]) -> None:
            array = np.load(io.BytesIO(members[f"{name}.npy"]))
            members[f"{name}.npy"] = npy(change(array), **header)

        return act

    def same(array: Any) -> Any:
        return array

    for name, act in {
        "a value less": other("values", lambda v: v[:-1]),
        "a value more": other("values", lambda v: np.append(v, 0)),
        "floats": other("values", lambda v: v.astype(np.float64)),
        "smaller integers": other("values", lambda v: v.astype(np.int32)),
        "unsigned": other("values", lambda v: v.astype(np.uint64)),
        "the other order of bytes": other("values", lambda v: v.astype(">i8")),
        "objects": other("values", same, descr="|O"),
        "claims 10^15": other("values", same, shape=(10**15,)),
        "negative shape": other("values", same, shape=(-1,)),
        "a table": other("values", lambda v: v[None]),
        "a label": other("labels", lambda v: np.append(v, np.int32(0))),
        "no labels": lambda members: members.pop("labels.npy"),
        "no values": lambda members: members.pop("values.npy"),
        "one too many": lambda members: members.update({"more.npy": npy(np.zeros(3))}),
        "a path": lambda members: members.update({"../values.npy": members.pop("values.npy")}),
        "no header": lambda members: members.update({"values.npy": b"hello"}),
    }.items():
        yield Bad(f"tables: {name}", with_file(TABLES, repacked(act)), costly=True)
    bomb = repacked(other("values", lambda _: np.zeros(2**25, np.int64)), packed=True)
    yield Bad("tables: a bomb", with_file(TABLES, bomb), costly=True)
    yield Bad("tables: not a zip", with_file(TABLES, lambda data: data[10:-30]))
    yield Bad("tables: cut inside", with_file(TABLES, lambda data: data[:60] + data[75:]))
    yield Bad("tables: a pickle", with_file(TABLES, lambda _: pickle.dumps([1])))


def _report() -> Iterator[Bad]:
    def put(text: str) -> Callable[[bytes], bytes]:
        return lambda data: data.replace(b"<main>", b"<main>" + text.encode())

    for text in (
        "<script>alert(1)</script>",
        '<p onclick="alert(1)">x</p>',
        "<svg onload=alert(1)></svg>",
        '<a href="javascript:alert(1)">x</a>',
        '<a href="https://example.org/">x</a>',
        '<img src="https://example.org/x.png">',
        '<iframe src="https://example.org/"></iframe>',
        '<object data="x"></object>',
        '<embed src="x">',
        '<form action="https://example.org/"></form>',
        '<meta http-equiv="refresh" content="0;url=https://example.org/">',
        '<base href="https://example.org/">',
        '<link rel="stylesheet" href="https://example.org/x.css">',
        '<style>@import "https://example.org/x.css";</style>',
        "<style>p{background:url(https://example.org/x.png)}</style>",
        '<p style="background:url(x.png)">x</p>',
        "<!-- x -->",
    ):
        yield Bad(f"report.html: {text[:40]}", with_file("report.html", put(text)))
    for name, change in {
        "no head": lambda data: data[100:],
        "another policy": lambda data: data.replace(b"default-src 'none'", b"default-src *"),
        "a null character": lambda data: data + b"\0",
        "not UTF-8": lambda data: data + b"\xff",
        "a BOM": lambda data: b"\xef\xbb\xbf" + data,
        "nothing": lambda data: b"",
        "a tag that is left open": lambda data: data + b"<p",
    }.items():
        yield Bad(f"report.html: {name}", with_file("report.html", change))
    for name, change in {
        "too many bytes": lambda data: data + b" " * 2**21,
        "many tags, and a script": lambda data: data + b"<p>" * 600_000 + b"<script>",
        "many different tags, and a script": lambda data: (
            data + b"".join(b'<p id="%x">' % i for i in range(150_000)) + b"<script>"
        ),
        "a million brackets": lambda data: data + b"<" * 10**6,
        "a long style": lambda data: data + b"<style>" + b"a" * 10**6 + b"(</style>",
    }.items():
        yield Bad(f"report.html: {name}", with_file("report.html", change), costly=True)


def npy(array: Any, **header: Any) -> bytes:
    """An array as .npy, with a header that may lie."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape, **header}
    )
    return out.getvalue() + array.tobytes()


def parquet(table: pa.Table, **how: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", **how)
    return out.getvalue()


def _rows() -> Iterator[Bad]:
    def table(act: Callable[[pa.Table], pa.Table]) -> Callable[[bytes], bytes]:
        return lambda data: parquet(act(pq.read_table(io.BytesIO(data))))

    def named(names: Callable[[str], str]) -> Callable[[bytes], bytes]:
        return table(lambda t: t.rename_columns([names(name) for name in t.column_names]))

    def cell(
        name: str, values: Callable[[int], Any], type_: pa.DataType
    ) -> Callable[[bytes], bytes]:
        def act(rows: pa.Table) -> pa.Table:
            at = rows.column_names.index(name)
            return rows.set_column(
                at, pa.field(name, type_), pa.array(values(rows.num_rows), type_)
            )

        return table(act)

    for name, change in {
        "none": table(lambda t: t.slice(0, 0)),
        "one less": table(lambda t: t.slice(1)),
        "no columns": table(lambda t: t.select([])),
        "a column less": table(lambda t: t.drop_columns(["age"])),
        "a column more": table(lambda t: t.append_column("more", t["age"])),
        "a column twice": table(lambda t: t.append_column("age", t["age"])),
        "reversed columns": table(lambda t: t.select(t.column_names[::-1])),
        "decomposed names": named(lambda name: "a\u0301ge" if name == "age" else name),
        "full-width names": named(
            lambda n: "".join(chr(ord(c) + 0xFEE0) for c in n) if n == "age" else n
        ),
        "upper-case names": named(str.upper),
        "out of range": cell("visits", lambda n: [5] * n, pa.int64()),
        "floats": cell("visits", lambda n: [1.0] * n, pa.float64()),
        "half": cell("visits", lambda n: [1.5] * n, pa.float64()),
        "narrow": cell("visits", lambda n: [1] * n, pa.int8()),
        "nulls": cell("visits", lambda n: [None] * n, pa.int64()),
        "texts": cell("visits", lambda n: ["1"] * n, pa.string()),
        "lists": cell("visits", lambda n: [[1]] * n, pa.list_(pa.int64())),
        "another value": cell("sex", lambda n: ["X"] * n, pa.string()),
        "another alphabet": cell("sex", lambda n: ["\u041c"] * n, pa.string()),
        "not Parquet": lambda data: b"PAR1" + data[4:-40] + b"PAR1",
        "cut": lambda data: data[:-1],
        "a long footer": lambda data: data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
    }.items():
        yield Bad(f"rows: {name}", with_file("synthetic.parquet", change), costly=True)
    for count in (4 * 10**8, 3 * 10**7):
        change = lambda _, count=count: _many(count)  # noqa: E731
        yield Bad(f"rows: {count}", with_file("synthetic.parquet", change, rows=count), costly=True)
    long = cell("sex", lambda n: ["x" * 2**24] * n, pa.string())
    yield Bad("rows: long texts, repeated", with_file("synthetic.parquet", long), costly=True)


def _many(count: int) -> bytes:
    """Parquet of a few kilobytes that says many rows: a group of equal values, again and again."""
    each = min(count, 10**7)
    out = io.BytesIO()
    schema = pa.schema([("age", pa.int64())])
    batch = pa.table({"age": pa.array(np.zeros(each, dtype=np.int64))}, schema)
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for _ in range(count // each):
            writer.write_table(batch, row_group_size=each)
    return out.getvalue()


# -- every field in turn -------------------------------------------------------------------------

OPTIONAL = {"report.html", "forecast", "remarks", "measurements", "time", "writer", "counts"}
HASHES = {"digest", "hash", "prev"}
FREE = {"remarks", "method"}  # objects of any fields; what the ledger repeats must be equal
WRONG: dict[type, tuple[Any, ...]] = {
    bool: (1, 0, "true", None, []),
    int: (True, 1.5, "1", None, [], {}, 10**30, -(10**30)),
    float: (True, "0.5", None, [], {}),
    str: (1, True, None, [], {}, ["row"]),
    list: ({}, None, "x", 1, True),
    dict: ([], None, "x", 1, True),
}


def paths(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place in a JSON value, and what is there."""
    yield way, value
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(each, (*way, key))


def at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


def _fields(manifest: dict[str, Any]) -> Iterator[Bad]:
    for way, value in paths(manifest):
        name = "field " + (".".join(map(str, way)) or "release.json")
        inside_free = bool(FREE & set(way))
        if isinstance(value, dict) and not inside_free:

            def more(m: dict[str, Any], way: tuple[Any, ...] = way) -> None:
                at(m, way)["unknown"] = 1

            yield Bad(f"{name} has an unknown field", forged(more))
        if not way or inside_free or "measurements" in way or way == ("digest",):
            continue
        chain = way[-1] not in HASHES  # the forger would repair it
        if not isinstance(way[-1], int) and way[-1] not in OPTIONAL:

            def less(m: dict[str, Any], way: tuple[Any, ...] = way) -> None:
                del at(m, way[:-1])[way[-1]]

            yield Bad(f"{name} is missing", forged(less, chain=chain))
        if value is None or way[-1] == "private":
            continue
        for wrong in WRONG[type(value)]:

            def other(m: dict[str, Any], way: tuple[Any, ...] = way, wrong: Any = wrong) -> None:
                at(m, way[:-1])[way[-1]] = wrong

            if not (wrong is None and way[-1] in OPTIONAL | {"unit"}):
                yield Bad(f"{name} is {wrong!r}", forged(other, chain=chain))


def corpus(good: Path) -> list[Bad]:
    """All bad bundles that can be made of a good one; the order is always the same."""
    manifest = json.loads((good / "release.json").read_bytes())
    found = [*_files(), *_bytes(), *_numbers(), *_ledger(), *_schema(), *_model(), *_rows()]
    found += [*_measured(), *_report(), *_fields(manifest)]
    assert len({bad.name for bad in found}) == len(found)
    return found


# -- at random -----------------------------------------------------------------------------------


def mutated(manifest: dict[str, Any], rng: random.Random) -> str:
    """Change one place of a manifest and seal it again as a forger would; says what was changed."""
    places = list(paths(manifest))[1:]
    way, value = rng.choice(places)
    parent, last = at(manifest, way[:-1]), way[-1]
    how = rng.choice(["delete", "replace", "nudge", "nudge", "nudge", "copy", "double"])
    if how == "delete":
        del parent[last]
    elif how == "replace":
        parent[last] = rng.choice(
            [None, True, False, 0, 1, -1, 2, 0.5, 1.0, "", "x", "1", [], {}, 10**19, 1e-300, 1e300]
        )
    elif how == "copy":
        parent[last] = copy.deepcopy(rng.choice(places)[1])
    elif how == "double" and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(value))
    elif how == "double":
        parent[f"{last}x"] = copy.deepcopy(value)
    else:
        parent[last] = nudged(value, rng)
    if rng.random() < 0.8:
        rehashed(manifest)
    return f"{how} {'.'.join(map(str, way))} = {str(value)[:60]}"


def nudged(value: Any, rng: random.Random) -> Any:
    """Another value of the same type, near or far."""
    if value is None:
        return rng.choice([1, "x", 0.5])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 0, 1, value * 2, value // 2, float(value)])
    if isinstance(value, float):
        near = [math.nextafter(value, 2 * value + 1), value * (1 + 1e-12), value * (1 + 1e-6)]
        near += [math.nextafter(value, -2 * value - 1), value * (1 - 1e-12), value * (1 - 1e-6)]
        far = [-value, 0.0, value * 2, value / 2]
        return rng.choice([*near, *far, int(value)])
    if isinstance(value, str):
        others = [value + " ", value[:-1], value.upper(), unicodedata.normalize("NFD", value + "é")]
        return rng.choice([*others, value[::-1], value + "0", f"{value}\0"])
    if isinstance(value, list):
        return rng.choice([value[::-1], value[1:], value[:-1], value * 2, []])
    return dict(list(value.items())[1:]) if isinstance(value, dict) else value
