"""`verify` refuses whatever was changed, dropped, reordered or restated."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.thorough import examples
from understudy.errors import UnderstudyError, WorkError
from understudy.privacy.budget import Budget
from understudy.privacy.chain import Entry
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import OpenDPNoise
from understudy.releases import bundle
from understudy.releases.rows import drawn_rows
from understudy.schema import Category, Schema

FILES = ["release.json", "synthetic.parquet", "model.json", "model.npz", "schema.toml"]


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory):
    return made.save(tmp_path_factory.mktemp("bundle") / "people.release")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def refused(folder, **how) -> bool:
    try:
        return not us.verify(folder, **how).passed
    except UnderstudyError:
        return True


def rewrite(folder, change, *, redigest=True):
    """Edit the manifest as a forger would, with a fresh digest."""
    manifest = json.loads((folder / "release.json").read_text())
    change(manifest)
    if redigest:
        manifest["digest"] = bundle.digest(manifest)
    (folder / "release.json").write_bytes(bundle.manifest_bytes(manifest))


def rechain(lines):
    """Hash a list of entries anew, as a forger would."""
    chained, prev, seq = [], lines[0]["prev"], lines[0]["seq"]
    for line in lines:
        entry = Entry.make(seq, line["kind"], line["body"], prev)
        chained.append(entry.to_json())
        prev, seq = entry.hash, seq + 1
    return chained


def test_an_untouched_release_passes(saved):
    found = us.verify(saved)
    assert found.passed, [c for c in found.checks if not c.passed]
    names = [check.name for check in found.checks]
    assert names == [
        "manifest", "files", "ledger chain", "charges", "privacy", "certificate", "rows", "plan",
        "measurements", "drawn",
    ]  # fmt: skip
    found.require()


@pytest.mark.parametrize("name", FILES)
def test_any_changed_byte_is_refused(folder, name):
    file = folder / name
    data = file.read_bytes()
    rng = random.Random(name)
    places = {0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(examples(6, 40)))}
    for place in sorted(places):
        for flip in (0x20, 0x01, 0x80)[: examples(1, 3)]:
            changed = bytearray(data)
            changed[place] ^= flip
            file.write_bytes(bytes(changed))
            assert refused(folder), f"byte {place} of {name} xor {flip:#x}"
    file.write_bytes(data)
    assert not refused(folder)


@pytest.mark.parametrize("name", FILES)
def test_truncated_extended_and_missing_files_are_refused(folder, name):
    file = folder / name
    data = file.read_bytes()
    for changed in (data[:-1], data + b"\n", b""):
        file.write_bytes(changed)
        assert refused(folder)
    file.unlink()
    assert refused(folder)


def test_a_stranger_file_is_refused(folder):
    (folder / "extra.csv").write_text("1")
    assert refused(folder)


def entries(manifest):
    return manifest["ledger"]["entries"]


@pytest.mark.parametrize("position", range(5))
def test_a_dropped_entry_is_refused(folder, position):
    rewrite(folder, lambda m: entries(m).pop(position))
    assert refused(folder)


@pytest.mark.parametrize("position", range(1, 5))
def test_a_dropped_entry_is_refused_even_when_rehashed(folder, position):
    def forge(manifest):
        lines = entries(manifest)
        lines.pop(position)
        manifest["ledger"]["entries"] = rechain(lines)

    rewrite(folder, forge)
    assert refused(folder)


def test_reordered_entries_are_refused(folder):
    def forge(manifest):
        lines = entries(manifest)
        lines[1], lines[2] = lines[2], lines[1]

    rewrite(folder, forge)
    assert refused(folder)


@pytest.mark.parametrize("epsilon", ["0.5", "0.999", "2"])
def test_a_restated_epsilon_is_refused(folder, epsilon):
    rewrite(folder, lambda m: m["promise"].update(epsilon=epsilon))
    assert refused(folder)


def test_a_restated_epsilon_is_refused_even_when_the_ledger_is_rewritten(folder):
    def forge(manifest):
        manifest["promise"]["epsilon"] = "0.5"
        lines = entries(manifest)
        lines[0]["body"]["budget"]["epsilon"] = "0.5"
        manifest["ledger"]["entries"] = rechain(lines)

    rewrite(folder, forge)
    assert refused(folder)


def test_less_noise_in_the_plan_is_refused(folder):
    def forge(manifest):
        lines = entries(manifest)
        for charge in lines[0]["body"]["plan"]:
            if "sigma" in charge["event"]:
                charge["event"]["sigma"] /= 2
        for line in lines[1:]:
            if "sigma" in line["body"].get("event", {}):
                line["body"]["event"]["sigma"] /= 2
        manifest["ledger"]["entries"] = rechain(lines)

    rewrite(folder, forge)
    assert refused(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["certificate"].update(bound=m["certificate"]["bound"] / 2),
        lambda m: m["certificate"].update(beta=0.001),
        lambda m: m["certificate"].update(words="perfect"),
        lambda m: m["certificate"].update(variations=None),
        lambda m: m["promise"].update(relation="replace"),
        lambda m: m["promise"].update(rows_public=10**6),
        lambda m: m["method"].update(name="magic"),
        lambda m: m["workload"].pop(),
        lambda m: m.update(rows=m["rows"] + 1),
        lambda m: m.update(private="yes"),
        lambda m: m["ledger"].update(reservation="somebody else's"),
        lambda m: m["ledger"].update(entries=[]),
        lambda m: m["files"].pop("model.npz"),
    ],
)
def test_restated_facts_are_refused(folder, change):
    rewrite(folder, change)
    assert refused(folder)


def forge_plan(change):
    """Rewrite the plan and the charges made under it, and hash the chain anew."""

    def forge(manifest):
        lines = entries(manifest)
        for charge in lines[0]["body"]["plan"]:
            change(charge["purpose"], charge["event"])
        for line in lines[1:]:
            if line["kind"] == "charge":
                change(line["body"]["purpose"], line["body"]["event"])
        manifest["ledger"]["entries"] = rechain(lines)

    return forge


def test_total_variations_charged_too_little_are_refused(folder):
    def change(purpose, event):
        if purpose == "certificate of total variation":
            event.update(step=1, changes=1)

    rewrite(folder, forge_plan(change))
    assert refused(folder)


def test_a_certificate_charged_as_something_else_is_refused(folder):
    def change(purpose, event):
        if purpose == "certificate":
            event.clear()
            event.update(kind="gaussian", sigma=1e9, step=1, changes=1)

    rewrite(folder, forge_plan(change))
    assert refused(folder)


def test_a_draw_beyond_its_filter_is_refused(folder):
    def forge(manifest):
        lines = entries(manifest)
        slot = next(c for c in lines[0]["body"]["plan"] if c["purpose"] == "one-way marginals")
        slot["event"] = {"kind": "zcdp", "rho": 1e-6}
        manifest["ledger"]["entries"] = rechain(lines)

    rewrite(folder, forge)
    failed = [c for c in us.verify(folder).checks if not c.passed]
    assert any("zCDP filter" in check.detail for check in failed)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["promise"].update(unit="person"),
        lambda m: m["promise"].update(words="ε = 0.01"),
        lambda m: m["promise"].update(epsilon=1),
        lambda m: m["certificate"].update(
            variations=m["certificate"]["variations"][:1],
            variations_measured=m["certificate"]["variations_measured"][:1],
        ),
    ],
)
def test_restated_promises_are_refused(folder, change):
    rewrite(folder, change)
    assert refused(folder)


def test_a_manifest_without_its_canonical_form_is_refused(folder):
    manifest = json.loads((folder / "release.json").read_text())
    (folder / "release.json").write_text(json.dumps(manifest))
    assert refused(folder)


def test_a_published_digest_pins_the_whole(saved):
    right = us.verify(saved).digest
    assert us.verify(saved, expected_digest=right).passed
    assert refused(saved, expected_digest="0" * 64)


def test_the_custodians_ledger_pins_the_whole(tmp_path, table, schema):
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        ledger.open_dataset("t", Budget.of(2, "1e-8"))
    made = us.release(table, schema, epsilon=1, method="independent", ledger=path, dataset="t")
    folder = made.save(tmp_path / "r")
    assert us.verify(folder, ledger=path).passed
    with Ledger(path) as ledger:
        (published,) = [e.body["bundle"] for e in ledger.entries("t") if e.kind == "publish"]
    assert published == us.verify(folder).digest
    assert us.verify(folder, ledger=path, expect_head=made.head).passed
    assert refused(folder, ledger=path, expect_head="1:" + "0" * 64)
    # A forgery that is consistent in itself, but not what the custodian wrote down.
    rewrite(folder, lambda m: m.update(created="1999-01-01T00:00:00+00:00"))
    assert us.verify(folder).passed
    assert refused(folder, ledger=path)
    other = us.release(table, schema, epsilon=1, method="independent").save(tmp_path / "other")
    assert refused(other, ledger=path)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(WorkError, match="is gone"):
        made.save(tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not path.exists()


@pytest.mark.parametrize(
    ("where", "charge"),
    [("once", 0), ("twice", 0), ("of nothing", 99), ("of another release", -1), ("late", 0)],
)
def test_one_redraw_for_a_charge_and_no_more(folder, where, charge):
    """Both verifiers: a charge may be drawn under once more, directly after it."""

    def forge(manifest):
        lines = entries(manifest)
        own = lines[1]["seq"] + charge
        again = {"kind": "redraw", "body": {**lines[1]["body"], "charge": own}}
        for name in ("purpose", "event"):
            again["body"].pop(name)
        at = 3 if where == "late" else 2
        lines[at:at] = [again] * (2 if where == "twice" else 1)
        manifest["ledger"]["entries"] = rechain(lines)

    rewrite(folder, forge)
    assert refused(folder) == (where != "once")


def test_older_bundles_have_a_time_in_every_entry(folder):
    def forge(manifest):
        lines = entries(manifest)
        for line in lines:
            line["body"]["time"] = "2024-06-01T12:00:00+00:00"
        manifest["ledger"]["entries"] = rechain(lines)

    times = ["time" in line["body"] for line in json.loads(
        (folder / "release.json").read_text())["ledger"]["entries"]]  # fmt: skip
    assert times == [True] + [False] * (len(times) - 1)
    rewrite(folder, forge)
    assert us.verify(folder).passed


def test_entries_of_other_releases_are_withheld(tmp_path, table, schema):
    """Two releases interleaved in one ledger: each bundle verifies and tells nothing of the other."""
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        ledger.open_dataset("t", Budget.of(2, "1e-8"))

    inner: list[us.Release] = []

    class Interleaving(OpenDPNoise):
        """Makes the second release in the middle of the first."""

        def laplace(self, values, scale):
            inner.append(
                us.release(table, schema, epsilon=1, method="independent", ledger=path, dataset="t")
            )
            return super().laplace(values, scale)

    outer = us.release(
        table,
        schema,
        epsilon=1,
        method="independent",
        ledger=path,
        dataset="t",
        noise=Interleaving(),
    )
    withheld = [e for e in outer.entries if e.body is None]
    assert len(withheld) == len(inner[0].entries)
    for number, made in enumerate([outer, inner[0]]):
        folder = made.save(tmp_path / str(number))
        assert us.verify(folder, ledger=path).passed
    assert inner[0].facts["reservation"] not in (tmp_path / "0" / "release.json").read_text()


def test_a_footer_that_states_more_rows_than_its_columns_hold(tmp_path):
    """The numbers of a file and of its row group are patched; the column chunks hold ten rows less."""
    schema = Schema((Category("a", ("x", "y", "z")), Category("b", ("p", "q"))))
    table = pa.table({"a": ["x", "y", "z"] * 20, "b": ["p", "q"] * 30})
    made = us.release(table, schema, epsilon=2, method="independent", rows_public=60)
    folder = made.save(tmp_path / "short.release")
    stated = made.rows.num_rows
    assert stated == 60
    drawn = drawn_rows(made.schema, made.model, 50, int(made.facts["key"]))[1]
    buffer = io.BytesIO()
    pq.write_table(drawn, buffer, compression="none", write_statistics=False)
    data = buffer.getvalue()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    places = [i for i in range(footer, len(data) - 8) if data[i] == 2 * 50]  # zigzag of 50

    def lying(at):
        changed = bytearray(data)
        for i in at:
            changed[i] = 2 * stated
        try:
            file = pq.ParquetFile(io.BytesIO(changed))
            group = file.metadata.row_group(0)
            tells = (file.metadata.num_rows, group.num_rows, file.read().num_rows)
        except (OSError, pa.ArrowException):
            return None
        return bytes(changed) if tells == (stated, stated, 50) else None

    forged = next(filter(None, map(lying, itertools.combinations(places, 2))))
    (folder / "synthetic.parquet").write_bytes(forged)
    manifest = json.loads((folder / "release.json").read_bytes())
    digest = hashlib.sha256(forged).hexdigest()
    manifest["files"]["synthetic.parquet"] = {"sha256": digest, "bytes": len(forged)}
    manifest["digest"] = bundle.digest(manifest)
    (folder / "release.json").write_bytes(bundle.manifest_bytes(manifest))
    assert refused(folder)
