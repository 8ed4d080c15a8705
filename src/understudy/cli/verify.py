"""`understudy verify`: a stranger's check of a release."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options, shell
from understudy.cli.options import option
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.privacy.stores import Place


@shell.guarded
def verify(
    folder: options.Folder,
    digest: Annotated[
        str | None, option("--digest HEX", "The digest that the custodian published, 64 digits.")
    ] = None,
    ledger: Annotated[
        str | None,
        option(
            "--ledger LEDGER",
            "Compare with the custodian's ledger: a file, or postgresql://USER@HOST/DATABASE.",
        ),
    ] = None,
    dataset: Annotated[str | None, option("--dataset NAME", "The dataset in that ledger.")] = None,
    expect_head: options.ExpectHead = None,
    signed_by: Annotated[
        list[Path] | None,
        option(
            "--signed-by KEY.pub",
            "A custodian's public key: refuse the release unless this key signed it. With "
            "several, any one of them. With --ledger, the account must contain the signed head.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Recompute everything that a release states, offline.

    Hashes, the ledger's chain, (ε, δ) from the charges, the certificate from its measurement, and
    whether every row is legal under the schema. Exits with 1 if anything does not hold.

    \b
    [bold]Example[/bold]
      understudy verify patients.release --digest 1f3a…
      understudy verify patients.release --signed-by custodian.pub
    """
    if digest is not None:
        digest = digest.strip().lower().removeprefix("sha256:")
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise InputError(f"digest = {digest!r} must have 64 hexadecimal digits")
    for name, given in (("--dataset", dataset), ("--expect-head", expect_head)):
        if given is not None and ledger is None:
            raise InputError(f"{name} is of a ledger; give --ledger FILE too")
    where = None
    if ledger is not None:
        where = options.existing_ledger(ledger, "give the custodian's ledger file")
    if not show(folder, digest, where, dataset, expect_head, signed_by or (), as_json=as_json):
        raise typer.Exit(shell.FAILED)


def show(
    folder: Path,
    digest: str | None = None,
    ledger: Place | None = None,
    dataset: str | None = None,
    expect_head: str | None = None,
    signed_by: Sequence[Path] = (),
    *,
    as_json: bool = False,
) -> bool:
    """Verify and print the checks; whether all of them passed."""
    shell.one_thread()
    from understudy.releases.verify import to_json
    from understudy.releases.verify import verify as work

    result = work(
        folder,
        expected_digest=digest,
        ledger=ledger,
        dataset=dataset,
        expect_head=expect_head,
        signed_by=signed_by,
    )
    if as_json:
        shell.say(to_json(result))
        return result.passed
    width = max(len(check.name) for check in result.checks)
    for check in result.checks:
        mark = ("✓ ", "green") if check.passed else ("✗ ", "bold red")
        shell.say(mark, (f"{check.name:<{width}}  ", "bold"), check.detail)
    shell.say()
    if not result.passed:
        shell.say((f"{folder}: a check failed. Do not rely on this release.", "bold red"))
        return False
    shell.say((f"{folder}: all checks passed.", "bold green"))
    if digest is None and ledger is None and not signed_by:
        shell.note(
            "Whether this is the release that the custodian published, only the custodian can say: "
            "compare the digest with --digest HEX or --ledger FILE, or ask for a signature with "
            "--signed-by KEY.pub."
        )
    return True
