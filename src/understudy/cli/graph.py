"""`understudy graph`: lists of edges, released with edge-level privacy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from understudy.cli import options, shell, words
from understudy.cli.release import about_report, make
from understudy.cli.sample import require_output, write_whole
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.releases import Release

__all__ = ["app"]

_ACCOUNT, _OUTPUT, _GRAPH = "Account", "Output", "Graph"

app = typer.Typer(
    help="Release a synthetic graph: one edge is protected, nodes are public.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command()
@shell.guarded
def release(
    edges: Annotated[
        str,
        typer.Argument(
            metavar="EDGES",
            help="The private edges: a CSV or Parquet file with the ends in two columns, or a bare "
            "list (.txt, .edges: two names a line).",
        ),
    ],
    nodes: Annotated[
        str,
        typer.Option(
            "--nodes", metavar="N|A..B|FILE",
            help="The public nodes: how many (0..N−1), a range, or a file with one a line and, where "
            "known, its block (department, year, region) after a comma or blanks.",
            rich_help_panel=_GRAPH,
        ),
    ],
    epsilon: options.Epsilon,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="The folder to write; it must not exist yet.",
            rich_help_panel=_OUTPUT,
        ),
    ],
    edge_list: Annotated[
        Path | None,
        typer.Option(
            "--edge-list", metavar="FILE", help="Also write the edges to X.csv or X.parquet.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    delta: options.Delta = "1e-9",
    unit: Annotated[
        str,
        typer.Option(
            "--unit", metavar="UNIT",
            help="Who is protected: edge. Nodes with all their edges cannot be.",
            rich_help_panel="Privacy",
        ),
    ] = "edge",
    ends: Annotated[
        str | None,
        typer.Option(
            "--ends", metavar="A,B", help="The two columns; by default the first two.",
            rich_help_panel=_GRAPH,
        ),
    ] = None,
    edges_public: Annotated[
        int | None,
        typer.Option(
            "--edges-public", metavar="N", min=1,
            help="The number of edges, if it may be known; for small graphs it helps much.",
            rich_help_panel="Privacy",
        ),
    ] = None,
    triangles: Annotated[
        bool,
        typer.Option(
            "--triangles",
            help="Measure the number of triangles as well, so that clustering follows; for graphs with "
            "many times as many triangles as nodes.",
            rich_help_panel=_GRAPH,
        ),
    ] = False,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="LEDGER", help="Charge this ledger; needs --dataset.",
            rich_help_panel=_ACCOUNT,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", metavar="NAME", help="The name of the dataset in the ledger.",
            rich_help_panel=_ACCOUNT,
        ),
    ] = None,
    key: Annotated[
        int | None,
        typer.Option(
            "--key", metavar="K", min=0, help="Makes the public randomness repeatable.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
) -> None:  # fmt: skip
    """Release a private stand-in for a graph.

    Guaranteed for one edge added or removed: it stays hidden whether two nodes are linked. The nodes
    and their blocks are public. Degrees, and the edges between blocks and between classes of degrees,
    are measured with noise; the graph is drawn at random with these, and clustering is what they bring
    along, unless --triangles has them counted too.

    \b
    [bold]Example[/bold]
      understudy graph release mails.csv --nodes departments.txt --epsilon 1 \\
                         --out mails.release --edge-list mails.synthetic.csv
    """
    from understudy.releases.bundle import require_absent
    from understudy.releases.graphs import edge_choices, require_edges
    from understudy.schema.nodes import Nodes
    from understudy.source.edges import edge_source

    require_edges(unit)
    require_absent(out)
    if edge_list is not None:
        require_output(edge_list)
    if (ledger is None) != (dataset is None):
        raise InputError("--ledger and --dataset go together: give both, or neither")
    known = Nodes.of(nodes)
    source = edge_source(edges, known, _ends(ends))
    choices = {
        "epsilon": epsilon, "delta": delta, "rows_public": edges_public, "rows": None, "key": key,
        "neighbours": "add-remove", **edge_choices(known, triangles),
    }  # fmt: skip
    account = None if ledger is None else options.ledger(ledger)
    made = make(source, known.schema, out, ledger=account, dataset=dataset, **choices)
    if edge_list is not None:
        write_whole(made.rows.select(["source", "target"]), edge_list)
    _show(made, edges, out, known.kinds)


@app.command()
@shell.guarded
def sample(
    folder: options.Folder,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The file to write, X.csv or X.parquet.")
    ],
    key: Annotated[
        int | None,
        typer.Option("--key", metavar="K", min=0, help="The same key gives the same graph."),
    ] = None,
) -> None:
    """Draw another graph with the degrees and blocks of a released one. Free.

    \b
    [bold]Example[/bold]
      understudy graph sample mails.release --out another.csv
    """
    from understudy.releases import Release
    from understudy.releases.graphs import sample_graph

    require_output(out)
    drawn = sample_graph(Release.load(folder), key=key)
    write_whole(drawn, out)
    shell.out().print(Text.assemble(("wrote ", "bold"), f"{drawn.num_rows:,} edges to {out}"))


def _ends(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    first, comma, second = text.partition(",")
    if not comma or not first.strip() or not second.strip():
        raise InputError(f"--ends {text!r} must name two columns, such as --ends from,to")
    return first.strip(), second.strip()


def _clustering(made: Release) -> str:
    from understudy.releases.outline import noise_in_rows

    for charge in made.plan:
        if charge.purpose == "triangles" and (noise := noise_in_rows(charge)) is not None:
            return f"its triangles were counted, ± {words.number(noise)}"
    return "not measured; it is what degrees and blocks bring along"


def _show(made: Release, edges: str, out: Path, kinds: tuple[str, ...]) -> None:
    console = shell.out()
    console.print(
        Text.assemble(("A stand-in for ", "bold"), edges, (" lies in ", "bold"), str(out))
    )
    blocks = f"{len(kinds)} blocks" if len(kinds) > 1 else "no blocks"
    words.facts(
        console,
        [
            ("graph", f"{made.rows.num_rows:,} edges, {made.schema.shape[0]:,} nodes, {blocks}"),
            ("promise", f"{made.promise}; one row is one edge"),
            ("certificate", str(made.certificate)),
            ("clustering", _clustering(made)),
            about_report(out),
        ],
    )
    console.print()
    console.print(Text("Next", style="bold"))
    for line in (f"understudy verify {out}", f"understudy graph sample {out} --out another.csv"):
        console.print(f"  {line}", soft_wrap=True)
