"""Degrees and triangles: what an edge moves, on every small graph; covered, or refused."""

import itertools

import numpy as np
import pytest

from tests.exact_privacy import compare, discrete_gaussian_law, product_law
from tests.privacy.privacy_fakes import LoggedCharges, LoggedNoise
from understudy.errors import PrivacyError
from understudy.privacy.cost import Gaussian
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Degrees, Triangles
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing.stand_ins import TinyCounts

NODES = 4
EDGES = list(itertools.combinations(range(NODES), 2))
GROUPINGS = [(0, 0, 0, 0), (0, 0, 1, 1), (1, 0, 1, 0), (0, 1, 2, 3)]


class Edges(TinyCounts):
    def sparse(self, cliques):
        found = []
        for table in (self._table(clique).reshape(-1) for clique in cliques):
            found.append((np.flatnonzero(table), table[table > 0]))
        return Sensitive(tuple(found))

    def _table(self, clique):
        out = np.zeros(tuple(self.shape[i] for i in clique), np.int64)
        for row in self._rows:
            out[tuple(row[i] for i in clique)] += 1
        return out


def ordered(rows, groups, relation=Relation.ADD_REMOVE, changes=None):
    """What the noise is added to."""
    noise = LoggedNoise()
    event = Gaussian(3.0, changes=changes or relation.marginal_l2_squared(2))
    gate = Gate(
        Edges((NODES, NODES), rows),
        LoggedCharges(degrees=event, relation=relation),
        relation,
        noise,
    )
    gate.ask("degrees", Degrees((0, 1), np.array(groups)))
    assert noise.log == [("gaussian", 3.0)]
    return noise.values[0]


def graphs():
    for size in range(len(EDGES) + 1):
        yield from itertools.combinations(EDGES, size)


@pytest.mark.parametrize("groups", GROUPINGS)
def test_it_is_the_degrees_sorted_by_group(groups):
    for graph in graphs():
        degrees = [sum(node in edge for edge in graph) for node in range(NODES)]
        wanted = [d for _, d in sorted(zip(groups, degrees, strict=True))]
        assert ordered(graph, groups).tolist() == wanted


@pytest.mark.parametrize("groups", GROUPINGS)
def test_an_edge_moves_two_entries_by_one_on_every_graph(groups):
    exact = {graph: ordered(graph, groups) for graph in graphs()}
    for graph, edge in itertools.product(exact, EDGES):
        if edge not in graph:
            moved = exact[tuple(sorted((*graph, edge)))] - exact[graph]
            assert sorted(moved.tolist()) == [0, 0, 1, 1]


@pytest.mark.parametrize("groups", GROUPINGS)
def test_an_edge_for_another_moves_four_entries_by_one_at_most(groups):
    exact = {graph: ordered(graph, groups) for graph in graphs()}
    worst = 0
    for graph in exact:
        for out, new in itertools.product(graph, EDGES):
            other = tuple(sorted({*graph, new} - {out}))
            moved = exact[other] - exact[graph] if len(other) == len(graph) else np.zeros(4)
            assert np.abs(moved).max() <= 1
            worst = max(worst, int((moved**2).sum()))
    assert worst <= Relation.REPLACE.marginal_l2_squared(2)
    assert worst == 4 or len(set(groups)) < NODES  # reached where nothing is sorted away


def test_rows_that_are_repeated_or_loops_move_no_more():
    rows = [(0, 1), (0, 1), (2, 2), (1, 3)]
    for row in [*EDGES, *((i, i) for i in range(NODES))]:
        moved = ordered([*rows, row], (0, 0, 0, 0)) - ordered(rows, (0, 0, 0, 0))
        assert sorted(moved.tolist()) == ([0, 0, 0, 0] if row[0] == row[1] else [0, 0, 1, 1])


@pytest.mark.parametrize("factor", [1.0, 2 / 3])
def test_the_whole_law_holds_what_is_charged_and_would_not_with_less_noise(factor):
    event = Gaussian(2.0, changes=2)
    rho = event.changes / (2 * event.sigma**2)
    sigma, worst = factor * event.sigma, 0.0
    support = range(-25, 30)
    for groups in GROUPINGS[:2]:
        for graph in ((), ((0, 1),), ((0, 1), (0, 2)), ((0, 1), (2, 3)), tuple(EDGES[:4])):
            for edge in (e for e in EDGES if e not in graph):
                pair = ordered(graph, groups), ordered((*graph, edge), groups)
                moved = np.flatnonzero(pair[0] != pair[1])  # the others have equal laws
                laws = [
                    product_law(
                        *(
                            discrete_gaussian_law(int(x), sigma, support, tails="lumped")
                            for x in v[moved]
                        )
                    )
                    for v in pair
                ]
                worst = max(worst, max(compare(*laws).renyi(2.0)) / 2)
    assert (worst <= rho + 1e-9) == (factor == 1.0)


@pytest.mark.parametrize(("relation", "changes"), [("add-remove", 1), ("replace", 3)])
def test_an_event_that_covers_less_is_refused(relation, changes):
    with pytest.raises(PrivacyError, match="sorted degrees"):
        ordered([(0, 1)], (0, 0, 0, 0), Relation(relation), changes)


def test_ends_must_be_alike():
    charges = LoggedCharges(degrees=Gaussian(3.0, changes=2))
    gate = Gate(Edges((4, 3), [(0, 1)]), charges, Relation.ADD_REMOVE, LoggedNoise())
    with pytest.raises(PrivacyError, match="two columns of as many values"):
        gate.ask("degrees", Degrees((0, 1), np.zeros(4, np.int64)))
    assert charges.log == []


# --- triangles ----------------------------------------------------------------------------------


def triangles(rows, relation=Relation.ADD_REMOVE, step=NODES - 2, nodes=NODES):
    noise = LoggedNoise()
    event = Gaussian(3.0, step=step)
    gate = Gate(
        Edges((nodes, nodes), rows), LoggedCharges(t=event, relation=relation), relation, noise
    )
    gate.ask("t", Triangles((0, 1)))
    assert noise.log == [("gaussian", 3.0)]
    (found,) = noise.values[0].tolist()
    return found


def test_triangles_are_counted_once_whatever_is_repeated():
    for graph in graphs():
        wanted = sum(
            all(edge in graph for edge in itertools.combinations(three, 2))
            for three in itertools.combinations(range(NODES), 3)
        )
        assert triangles(graph) == wanted
        turned = [(b, a) for a, b in graph]
        assert triangles([*graph, *turned, (0, 0), (3, 3), *graph]) == wanted


def test_an_edge_moves_as_many_triangles_as_there_are_other_nodes_and_no_more():
    exact = {graph: triangles(graph) for graph in graphs()}
    moved, replaced = 0, 0
    for graph, edge in itertools.product(exact, EDGES):
        if edge in graph:
            continue
        more = tuple(sorted((*graph, edge)))
        moved = max(moved, exact[more] - exact[graph])
        for out in graph:
            other = tuple(sorted({*more} - {out}))
            replaced = max(replaced, abs(exact[other] - exact[graph]))
    assert moved == NODES - 2
    assert replaced <= NODES - 2
    wheel = [(i, j) for i in range(2) for j in range(2, 7)]
    assert triangles([*wheel, (0, 1)], step=5, nodes=7) - triangles(wheel, step=5, nodes=7) == 5


@pytest.mark.parametrize("relation", list(Relation))
def test_triangles_need_an_event_that_covers_them(relation):
    assert triangles([(0, 1)], relation) == 0
    with pytest.raises(PrivacyError, match="triangles, of which a neighbour moves 2"):
        triangles([(0, 1)], relation, step=1)


def test_what_does_not_fit_memory_is_refused_without_its_size(monkeypatch):
    """SciPy would name the exact number of paths of two links."""

    def full(*given):
        raise MemoryError("Unable to allocate an array with shape (123457,)")

    monkeypatch.setattr("scipy.sparse.csr_array.__matmul__", full)
    with pytest.raises(PrivacyError, match="MemoryError") as error:
        triangles([(0, 1), (1, 2)])
    assert "123457" not in str(error.value)
    assert error.value.__context__ is None
