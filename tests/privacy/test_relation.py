"""Sensitivities against exhaustive neighbours."""

import math
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from tests.exact_privacy import neighbours
from understudy.privacy.relation import Relation

UNIVERSE = list(product((0, 1), repeat=2))
CLIQUES = ((0,), (1,), (0, 1))
N = 3


def unordered(relation):
    """All neighbours, each pair of multisets once: counts do not see the order of rows."""
    every = neighbours(UNIVERSE, N, relation.value)
    return list(dict.fromkeys((tuple(sorted(a)), tuple(sorted(b))) for a, b in every))


PAIRS = {relation: unordered(relation) for relation in Relation}


def table(data, clique):
    out = np.zeros((2,) * len(clique), dtype=np.int64)
    for row in data:
        out[tuple(row[i] for i in clique)] += 1
    return out


@cache
def stacked(data, cliques=CLIQUES):
    return np.concatenate([table(data, clique).ravel() for clique in cliques])


def largest(relation, distance):
    return max(distance(a, b) for a, b in PAIRS[relation])


def synthetic_tables():
    return [rows for size in (1, 2, 3) for rows in combinations_with_replacement(UNIVERSE, size)]


# --- the relation -------------------------------------------------------------------------------


def test_relation_values():
    assert Relation("add-remove") is Relation.ADD_REMOVE
    assert Relation("replace") is Relation.REPLACE
    assert len(Relation) == 2
    assert f"{Relation.REPLACE}" == "replace"
    with pytest.raises(ValueError):
        Relation("zero-out")


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("clique", CLIQUES)
def test_one_marginal_moves_exactly_as_stated(relation, clique):
    def moved(a, b):
        return np.abs(table(a, clique) - table(b, clique))

    assert largest(relation, lambda a, b: moved(a, b).sum()) == relation.marginal_l1()
    assert (
        largest(relation, lambda a, b: (moved(a, b) ** 2).sum()) == relation.marginal_l2_squared()
    )
    assert largest(relation, lambda a, b: (moved(a, b) > 0).sum()) == relation.multiplicity
    assert largest(relation, lambda a, b: moved(a, b).max()) == 1


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("tables", [1, 2, 3])
def test_stacked_marginals_move_exactly_as_stated(relation, tables):
    cliques = CLIQUES[:tables]

    def moved(a, b):
        return np.abs(stacked(a, cliques) - stacked(b, cliques))

    assert largest(relation, lambda a, b: moved(a, b).sum()) == relation.marginal_l1(tables)
    squared = relation.marginal_l2_squared(tables)
    assert largest(relation, lambda a, b: (moved(a, b) ** 2).sum()) == squared
    assert isinstance(squared, int)


def test_stated_sensitivities():
    assert (Relation.ADD_REMOVE.multiplicity, Relation.REPLACE.multiplicity) == (1, 2)
    for tables in (1, 2, 7):
        assert Relation.ADD_REMOVE.marginal_l1(tables) == tables
        assert Relation.REPLACE.marginal_l1(tables) == 2 * tables
        assert Relation.ADD_REMOVE.marginal_l2_squared(tables) == tables
        assert Relation.REPLACE.marginal_l2_squared(tables) == 2 * tables


def lattice(data, rows, synthetic):
    """M c - n c_hat, stacked over all cells of all marginals."""
    return len(synthetic) * stacked(data) - rows * stacked(synthetic)


CASES = [(Relation.REPLACE, True), (Relation.ADD_REMOVE, True), (Relation.ADD_REMOVE, False)]


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_lattice_worst_error_moves_by_at_most_the_synthetic_size(relation, public):
    """K = max |M c - n c_hat| moves by at most M: exhaustive, and M is reached."""
    reached = []
    for synthetic in synthetic_tables():
        size, worst = len(synthetic), 0
        for a, b in PAIRS[relation]:
            rows = (N, N) if public else (len(a), len(b))
            k = [
                int(np.abs(lattice(d, n, synthetic)).max())
                for d, n in zip((a, b), rows, strict=True)
            ]
            worst = max(worst, abs(k[0] - k[1]))
        assert worst <= size
        reached.append(worst == size)
    assert any(reached)


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_lattice_total_variation_moves_by_the_stated_steps(relation, public):
    """sum over one marginal's cells of |M c - n c_hat| moves by at most steps * M, and does."""
    steps = relation.total_variation_steps(rows_public=public)
    assert isinstance(steps, int)
    ends = np.cumsum([0] + [2 ** len(clique) for clique in CLIQUES])
    reached = []
    for synthetic in synthetic_tables():
        size, worst = len(synthetic), 0
        for a, b in PAIRS[relation]:
            rows = (N, N) if public else (len(a), len(b))
            va, vb = (np.abs(lattice(d, n, synthetic)) for d, n in zip((a, b), rows, strict=True))
            tv = [np.add.reduceat(v, ends[:-1]) for v in (va, vb)]
            worst = max(worst, int(np.abs(tv[0] - tv[1]).max()))
        assert worst <= steps * size
        reached.append(worst == steps * size)
    assert any(reached), "the stated sensitivity is larger than it has to be"


def test_total_variation_steps():
    assert Relation.REPLACE.total_variation_steps(rows_public=True) == 2
    assert Relation.ADD_REMOVE.total_variation_steps(rows_public=True) == 1
    assert Relation.ADD_REMOVE.total_variation_steps(rows_public=False) == 2


def test_normalised_sensitivities_of_the_literature():
    """n = 3 on {0,1}²: worst error 1/3, TV vector L2 sqrt(3)/3, mean 2J/(nC), RMSE sqrt(2J/C)/n."""
    ends = np.cumsum([0] + [2 ** len(clique) for clique in CLIQUES])
    cells, tables = int(ends[-1]), len(CLIQUES)
    g = tv = mean = rmse = 0.0
    for synthetic in synthetic_tables():
        for a, b in PAIRS[Relation.REPLACE]:
            va, vb = (stacked(d) / N - stacked(synthetic) / len(synthetic) for d in (a, b))
            ta, tb = (0.5 * np.add.reduceat(np.abs(v), ends[:-1]) for v in (va, vb))
            g = max(g, abs(np.abs(va).max() - np.abs(vb).max()))
            tv = max(tv, float(np.linalg.norm(ta - tb)))
            mean = max(mean, abs(np.abs(va).mean() - np.abs(vb).mean()))
            rmse = max(rmse, abs(np.sqrt((va**2).mean()) - np.sqrt((vb**2).mean())))
    assert g == pytest.approx(1 / 3)
    assert tv == pytest.approx(math.sqrt(3) / 3)
    assert mean == pytest.approx(2 * tables / (N * cells))
    assert rmse == pytest.approx(math.sqrt(2 * tables / cells) / N)
