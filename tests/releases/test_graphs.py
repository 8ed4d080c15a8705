"""Releases of graphs: one edge is protected, nodes are public, and nothing else is claimed."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.errors import InputError

BLOCKS = {f"n{i}": "left" if i < 30 else "right" for i in range(60)}


def edges(key: int = 0) -> pa.Table:
    """Two blocks with few edges between them."""
    rng = np.random.default_rng(key)
    rows = []
    for a in range(60):
        for b in range(a + 1, 60):
            if rng.random() < (0.3 if (a < 30) == (b < 30) else 0.02):
                rows.append((f"n{a}", f"n{b}") if rng.random() < 0.5 else (f"n{b}", f"n{a}"))
    return pa.table({"from": [r[0] for r in rows], "to": [r[1] for r in rows]})


@pytest.fixture(scope="module")
def made() -> us.Release:
    return us.release_graph(edges(), BLOCKS, epsilon=20, delta="1e-6", key=1)


def pairs(table: pa.Table) -> list[frozenset[str]]:
    columns = (table.column(name).to_pylist() for name in ("source", "target"))
    return [frozenset(pair) for pair in zip(*columns, strict=True)]


def test_it_is_a_simple_graph_of_declared_nodes(made):
    found = pairs(made.rows)
    assert len(set(found)) == len(found) == made.rows.num_rows
    assert all(len(pair) == 2 and pair <= set(BLOCKS) for pair in found)
    for end in ("source", "target"):
        ends, blocks = (made.rows.column(c).to_pylist() for c in (end, f"{end}_block"))
        assert [BLOCKS[name] for name in ends] == blocks


def test_degrees_and_blocks_follow(made):
    """At ε = 20 the noise is small: a wrong method would be off by far more than these margins."""
    true = edges()
    real = np.array([sum(n in (a, b) for a, b in zip(*true.to_pydict().values(), strict=True))
                     for n in BLOCKS])  # fmt: skip
    fake = np.array([sum(n in pair for pair in pairs(made.rows)) for n in BLOCKS])
    assert np.abs(np.sort(real) - np.sort(fake)).mean() < 1.5
    across = np.mean([len({BLOCKS[n] for n in pair}) == 2 for pair in pairs(made.rows)])
    real_across = np.mean([BLOCKS[a] != BLOCKS[b]
                           for a, b in zip(*true.to_pydict().values(), strict=True)])  # fmt: skip
    assert abs(across - real_across) < 0.1


def test_nodes_keep_their_own_degrees_and_hubs_keep_away_from_hubs():
    """Eight hubs that link to leaves alone; by their degrees, chance would link most of them."""
    hubs, leaves = [f"hub{i}" for i in range(8)], [f"leaf{i}" for i in range(100)]
    rows = [(hub, leaf) for h, hub in enumerate(hubs) for leaf in leaves[h % 4 :: 4]]
    rows += itertools.pairwise(leaves)
    table = pa.table({"x": [a for a, _ in rows], "y": [b for _, b in rows]})
    made = us.release_graph(
        table, [*hubs, *leaves], epsilon=60, delta="1e-6", key=2, edges_public=len(rows)
    )
    found = pairs(made.rows)
    degrees = {name: sum(name in pair for pair in found) for name in [*hubs, *leaves]}
    assert min(degrees[hub] for hub in hubs) > 15
    assert max(degrees[leaf] for leaf in leaves) < 12
    assert sum(pair <= set(hubs) for pair in found) < 6
    again = pairs(us.sample_graph(made, key=3))
    assert sum(pair <= set(hubs) for pair in again) < 6


def test_clustering_follows_where_triangles_are_measured(tmp_path):
    """Thirty cliques of five nodes: hardly a triangle would come by chance."""
    rows = [
        (f"n{5 * c + i}", f"n{5 * c + j}") for c in range(30) for j in range(5) for i in range(j)
    ]
    table = pa.table({"x": [a for a, _ in rows], "y": [b for _, b in rows]})
    names = [f"n{i}" for i in range(150)]

    def triangles(of):
        links = np.zeros((150, 150), np.int64)
        for a, b in (sorted(int(name[1:]) for name in pair) for pair in of):
            links[a, b] = links[b, a] = 1
        return int(np.trace(links @ links @ links)) // 6

    plain, asked = (
        us.release_graph(table, names, epsilon=100, delta="1e-6", key=1, triangles=each)
        for each in (False, True)
    )
    assert triangles(pairs(plain.rows)) < 60
    assert 120 < triangles(pairs(asked.rows)) < 450  # of 300, with noise of about 33
    assert triangles(pairs(us.sample_graph(asked, key=5))) > 100
    (event,) = [c.event for c in asked.plan if c.purpose == "triangles"]
    assert event.to_json()["step"] == 148
    assert us.verify(asked.save(tmp_path / "g")).passed


def test_the_bundle_says_what_was_charged(made, tmp_path):
    made.save(tmp_path / "graph")  # both verifiers look at it
    manifest = json.loads((tmp_path / "graph" / "release.json").read_text())
    charged = [e["body"]["purpose"] for e in manifest["ledger"]["entries"] if e["kind"] == "charge"]
    assert charged == [
        "number of rows", "degrees", "degrees by name", "edges between blocks",
        "edges between classes of degrees", "certificate",
    ]  # fmt: skip
    assert manifest["method"] == {"name": "graph", "sizes": [30, 30]}
    assert us.verify(tmp_path / "graph").passed


def test_another_graph_has_the_same_degrees_and_costs_nothing(made):
    def degrees(table):
        return sorted(sum(n in pair for pair in pairs(table)) for n in BLOCKS)

    one, same, other = (us.sample_graph(made, key=key) for key in (1, 1, 2))
    assert one.equals(same)
    assert degrees(one) == degrees(other) == degrees(made.rows)
    assert set(pairs(one)) != set(pairs(other))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": "node"}, "does not hide a node with all its edges"),
        ({"unit": "person"}, "no such unit"),
        ({"nodes": 1}, "from 2 to 10,000"),
        ({"nodes": 20_000}, "from 2 to 10,000"),
        ({"nodes": ["a", "b", "a"]}, "listed more than once"),
        ({"nodes": "nowhere.txt"}, "neither a number, a range such as 1..34, nor a file"),
        ({"ends": ("from", "too")}, r"no column 'too' in the table of edges \(did you mean 'to'"),
        ({"edges": pa.table({"x": ["a"]})}, "an edge has two ends"),
        ({"ends": ("from", "from_")}, "no column 'from_'"),
        ({"epsilon": 0}, "epsilon"),
        ({"rows": 10}, "rows = 10 is not for graphs"),
    ],
)
def test_bad_input_is_refused(change, said):
    call = {"edges": edges(), "nodes": BLOCKS, "epsilon": 1, **change}
    with pytest.raises(InputError, match=said):
        us.release_graph(call.pop("edges"), call.pop("nodes"), **call)


def test_a_public_number_of_edges_is_taken_and_a_checkpoint_is_kept_until_the_end(tmp_path):
    one = us.release_graph(
        edges(), BLOCKS, epsilon=1, edges_public=300, checkpoint=tmp_path / "way"
    )
    assert one.rows.num_rows == one.rows_public == 300
    assert "number of rows" not in [charge.purpose for charge in one.plan]


def test_sampling_a_graph_needs_one(made):
    object.__setattr__(made, "method", {"name": "maxent"})
    with pytest.raises(InputError, match="releases of graphs"):
        us.sample_graph(made)
    object.__setattr__(made, "method", {"name": "graph", "sizes": [30, 30]})
