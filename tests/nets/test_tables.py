"""Tables of a mixture of products against brute force, in memory that the batch bounds."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.thorough import slow

from understudy.nets.generator import Generator
from understudy.nets.tables import Layout, Table, _Sums

SHAPE = (3, 1, 4, 2, 5)
LABELS = (np.array([0, 1, 0, 2]), np.array([0, 0, 1, 1, 1]))
TABLES = (
    Table((0,)),
    Table((0, 2)),
    Table((2, 4)),
    Table((2, 4), LABELS),
    Table((0, 2, 4)),
    Table((1, 3)),
    Table((0, 2, 3, 4)),
    Table((2,), (np.array([3, 2, 1, 0]),)),
    Table((0, 2)),
    Table((4, 0)),
)


@pytest.fixture(scope="module")
def heads():
    generator = Generator(SHAPE, latent=3, width=8, blocks=1)
    params = jax.tree.map(lambda x: 4 * x, generator.init(jax.random.key(0)))
    return generator.probabilities(params, generator.latents(jax.random.key(1), 11))


def brute(heads, table):
    letters = "abcd"[: len(table.clique)]
    columns = np.split(np.asarray(heads, np.float64), np.cumsum(SHAPE)[:-1], axis=1)
    operands = [columns[i] for i in table.clique]
    whole = np.einsum(",".join("z" + c for c in letters) + "->" + letters, *operands) / 11
    if table.labels is None:
        return whole
    merged = np.zeros(table.sizes(SHAPE))
    for index in np.ndindex(whole.shape):
        merged[tuple(label[v] for label, v in zip(table.labels, index, strict=True))] += whole[
            index
        ]
    return merged


@pytest.mark.parametrize("entries", [slow(10**6), 50, slow(1)])
def test_tables_are_exact_whole_or_merged_in_any_slices(heads, entries):
    layout = Layout(SHAPE, TABLES, entries)
    flat = jax.jit(layout.marginals)(heads)
    values = [brute(heads, table) for table in TABLES]
    for table, mine, value in zip(TABLES, layout.restore(flat), values, strict=True):
        np.testing.assert_allclose(mine, value, atol=1e-6, err_msg=str(table.clique))
    np.testing.assert_allclose(layout.arrange(values), flat, atol=1e-6)  # targets lie there too
    assert layout.cells == sum(value.size for value in values)


def test_gradients_do_not_depend_on_the_slices(heads):
    def loss(columns, entries):
        found = Layout(SHAPE, TABLES[2:5], entries).marginals(columns)
        return (found * found).sum()

    whole, sliced = (jax.jit(jax.grad(loss), static_argnums=1)(heads, n) for n in (10**6, 50))
    for a, b in zip(whole, sliced, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_memory_is_bounded_by_a_slice_of_the_batch_and_the_cells():
    shape, batch = (80, 60, 40), 4_000
    layout = Layout(shape, (Table((0, 1, 2)),), 200_000)
    heads = jax.ShapeDtypeStruct((batch, sum(shape)), jnp.float32)

    def loss(once, columns):
        return (once.marginals(columns) ** 2).sum()

    analysis = jax.jit(jax.grad(loss, 1)).lower(layout.once, heads).compile().memory_analysis()
    used = analysis.temp_size_in_bytes
    whole = 4 * batch * 60 * 40
    assert used <= 4 * 1.2 * (5 * layout.entries + 6 * layout.cells)
    assert used < whole


def test_the_program_does_not_grow_with_the_number_of_tables():
    shape = (3,) * 12
    lengths = []
    for many in (20, 220):
        tables = tuple(Table(clique) for clique in list(combinations(range(12), 3))[:many])
        layout = Layout(shape, tables)
        heads = jax.ShapeDtypeStruct((5, sum(shape)), jnp.float32)
        program = jax.make_jaxpr(jax.grad(lambda x, once: once.marginals(x).sum()))
        lengths.append(str(program(heads, layout.once)).count("\n"))
    assert lengths[1] < 1.5 * lengths[0]  # a level more of sums


def test_sums_of_many_rows_are_sums_of_a_few_at_a_time():
    rng = np.random.default_rng(0)
    to, of = rng.integers(0, 7, 500), rng.integers(0, 90, 500)
    x = rng.random((90, 2)).astype(np.float32)
    sums = _Sums.of(to, of, (7, 90))
    matrix = np.zeros((7, 90))
    np.add.at(matrix, (to, of), 1)
    np.testing.assert_allclose(jax.jit(lambda y: sums(y))(x), matrix @ x, rtol=1e-5)
    found = jax.jit(jax.grad(lambda y: (sums(y) * jnp.asarray(x[:7])).sum()))(x)
    np.testing.assert_allclose(found, matrix.T @ x[:7], rtol=1e-5)
    assert max(index.shape[1] for index in (*sums.forth, *sums.back)) <= 16
