"""A custodian's signature: openssl agrees, and whatever was changed, swapped or forked is refused.

Every `us.verify` of this suite also asks the second verifier, which must agree on the form.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import understudy as us
from tests.thorough import some
from understudy.errors import BundleError, InputError, VerificationError, WorkError
from understudy.privacy.chain import canonical
from understudy.privacy.ledger import Ledger
from understudy.releases import bundle, signature
from understudy.releases.signature import (
    envelope,
    external,
    new_keys,
    pae,
    private_key,
    sign,
    statement,
)

from .conftest import people

NAME = "signature.dsse.json"
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")


def openssl(*arguments, **options):
    words = ["openssl", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, check=False, timeout=60, **options)


def nothing():
    raise AssertionError("no passphrase is needed")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """The custodian's pair, and somebody else's."""
    folder = tmp_path_factory.mktemp("keys")
    return [new_keys(str(folder / name)) for name in ("custodian", "mallory")]


@pytest.fixture(scope="module")
def saved(made, keys, tmp_path_factory):
    folder = made.save(tmp_path_factory.mktemp("bundle") / "people.release")
    sign(folder, private_key(keys[0][0], nothing))
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


@pytest.fixture
def public(keys):
    return keys[0][1]


def outcome(folder, **how):
    """What the check of the signature said; None if it passed, and all others too."""
    failed = [check for check in us.verify(folder, **how).checks if not check.passed]
    assert all(check.name == "signature" for check in failed), failed
    return failed[0].detail if failed else None


def parts(folder):
    outer = json.loads((folder / NAME).read_bytes())
    return [base64.b64decode(text) for text in (outer["payload"], outer["signatures"][0]["sig"])]


# --- the form ------------------------------------------------------------------------------------


def test_the_encoding_is_that_of_the_specification(monkeypatch):
    monkeypatch.setattr(signature, "PAYLOAD_TYPE", "http://example.com/HelloWorld")
    assert pae(b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("é".encode()).endswith(b" 2 \xc3\xa9")


def test_the_statement_is_about_the_manifest(saved):
    manifest = bundle.read_manifest(saved)
    said = json.loads(parts(saved)[0])
    last = manifest["ledger"]["entries"][-1]
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert [each["digest"] for each in said["subject"]] == [{"sha256": manifest["digest"]}]
    predicate = said["predicate"]
    assert predicate["promise"] == {
        "epsilon": "1", "delta": manifest["promise"]["delta"], "unit": "row",
        "relation": "add-remove",
    }  # fmt: skip
    assert predicate["certificate"]["bound"] == manifest["certificate"]["bound"]
    assert predicate["ledger"] == {"dataset": None, "head": f"{last['seq']}:{last['hash']}"}
    assert predicate["understudy"] == us.__version__


def test_a_signed_release_passes(saved, keys, public):
    told = {check.name: check.detail for check in us.verify(saved).checks}
    assert told["signature"] == "signed; not checked: give --signed-by"
    assert us.verify(saved).passed
    assert outcome(saved, signed_by=public) is None
    assert outcome(saved, signed_by=[keys[1][1], str(public)]) is None
    told = {check.name: check.detail for check in us.verify(saved, signed_by=public).checks}
    assert told["signature"].startswith(f"signed by {public} at ")


# --- openssl -------------------------------------------------------------------------------------


@needs_openssl
def test_openssl_verifies_our_signature(saved, keys, tmp_path):
    payload, made = parts(saved)
    (tmp_path / "sig").write_bytes(made)
    asked = ("-rawin", "-in", tmp_path / "pae", "-sigfile", tmp_path / "sig")
    for body, (_, key), good in [
        (payload, keys[0], True), (payload + b" ", keys[0], False), (payload, keys[1], False),
    ]:  # fmt: skip
        written = f"DSSEv1 28 application/vnd.in-toto+json {len(body)} ".encode() + body
        (tmp_path / "pae").write_bytes(written)
        done = openssl("pkeyutl", "-verify", "-pubin", "-inkey", key, *asked)
        assert (done.returncode == 0) == good, done.stderr


@needs_openssl
@pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq")
def test_the_commands_of_the_page(folder, keys):
    page = (Path(__file__).parents[2] / "docs" / "signatures.md").read_text("utf-8")
    (commands,) = (part.split("```")[0] for part in page.split("```text\n")[1:])
    for (_, public), good in zip(keys, (True, False), strict=True):
        shutil.copy(public, folder / "custodian.pub")
        done = subprocess.run(
            ["sh", "-ec", commands], cwd=folder, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == good, done.stderr
        assert ("Verified Successfully" in done.stdout) == good


@needs_openssl
@pytest.mark.parametrize("locked", [False, True])
def test_a_key_of_openssl_signs(made, tmp_path, locked):
    release = made.save(tmp_path / "r.release")
    lock = ("-aes-256-cbc", "-pass", "pass:tide") if locked else ()
    assert (
        openssl("genpkey", "-algorithm", "ed25519", "-out", tmp_path / "k", *lock).returncode == 0
    )
    read = ("-in", tmp_path / "k", *(("-passin", "pass:tide") if locked else ()))
    assert openssl("pkey", *read, "-pubout", "-out", tmp_path / "k.pub").returncode == 0
    sign(release, private_key(tmp_path / "k", (lambda: "tide") if locked else nothing))
    assert outcome(release, signed_by=tmp_path / "k.pub") is None


@needs_openssl
def test_openssl_reads_our_keys(tmp_path):
    private, public = new_keys(str(tmp_path / "k"), "tide")
    right = openssl("pkey", "-in", private, "-passin", "pass:tide", "-pubout")
    assert right.stdout == public.read_bytes()
    assert openssl("pkey", "-in", private, "-passin", "pass:ebb").returncode != 0
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in private.read_bytes()


@needs_openssl
def test_openssl_signs_as_a_command(made, keys, public, tmp_path):
    release = made.save(tmp_path / "r.release")
    script = tmp_path / "kms.sh"
    script.write_text(
        f"cat > '{tmp_path}/pae'\n"
        f"openssl pkeyutl -sign -inkey '{keys[0][0]}' -rawin -in '{tmp_path}/pae' | base64\n"
    )
    sign(release, external(f"sh '{script}'"))
    assert outcome(release, signed_by=public) is None


# --- what is refused -----------------------------------------------------------------------------


def test_no_signature(folder, public):
    (folder / NAME).unlink()
    assert us.verify(folder).passed
    assert "not signed" in outcome(folder, signed_by=public)
    (folder / NAME).mkdir()
    assert not us.verify(folder).passed


def test_another_key(folder, keys):
    assert "was not signed by" in outcome(folder, signed_by=keys[1][1])


def rewrite(folder, change):
    """Edit the manifest as a forger would, with a fresh digest."""
    manifest = json.loads((folder / "release.json").read_text())
    change(manifest)
    manifest["digest"] = bundle.digest(manifest)
    (folder / "release.json").write_bytes(bundle.manifest_bytes(manifest))
    return manifest


def test_a_folder_that_was_rewritten(folder, public, keys):
    """What no check of the folder sees: here, when it was made."""
    facts = json.loads(parts(folder)[0])["predicate"]
    manifest = rewrite(folder, lambda m: m.update(created="2020-01-01T00:00:00+00:00"))
    assert "not what the manifest says" in outcome(folder)
    (folder / NAME).unlink()
    assert us.verify(folder).passed
    again = statement(
        manifest, **facts["ledger"], time=facts["signed"], understudy=facts["understudy"]
    )
    (folder / NAME).write_bytes(envelope(again, private_key(keys[1][0], nothing)(pae(again))))
    assert us.verify(folder).passed
    assert "was not signed by" in outcome(folder, signed_by=public)
    assert outcome(folder, signed_by=keys[1][1]) is None


def test_a_changed_file(folder, public):
    (folder / "synthetic.parquet").write_bytes(b"private rows")
    assert not us.verify(folder, signed_by=public).passed


def edited(change):
    """Another statement, signed by the right key."""

    def edit(payload, made, key):
        said = json.loads(payload)
        change(said)
        return envelope(canonical(said), key(pae(canonical(said))))

    return edit


HEAD = "9" * 12 + ":" + "0" * 64
OTHERWISE = {
    "epsilon": lambda s: s["predicate"]["promise"].update(epsilon="0.5"),
    "unit": lambda s: s["predicate"]["promise"].update(unit="person"),
    "bound": lambda s: s["predicate"]["certificate"].update(bound=0.0),
    "digest": lambda s: s["subject"][0]["digest"].update(sha256="0" * 64),
    "two subjects": lambda s: s["subject"].append(s["subject"][0]),
    "type": lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"),
    "an extra field": lambda s: s["predicate"].update(more=1),
    "an earlier head": lambda s: s["predicate"]["ledger"].update(head="0:" + "0" * 64),
    "a head of no form": lambda s: s["predicate"]["ledger"].update(head=HEAD + "0"),
    "a head in other digits": lambda s: s["predicate"]["ledger"].update(head="٣" + HEAD[1:]),
    "a head that is a number": lambda s: s["predicate"]["ledger"].update(head=7),
    "a dataset that is a list": lambda s: s["predicate"]["ledger"].update(dataset=["t"]),
    "no ledger": lambda s: s["predicate"].pop("ledger"),
    "a version that is a number": lambda s: s["predicate"].update(understudy=1),
    "no such day": lambda s: s["predicate"].update(signed="2026-02-30T00:00:00+00:00"),
    "local time": lambda s: s["predicate"].update(signed="2026-02-03T00:00:00+01:00"),
    "no predicate": lambda s: s.update(predicate=[]),
}
FORMS = {
    "empty": lambda payload, made, key: b"",
    "not JSON": lambda payload, made, key: b"signed, the custodian\n",
    "not UTF-8": lambda payload, made, key: b"\xff" + envelope(payload, made),
    "a list": lambda payload, made, key: b"[]\n",
    "deep": lambda payload, made, key: b"[" * 60_000,
    "a deep payload": lambda payload, made, key: envelope(b"[" * 40_000, made),
    "too large": lambda payload, made, key: envelope(payload, made) + b" " * 70_000,
    "a space more": lambda payload, made, key: envelope(payload, made) + b" ",
    "a key twice": lambda payload, made, key: envelope(payload, made).replace(
        b"{", b'{"sig":1,', 1
    ),
    "short": lambda payload, made, key: envelope(payload, made[:-1]),
    "two signatures": lambda payload, made, key: envelope(payload, made).replace(
        b"}]", b'},{"sig":""}]'
    ),
    "no signatures": lambda payload, made, key: canonical(
        {"payload": "", "payloadType": "x", "signatures": []}
    ),
    "another type": lambda payload, made, key: envelope(payload, made).replace(b"in-toto", b"slsa"),
    "another form of the payload": lambda payload, made, key: envelope(
        json.dumps(json.loads(payload)).encode(), made
    ),
    "a lone surrogate": lambda payload, made, key: envelope(
        payload.replace(b'"dataset":null', b'"dataset":"\\ud800"'), made
    ),
    **{name: edited(change) for name, change in OTHERWISE.items()},
}


@pytest.mark.parametrize("name", some(FORMS, 3))
def test_other_forms_and_other_statements(folder, keys, name):
    """Both verifiers refuse them without a key, although the key is the right one."""
    payload, made = parts(folder)
    (folder / NAME).write_bytes(FORMS[name](payload, made, private_key(keys[0][0], nothing)))
    assert outcome(folder, signed_by=keys[0][1]) is not None


def test_a_flipped_bit_of_the_signature(folder, public):
    payload, made = parts(folder)
    for at in (0, 31, 32, 63):
        flipped = bytes(byte ^ (1 if place == at else 0) for place, byte in enumerate(made))
        (folder / NAME).write_bytes(envelope(payload, flipped))
        assert us.verify(folder).passed
        assert "was not signed by" in outcome(folder, signed_by=public)


def test_a_manifest_without_entries_is_told(folder, public):
    rewrite(folder, lambda m: m["ledger"].update(entries=[]))
    with pytest.raises(BundleError, match="entries"):
        us.verify(folder, signed_by=public)


# --- the account ---------------------------------------------------------------------------------


def test_a_forked_account_shows(schema, ledger, keys, tmp_path):
    def released(where, key):
        return us.release(
            people(500, key), schema, epsilon="0.2", delta="1e-9", method="independent",
            ledger=where, dataset="t",
        )  # fmt: skip

    first = released(ledger, 1).save(tmp_path / "first.release")
    fork = shutil.copy(ledger, tmp_path / "fork.db")
    released(ledger, 2).save(tmp_path / "second.release")
    released(fork, 3).save(tmp_path / "third.release")
    signer, public = private_key(keys[0][0], nothing), keys[0][1]
    sign(first, signer, ledger=ledger)
    with Ledger(ledger) as opened:
        said = json.loads(parts(first)[0])["predicate"]["ledger"]
        assert said == {"dataset": "t", "head": opened.head("t")}
    assert us.verify(first, ledger=ledger, signed_by=public).passed
    released(ledger, 4)
    assert us.verify(first, ledger=ledger, signed_by=public).passed
    assert us.verify(first, ledger=fork).passed
    (check,) = (c for c in us.verify(first, ledger=fork, signed_by=public).checks if not c.passed)
    assert check.name == "custodian's ledger"
    assert "does not contain the head" in check.detail


def test_a_dataset_of_another_name(schema, ledger, keys, tmp_path):
    made = us.release(
        people(500), schema, epsilon="0.2", delta="1e-9", method="independent", ledger=ledger,
        dataset="t",
    )  # fmt: skip
    folder = made.save(tmp_path / "r.release")
    manifest = bundle.read_manifest(folder)
    payload = statement(
        manifest, dataset="u", head=signature.release_head(manifest),
        time="2026-01-01T00:00:00+00:00", understudy="1",
    )  # fmt: skip
    made = private_key(keys[0][0], nothing)(pae(payload))
    (folder / NAME).write_bytes(envelope(payload, made))
    (check,) = (
        c for c in us.verify(folder, ledger=ledger, signed_by=keys[0][1]).checks if not c.passed
    )
    assert "dataset 'u'" in check.detail


# --- signing and keys ----------------------------------------------------------------------------


def test_what_is_not_signed(folder, keys, tmp_path):
    signer = private_key(keys[0][0], nothing)
    with pytest.raises(InputError, match="signed already"):
        sign(folder, signer)
    (folder / NAME).unlink()
    with pytest.raises(InputError, match="--ledger"):
        sign(folder, signer, dataset="t")
    (folder / "model.json").write_bytes(b"{}")
    with pytest.raises(VerificationError, match=r"model\.json was changed"):
        sign(folder, signer)
    assert not (folder / NAME).exists()


def test_new_keys_are_private_and_never_overwritten(tmp_path):
    private, public = new_keys(str(tmp_path / "custodian.pem"))
    assert (private.name, public.name) == ("custodian.pem", "custodian.pub")
    assert private.stat().st_mode & 0o777 == 0o600
    before = private.read_bytes()
    with pytest.raises(InputError, match="never overwritten"):
        new_keys(str(tmp_path / "custodian"))
    private.unlink()
    private.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="never overwritten"):
        new_keys(str(tmp_path / "custodian"))
    assert not (tmp_path / "elsewhere").exists()
    assert new_keys(str(tmp_path / "other"))[0].read_bytes() != before
    with pytest.raises(InputError, match="empty"):
        new_keys(str(tmp_path / "third"), "")
    with pytest.raises(WorkError, match="could not be written"):
        new_keys(str(tmp_path / "no folder" / "k"))


def test_keys_that_cannot_be_used(keys, tmp_path):
    locked = new_keys(str(tmp_path / "locked"), "tide")[0]
    secret = keys[0][0].read_text()
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(secret.encode().replace(b"MC4", b"MC5"))
    large = tmp_path / "large"
    large.write_bytes(b" " * 70_000)
    cases = [
        (lambda: private_key(locked, lambda: "ebb"), "with that passphrase"),
        (lambda: private_key(locked, lambda: None), "is encrypted"),
        (lambda: private_key(rubbish, nothing), "not a private key in PEM"),
        (lambda: private_key(keys[0][1], nothing), "not a private key in PEM"),
        (lambda: private_key(b"", nothing), "the key is not a private key"),
        (lambda: private_key(tmp_path, nothing), "cannot be read"),
        (lambda: private_key(large, nothing), "too large"),
        (lambda: private_key(secret, nothing), "private key itself"),
        (lambda: private_key(secret.splitlines()[1], nothing), "private key itself"),
        (lambda: signature.public_key(keys[0][0]), "is a private key"),
        (lambda: signature.public_key(rubbish), "is a private key"),
        (lambda: signature.public_key(large), "too large"),
        (lambda: signature.public_key("a\0b"), "cannot be read"),
        (lambda: us.verify(tmp_path, signed_by=tmp_path / "none.pub"), "No such file"),
    ]
    for use, message in cases:
        with pytest.raises(InputError, match=message) as caught:
            use()
        assert secret.splitlines()[1][8:] not in str(caught.value)


@needs_openssl
def test_keys_of_other_kinds(tmp_path):
    made = openssl("genpkey", "-algorithm", "X25519").stdout
    (tmp_path / "x.pub").write_bytes(openssl("pkey", "-pubout", input=made).stdout)
    with pytest.raises(InputError, match="another kind"):
        private_key(made, nothing)
    with pytest.raises(InputError, match="another kind"):
        signature.public_key(tmp_path / "x.pub")


@pytest.mark.parametrize(
    ("command", "error", "message"),
    [
        ("", InputError, "empty"),
        ("sign 'it", InputError, "quote"),
        ("no-such-program --pin 1234", InputError, "'no-such-program' cannot be run"),
        ("sh -c 'exit 3'", WorkError, "exit code 3"),
        ("sh -c 'cat >/dev/null; echo c2lnbmVk'", WorkError, "no signature"),
        ("sh -c 'cat >/dev/null; echo ???'", WorkError, "no signature"),
    ],
)
def test_signers_that_fail(command, error, message):
    with pytest.raises(error, match=message) as caught:
        external(command)(b"bytes")
    assert "1234" not in str(caught.value)


def test_a_signer_may_write_raw_bytes(tmp_path):
    key = Ed25519PrivateKey.generate()
    (tmp_path / "raw").write_bytes(key.sign(b"bytes"))
    assert external(f"sh -c 'cat > /dev/null; cat {tmp_path}/raw'")(b"bytes") == key.sign(b"bytes")
