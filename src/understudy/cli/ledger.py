"""`understudy ledger`: one total budget over every release of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from understudy import wording
from understudy.cli import options, shell, words
from understudy.cli.commands import command, quoted
from understudy.cli.options import argument, option
from understudy.errors import ChainBroken, InputError

if TYPE_CHECKING:
    from understudy.privacy.ledger import Account, Books, Dataset, Ledger
    from understudy.privacy.stores import Place

app = typer.Typer(
    help="Keep one total budget over every release of a dataset.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command("open")
@shell.guarded
def open_(
    name: options.LedgerName,
    dataset: Annotated[str, option("--dataset NAME", "A name for the private table.")],
    epsilon: Annotated[
        str,
        option("--epsilon E", "The total ε of all releases, now and later; it cannot be raised."),
    ],
    delta: Annotated[
        str, option("--delta D", "The total δ; ten releases at their default fit into 1e-8.")
    ] = "1e-8",
    neighbours: Annotated[
        options.Relations, option("--neighbours", "What two neighbouring tables differ in.")
    ] = "add-remove",
    rows_public: Annotated[
        int | None, option("--rows-public N", "The number of rows, if it is public.")
    ] = None,
    unit: Annotated[
        str | None,
        option(
            "--unit COLUMN",
            "The identifier column whose values the budget protects; by default one row. "
            "Releases need a schema with the same unit.",
        ),
    ] = None,
    composition: Annotated[
        Literal["basic", "zcdp"] | None,
        option(
            "--composition",
            "zcdp, the default where δ is above 0, adds up the ρ of the releases, so that more "
            "of them fit; basic adds up their ε and δ, and suits methods that draw from samples of "
            "the rows.",
        ),
    ] = None,
) -> None:
    """Declare a dataset and its total budget, once.

    A budget is never changed afterwards. Opening it again with the same facts does nothing.

    \b
    [bold]Example[/bold]
      understudy ledger open clinic.ledger --dataset patients --epsilon 3 --unit patient_id
      understudy release patients.csv … --ledger clinic.ledger --dataset patients
    """
    from understudy.privacy.budget import Budget
    from understudy.privacy.ledger import Dataset, Ledger
    from understudy.privacy.relation import Relation

    file = options.ledger(name)
    budget = Budget.of(epsilon, delta)
    facts = (dataset, budget, Relation(neighbours), composition, rows_public, unit)
    Dataset.of(*facts)  # what cannot be meant is refused before a file is made
    if rows_public is not None and budget.delta * rows_public >= 1:
        raise InputError(
            f"delta = {delta} must be below 1/n = {1 / rows_public:.3g} for the declared "
            f"n = {rows_public}; 1/n² = {1 / rows_public**2:.3g} or smaller is usual"
        )
    with Ledger(file) as ledger:
        known = dataset in ledger.datasets()
        opened = ledger.open_dataset(*facts)
    state = "was open already" if known else "is open"
    shell.say("dataset ", (dataset, "bold"), f" {state} in {file}")
    words.facts(_facts(opened))
    if unit is None:
        shell.note(
            "One row is protected, which cannot be changed. Where people have several rows, open "
            "another dataset with --unit COLUMN."
        )
    named = f"--ledger {quoted(str(file))} --dataset {quoted(dataset)}"
    shell.say(f"\nNow add {named} to `understudy plan` and `understudy release`")


@app.command()
@shell.guarded
def show(
    name: options.LedgerName,
    dataset: Annotated[str | None, option("--dataset NAME", "One dataset; by default all.")] = None,
    expect_head: options.ExpectHead = None,
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
        if expect_head is not None:
            if len(names) != 1:
                raise InputError("--expect-head is of one dataset; name it with --dataset")
            ledger.require_head(names[0], expect_head)
        views = [_View.of(ledger, name) for name in names]
    if as_json:
        words.as_json([view.to_json() for view in views])
    elif not views:
        shell.say(f"{file} has no dataset yet")
    for at, view in enumerate([] if as_json else views):
        if at:
            shell.say()
        _show(file, view)
    if any(view.broken is not None for view in views):
        raise typer.Exit(shell.FAILED)


@app.command()
@shell.guarded
def head(
    name: options.LedgerName,
    dataset: Annotated[str, option("--dataset NAME", "The dataset in the ledger.")],
) -> None:
    """Print the head of a dataset's chain, SEQ:HASH, to keep elsewhere.

    A chain cannot show by itself that its newest entries are gone. Whoever has a head of it finds out
    with --expect-head of `release`, `ledger show` and `verify`.

    \b
    [bold]Example[/bold]
      understudy ledger head clinic.ledger --dataset patients
    """
    with _existing(name) as ledger:
        shell.say(ledger.head(dataset))


@app.command()
@shell.guarded
def backup(
    name: options.LedgerName,
    file: Annotated[Path, argument("FILE", "The new file to write.")],
) -> None:
    """Copy every entry of a ledger, a file or a server, into a new file.

    Every chain is checked on the way. The file is marked as a backup: it can be shown and compared,
    and nothing can be spent from it. If the ledger is lost, `ledger migrate FILE NEW` makes it one.

    \b
    [bold]Example[/bold]
      understudy ledger backup clinic.ledger clinic-2024-06-01.backup
    """
    with _existing(name) as ledger:
        names = ledger.backup(file)
        heads = [(each, ledger.head(each)) for each in names]
    shell.say(("backed up ", "bold"), f"{ledger.path} to {file}")
    words.facts(heads)


@app.command()
@shell.guarded
def settle(
    name: options.LedgerName,
    reservation: Annotated[
        str, argument("RELEASE", "The release, as `understudy ledger show` names it.")
    ],
) -> None:
    """Close a release that crashed, and free what it did not draw.

    Always safe: if it still runs, its further draws are refused. An account that adds up ε and δ
    (basic) gets back nothing once a draw was made.

    \b
    [bold]Example[/bold]
      understudy ledger settle clinic.ledger 3f0c2a9d51b7e846
    """
    from understudy.releases.outline import gone

    with _existing(name) as ledger:
        name = ledger.dataset_of(reservation)
        release = ledger.books(name).made(reservation)
        if release.outcome is not None:
            shell.say(f"release {reservation} was {release.outcome} already; nothing changes")
            return
        facts, before = ledger.dataset(name), ledger.spent(name)
        ledger.settle(reservation, dataset=name)
        after = ledger.spent(name)
    freed = gone(before, facts) - gone(after, facts)
    shell.say(("settled ", "bold"), f"release {reservation} of dataset {name!r}")
    words.facts(
        [
            (
                "freed",
                f"{wording.percent(freed)} of the budget"
                if freed
                else "nothing: it had drawn already",
            ),
            ("left", _left(after, facts)),
        ]
    )


@app.command()
@shell.guarded
def migrate(
    old: Annotated[str, argument("FROM", "The ledger to leave.")],
    new: Annotated[
        str, argument("TO", "The ledger to go on with: a file, or postgresql://USER@HOST/DATABASE.")
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
    if not moved:
        shell.say(f"{source} has no dataset left to move")
        return
    shell.say(("moved ", "bold"), f"from {source} to {target}")
    words.facts([(name, words.entries(count)) for name, count in known.items()])
    shell.say(f"From now on give --ledger {quoted(str(target))}")


def _existing(where: str | Place) -> Ledger:
    from understudy.privacy.ledger import Ledger

    where = options.ledger(where)
    named = quoted(str(where))
    remedy = f"make one with `understudy ledger open {named} --dataset NAME --epsilon E`"
    return Ledger(options.existing_ledger(where, remedy))


# What the entries say


@dataclass(frozen=True)
class _View:
    """A dataset as its entries tell it; without books where the chain does not hold."""

    name: str
    books: Books | None
    broken: str | None
    releases: list[dict[str, Any]]
    more: int | None
    """How many releases like the last one still fit."""

    @classmethod
    def of(cls, ledger: Ledger, name: str) -> _View:
        from understudy.releases.outline import history, more_like_last

        try:
            ledger.dataset(name)
            books = ledger.books(name)
            return cls(name, books, None, history(ledger, name), more_like_last(books))
        except ChainBroken as error:
            return cls(name, None, str(error), [], None)

    def to_json(self) -> dict[str, Any]:
        chain = {"holds": self.broken is None, "problem": self.broken}
        if self.books is None:
            return {"dataset": self.name, "chain": chain}
        account = self.books.spent()
        return {
            **self.books.facts.to_json(),
            "spent": _pair(account.epsilon, account.delta),
            "left": _pair(account.remaining_epsilon, account.remaining_delta),
            "entries": len(self.books.hashes),
            "head": self.books.head,
            "chain": chain,
            "releases": self.releases,
            "more_like_last": self.more,
            "moved_to": None if self.books.moved is None else self.books.moved["to"],
        }


def _pair(epsilon: Any, delta: Any) -> dict[str, float]:
    return {"epsilon": float(epsilon), "delta": float(delta)}


def _amount(epsilon: Any, delta: Any) -> str:
    return f"ε = {wording.number(epsilon)}, δ = {wording.small(float(delta))}"


def _left(account: Account, dataset: Dataset) -> str:
    """What is left of a budget: a share of what adds up, and ε and δ where these do."""
    from understudy.releases.outline import gone

    share = wording.percent(1 - gone(account, dataset))
    if dataset.composition == "zcdp":
        return share + wording.COUNTED["zcdp"]
    return f"{share}: {_amount(account.remaining_epsilon, account.remaining_delta)}"


def _facts(dataset: Dataset) -> list[tuple[str, str | Text]]:
    return [
        ("budget", _amount(dataset.budget.epsilon, dataset.budget.delta)),
        ("neighbours", dataset.neighbours),
        ("unit", dataset.unit or "row"),
        ("composition", f"{dataset.composition}: {wording.ADDS_UP[dataset.composition]}"),
    ]


def _show(file: Place, view: _View) -> None:
    shell.say("dataset ", (view.name, "bold"))
    books = view.books
    if books is None:
        shell.say(("✗ ", "bold red"), view.broken or "")
        return
    from understudy.releases.outline import gone, room_in_words

    dataset, account = books.facts, books.spent()
    share = 1 - gone(account, dataset)
    lines: list[tuple[str, str | Text]] = [
        *_facts(dataset),
        ("spent", f"{_amount(account.epsilon, account.delta)}, all releases together"),
        ("left", words.bar(share) + Text(f"  {_left(account, dataset)}")),
    ]
    if view.more is not None:
        last = view.releases[-1]
        asked = (
            f"the last release (ε = {last['epsilon']}, δ = {wording.small(float(last['delta']))})"
        )
        lines.append(("room for", room_in_words(books, books.made(last["release"]), asked)))
    words.facts([*lines, ("head", books.head)])
    if view.releases:
        columns = ("release", "begun", "state", "ε asked", "δ", "method", "draws", "bundle")
        listed = words.table(*columns, right=("ε asked", "δ", "draws"))
        for made in view.releases:
            colour = {"open": "yellow", "finished": "green"}.get(made["state"], "dim")
            listed.add_row(
                made["release"],
                made["time"].replace("T", " ").removesuffix("+00:00"),
                Text(made["state"], style=colour),
                made["epsilon"],
                wording.small(float(made["delta"])),
                made["method"] or "–",
                f"{len(made['charges'])} of {made['planned']}",
                f"{made['bundle'][:12]}…" if made["bundle"] else "–",
            )
        shell.out().print(listed)
    else:
        shell.say("  no release yet")
    if books.moved is not None:
        shell.say(f"  moved to {books.moved['to']}; nothing can be charged here")
    entries = len(books.hashes)
    shell.say(("✓ ", "green"), words.entries(entries))
    crashed = [made["release"] for made in view.releases if made["state"] == "open"]
    if crashed:
        shell.say(
            "An open release holds its budget. If it crashed, close it with\n"
            + "\n".join(f"  {command('ledger', 'settle', file, release)}" for release in crashed)
        )
