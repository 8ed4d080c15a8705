"""A small table with its schema and ledger, and a way to run commands in this process."""

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from bench.__main__ import main as bench

from understudy.cli import main
from understudy.privacy import Ledger

SMALL = """
[understudy]
version = 1

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 99
bins = 10

[[column]]
name = "sex"
type = "category"
values = ["F", "M"]

[[column]]
name = "income"
type = "number"
lower = 0
upper = 1000
bins = 5
nullable = true
"""


@dataclass(frozen=True)
class Result:
    """What a command left on the screen."""

    code: int
    out: str
    err: str


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        words = [str(argument) for argument in arguments]
        code = bench(words[1:]) if words[:1] == ["bench"] else main(words)
    assert "\x1b" not in out.getvalue() + err.getvalue(), "colours where nobody watches"
    assert "Traceback" not in err.getvalue()
    return Result(code, out.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Case:
    """A folder with a small table, its schema and an open ledger."""

    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "t.csv"

    @property
    def schema(self) -> Path:
        return self.folder / "t.schema.toml"

    @property
    def ledger(self) -> Path:
        return self.folder / "t.ledger"

    @property
    def out(self) -> Path:
        return self.folder / "t.release"

    def release(self, *more: object, epsilon: object = 1, method: str = "independent") -> Result:
        return run(
            "release", self.data, "--schema", self.schema, "--epsilon", epsilon,
            "--method", method, "--out", self.out,
            "--ledger", self.ledger, "--dataset", "t", *more,
        )  # fmt: skip

    def kinds(self) -> list[str | None]:
        """The entries of the ledger."""
        with Ledger(self.ledger) as ledger:
            ledger.verify("t")
            return [entry.kind for entry in ledger.entries("t")]

    def files(self) -> set[str]:
        """What lies in the folder, without SQLite's helpers."""
        return {
            path.name for path in self.folder.iterdir() if not path.name.endswith(("-wal", "-shm"))
        }


def small_rows(rows: int = 400) -> str:
    lines = [
        f"{(7 * i) % 100},{'FM'[i % 2]},{(13 * i) % 1000 if i % 9 else ''}" for i in range(rows)
    ]
    return "\n".join(["age,sex,income", *lines]) + "\n"
