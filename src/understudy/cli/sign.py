"""`understudy keys new` and `understudy sign`: a custodian's word for a release."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import options, shell, words
from understudy.cli.commands import command
from understudy.cli.options import argument, flag, option
from understudy.errors import InputError

PASSPHRASE = "UNDERSTUDY_KEY_PASSPHRASE"
_BY = "The key (one of these)"

keys = typer.Typer(help="Make keys to sign releases with.", no_args_is_help=True)


@keys.callback()
def _keys() -> None:
    """Make keys to sign releases with."""


def _passphrase(*, confirm: bool = False) -> str:
    passphrase = os.environ.get(PASSPHRASE)
    if passphrase is None and not sys.stdin.isatty():
        raise InputError(f"a passphrase is needed; set {PASSPHRASE}, or use a terminal")
    if passphrase is None:
        passphrase = typer.prompt(
            "Passphrase", hide_input=True, confirmation_prompt=confirm, err=True
        )
    return passphrase


@keys.command()
@shell.guarded
def new(
    name: Annotated[str, argument("NAME", "Writes NAME.pem (private) and NAME.pub (public).")],
    lock: Annotated[
        bool, flag("--passphrase", f"Encrypt NAME.pem; asks, or reads {PASSPHRASE}.")
    ] = False,
) -> None:
    """Make an Ed25519 key pair, in PEM, as openssl reads it.

    Keep NAME.pem to yourself. Give NAME.pub to your readers, by another channel than your releases.

    \b
    [bold]Example[/bold]
      understudy keys new custodian
      understudy sign patients.release --key custodian.pem
    """
    from understudy.releases.signature import new_keys

    private, public = new_keys(name, _passphrase(confirm=True) if lock else None)
    state = "encrypted" if lock else "not encrypted"
    shell.say(f"Wrote {private} (private, {state}) and {public} (for your readers).")


@shell.guarded
def sign(
    folder: options.Folder,
    key: Annotated[Path | None, option("--key KEY.pem", "An Ed25519 private key.", _BY)] = None,
    key_env: Annotated[
        str | None,
        option(
            "--key-env NAME",
            "The name of an environment variable that holds the private key, in PEM.",
            _BY,
        ),
    ] = None,
    signer: Annotated[
        str | None,
        option(
            "--signer COMMAND",
            "A command, for a KMS or a smart card: it gets the bytes to sign on stdin and writes "
            "the 64 bytes of the Ed25519 signature, raw or in base64, on stdout.",
            _BY,
        ),
    ] = None,
    ledger: Annotated[
        str | None, option("--ledger LEDGER", "The account, whose newest entry is signed too.")
    ] = None,
    dataset: Annotated[str | None, option("--dataset NAME", "The dataset in that ledger.")] = None,
) -> None:
    """Sign a release: a custodian's word for what no folder can prove.

    The release is verified first. signature.dsse.json in its folder then states its digest, ε, δ,
    unit, neighbours and bound, and a head of the account, which reveals a forked ledger.
    The passphrase of an encrypted key is asked for, or read from UNDERSTUDY_KEY_PASSPHRASE.

    \b
    [bold]Example[/bold]
      understudy sign patients.release --key custodian.pem
      understudy verify patients.release --signed-by custodian.pub
    """
    from understudy.releases.signature import external, private_key
    from understudy.releases.signature import sign as work

    if sum(given is not None for given in (key, key_env, signer)) != 1:
        raise InputError("give one of --key KEY.pem, --key-env NAME and --signer COMMAND")
    if signer is not None:
        by = external(signer)
    elif key is not None:
        by = private_key(key, _passphrase)
    else:
        text = os.environ.get(key_env or "")
        if not text:  # the name is not quoted: it may be a key, given by mistake
            raise InputError("--key-env: no environment variable has that name, or it is empty")
        by = private_key(text.replace("\\n", "\n").encode(), _passphrase)
    if ledger is not None:
        options.existing_ledger(ledger, "give the ledger of the release")
    head = work(folder, by, ledger=ledger, dataset=dataset)
    shell.say(f"Signed {folder}, with the account at {head}.")
    public = None if key is None else key.with_suffix(".pub")
    if public is not None and public.is_file():
        words.next_commands(command("verify", folder, "--signed-by", public))
    else:
        shell.note("Readers check it with `understudy verify` and --signed-by, your public key.")
