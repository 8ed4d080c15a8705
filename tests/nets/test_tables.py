"""Tables of a mixture of products against brute force, in memory that the batch bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.thorough import slow

from understudy.nets.generator import Generator
from understudy.nets.tables import Layout, Table

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
)


@pytest.fixture(scope="module")
def heads():
    generator = Generator(SHAPE, latent=3, width=8, blocks=1)
    params = jax.tree.map(lambda x: 4 * x, generator.init(jax.random.key(0)))
    return generator.split(
        generator.probabilities(params, generator.latents(jax.random.key(1), 11))
    )


def brute(heads, table):
    letters = "abcd"[: len(table.clique)]
    operands = [np.asarray(heads[i], np.float64) for i in table.clique]
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
    found = layout.restore(jax.jit(layout.marginals)(heads))
    for table, mine in zip(TABLES, found, strict=True):
        np.testing.assert_allclose(mine, brute(heads, table), atol=1e-6, err_msg=str(table.clique))


def test_targets_lie_where_the_tables_lie(heads):
    layout = Layout(SHAPE, TABLES)
    values = [brute(heads, table) for table in TABLES]
    for mine, theirs in zip(layout.arrange(values), jax.jit(layout.marginals)(heads), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    assert layout.cells == sum(v.size for v in values)


def test_gradients_do_not_depend_on_the_slices(heads):
    def loss(columns, entries):
        found = Layout(SHAPE, TABLES, entries).marginals(columns)
        return sum((m * m).sum() for m in found)

    whole, sliced = (jax.jit(jax.grad(loss), static_argnums=1)(heads, n) for n in (10**6, 50))
    for a, b in zip(whole, sliced, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_memory_is_bounded_by_a_slice_of_the_batch_and_the_cells():
    shape, batch = (200, 150, 100), 2_000
    layout = Layout(shape, (Table((0, 1, 2)),), 3_000_000)
    heads = [jax.ShapeDtypeStruct((batch, size), jnp.float32) for size in shape]

    def loss(columns):
        return sum((m * m).sum() for m in layout.marginals(columns))

    analysis = jax.jit(jax.grad(loss)).lower(heads).compile().memory_analysis()
    used = analysis.temp_size_in_bytes
    whole = 4 * batch * 150 * 100
    rows = layout.entries // (150 * 100)
    slices, cells = 3 * rows * (150 * 100 + 200), 6 * layout.cells
    assert used <= 4 * (slices + cells) * 1.5
    assert used < 2 * whole
