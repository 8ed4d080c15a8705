"""Sign a release: only one that passes every check, and only once."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from understudy._version import __version__
from understudy.errors import InputError, VerificationError
from understudy.privacy.ledger import Ledger
from understudy.privacy.stores import Place, place
from understudy.releases import signature
from understudy.releases.bundle import SIGNATURE, read_manifest
from understudy.releases.verify import verify

__all__ = ["sign"]


def sign(
    path: str | Path,
    signer: signature.Signer,
    *,
    ledger: str | Place | None = None,
    dataset: str | None = None,
) -> str:
    """Write `signature.dsse.json` into a release that passes `verify`; the head that was signed.

    With the account (`ledger`), the name of its dataset and its head now are signed, so that a copy
    that went another way is found out; without it, the release's last entry is the head.
    """
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
    head = signature.release_head(manifest)
    if ledger is not None:
        with Ledger(place(ledger)) as opened:
            dataset = dataset or opened.dataset_of(manifest["ledger"]["reservation"])
            head = opened.head(dataset)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    payload = signature.statement(
        manifest, dataset=dataset, head=head, time=time, understudy=__version__
    )
    made = signer(signature.pae(payload))
    signature.write_new(folder / SIGNATURE, signature.envelope(payload, made), 0o644)
    return head
