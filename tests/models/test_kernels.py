"""The compiled loops against brute force: roots, scaling, draws, and swaps."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, wrightomega
from tests.thorough import examples

from understudy import compiled
from understudy.models import _kernels as kernels
from understudy.models.blocks import Block


@pytest.mark.parametrize(
    "points",
    [
        np.linspace(-60, 60, 4001),
        np.logspace(0, 12, 400),
        -np.logspace(0, 2.8, 200),
        np.nextafter([-30.0, -2.0, 1.0], -np.inf),
        np.array([-30.0, -2.0, 1.0]),
    ],
    ids=["middle", "far above", "far below", "just before a branch", "at a branch"],
)
def test_omega_is_wrights(points):
    wanted = wrightomega(points).real
    found = np.array([kernels._omega(float(z), 0.0) for z in points])
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=0)
    for way in (-0.3, 0.3, 1e-3):  # begun nearby, as far off as `solve` begins at most
        near = wrightomega(points + way * (1 + wanted)).real
        found = [kernels._omega(float(z), float(w)) for z, w in zip(points, near, strict=True)]
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=0)


def wild(key, off=0.0):
    """(y, base, ratio, total): tables as noise makes them, over ten orders of magnitude.

    y sums to the total, and is moved by a multiple of it in every cell.
    """
    rng = np.random.default_rng(key)
    cells, total = int(rng.integers(1, 200)), 10 ** rng.uniform(0, 7)
    base = np.maximum(total * rng.dirichlet(np.full(cells, 10 ** rng.uniform(-1.5, 1))), 1e-12)
    spread = cells if key % 2 else 1
    ratio = np.broadcast_to(10 ** rng.uniform(-6, 6, spread), cells).copy()
    y = base + 10 ** rng.uniform(-2, 4) * rng.normal(size=cells)
    y += (total - y.sum()) / cells + off * total
    if key % 5 == 0 and cells > 1:
        base[0] = 0.0
    return y, base, ratio, total


def solved(y, base, ratio, total):
    m = np.full(y.size, np.nan)
    with np.errstate(divide="ignore"):
        log_base = np.log(base)
    return m, kernels.solve(y, log_base, ratio, total, m)


@pytest.mark.parametrize("off", [0.0, -1.0, -1e6, 1e3])
@pytest.mark.parametrize("key", range(examples(15, 60)))
def test_solve_finds_the_root_that_has_the_sum(key, off):
    """m + e·ln(m/b) = y + ν on every cell, Σm = n, whatever the scales."""
    y, base, ratio, total = wild(key, off)
    m, shift = solved(y, base, ratio, total)
    assert m.sum() == pytest.approx(total, rel=1e-6)
    assert (m >= 0).all()
    assert (m[base == 0] == 0).all()
    # Cells that the equation all but empties may be kept from vanishing.
    seen = (y + shift) / ratio > -60
    assert (m[~seen] <= np.exp(-59) * base[~seen]).all()
    seen &= base > 0
    m, y, base, ratio = m[seen], y[seen], base[seen], ratio[seen]
    left = m + ratio * np.log(m / base)
    scale = np.abs(y) + abs(shift) + total + ratio * np.abs(np.log(m / base))
    assert (np.abs(left - y - shift) <= 1e-6 * scale).all()


@pytest.mark.parametrize("key", range(12))
def test_solve_against_two_nested_bisections(key):
    rng = np.random.default_rng(100 + key)
    cells, total = int(rng.integers(2, 6)), 10 ** rng.uniform(1, 3)
    base = total * rng.dirichlet(np.ones(cells)) + 1e-3
    y = base + rng.normal(scale=total / 5, size=cells)
    ratio = 10 ** rng.uniform(-1, 3, cells)

    def cell(i, shift):
        return math.exp(
            brentq(
                lambda u: math.exp(u) + ratio[i] * (u - math.log(base[i])) - y[i] - shift, -1e5, 20
            )
        )

    shift = brentq(lambda v: sum(cell(i, v) for i in range(cells)) - total, -1e4, 1e4, xtol=1e-10)
    m, found = solved(y, base, ratio, total)
    np.testing.assert_allclose(m, [cell(i, shift) for i in range(cells)], rtol=1e-5, atol=1e-9)
    assert found == pytest.approx(shift, rel=1e-4, abs=1e-3)


def test_the_only_cell_with_a_base_gets_everything():
    """However little the measurement wants it to: the others cannot have it."""
    y, base = np.array([-8e5, 8.1e5]), np.array([1e4, 0.0])
    assert solved(y, base, np.full(2, 500.0), 1e4)[0] == pytest.approx([1e4, 0.0])
    assert solved(y, np.zeros(2), np.full(2, 500.0), 1e4)[0].tolist() == [0.0, 0.0]


def test_ease_decides_between_measurement_and_base():
    y, base = np.array([70.0, 30.0]), np.array([20.0, 80.0])
    np.testing.assert_allclose(solved(y, base, np.full(2, 1e-6), 100.0)[0], y, rtol=1e-6)
    np.testing.assert_allclose(solved(y, base, np.full(2, 1e9), 100.0)[0], base, rtol=1e-6)
    between = solved(y, base, np.full(2, 20.0), 100.0)[0]
    assert base[0] < between[0] < y[0]


@pytest.mark.parametrize("key", range(5))
def test_balance_is_iterative_proportional_fitting(key):
    rng = np.random.default_rng(key)
    shape = tuple(rng.integers(1, 7, 2))
    table = rng.random(shape)
    if min(shape) > 1:
        table[0] = 0.0  # a row without mass stays empty
    rows, columns = (10 * rng.dirichlet(np.ones(size)) for size in shape)
    for times in (1, 3):
        expected = table.copy()
        for _ in range(times):
            for axis, wanted in ((1, rows[:, None]), (0, columns[None, :])):
                sums = expected.sum(axis=axis, keepdims=True)
                expected = expected * np.divide(
                    wanted, sums, out=np.ones_like(sums), where=sums > 0
                )
        found = table.copy()
        kernels.balance(found.reshape(-1), rows, columns, times)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_balance_converges_to_the_margins_and_keeps_odds():
    rng = np.random.default_rng(1)
    table = rng.random((3, 4)) + 0.1
    rows, columns = 50 * rng.dirichlet(np.ones(3)), 50 * rng.dirichlet(np.ones(4))
    found = table.copy()
    kernels.balance(found.reshape(-1), rows, columns, 200)
    np.testing.assert_allclose(found.sum(axis=1), rows, rtol=1e-10)
    np.testing.assert_allclose(found.sum(axis=0), columns, rtol=1e-10)

    def odds(t):
        return np.log(t[1:, 1:] * t[:1, :1] / (t[1:, :1] * t[:1, 1:]))

    np.testing.assert_allclose(odds(found), odds(table), atol=1e-10)


@pytest.mark.parametrize("key", range(4))
def test_hold_meets_the_margins_by_a_shift_for_every_row_and_column(key):
    """m + ratio·ln(m/base) − y = ν + ρ_i + γ_j: no interaction, but what linear steps leave."""
    rng = np.random.default_rng(key)
    base, ratio = 20 + 50 * rng.random((3, 4)), 0.5 + 5 * rng.random((3, 4))
    y, margins = base + rng.normal(0, 8, base.shape), (base.sum(axis=1), base.sum(axis=0))

    def interaction(meet):
        flat = (each.reshape(-1) for each in (y, base, ratio))
        found = solved(*flat, float(base.sum()))[0].reshape(base.shape)
        meet(found)
        np.testing.assert_allclose(found.sum(axis=1), margins[0], rtol=1e-9)
        np.testing.assert_allclose(found.sum(axis=0), margins[1], rtol=1e-9)
        shift = found + ratio * np.log(found / base) - y
        return np.abs(
            shift - shift.mean(axis=0) - (shift - shift.mean(axis=0)).mean(axis=1)[:, None]
        )

    shifted = interaction(
        lambda m: kernels.hold(m.reshape(-1), ratio.reshape(-1), *margins, 200)
    ).max()
    assert shifted < interaction(lambda m: kernels.balance(m.reshape(-1), *margins, 200)).max() / 4


def test_weigh_is_bincount():
    rng = np.random.default_rng(2)
    cells, weights = rng.integers(5, size=100).astype(np.uint16), rng.random(100)
    for parts in (np.zeros((1, 7)), kernels.parts(7)):
        kernels.weigh(cells, weights, parts)
        np.testing.assert_allclose(parts.sum(axis=0), np.bincount(cells, weights, 7), rtol=1e-13)
    assert kernels.parts(10**6).shape == (1, 10**6)


def test_join_weigh_and_scale_are_bincount_and_indexing():
    rng = np.random.default_rng(2)
    one, two = rng.integers(3, size=(2, 100)).astype(np.uint16)
    weights, factors = rng.random(100), rng.random(9)
    along, across = np.arange(0, 9, 3, dtype=np.int32), np.arange(3, dtype=np.int32)
    cells, parts = np.empty(100, np.uint16), kernels.parts(9)
    kernels.join(one, along, two, across, cells)
    np.testing.assert_array_equal(cells, 3 * one.astype(int) + two)
    held = np.zeros((3, 3), np.bool_)
    kernels.mark(one, two, held)
    np.testing.assert_array_equal(held.reshape(-1), np.isin(np.arange(9), cells))
    kernels.weigh(cells, weights, parts)
    np.testing.assert_allclose(parts.sum(axis=0), np.bincount(cells, weights, 9), rtol=1e-13)
    scaled, again, others = weights.copy(), weights.copy(), cells[::-1].copy()
    kernels.scale(cells, factors, scaled)
    np.testing.assert_allclose(scaled, weights * factors[cells], rtol=1e-15)
    both, apart = kernels.parts(9), kernels.parts(9)
    kernels.scale_and_weigh(cells, factors, others, again, both)
    kernels.weigh(others, scaled, apart)
    assert np.array_equal(again, scaled)
    assert np.array_equal(both, apart)


def refined(current, y, ratio, empty, margins, rows, part, theta):
    """What `refine` does, in NumPy and with the loops that it is made of."""
    base = np.where(empty, 0.0, current * np.exp(-theta))
    if margins is None:
        base *= rows / base.sum()
    else:
        kernels.balance(base, *margins, 3)
    solved = np.empty_like(base)
    with np.errstate(divide="ignore"):
        kernels.solve(y, np.log(base), ratio, rows, solved)
    if margins is not None:
        kernels.hold(solved, ratio, *margins, 2)
        kernels.balance(solved, *margins, 2)
    inside = (current > 0) & ~empty
    factors = np.divide(solved, current, out=np.ones_like(current), where=inside)
    step = np.log(factors)
    if part < 1 and margins is not None:
        grid = np.where(inside, step, np.nan).reshape([m.size for m in margins])
        means = np.add.outer(np.nanmean(grid, axis=1), np.nanmean(grid, axis=0))
        step = np.where(np.isnan(grid), means - np.nanmean(grid), grid).reshape(-1)
    if part < 1:
        step = part * step
        factors = np.exp(step)
    theta = np.where(empty, -40.0, np.clip(theta + step, -40, 40))
    return np.where(empty, 0.0, factors), theta


@pytest.mark.parametrize("part", [1.0, 0.3])
@pytest.mark.parametrize("pair", [True, False])
@pytest.mark.parametrize("some", [True, False])
def test_refine_against_numpy(pair, part, some, monkeypatch):
    monkeypatch.setattr(compiled, "_ordinary", None)  # it must need no Numba to run
    rng = np.random.default_rng(8)
    y, theta = rng.uniform(0, 100, 12), rng.normal(size=12)
    current = np.where(rng.random(12) < 0.2, 0.0, rng.uniform(0, 100, 12))
    current *= y.sum() / current.sum()
    ratio, empty = rng.uniform(0.1, 10, 12), np.arange(12) == 5
    grid = y.reshape(3, 4)
    margins = (grid.sum(axis=1), grid.sum(axis=0)) if pair else None
    block = Block((0, 1), None, y, ratio, ratio, margins, empty=empty if some else None)
    block.theta = theta
    found = block.refine(current, y.sum(), part)
    told = current, y, ratio, empty & some, margins, y.sum(), part, theta
    factors, expected = refined(*told)
    np.testing.assert_allclose(found, factors, rtol=1e-10)
    np.testing.assert_allclose(block.theta, expected, rtol=1e-10, atol=1e-12)


def terms_of(tables):
    """One pair of columns (0, 1), drawn for column 0: the table with its values last."""
    flat = np.concatenate([[0.0], tables.T.reshape(-1)]).astype(np.float32)
    return np.array([[1, 1, tables.shape[0]]], np.int64), flat


def test_gibbs_draws_a_column_given_the_others():
    """Chi-square of 40,000 draws with fixed numbers against softmax(alpha + table[:, x_1])."""
    rng = np.random.default_rng(3)
    pair, alpha = rng.normal(size=(4, 3)), rng.normal(size=4).astype(np.float32)
    terms, flat = terms_of(pair)
    records = np.stack([np.zeros(40_000), np.arange(40_000) % 3]).astype(np.uint16)
    uniform = rng.random(40_000, dtype=np.float32)
    room = np.empty(64, np.int64), np.empty((5, 64), np.float32)
    kernels.gibbs(records, 0, terms, flat, alpha, *room, uniform)
    for x in range(3):
        exact = np.exp(alpha + pair[:, x])
        exact /= exact.sum()
        drawn = np.bincount(records[0, records[1] == x], minlength=4)
        assert ((drawn - drawn.sum() * exact) ** 2 / (drawn.sum() * exact)).sum() < 20
    total = np.zeros(4)
    few = records[:, :3_000].copy()
    kernels.conditionals(few, terms, flat, alpha, *room, total)
    expected = np.exp(alpha[:, None] + pair)
    expected = (expected / expected.sum(axis=0)).mean(axis=1)
    np.testing.assert_allclose(total / 3000, expected, rtol=5e-3)


def test_gibbs_never_draws_what_is_out_of_reach():
    pair = np.where(np.eye(3) > 0, 0.0, -30.0)
    terms, flat = terms_of(pair)
    records = np.stack([np.zeros(9_000), np.arange(9_000) % 3]).astype(np.uint16)
    uniform = np.linspace(0, 1, 9_000, endpoint=False).astype(np.float32)
    room = np.empty(64, np.int64), np.empty((4, 64), np.float32)
    kernels.gibbs(records, 0, terms, flat, np.zeros(3, np.float32), *room, uniform)
    np.testing.assert_array_equal(*records)


# --- draws --------------------------------------------------------------------------------------


def drawn(law, group, order, start):
    out = np.full(group.size, -1)
    kernels.draw(np.cumsum(law, axis=1), group, order, start, out)
    return out


@pytest.mark.parametrize("rows", [1, 10, 1_000, 50_000])
@pytest.mark.parametrize("key", range(3))
def test_draws_are_within_a_logarithm_of_their_shares(rows, key):
    """The golden ratio has discrepancy of order ln(n), independent draws one of order √n."""
    rng = np.random.default_rng(key)
    law = rng.dirichlet(np.full(8, 0.5), 3) * rng.uniform(0.1, 10, (3, 1))
    group = np.sort(rng.integers(3, size=rows))
    picked = drawn(law, group, np.arange(rows), rng.random(3))
    for g in range(3):
        own = picked[group == g]
        expected = own.size * law[g] / law[g].sum()
        off = np.abs(np.bincount(own, minlength=8) - expected)
        assert off.max() <= 2 + math.log(own.size + 1)


def test_every_run_of_neighbours_gets_its_shares():
    rng = np.random.default_rng(4)
    law = rng.dirichlet(np.ones(5), 1)
    order = rng.permutation(4_000)
    picked = drawn(law, np.zeros(4_000, np.int64), order, rng.random(1))[order]
    for first in (0, 500, 1_111):
        for size in (50, 700, 2_500):
            counts = np.bincount(picked[first : first + size], minlength=5)
            assert np.abs(counts - size * law[0]).max() <= 2 + 2 * math.log(size)


def test_cells_without_mass_are_never_drawn():
    law = np.array([[0.0, 0.3, 0.0, 0.7, 0.0]])
    picked = drawn(law, np.zeros(5_000, np.int64), np.arange(5_000), np.zeros(1))
    assert set(picked.tolist()) == {1, 3}


# --- swaps --------------------------------------------------------------------------------------


BLOCK = 7


def instance(key, rows=300):
    """Marginals (0,), (0, 1) and (1, 2) of records over (2, 3, 4), and rows drawn badly."""
    rng = np.random.default_rng(key)
    records = np.stack([rng.integers(size, size=60) for size in (2, 3, 4)], axis=1).astype(np.int32)
    columns = np.array([[0, 0], [0, 1], [1, 2]])
    strides = np.array([[1, 0], [3, 1], [4, 1]])
    offsets = np.array([0, 2, 8])
    weights = rng.dirichlet(np.ones(60))
    cell = offsets[None, :] + (records[:, columns] * strides[None]).sum(axis=2)
    target = rows * sum(np.bincount(cell[:, c], weights, 20) for c in range(3))
    scale = rng.uniform(0.2, 1.0, 20).astype(np.float32)
    chosen = rng.integers(60, size=rows)
    places, proposals = rng.integers(rows, size=3_000), rng.integers(60, size=3_000)
    return records, columns, strides, offsets, cell, target, scale, chosen, places, proposals


def placed(columns, strides, offsets):
    """Where the cells are, as the loops take it, and room for the codes of a block of records."""
    return columns.T.copy(), np.vstack([strides.T, offsets]), np.zeros((3, BLOCK), np.int64)


def swap(records, chosen, where, excess, scale, places, proposals):
    cells = np.zeros((2, 3, BLOCK), np.int64)
    change = np.stack([scale.astype(float)] * 3)
    tries = np.stack([places, proposals])
    return kernels.swap(records, chosen, *where, cells, excess, change, tries, np.empty(BLOCK))


def excess_of(cell, chosen, target):
    return sum(np.bincount(cell[chosen, c], minlength=20) for c in range(3)) - target


@pytest.mark.parametrize("key", range(4))
def test_swaps_lower_the_scaled_squared_error_one_by_one(key):
    records, columns, strides, offsets, cell, target, scale, chosen, places, proposals = instance(
        key
    )
    excess = excess_of(cell, chosen, target).astype(np.float32)
    before, accepted = float((scale * excess.astype(float) ** 2).sum()), 0
    for place, proposal in zip(places[:600], proposals[:600], strict=True):
        held = chosen.copy()
        where = placed(columns, strides, offsets)
        one = np.array([place]), np.array([proposal])
        taken = swap(records, chosen, where, excess, scale, *one)
        after = float((scale * excess_of(cell, chosen, target) ** 2).sum())
        held[place] = proposal
        other = float((scale * excess_of(cell, held, target) ** 2).sum())
        assert after == pytest.approx(min(before, other), abs=0.05)
        assert taken in (0, 1)
        before, accepted = after, accepted + taken
    assert accepted > 30


def test_swaps_keep_rows_and_the_account_of_their_excess():
    records, columns, strides, offsets, cell, target, scale, chosen, places, proposals = instance(9)
    excess = excess_of(cell, chosen, target).astype(np.float32)
    first = float((scale * excess.astype(float) ** 2).sum())
    where = placed(columns, strides, offsets)
    swap(records, chosen, where, excess, scale, places, proposals)
    assert chosen.shape == (300,)
    assert ((chosen >= 0) & (chosen < 60)).all()
    np.testing.assert_allclose(excess, excess_of(cell, chosen, target), atol=1e-3)
    assert float((scale * excess.astype(float) ** 2).sum()) < first / 20


def test_a_block_of_swaps_ends_as_one_swap_after_the_other():
    records, columns, strides, offsets, cell, target, scale, chosen, places, proposals = instance(4)
    places[1::2] = places[::2]  # rows that meet two proposals in one block
    excess, one, ones = excess_of(cell, chosen, target).astype(np.float32), chosen.copy(), 0
    alone = excess.copy()
    for place, proposal in zip(places, proposals, strict=True):
        where = placed(columns, strides, offsets)
        ones += swap(records, one, where, alone, scale, np.array([place]), np.array([proposal]))
    where = placed(columns, strides, offsets)
    assert swap(records, chosen, where, excess, scale, places, proposals) == ones > 100
    np.testing.assert_array_equal(chosen, one)
    np.testing.assert_array_equal(excess, alone)


def test_tables_of_all_marginals_are_made_at_once():
    records, columns, strides, offsets, cell, _, _, chosen, _, _ = instance(3)
    where, cells = placed(columns, strides, offsets), np.empty((3, BLOCK), np.int64)
    weights, table = np.linspace(0, 1, 60).astype(np.float32), np.zeros(20)
    kernels.tabulate(records, weights, *where, cells, table)
    expected = sum(np.bincount(cell[:, c], weights, 20) for c in range(3))
    np.testing.assert_allclose(table, expected, rtol=1e-12)
    counts = np.zeros(20, np.float32)
    kernels.count(records, chosen, *where, cells, counts)
    np.testing.assert_array_equal(counts, excess_of(cell, chosen, 0))


def test_between_is_the_normal_law_between_two_ends():
    rng = np.random.default_rng(0)
    shares = np.concatenate([rng.random(9_000), 10.0 ** (-300 * rng.random(1_000))])
    whole = shares.copy()
    kernels.between(np.full(shares.size, -np.inf), np.full(shares.size, np.inf), whole)
    np.testing.assert_allclose(whole, ndtri(shares), rtol=1e-13, atol=1e-15)
    low = rng.normal(0, 4, shares.size)
    high = low + rng.exponential(1, shares.size)
    found = shares.copy()
    kernels.between(low, high, found)
    assert np.all((low <= found) & (found <= high))
    sign = np.where(low > 0, -1, 1)  # of the tail that is exact
    ends = np.sort([ndtr(sign * low), ndtr(sign * high)], axis=0)
    np.testing.assert_allclose(ndtr(sign * found), ends[0] + shares * (ends[1] - ends[0]), 1e-9)
