"""A custodian's word for a release: an Ed25519 signature in a DSSE envelope.

No folder can prove that noise of the stated scale was drawn, or that its rows are not private ones.
For that a reader relies on a custodian, and a signature says which one: whoever holds the private
key stated, of this manifest and so of every file that it lists, the promise, the bound and a head of
the account. `signature.dsse.json` holds an in-toto Statement v1 and Ed25519 (RFC 8032) over its DSSE
encoding; docs/bundle.md gives the form. Messages never hold bytes of a private key.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy import files
from understudy._version import __version__
from understudy.errors import InputError, VerificationError, WorkError
from understudy.privacy.chain import canonical
from understudy.privacy.ledger import Ledger
from understudy.privacy.stores import Place, place
from understudy.releases.bundle import SIGNATURE, read_manifest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MOST_BYTES = 1 << 16
"""Of an envelope or a key: both are far smaller."""

_HEAD = re.compile(r"(0|[1-9][0-9]{0,15}):[0-9a-f]{64}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00")
_SECRET = re.compile(r"PRIVATE KEY|MC4CAQ")  # a PEM header, or how the text of an open key begins

Signer = Callable[[bytes], bytes]
"""From the bytes to sign to the 64 bytes of the signature."""


def pae(body: bytes) -> bytes:
    """DSSE's encoding: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body, lengths of bytes."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)


def statement(
    manifest: Mapping[str, Any], *, dataset: str | None, head: str, time: str, understudy: str
) -> bytes:
    """What is signed of a manifest, as canonical JSON."""
    promise, certificate = manifest["promise"], manifest["certificate"]
    return canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "understudy release", "digest": {"sha256": manifest["digest"]}}],
            "predicateType": "urn:understudy:release:v1",
            "predicate": {
                "promise": {key: promise[key] for key in ("epsilon", "delta", "unit", "relation")},
                "certificate": {key: certificate[key] for key in ("bound", "beta")},
                "ledger": {"dataset": dataset, "head": head},
                "understudy": understudy,
                "signed": time,
            },
        }
    )


def envelope(payload: bytes, signature: bytes) -> bytes:
    """The one byte form of `signature.dsse.json`."""
    facts = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"sig": base64.b64encode(signature).decode()}],
    }
    return canonical(facts) + b"\n"


def release_head(manifest: Mapping[str, Any]) -> str:
    """`seq:hash` of the release's last entry."""
    last = manifest["ledger"]["entries"][-1]
    return f"{last['seq']}:{last['hash']}"


@dataclass(frozen=True, slots=True)
class Signed:
    """An envelope whose statement agrees with the manifest; `PublicKey.made` asks whose it is."""

    payload: bytes
    signature: bytes
    dataset: str | None
    head: str
    time: str


def read(folder: Path, manifest: Mapping[str, Any]) -> Signed:
    """The envelope in a folder; `VerificationError` unless its form and its statement are right."""
    file = folder / SIGNATURE
    if not file.is_file():
        raise VerificationError(f"there is no file {SIGNATURE}: the release is not signed")
    with open(file, "rb") as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise VerificationError(f"{SIGNATURE} has more than {MOST_BYTES:,} bytes")
    try:
        parsed = json.loads(data.decode())
        payload = base64.b64decode(parsed["payload"], validate=True)
        signature = base64.b64decode(parsed["signatures"][0]["sig"], validate=True)
        said = json.loads(payload.decode())["predicate"]
        dataset, head = said["ledger"]["dataset"], said["ledger"]["head"]
        time, version, own = said["signed"], said["understudy"], release_head(manifest)
        again = statement(manifest, dataset=dataset, head=head, time=time, understudy=version)
        right = datetime.fromisoformat(time) and _TIME.fullmatch(time) and _HEAD.fullmatch(head)
        right = right and isinstance(dataset, str | None) and isinstance(version, str)
        right = right and len(signature) == 64 and envelope(payload, signature) == data
        later = int(head.partition(":")[0]) > int(own.partition(":")[0])
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        right = False
    else:
        if right and (payload != again or not (later or head == own)):
            raise VerificationError("what was signed is not what the manifest says")
        if right:
            return Signed(payload, signature, dataset, head, time)
    raise VerificationError(f"{SIGNATURE} is not in the form that docs/bundle.md gives")


def sign(
    path: str | Path,
    signer: Signer,
    *,
    ledger: str | Place | None = None,
    dataset: str | None = None,
) -> str:
    """Write `signature.dsse.json` into a release that passes `verify`; the head that was signed.

    With the account (`ledger`), the name of its dataset and its head now are signed, so that a copy
    that went another way is found out; without it, the release's last entry is the head.
    """
    from understudy.releases.verify import verify  # which reads signatures

    folder = Path(path)
    if os.path.lexists(folder / SIGNATURE):
        raise InputError(f"{folder} is signed already; remove its {SIGNATURE} to sign it anew")
    if dataset is not None and ledger is None:
        raise InputError("--dataset is of a ledger; give --ledger FILE too")
    verification = verify(folder, ledger=ledger, dataset=dataset)
    verification.require()
    manifest = read_manifest(folder)
    if manifest["digest"] != verification.digest:
        raise VerificationError(f"{folder} was changed while it was verified")
    head = release_head(manifest)
    if ledger is not None:
        with Ledger(place(ledger)) as opened:
            dataset = dataset or opened.dataset_of(manifest["ledger"]["reservation"])
            head = opened.head(dataset)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    payload = statement(manifest, dataset=dataset, head=head, time=time, understudy=__version__)
    made = signer(pae(payload))
    write_new(folder / SIGNATURE, envelope(payload, made), 0o644)
    return head


# --- keys --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A custodian's public key, with the name of its file."""

    name: str
    key: Ed25519PublicKey

    def made(self, signed: Signed) -> bool:
        """Whether the private half of this key made the signature."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(signed.signature, pae(signed.payload))
        except InvalidSignature:
            return False
        return True


def public_key(path: str | Path) -> PublicKey:
    """Read an Ed25519 public key: PEM, as `new_keys` and `openssl pkey -pubout` write it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _key_bytes(path)
    if b"PRIVATE KEY" in data:
        raise InputError(f"{path} is a private key, which nobody else may have; give the .pub")
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(f"{path} is not a public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path} is a public key of another kind; Ed25519 is needed")
    return PublicKey(str(path), key)


def private_key(source: str | Path | bytes, passphrase: Callable[[], str | None]) -> Signer:
    """Sign with an Ed25519 private key: PKCS#8 in PEM, in a file or as bytes.

    `passphrase` is asked for only if the key is encrypted.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    name = "the key" if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else _key_bytes(source)
    words: str | None = None
    try:
        try:
            key = load_pem_private_key(data, None)
        except TypeError:  # it is encrypted
            words = passphrase()
            key = load_pem_private_key(data, words.encode()) if words else None
    except (ValueError, UnsupportedAlgorithm):
        wrong = "cannot be read with that passphrase" if words else "is not a private key in PEM"
        raise InputError(f"{name} {wrong}") from None
    if key is None:
        raise InputError(f"{name} is encrypted, and no passphrase was given")
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{name} is a private key of another kind; Ed25519 is needed")
    return key.sign


def external(command: str) -> Signer:
    """Sign with a command: the bytes on stdin, 64 bytes, raw or in base64, from stdout.

    It is run without a shell. Messages name the program alone: its arguments may be secret.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        raise InputError("the signer is not a command; a quote is not closed") from None
    if not words:
        raise InputError("the signer is empty; give a command")

    def sign(data: bytes) -> bytes:
        try:
            done = subprocess.run(words, input=data, stdout=subprocess.PIPE, check=False)
        except (OSError, ValueError):
            raise InputError(f"the signer {words[0]!r} cannot be run") from None
        if done.returncode != 0:
            raise WorkError(f"the signer {words[0]!r} failed with exit code {done.returncode}")
        made = done.stdout
        if len(made) != 64:
            try:
                made = base64.b64decode(b"".join(made.split()), validate=True)
            except ValueError:
                made = b""
        if len(made) != 64:
            raise WorkError(f"the signer {words[0]!r} wrote no signature of 64 bytes")
        return made

    return sign


def new_keys(path: str, passphrase: str | None = None) -> tuple[Path, Path]:
    """Make `path`.pem (private, mode 0600, PKCS#8) and `path`.pub; neither is ever overwritten."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if passphrase == "":
        raise InputError("the passphrase is empty; give one, or none at all")
    stem = path.removesuffix(".pem")
    private, public = Path(f"{stem}.pem"), Path(f"{stem}.pub")
    for file in (private, public):
        if os.path.lexists(file):
            raise InputError(f"{file} exists already; a key is never overwritten: name another")
    key, lock = Ed25519PrivateKey.generate(), form.NoEncryption()
    if passphrase is not None:
        lock = form.BestAvailableEncryption(passphrase.encode())
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock)
    known = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    write_new(private, secret, 0o600)
    write_new(public, known, 0o644)
    return private, public


def write_new(file: Path, data: bytes, mode: int) -> None:
    """Write a file that is not there yet, whole or not at all."""
    try:
        files.write(file, data, new=True, mode=mode)
    except OSError as error:
        raise WorkError(f"{file} could not be written ({error.strerror})") from None


def _key_bytes(path: str | Path) -> bytes:
    if _SECRET.search(str(path)):
        raise InputError("this is a private key itself; give the name of a file that holds one")
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is no name"
        raise InputError(
            f"{path} cannot be read ({why}); give the file of a key, which `understudy keys new` makes"
        ) from None
    if len(data) > MOST_BYTES:
        raise InputError(f"{path} is too large for a key")
    return data
