"""`understudy ledger`: one total budget over every release of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from understudy.cli import options, shell, words
from understudy.errors import ChainBroken, InputError

if TYPE_CHECKING:
    from understudy.privacy.ledger import Account, Dataset, Ledger
    from understudy.privacy.stores import Place

__all__ = ["app"]

app = typer.Typer(
    help="Keep one total budget over every release of a dataset.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class Composition(StrEnum):
    """How releases add up."""

    BASIC = "basic"
    ZCDP = "zcdp"


@app.command("open")
@shell.guarded
def open_(
    name: options.LedgerName,
    dataset: Annotated[
        str, typer.Option("--dataset", metavar="NAME", help="A name for the private table.")
    ],
    epsilon: Annotated[
        str, typer.Option("--epsilon", metavar="E", help="The total ε of all releases, for ever.")
    ],
    delta: Annotated[
        str,
        typer.Option(
            "--delta", metavar="D", help="The total δ; ten releases at their default fit into 1e-8."
        ),
    ] = "1e-8",
    neighbours: Annotated[
        options.Relations,
        typer.Option("--neighbours", help="What two neighbouring tables differ in."),
    ] = options.Relations.ADD_REMOVE,
    rows_public: Annotated[
        int | None,
        typer.Option("--rows-public", metavar="N", help="The number of rows, if it is public."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="COLUMN",
            help="The identifier column whose values the budget protects; by default one row. "
            "Releases need a schema with the same unit.",
        ),
    ] = None,
    composition: Annotated[
        Composition,
        typer.Option(
            "--composition",
            help="basic adds up ε and δ of the releases; zcdp adds up their ρ, which allows more "
            "releases for the same total.",
        ),
    ] = Composition.BASIC,
) -> None:
    """Declare a dataset and its total budget, once.

    A budget is never changed afterwards. Opening it again with the same facts does nothing.

    \b
    [bold]Example[/bold]
      understudy ledger open clinic.ledger --dataset patients --epsilon 3
      understudy release patients.csv … --ledger clinic.ledger --dataset patients
    """
    from understudy.privacy.budget import Budget
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.relation import Relation

    file = options.ledger(name)
    budget = Budget.of(epsilon, delta)
    if rows_public is not None and rows_public < 1:
        raise InputError(f"rows_public = {rows_public} must be at least 1")
    if rows_public is not None and budget.delta * rows_public >= 1:
        raise InputError(
            f"delta = {delta} must be below 1/n = {1 / rows_public:.3g} for the declared "
            f"n = {rows_public}; 1/n² = {1 / rows_public**2:.3g} or smaller is usual"
        )
    new = not (isinstance(file, Path) and file.exists())
    try:
        with Ledger(file) as ledger:
            known = dataset in ledger.datasets()
            opened = ledger.open_dataset(
                dataset, budget, Relation(neighbours), composition.value, rows_public, unit
            )
    except BaseException:
        if new and isinstance(file, Path):
            for made in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
                made.unlink(missing_ok=True)
        raise
    console = shell.out()
    state = "was open already" if known else "is open"
    console.print(Text.assemble("dataset ", (dataset, "bold"), f" {state} in {file}"))
    words.facts(console, _facts(opened))
    console.print()
    console.print(Text("Next", style="bold"))
    name = f"'{dataset}'" if " " in dataset else dataset
    console.print(
        f"  understudy release DATA --schema S.toml --epsilon E --out DIR --ledger {file} "
        f"--dataset {name}",
        soft_wrap=True,
    )


@app.command()
@shell.guarded
def show(
    name: options.LedgerName,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="One dataset; by default all.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what was spent, what is left, and by which releases; check the hash chain.

    Exits with 1 if an entry was changed, dropped or reordered.

    \b
    [bold]Example[/bold]
      understudy ledger show clinic.ledger
    """
    file = options.ledger(name)
    with _existing(file) as ledger:
        names = ledger.datasets() if dataset is None else [dataset]
        views = [_View.of(ledger, name) for name in names]
    console = shell.out()
    if as_json:
        words.as_json(console, [view.to_json() for view in views])
    elif not views:
        console.print(f"{file} has no dataset yet", soft_wrap=True)
    for at, view in enumerate([] if as_json else views):
        if at:
            console.print()
        _show(console, file, view)
    if any(view.broken is not None for view in views):
        raise typer.Exit(shell.FAILED)


@app.command()
@shell.guarded
def settle(
    name: options.LedgerName,
    reservation: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE", help="The release, as `understudy ledger show` names it."
        ),
    ],
) -> None:
    """Close a release that crashed, and free what it did not draw.

    Always safe: if it still runs, its further draws are refused.

    \b
    [bold]Example[/bold]
      understudy ledger settle clinic.ledger 3f0c2a9d51b7e846
    """
    with _existing(name) as ledger:
        name, state = _find(ledger, reservation)
        console = shell.out()
        if state != "open":
            console.print(f"release {reservation} was {state} already; nothing changes")
            return
        before = ledger.spent(name)
        ledger.settle(reservation)
        after = ledger.spent(name)
    freed = before.epsilon - after.epsilon
    console.print(Text.assemble(("settled ", "bold"), f"release {reservation} of dataset {name!r}"))
    words.facts(
        console,
        [
            ("freed", f"ε = {words.number(freed)}" if freed else "nothing: it had drawn already"),
            ("left", _amount(after.remaining_epsilon, after.remaining_delta)),
        ],
    )


@app.command()
@shell.guarded
def migrate(
    old: Annotated[str, typer.Argument(metavar="FROM", help="The ledger to leave.")],
    new: Annotated[
        str,
        typer.Argument(
            metavar="TO",
            help="The ledger to go on with: a file, or postgresql://USER@HOST/DATABASE.",
        ),
    ],
) -> None:
    """Move every dataset to another ledger, for instance from a file to a team's PostgreSQL.

    The chains go as they are, and go on there. Here they are closed first, so that no budget can be
    spent twice; releases that run are stopped at their next draw. If the move is interrupted, run it
    again. A password belongs into PGPASSWORD or ~/.pgpass, not on the command line.

    \b
    [bold]Example[/bold]
      understudy ledger migrate clinic.ledger postgresql://clinic@db.example.org/ledger
    """
    from understudy.privacy.ledger import Ledger

    source, target = options.ledger(old), options.ledger(new)
    with _existing(source) as left, Ledger(target) as taken:
        moved = left.move_to(taken)
        known = {name: len(taken.entries(name)) for name in moved}
    console = shell.out()
    if not moved:
        console.print(f"{source} has no dataset left to move", soft_wrap=True)
        return
    console.print(Text.assemble(("moved ", "bold"), f"from {source} to {target}"), soft_wrap=True)
    words.facts(console, [(name, f"{count} entries, which hold") for name, count in known.items()])
    console.print(f"From now on give --ledger {target}", soft_wrap=True)


def _existing(where: str | Place) -> Ledger:
    from understudy.privacy.ledger import Ledger

    where = options.ledger(where)
    remedy = f"make one with `understudy ledger open {where} --dataset NAME --epsilon E`"
    return Ledger(options.existing_ledger(where, remedy))


# What the entries say


def _find(ledger: Ledger, reservation: str) -> tuple[str, str]:
    from understudy.releases.outline import history

    for name in ledger.datasets():
        for made in history(ledger, name):
            if made["release"] == reservation:
                return name, made["state"]
    raise InputError(
        f"release {reservation!r} is not in ledger {ledger.path}; "
        f"`understudy ledger show {ledger.path}` lists them"
    )


@dataclass(frozen=True)
class _View:
    """A dataset as its entries tell it; `broken` says where the chain does not hold."""

    dataset: Dataset
    account: Account
    entries: int
    broken: str | None
    releases: list[dict[str, Any]]
    moved: str | None = None

    @classmethod
    def of(cls, ledger: Ledger, name: str) -> _View:
        from understudy.releases.outline import history

        broken = None
        try:
            ledger.verify(name)
        except ChainBroken as error:
            broken = str(error)
        entries = ledger.entries(name)
        last, account = entries[-1], ledger.spent(name)
        moved = str(last.body["to"]) if last.kind == "move" and last.body is not None else None
        made = history(ledger, name)
        return cls(ledger.dataset(name), account, len(entries), broken, made, moved)

    def to_json(self) -> dict[str, Any]:
        account = self.account
        return {
            **self.dataset.to_json(),
            "spent": _pair(account.epsilon, account.delta),
            "left": _pair(account.remaining_epsilon, account.remaining_delta),
            "entries": self.entries,
            "chain": {"holds": self.broken is None, "problem": self.broken},
            "releases": self.releases,
            "moved_to": self.moved,
        }


def _pair(epsilon: Any, delta: Any) -> dict[str, float]:
    return {"epsilon": float(epsilon), "delta": float(delta)}


def _amount(epsilon: Any, delta: Any) -> str:
    return f"ε = {words.number(epsilon)}, δ = {float(delta):g}"


def _facts(dataset: Dataset) -> list[tuple[str, str | Text]]:
    return [
        ("budget", _amount(dataset.budget.epsilon, dataset.budget.delta)),
        ("neighbours", dataset.neighbours),
        ("unit", dataset.unit or "row"),
        ("composition", dataset.composition),
    ]


def _show(console: shell.Console, file: Place, view: _View) -> None:
    dataset, account = view.dataset, view.account
    share = float(account.epsilon / dataset.budget.epsilon)
    console.print(Text.assemble("dataset ", (dataset.name, "bold")))
    words.facts(
        console,
        [
            *_facts(dataset),
            ("spent", words.bar(share) + Text(f"  ε = {words.number(account.epsilon)} of "
                                             f"{words.number(dataset.budget.epsilon)}")),
            ("left", _amount(account.remaining_epsilon, account.remaining_delta)),
        ],
    )  # fmt: skip
    if view.releases:
        listed = words.table(
            "release", "begun", "state", "ε", "δ", "method", "draws", "bundle",
            right=("ε", "δ", "draws"),
        )  # fmt: skip
        for made in view.releases:
            colour = {"open": "yellow", "finished": "green"}.get(made["state"], "dim")
            listed.add_row(
                made["release"],
                made["time"].replace("T", " ").removesuffix("+00:00"),
                Text(made["state"], style=colour),
                made["epsilon"],
                f"{float(made['delta']):g}",
                made["method"] or "–",
                f"{len(made['charges'])} of {made['planned']}",
                f"{made['bundle'][:12]}…" if made["bundle"] else "–",
            )
        console.print(listed)
    else:
        console.print("  no release yet")
    if view.moved is not None:
        console.print(f"  moved to {view.moved}; nothing can be charged here", soft_wrap=True)
    if view.broken is None:
        console.print(Text.assemble(("✓ ", "green"), f"{view.entries} entries hold together"))
    else:
        console.print(Text.assemble(("✗ ", "bold red"), view.broken), soft_wrap=True)
    crashed = [made["release"] for made in view.releases if made["state"] == "open"]
    if crashed:
        console.print(
            "An open release holds its budget. If it crashed, close it with\n"
            + "\n".join(f"  understudy ledger settle {file} {release}" for release in crashed),
            soft_wrap=True,
        )
