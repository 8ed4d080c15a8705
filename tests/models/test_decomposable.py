"""Decomposable models against brute force over the enumerated universe, and the sampler's claims."""

import json
import math
from itertools import chain, combinations, permutations

import numpy as np
import pytest
from tests.thorough import examples

from understudy.errors import InputError, WorkError
from understudy.models import Decomposable, decomposable, from_arrays

STRUCTURES = {
    "single clique": ((2, 3, 2), ((0, 1, 2),)),
    "independent": ((3, 1, 4), ((0,), (1,), (2,))),
    "chain": ((2, 3, 4, 2), ((0, 1), (1, 2), (2, 3))),
    "star": ((3, 2, 2, 2), ((0, 1), (0, 2), (0, 3))),
    "forest": ((2, 3, 2, 2, 3), ((0, 3), (1, 4), (2,))),
    "triangles": ((2, 3, 2, 2), ((0, 1, 2), (1, 2, 3))),
    "size-one columns": ((1, 3, 1, 2, 1), ((0, 1), (1, 2), (1, 3), (4,))),
    "backwards": ((2, 3, 2, 2), ((2, 3), (1, 3), (0, 1))),
    "contained clique": ((2, 3, 2), ((0, 1), (1,), (1, 2))),
    "one column": ((5,), ((0,),)),
}


def consistent(shape, cliques, key=0, sparse=False):
    """A decomposable model with consistent tables: the marginals of a random joint."""
    rng = np.random.default_rng(key)
    joint = rng.dirichlet(np.full(math.prod(shape), 0.4)).reshape(shape)
    if sparse:
        joint = np.where(rng.random(shape) < 0.5, 0.0, joint)
        joint.reshape(-1)[0] += 0.1
        joint /= joint.sum()
    tables = tuple(sum_to(joint, clique) for clique in cliques)
    return Decomposable(shape, cliques, tables)


def sum_to(joint, clique):
    return joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in clique))


def brute_joint(model):
    """p(x) = Π p_c(x_c) / Π p_s(x_s), cell by cell."""
    joint = np.zeros(model.shape)
    for cell in np.ndindex(*model.shape):
        p, seen = 1.0, set()
        for clique, table in zip(model.cliques, model.tables, strict=True):
            p *= table[tuple(cell[i] for i in clique)]
            shared = tuple(i for i in clique if i in seen)
            if shared and p > 0:
                keep = tuple(axis for axis, i in enumerate(clique) if i not in shared)
                p /= table.sum(axis=keep)[tuple(cell[i] for i in shared)]
            seen |= set(clique)
        joint[cell] = p
    return joint


def subsets(columns):
    return chain.from_iterable(combinations(range(columns), k) for k in range(columns + 1))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_every_marginal_is_that_of_the_joint(name, sparse):
    shape, cliques = STRUCTURES[name]
    model = consistent(shape, cliques, sparse=sparse)
    joint = brute_joint(model)
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    for clique in subsets(len(shape)):
        found = model.marginal(clique)
        assert found.shape == tuple(shape[i] for i in clique)
        np.testing.assert_allclose(found, sum_to(joint, clique), atol=1e-12)


def test_axes_follow_the_clique():
    model = consistent((2, 3, 4), ((0, 1), (1, 2)))
    joint = brute_joint(model)
    for clique in permutations(range(3)):
        np.testing.assert_allclose(model.marginal(clique), joint.transpose(clique), atol=1e-12)
    np.testing.assert_allclose(model.marginal((2, 0)), sum_to(joint, (0, 2)).T, atol=1e-12)


def test_a_marginal_far_apart_in_a_long_chain_is_cheap():
    d = 60
    model = consistent_chain(d)
    table = model.marginal((0, d - 1))
    transition = [t / t.sum(axis=1, keepdims=True) for t in model.tables]
    expected = np.diag(model.marginal((0,))) @ np.linalg.multi_dot(transition)
    np.testing.assert_allclose(table, expected, atol=1e-12)


def test_a_star_of_many_columns():
    """More columns than numpy's einsum has letters."""
    d = 70
    rng = np.random.default_rng(1)
    hub = rng.dirichlet(np.ones(3))
    leaves = [hub[:, None] * rng.dirichlet(np.ones(2), 3) for _ in range(d - 1)]
    model = Decomposable((3,) + (2,) * (d - 1), tuple((0, i) for i in range(1, d)), tuple(leaves))
    expected = (leaves[0] / hub[:, None]).T @ leaves[-1]
    np.testing.assert_allclose(model.marginal((1, d - 1)), expected, atol=1e-12)


def consistent_chain(d, size=3):
    rng = np.random.default_rng(4)
    first = rng.dirichlet(np.ones(size))
    tables = []
    for _ in range(d - 1):
        pair = first[:, None] * rng.dirichlet(np.ones(size), size)
        tables.append(pair)
        first = pair.sum(axis=0)
    return Decomposable((size,) * d, tuple((i, i + 1) for i in range(d - 1)), tuple(tables))


def test_a_marginal_that_cannot_be_held_is_refused(monkeypatch):
    monkeypatch.setattr(decomposable, "_MAX_CELLS", 100)
    with pytest.raises(WorkError, match="fewer columns"):
        consistent_chain(6).marginal((0, 1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("shape", "cliques", "message"),
    [
        ((2, 2, 2), ((0, 1), (1, 2), (0, 2)), "running intersection"),
        ((2, 2, 2, 2), ((0, 1), (2, 3), (1, 2)), "running intersection"),
        ((2, 2, 2), ((0, 1),), "every column"),
        ((2,), ((0,), (1,)), "every column"),
    ],
)
def test_structures_that_are_no_junction_tree_are_refused(shape, cliques, message):
    padded = (*shape, 2)
    tables = tuple(np.ones(tuple(padded[i] for i in clique)) for clique in cliques)
    with pytest.raises(InputError, match=message):
        Decomposable(shape, cliques, tables)


@pytest.mark.parametrize(
    "table", [[-0.1, 1.1], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1.0], [[0.5, 0.5]]]
)
def test_tables_that_are_no_distribution_are_refused(table):
    with pytest.raises(InputError, match="model table"):
        Decomposable((2,), ((0,),), (np.array(table),))


def test_tables_are_normalised():
    model = Decomposable.independent([np.array([2.0, 6.0]), np.array([5.0])])
    np.testing.assert_allclose(model.marginal((0,)), [0.25, 0.75])
    assert Decomposable.joint(np.ones((2, 3))).marginal((1,)) == pytest.approx([1 / 3] * 3)


# --- rows ---------------------------------------------------------------------------------------


def tabulate(codes, shape, clique):
    table = np.zeros(tuple(shape[i] for i in clique))
    np.add.at(table, tuple(codes[i] for i in clique), 1)
    return table


@pytest.mark.parametrize("rows", [1, 2, 17, 1000])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_shares_are_rounded_within_every_group(name, sparse, rows):
    """Each group of rows that agrees on the separator gets every cell rounded up or down."""
    shape, cliques = STRUCTURES[name]
    model = consistent(shape, cliques, sparse=sparse)
    for key in range(5):
        codes = model.sample(rows, np.random.default_rng(key))
        seen = set()
        for clique, table in zip(model.cliques, model.tables, strict=True):
            shared = tuple(i for i in clique if i in seen)
            fresh = tuple(axis for axis, i in enumerate(clique) if i not in shared)
            seen |= set(clique)
            if not fresh:
                continue
            counts = tabulate(codes, shape, clique)
            group = counts.sum(axis=fresh, keepdims=True)
            weight = table.sum(axis=fresh, keepdims=True)
            share = np.divide(table, weight, out=np.zeros_like(table), where=weight > 0)
            assert (
                np.abs(counts - group * share)[np.broadcast_to(weight > 0, counts.shape)] < 1 + 1e-9
            ).all()
            assert counts.sum() == rows
            assert counts[np.broadcast_to(weight == 0, counts.shape)].sum() == 0


@pytest.mark.parametrize("name", STRUCTURES)
def test_cells_without_mass_are_never_sampled(name):
    shape, cliques = STRUCTURES[name]
    model = consistent(shape, cliques, key=3, sparse=True)
    for key in range(10):
        codes = model.sample(500, np.random.default_rng(key))
        for clique, table in zip(model.cliques, model.tables, strict=True):
            assert tabulate(codes, shape, clique)[table == 0].sum() == 0


def test_nearly_empty_cells_and_long_tables_hold_together():
    """Many cells, of which a few have all the mass, so that rounding of long sums matters."""
    table = np.zeros(100_000)
    table[[3, 50_000, 99_998]] = [0.3, 1e-15, 0.7]
    codes = Decomposable.joint(table).sample(100_000, np.random.default_rng(0))
    assert set(np.unique(codes[0])) <= {3, 50_000, 99_998}


def errors(model, codes, rows, cliques):
    return sum(
        np.abs(tabulate(codes, model.shape, c) - rows * model.marginal(c)).sum() for c in cliques
    )


@pytest.mark.parametrize("name", ["single clique", "chain", "star", "triangles", "independent"])
def test_error_is_far_below_independent_draws(name):
    shape, cliques = STRUCTURES[name]
    model, rows, keys = consistent(shape, cliques), 20_000, 5
    joint = brute_joint(model).reshape(-1)
    systematic = multinomial = 0.0
    for key in range(keys):
        rng = np.random.default_rng(key)
        systematic += errors(model, model.sample(rows, rng), rows, cliques)
        drawn = np.repeat(np.arange(joint.size), rng.multinomial(rows, joint / joint.sum()))
        multinomial += errors(model, np.unravel_index(drawn, shape), rows, cliques)
    assert systematic < 0.05 * multinomial


def test_tables_that_no_clique_holds_stay_close_as_well():
    shape, cliques = STRUCTURES["chain"]
    model, rows = consistent(shape, cliques), 20_000
    joint = brute_joint(model).reshape(-1)
    apart = [(0, 2), (0, 3), (1, 3), (0, 1, 2, 3)]
    rng = np.random.default_rng(0)
    ours = errors(model, model.sample(rows, rng), rows, apart)
    drawn = np.repeat(np.arange(joint.size), rng.multinomial(rows, joint / joint.sum()))
    assert ours < 0.5 * errors(model, np.unravel_index(drawn, shape), rows, apart)


@pytest.mark.parametrize("name", ["single clique", "chain", "triangles"])
def test_sampling_is_unbiased_over_keys(name):
    shape, cliques = STRUCTURES[name]
    model, rows, keys = consistent(shape, cliques), 5, examples(1_000, 4_000)
    joint, total = brute_joint(model), np.zeros(shape)
    for key in range(keys):
        total += tabulate(model.sample(rows, np.random.default_rng(key)), shape, range(len(shape)))
    expected = rows * keys * joint
    # Rounded shares vary less than independent draws; 5 standard deviations of those is ample.
    assert (np.abs(total - expected) <= 5 * np.sqrt(expected + 1)).all()


def test_rows_come_in_random_order():
    model = Decomposable.joint(np.array([0.5, 0.5]))
    first = np.array([model.sample(10, np.random.default_rng(k))[0] for k in range(400)])
    assert (np.abs(first.mean(axis=0) - 0.5) < 0.13).all()


def test_no_rows_one_row_and_dtypes():
    shape = (1, 2, 256, 257)
    model = Decomposable.independent([np.full(size, 1 / size) for size in shape])
    for rows in (0, 1, 3):
        codes = model.sample(rows, np.random.default_rng(0))
        assert [column.size for column in codes] == [rows] * 4
        assert [column.dtype for column in codes] == [np.uint8, np.uint8, np.uint8, np.uint16]


def test_the_key_decides():
    model = consistent((2, 3, 4, 2), ((0, 1), (1, 2), (2, 3)))
    a, b, c = (model.sample(50, np.random.default_rng(key)) for key in (1, 1, 2))
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert not all(np.array_equal(x, y) for x, y in zip(a, c, strict=True))


# --- disk ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STRUCTURES)
def test_round_trip(name):
    model = consistent(*STRUCTURES[name])
    description, arrays = model.to_arrays()
    back = from_arrays(json.loads(json.dumps(description)), arrays)
    assert back.shape == model.shape
    assert back.cliques == model.cliques
    for one, other in zip(back.tables, model.tables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)
    rows = [m.sample(30, np.random.default_rng(0)) for m in (model, back)]
    assert all(np.array_equal(x, y) for x, y in zip(*rows, strict=True))


@pytest.mark.parametrize(
    "change", [{"kind": "pickle"}, {"shape": None}, {"cliques": "all"}, {"shape": [2, 2]}]
)
def test_descriptions_that_do_not_fit_are_refused(change):
    description, arrays = consistent((2, 3), ((0, 1),)).to_arrays()
    with pytest.raises(InputError):
        from_arrays({**description, **change}, arrays)
