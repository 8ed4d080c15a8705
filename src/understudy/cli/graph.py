"""`understudy graph`: lists of edges, released with edge-level privacy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy import wording
from understudy.cli import options, shell, words
from understudy.cli.commands import command
from understudy.cli.options import argument, flag, option
from understudy.cli.release import Account, about_report, make
from understudy.cli.sample import require_output, write_whole
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.releases import Release

_GRAPH = "Graph"

app = typer.Typer(
    help="Release a synthetic graph: one edge is protected, nodes are public.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@dataclass(frozen=True)
class Measured:
    """What is known of the graph, and what is measured."""

    ends: Annotated[
        str | None, option("--ends A,B", "The two columns; by default the first two.", _GRAPH)
    ] = None
    edges_public: Annotated[
        int | None,
        option(
            "--edges-public N",
            "The number of edges, if it may be known; for small graphs it helps much.",
            options.PRIVACY,
            min=1,
        ),
    ] = None
    triangles: Annotated[
        bool,
        flag(
            "--triangles",
            "Measure the number of triangles as well, so that clustering follows; for graphs with "
            "many times as many triangles as nodes.",
            _GRAPH,
        ),
    ] = False


@app.command()
@shell.guarded
def release(
    edges: Annotated[
        str,
        argument(
            "EDGES",
            "The private edges: a CSV or Parquet file with the ends in two columns, or a bare "
            "list (.txt, .edges: two names a line).",
        ),
    ],
    nodes: Annotated[
        str,
        option(
            "--nodes N|A..B|FILE",
            "The public nodes: how many (0..N−1), a range, or a file with one a line and, where "
            "known, its block (department, year, region) after a comma or blanks.",
            _GRAPH,
        ),
    ],
    epsilon: options.Epsilon,
    out: options.NewFolder,
    *,
    edge_list: Annotated[
        Path | None,
        option("--edge-list FILE", "Also write the edges to X.csv or X.parquet.", options.OUTPUT),
    ] = None,
    delta: options.Delta = "1e-9",
    unit: Annotated[
        str,
        option(
            "--unit UNIT",
            "Who is protected: edge. Nodes with all their edges cannot be.",
            options.PRIVACY,
        ),
    ] = "edge",
    measured: Measured,
    account: Account,
    key: Annotated[
        int | None,
        option("--key K", "Makes the public randomness repeatable.", options.OUTPUT, min=0),
    ] = None,
) -> None:
    """Release a private synthetic version of a graph.

    Guaranteed for one edge added or removed: it stays hidden whether two nodes are linked. The nodes
    and their blocks are public. Degrees, and the edges between blocks and between classes of degrees,
    are measured with noise; the graph is drawn at random with these, and clustering is what they bring
    along, unless --triangles has them counted too.

    \b
    [bold]Example[/bold]
      understudy graph release mails.csv --nodes departments.txt --epsilon 1 \\
                         --out mails.release --edge-list mails.synthetic.csv
    """
    from understudy.releases import Options
    from understudy.releases.bundle import require_absent
    from understudy.releases.graphs import edge_choices, require_edges
    from understudy.schema.nodes import Nodes
    from understudy.source.edges import edge_source

    require_edges(unit)
    require_absent(out)
    if edge_list is not None:
        require_output(edge_list)
    known = Nodes.of(nodes)
    source = edge_source(edges, known, _ends(measured.ends))
    wanted = Options(
        epsilon=epsilon,
        delta=delta,
        rows_public=measured.edges_public,
        key=key,
        neighbours="add-remove",
        **edge_choices(known, measured.triangles),
        **options.account(account.ledger, account.dataset, account.expect_head),
    )
    released = make(source, known.schema, out, wanted)
    if edge_list is not None:
        write_whole(released.rows.select(["source", "target"]), edge_list)
    _show(released, edges, out, known.kinds)


@app.command()
@shell.guarded
def sample(
    folder: options.Folder,
    out: Annotated[Path, option("--out FILE", "The file to write, X.csv or X.parquet.")],
    key: Annotated[
        int | None, option("--key K", "The same key gives the same graph.", min=0)
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
    shell.say(("wrote ", "bold"), f"{drawn.num_rows:,} edges to {out}")


def _ends(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    first, comma, second = text.partition(",")
    if not comma or not first.strip() or not second.strip():
        raise InputError(f"--ends {text!r} must name two columns, such as --ends from,to")
    return first.strip(), second.strip()


def _clustering(release: Release) -> str:
    from understudy.releases.outline import noise_in_rows

    for charge in release.plan:
        if charge.purpose == "triangles" and (noise := noise_in_rows(charge)) is not None:
            return f"its triangles were counted, ± {wording.number(noise)}"
    return "not measured; it is what degrees and blocks bring along"


def _show(release: Release, edges: str, out: Path, kinds: tuple[str, ...]) -> None:
    shell.say(("Wrote the synthetic release of ", "bold"), edges, (" to ", "bold"), str(out))
    nodes = release.schema.shape[0]
    blocks = f"{len(kinds)} blocks" if len(kinds) > 1 else "no blocks"
    words.facts(
        [
            ("graph", f"{release.rows.num_rows:,} edges, {nodes:,} nodes, {blocks}"),
            ("promise", f"{release.promise}; one row is one edge"),
            ("certificate", str(release.certificate)),
            ("clustering", _clustering(release)),
            about_report(out),
        ]
    )
    words.next_commands(
        command("verify", out),
        command("graph", "sample", out, "--out", out.with_name(f"{out.stem}.sample.csv")),
    )
