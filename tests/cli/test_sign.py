"""`keys new`, `sign` and `verify --signed-by`, as a custodian and a reader use them."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.cli_cases import Case, run

NAME = "signature.dsse.json"


@pytest.fixture
def release(survey: Path, tmp_path: Path) -> Path:
    return shutil.copytree(survey / "survey.release", tmp_path / "survey.release")


@pytest.fixture(autouse=True)
def no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNDERSTUDY_KEY_PASSPHRASE", raising=False)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    made = run("keys", "new", tmp_path / "custodian")
    assert made.code == 0, made.err
    assert "custodian.pem (private, not encrypted)" in made.out
    return tmp_path / "custodian.pem"


def test_from_a_key_to_a_reader(release: Path, key: Path):
    public = key.with_suffix(".pub")
    unsigned = run("verify", release, "--signed-by", public)
    assert unsigned.code == 1
    assert "the release is not signed" in unsigned.out
    assert "--signed-by KEY.pub" in run("verify", release).err
    done = run("sign", release, "--key", key)
    assert done.code == 0, done.err
    assert "custodian.pub" in done.out
    read = run("verify", release, "--signed-by", public)
    assert read.code == 0, read.out
    assert f"signed by {public}" in read.out
    assert "only the custodian can say" not in read.err
    told = run("verify", release)
    assert told.code == 0
    assert "signed; not checked: give --signed-by" in told.out
    assert run("sign", release, "--key", key).code == 2
    for command in ("report", "sample"):
        out = ("--rows", 5, "--out", release.parent / "rows.csv") if command == "sample" else ()
        assert run(command, release, *out).code == 0
    assert run("verify", release, "--signed-by", public, "--json").code == 0


def test_any_one_of_several_keys(release: Path, key: Path, tmp_path: Path):
    assert run("keys", "new", tmp_path / "other").code == 0
    assert run("sign", release, "--key", key).code == 0
    other, public = tmp_path / "other.pub", key.with_suffix(".pub")
    refused = run("verify", release, "--signed-by", other)
    assert refused.code == 1
    assert f"not signed by {other}" in refused.out
    assert run("verify", release, "--signed-by", other, "--signed-by", public).code == 0
    (release / "schema.toml").write_text("changed")
    assert run("verify", release, "--signed-by", public).code == 1


def test_the_account_is_signed(case: Case, key: Path):
    made = run("release", case.data, "--schema", case.schema, "--epsilon", 1, "--out", case.out,
               "--method", "independent", "--ledger", case.ledger, "--dataset", "t")  # fmt: skip
    assert made.code == 0, made.err
    old = shutil.copy(case.ledger, case.folder / "old.ledger")
    again = run("release", case.data, "--schema", case.schema, "--epsilon", 1, "--method",
                "independent", "--out", case.folder / "b.release", "--ledger", case.ledger,
                "--dataset", "t")  # fmt: skip
    assert again.code == 0, again.err
    signed = run("sign", case.out, "--key", key, "--ledger", case.ledger, "--dataset", "t")
    assert signed.code == 0, signed.err
    assert run("ledger", "head", case.ledger, "--dataset", "t").out.strip() in signed.out
    check = ("verify", case.out, "--signed-by", key.with_suffix(".pub"), "--ledger")
    assert run(*check, case.ledger).code == 0
    refused = run(*check, old)
    assert refused.code == 1
    assert "does not contain the head" in refused.out
    assert run("sign", case.out, "--key", key, "--ledger", case.folder / "none").code == 2


def test_a_key_in_the_environment(release: Path, key: Path, monkeypatch: pytest.MonkeyPatch):
    secret = key.read_text()
    mistaken = run("sign", release, "--key-env", secret)
    assert mistaken.code == 2
    assert secret.splitlines()[1] not in mistaken.out + mistaken.err
    monkeypatch.setenv("CUSTODIAN_KEY", secret.replace("\n", "\\n"))  # as some services keep it
    assert run("sign", release, "--key-env", "CUSTODIAN_KEY").code == 0
    assert run("verify", release, "--signed-by", key.with_suffix(".pub")).code == 0


def test_a_command_signs(release: Path, key: Path, tmp_path: Path):
    script = tmp_path / "kms.py"
    script.write_text(
        "import sys\n"
        "from cryptography.hazmat.primitives.serialization import load_pem_private_key\n"
        f"key = load_pem_private_key(open({str(key)!r}, 'rb').read(), None)\n"
        "sys.stdout.buffer.write(key.sign(sys.stdin.buffer.read()))\n"
    )
    assert run("sign", release, "--signer", f"{sys.executable} {script} --pin 1234").code == 0
    assert run("verify", release, "--signed-by", key.with_suffix(".pub")).code == 0
    (release / NAME).unlink()
    script.write_text("raise SystemExit(7)")
    failed = run("sign", release, "--signer", f"{sys.executable} {script} --pin 1234")
    assert failed.code == 1
    assert "exit code 7" in failed.err
    assert "1234" not in failed.err
    assert not (release / NAME).exists()


def test_a_passphrase(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "UNDERSTUDY_KEY_PASSPHRASE" in run("keys", "new", tmp_path / "k", "--passphrase").err
    assert not (tmp_path / "k.pem").exists()
    monkeypatch.setenv("UNDERSTUDY_KEY_PASSPHRASE", "tide")
    made = run("keys", "new", tmp_path / "k", "--passphrase")
    assert "private, encrypted" in made.out
    monkeypatch.setenv("UNDERSTUDY_KEY_PASSPHRASE", "ebb")
    assert "with that passphrase" in run("sign", release, "--key", tmp_path / "k.pem").err
    monkeypatch.delenv("UNDERSTUDY_KEY_PASSPHRASE")
    assert run("sign", release, "--key", tmp_path / "k.pem").code == 2
    monkeypatch.setenv("UNDERSTUDY_KEY_PASSPHRASE", "tide")
    assert run("sign", release, "--key", tmp_path / "k.pem").code == 0


def test_wrong_use(release: Path, key: Path, tmp_path: Path):
    assert "give one of" in run("sign", release).err
    assert "give one of" in run("sign", release, "--key", key, "--signer", "x").err
    assert run("sign", release, "--key", tmp_path / "none.pem").code == 2
    assert run("sign", tmp_path, "--key", key).code == 2
    assert run("verify", release, "--signed-by", key).code == 2
    assert "never overwritten" in run("keys", "new", tmp_path / "custodian").err
    assert not (release / NAME).exists()


def test_a_damaged_signature_is_told_without_a_key(release: Path, key: Path):
    assert run("sign", release, "--key", key).code == 0
    facts = json.loads((release / NAME).read_text())
    (release / NAME).write_text(json.dumps(facts, indent=2))
    refused = run("verify", release)
    assert refused.code == 1
    assert "not in the form that docs/bundle.md gives" in refused.out
