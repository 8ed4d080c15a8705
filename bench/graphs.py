"""Graphs and their stand-ins: degrees, blocks, how degrees mix, clustering.

`python -m bench graphs --edges club.csv --nodes 1..34 --edges mails.csv --nodes departments.txt`

Each `--edges` goes with a `--nodes`, as `understudy graph release` takes them; `--name` titles them.
The graphs are public, so exact errors may be shown.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import understudy as us
from understudy import figures
from understudy.errors import require_extra
from understudy.schema.nodes import Nodes
from understudy.source import read, read_table

EPSILONS = ("1", "4")
DELTA = "1e-6"
RUNS = 3


def adjacency(left: list[Any], right: list[Any], nodes: Nodes) -> np.ndarray:
    """A symmetric matrix of 0 and 1 without a diagonal."""
    number = {name: at for at, name in enumerate(nodes.names)}
    links = np.zeros((len(nodes.names), len(nodes.names)), np.int64)
    ends = [(number[str(a)], number[str(b)]) for a, b in zip(left, right, strict=True)]
    u, v = np.array([end for end in ends if end[0] != end[1]]).T
    links[u, v] = links[v, u] = 1
    return links


def clustering(links: np.ndarray) -> float:
    """Three times the triangles over the paths of two edges."""
    degrees = links.sum(axis=0)
    closed = np.trace(links @ links @ links)
    return float(closed / max(1, (degrees * (degrees - 1)).sum()))


def mixing(links: np.ndarray) -> float:
    """Newman's assortativity: the correlation of the degrees at the two ends of an edge."""
    degrees = links.sum(axis=0)
    u, v = np.nonzero(links)
    return float(np.corrcoef(degrees[u], degrees[v])[0, 1])


def apart(real: np.ndarray, fake: np.ndarray) -> float:
    """The largest difference between two distributions of degrees (Kolmogorov and Smirnov's)."""
    grid = np.arange(max(real.max(), fake.max()) + 1)
    return float(max(abs((real <= k).mean() - (fake <= k).mean()) for k in grid))


def between(links: np.ndarray, nodes: Nodes) -> np.ndarray:
    """Shares of edges between blocks."""
    member = np.repeat(np.eye(len(nodes.sizes), dtype=np.int64), nodes.sizes, axis=0)
    table = np.triu(member.T @ links @ member).astype(float)
    table[np.diag_indices(len(table))] /= 2
    return table / table.sum()


def main(options: list[str] | None = None) -> None:
    """Release every graph at every ε, print the table, draw the degrees."""
    parser = argparse.ArgumentParser(prog="python -m bench graphs")
    parser.add_argument("--edges", required=True, action="append", type=Path)
    parser.add_argument("--nodes", required=True, action="append")
    parser.add_argument("--name", action="append", default=[])
    parser.add_argument("--triangles", action="store_true", help="measure their number as well")
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    asked = parser.parse_args(options)
    if len(asked.edges) != len(asked.nodes):
        parser.error("give one --nodes for each --edges")
    shown = []
    print(
        "| graph | ε | edges | mean error of sorted degrees | of nodes' own | KS of degrees "
        "| TV of blocks | certificate | assortativity | clustering | CPU s |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for at, (path, declared) in enumerate(zip(asked.edges, asked.nodes, strict=True)):
        name, nodes = (*asked.name[at : at + 1], path.stem)[0], Nodes.of(declared)
        table = read_table(read(path))
        real = adjacency(*(table.column(i).to_pylist() for i in (0, 1)), nodes)
        degrees, edges = real.sum(axis=0), int(real.sum()) // 2
        print(
            f"| {name} | the graph itself | {edges:,} | | | | | | {mixing(real):.3f} "
            f"| {clustering(real):.3f} | |"
        )
        curves = {}
        for epsilon in EPSILONS:
            rows = []
            for key in range(RUNS):
                begun = time.process_time()
                made = us.release_graph(
                    path, nodes, epsilon=epsilon, delta=DELTA, key=key, triangles=asked.triangles
                )
                cpu = time.process_time() - begun
                ends = (made.rows.column(c).to_pylist() for c in ("source", "target"))
                fake = adjacency(*ends, nodes)
                found = fake.sum(axis=0)
                curves.setdefault(epsilon, found)
                blocks = np.abs(between(real, nodes) - between(fake, nodes)).sum() / 2
                rows.append((
                    fake.sum() / 2, np.abs(np.sort(found) - np.sort(degrees)).mean(),
                    np.abs(found - degrees).mean(), apart(degrees, found), blocks,
                    made.certificate.bound, mixing(fake), clustering(fake), cpu,
                ))  # fmt: skip
            mean = np.mean(rows, axis=0)
            blocks = [f"{mean[4]:.3f}", f"{mean[5]:.3f}"] if len(nodes.sizes) > 1 else ["", ""]
            print(
                f"| | {epsilon} | {mean[0]:,.0f} | {mean[1]:.2f} | {mean[2]:.2f} | {mean[3]:.3f} "
                f"| {blocks[0]} | {blocks[1]} | {mean[6]:.3f} | {mean[7]:.3f} | {mean[8]:.1f} |",
                flush=True,
            )
        shown.append((name, len(nodes.names), edges, degrees, curves))
    draw(shown, asked.out)


def draw(shown: list[Any], folder: Path) -> None:
    """Share of nodes with at least a degree, log by log; the first run of every ε."""
    require_extra("drawing", "figures")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    with plt.rc_context(figures.STYLE):
        figure, spots = plt.subplots(
            1, len(shown), figsize=(4.2 * len(shown), 3.4), layout="constrained", squeeze=False
        )
        for spot, (name, nodes, edges, degrees, curves) in zip(spots[0], shown, strict=True):
            figures.plain(spot)
            grid, share = tail(degrees)
            spot.plot(
                grid, share, "o", color=figures.INK, ms=4, mew=0.7, mfc="none", label="the graph"
            )  # fmt: skip
            for colour, (epsilon, found) in zip(figures.COLOURS, curves.items(), strict=False):
                spot.step(
                    *tail(found), where="pre", color=colour, lw=1.5, label=f"stand-in, ε = {epsilon}"
                )  # fmt: skip
            spot.set_xscale("log")
            spot.set_yscale("log")
            spot.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            spot.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
            spot.set_xlabel("degree")
            spot.set_title(f"{name}: {nodes:,} nodes, {edges:,} edges", loc="left", fontsize=9.5)
        spots[0][0].set_ylabel("share of nodes with at least this degree")
        spots[0][0].legend(frameon=False, loc="lower left")
        folder.mkdir(parents=True, exist_ok=True)
        for file in figures.save(figure, folder, "graphs"):
            print(f"wrote {file}")
        plt.close(figure)


def tail(degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(degrees from 1 on that occur, share of nodes with at least so many)."""
    grid = np.unique(degrees[degrees > 0])
    return grid, np.array([(degrees >= k).mean() for k in grid])
