"""Junction trees: structure, marginals against enumeration, and rows of low discrepancy."""

import math

import numpy as np
import pytest

from understudy.models import Decomposable, junction
from understudy.models.junction import JunctionTree, grow, ordered, tree_cells, tree_cliques


def some_gains(rng, columns, triples=True):
    cliques = {
        tuple(sorted(rng.choice(columns, size=2 + (triples and rng.random() < 0.3), replace=False)))
        for _ in range(rng.integers(0, 2 * columns))
    }
    return {tuple(int(i) for i in c): float(rng.exponential()) for c in sorted(cliques)}


def require_junction_tree(shape, cliques, parents):
    """Every column somewhere, no clique inside another, running intersection along the parents."""
    assert set().union(*cliques) == set(range(len(shape)))
    assert not any(set(a) < set(b) for a in cliques for b in cliques)
    assert len(set(cliques)) == len(cliques)
    assert parents[0] == -1
    seen = set(cliques[0])
    for at in range(1, len(cliques)):
        assert 0 <= parents[at] < at
        assert set(cliques[at]) & seen <= set(cliques[parents[at]])
        seen |= set(cliques[at])


@pytest.mark.parametrize("key", range(8))
def test_what_is_grown_is_a_junction_tree_within_its_cells(key):
    rng = np.random.default_rng(key)
    for _ in range(15):
        columns = int(rng.integers(3, 10))
        shape = tuple(rng.integers(1, 9, size=columns).tolist())
        gains = some_gains(rng, columns)
        cells = float(10 ** rng.uniform(0, 5))
        cliques, parents = grow(shape, gains, cells)
        require_junction_tree(shape, cliques, parents)
        size = sum(math.prod(shape[i] for i in c) for c in cliques)
        tree, _ = grow(shape, gains, 0.0)
        least = sum(math.prod(shape[i] for i in c) for c in tree)
        assert size <= max(cells, least) * (1 + 1e-9)


def test_the_strongest_pairs_are_held_first():
    shape, gains = (2, 3, 4, 5), {(0, 1): 3.0, (1, 2): 2.0, (0, 2): 1.0, (2, 3): 0.5, (1, 3): 0.1}
    assert set(grow(shape, gains, 0)[0]) == {(0, 1), (1, 2), (2, 3)}
    assert set(grow(shape, gains, 2 * 3 * 4 + 4 * 5)[0]) == {(0, 1, 2), (2, 3)}
    assert grow(shape, gains, 1e9)[0][0] == (0, 1, 2)
    assert {c for c in grow(shape, gains, 1e9)[0] if 3 in c} == {(1, 2, 3)}


def test_a_measured_triple_gets_a_clique():
    cliques, parents = grow((2,) * 5, {(0, 2, 4): 1.0, (0, 1): 0.5, (3, 4): 0.2}, 1e6)
    assert (0, 2, 4) in cliques
    require_junction_tree((2,) * 5, cliques, parents)


def test_nothing_gained_nothing_joined():
    cliques, parents = grow((2, 3, 4), {(0, 1): 0.0, (1, 2): -1.0}, 1e6)
    assert sorted(cliques) == [(0,), (1,), (2,)]
    require_junction_tree((2, 3, 4), cliques, parents)


def test_tables_too_large_are_left_out(monkeypatch):
    monkeypatch.setattr(junction, "_LARGEST", 10)
    assert sorted(grow((3, 4, 2), {(0, 1): 9.0, (1, 2): 1.0}, 1e6)[0]) == [(0,), (1, 2)]


# --- calibration --------------------------------------------------------------------------------

STRUCTURES = {
    "one clique": ((2, 3), {(0, 1): 1.0}),
    "chain": ((2, 3, 2, 4), {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0}),
    "star": ((3, 2, 2, 4), {(0, 1): 1.0, (0, 2): 1.0, (0, 3): 1.0}),
    "loop": ((2, 3, 2, 3), {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0, (0, 3): 1.0}),
    "triple": ((2, 3, 2, 2), {(0, 1, 2): 1.0, (2, 3): 1.0}),
    "forest": ((2, 3, 1, 4, 2), {(0, 1): 1.0, (3, 4): 1.0}),
}


def swept(name, key, sweeps=1, zeros=False):
    """A tree refined by one arbitrary positive factor a block, and the joint that follows."""
    shape, gains = STRUCTURES[name]
    rng = np.random.default_rng(key)
    blocks = [*gains, *((i,) for i in range(len(shape)))]
    factors = [rng.gamma(1.0, 1.0, [shape[i] for i in block]) + 0.05 for block in blocks]
    if zeros:
        factors[0].reshape(-1)[0] = 0.0
    tree = JunctionTree(shape, *grow(shape, gains, 1e6))
    homes = [[] for _ in tree.cliques]
    for number, block in enumerate(blocks):
        homes[tree.home(block)].append((number, block))
    joint = np.ones(shape)
    for _ in range(sweeps):
        tree.sweep(homes, lambda number, table: factors[number])
        for block, factor in zip(blocks, factors, strict=True):
            joint = joint * factor.reshape(
                [shape[i] if i in block else 1 for i in range(len(shape))]
            )
    return tree, joint / joint.sum()


def sum_to(joint, clique):
    return joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in clique))


@pytest.mark.parametrize("zeros", [False, True], ids=["positive", "a forbidden cell"])
@pytest.mark.parametrize("sweeps", [1, 3])
@pytest.mark.parametrize("name", STRUCTURES)
def test_clique_tables_are_marginals_of_the_joint(name, sweeps, zeros):
    tree, joint = swept(name, 1, sweeps, zeros)
    for clique, table in zip(tree.cliques, tree.tables, strict=True):
        np.testing.assert_allclose(table, sum_to(joint, clique), atol=1e-12)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_block_sees_its_current_marginal(name):
    """What `refine` is shown is the marginal of the model that all refinements so far have made."""
    shape, gains = STRUCTURES[name]
    blocks = [*gains, *((i,) for i in range(len(shape)))]
    rng = np.random.default_rng(2)
    tree = JunctionTree(shape, *grow(shape, gains, 1e6))
    homes = [[] for _ in tree.cliques]
    for number, block in enumerate(blocks):
        homes[tree.home(block)].append((number, block))
    joint = np.full(shape, 1 / math.prod(shape))

    def refine(number, table):
        nonlocal joint
        np.testing.assert_allclose(table, sum_to(joint, blocks[number]), atol=1e-12)
        factor = rng.random(table.shape) + 0.1
        joint = joint * factor.reshape(
            [shape[i] if i in blocks[number] else 1 for i in range(len(shape))]
        )
        joint = joint / joint.sum()
        return factor

    for _ in range(3):
        tree.sweep(homes, refine)


def test_fitting_pairs_by_scaling_is_maximum_entropy():
    """Refining by target/current is iterative proportional fitting, loops included."""
    shape, gains = STRUCTURES["loop"]
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    blocks = list(gains)
    targets = [sum_to(truth, block) for block in blocks]
    tree = JunctionTree(shape, *grow(shape, gains, 1e6))
    homes = [[] for _ in tree.cliques]
    for number, block in enumerate(blocks):
        homes[tree.home(block)].append((number, block))
    for _ in range(60):
        tree.sweep(homes, lambda number, table: targets[number] / table)
    joint = np.full(shape, 1.0)
    for _ in range(300):
        for block, target in zip(blocks, targets, strict=True):
            ratio = target / sum_to(joint, block)
            joint = joint * ratio.reshape([shape[i] if i in block else 1 for i in range(4)])
    for clique, table in zip(tree.cliques, tree.tables, strict=True):
        np.testing.assert_allclose(table, sum_to(joint, clique), atol=1e-6)


# --- rows ---------------------------------------------------------------------------------------


def tabulate(codes, shape, clique):
    table = np.zeros(tuple(shape[i] for i in clique))
    np.add.at(table, tuple(codes[i] for i in clique), 1)
    return table


@pytest.mark.parametrize("rows", [1, 50, 20_000])
@pytest.mark.parametrize("name", STRUCTURES)
def test_rows_have_the_clique_tables_within_few_rows(name, rows):
    tree, _ = swept(name, 4)
    for key in range(3):
        codes = tree.sample(rows, np.random.default_rng(key))
        assert all(column.shape == (rows,) for column in codes)
        for clique, table in zip(tree.cliques, tree.tables, strict=True):
            off = np.abs(tabulate(codes, tree.shape, clique) - rows * table)
            # Each group is off by a logarithm, and hands on what it is off by.
            assert off.max() <= 2 * len(tree.cliques) * (2 + math.log(rows + 1))
            assert off.sum() <= 0.5 * table.size * len(tree.cliques) * (2 + math.log(rows + 1))


@pytest.mark.parametrize("name", STRUCTURES)
def test_forbidden_cells_stay_empty_in_the_rows(name):
    tree, _ = swept(name, 5, zeros=True)
    codes = tree.sample(3_000, np.random.default_rng(0))
    for clique, table in zip(tree.cliques, tree.tables, strict=True):
        assert tabulate(codes, tree.shape, clique)[table == 0].sum() == 0


def test_tables_that_no_clique_holds_are_close_as_well():
    tree, joint = swept("chain", 6)
    rows = 20_000
    codes = tree.sample(rows, np.random.default_rng(0))
    drawn = np.random.default_rng(1).multinomial(rows, joint.reshape(-1)).reshape(tree.shape)
    for clique in ((0, 2), (0, 3), (1, 3)):
        expected = rows * sum_to(joint, clique)
        ours = np.abs(tabulate(codes, tree.shape, clique) - expected).sum()
        assert ours < 0.6 * np.abs(sum_to(drawn, clique) - expected).sum()


def test_no_rows_the_key_and_dtypes():
    shape = (1, 2, 256, 257)
    tree = JunctionTree(shape, *grow(shape, {(1, 2): 1.0}, 1e6))
    assert [c.dtype for c in tree.sample(3, np.random.default_rng(0))] == [
        np.uint8, np.uint8, np.uint8, np.uint16,
    ]  # fmt: skip
    assert all(column.size == 0 for column in tree.sample(0, np.random.default_rng(0)))
    one, two, other = (tree.sample(50, np.random.default_rng(key)) for key in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "cliques",
    [
        [(1, 2), (3, 4), (2, 3), (0, 1)],
        [(0, 4), (1, 4), (2, 4), (3, 4)],
        [(0, 1), (3, 4), (2,)],
        [(0, 1, 2), (3, 4), (2, 3)],
        [(1, 2, 3), (2, 3, 4), (0, 1), (0, 5)],
    ],
)
def test_cliques_are_put_into_running_intersection(cliques):
    order, parents = ordered(cliques)
    assert sorted(order) == sorted(cliques)
    require_junction_tree(range(max(map(max, cliques)) + 1), order, parents)


# --- the size of a junction tree ----------------------------------------------------------------


def some_cliques(rng, columns):
    return [
        tuple(sorted(rng.choice(columns, size=rng.integers(1, 4), replace=False).tolist()))
        for _ in range(rng.integers(1, 9))
    ]


@pytest.mark.parametrize("key", range(6))
def test_the_tree_is_a_junction_tree_of_its_cliques(key):
    rng = np.random.default_rng(key)
    for _ in range(20):
        columns = int(rng.integers(3, 9))
        shape = tuple(rng.integers(2, 9, size=columns).tolist())
        cliques = some_cliques(rng, columns)
        made = tree_cliques(shape, cliques)
        assert all(any(set(c) <= set(own) for own in made) for c in cliques)
        assert not any(set(a) < set(b) for a in made for b in made)
        order, _ = ordered(made)
        tables = [np.ones(tuple(shape[i] for i in clique)) for clique in order]
        Decomposable(shape, tuple(order), tuple(tables))  # refuses what is no junction tree


def test_the_tree_has_the_size_that_mbi_says():
    mbi = pytest.importorskip("mbi")
    rng = np.random.default_rng(3)
    for _ in range(40):
        shape = tuple(rng.integers(2, 9, size=7).tolist())
        cliques = some_cliques(rng, 7)
        names = [f"c{i}" for i in range(7)]
        theirs = mbi.junction_tree.hypothetical_model_size(
            mbi.Domain(names, shape), [tuple(names[i] for i in c) for c in cliques]
        )
        assert tree_cells(shape, cliques) * 8 / 2**20 == pytest.approx(theirs, rel=0.05)
