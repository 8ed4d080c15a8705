"""Shapes found from noisy counts, the noise of fixed seeds at the ρ of a release with ε = 1."""

from datetime import date
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from bench.shapes import errors, ladder
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columns.test_ladder import SCALES
from tests.thorough import examples
from understudy.columns import Date, Integer, Number
from understudy.columns.estimate import (
    Roundness,
    _trimmed,
    _width,
    _without_islands,
    fitted,
    learned,
    told,
)
from understudy.columns.ladder import SHARES, Measured, Scale, finer, first, rounds
from understudy.columns.reading import DAY

RHO = 0.05 * 0.015  # 5 % of ρ of (1, 1e-9)
ROWS = 20_000
RNG = np.random.default_rng


def drawn(scale, points, rho=RHO, seed=1, rows=ROWS):
    """Rows drawn from the shape, cells by their true share."""
    rng = RNG(seed)
    shape = ladder(scale, points, rho, rng)
    lows = np.array(shape.leaves)[list(shape.starts)]
    cells = np.maximum(np.searchsorted(lows, points, side="right") - 1, 0)
    return shape, shape.draw(cells, rng)


def share(points, value):
    return np.mean(points == value)


@pytest.mark.parametrize("bounds", [(0, 5_000_000), (0, 10**8), (None, None)])
def test_prices_keep_mean_deviation_and_ranks(bounds):
    prices = np.rint(np.exp(13 + 0.5 * RNG(0).standard_normal(ROWS))).astype(np.int64)
    _, found = drawn(Scale(*bounds), prices)
    mean, sd, w1, rank, _ = errors(prices, found)
    assert mean < 0.02
    assert sd < 0.1
    assert w1 < 0.035
    assert rank < 0.02


def test_a_spike_at_zero_is_kept():
    rng = RNG(0)
    income = np.where(rng.random(ROWS) < 0.3, 0, np.exp(10 + 0.8 * rng.standard_normal(ROWS)))
    income = income.astype(np.int64)
    shape, found = drawn(Scale(), income)
    assert shape.edges[:2] == (0, 1)
    assert share(found, 0) == share(income, 0)  # a cell of its own


def test_negatives_are_kept():
    rng = RNG(0)
    balance = np.where(rng.random(ROWS) < 0.3, -1, 1) * np.exp(7 + rng.standard_normal(ROWS))
    _, found = drawn(Scale(), balance.astype(np.int64))
    assert np.mean(found < 0) == pytest.approx(0.3, abs=0.02)
    assert errors(balance, found)[2] < 0.05


def test_codes_for_missing_values_are_kept():
    rng = RNG(0)
    visits = np.where(rng.random(ROWS) < 0.04, 999, rng.poisson(6, ROWS))
    _, found = drawn(Scale(), visits)
    assert share(found, 999) == pytest.approx(share(visits, 999), abs=0.01)
    assert not np.any((found > 50) & (found < 999))


def test_heaped_ages_are_kept():
    rng = RNG(0)
    age = np.clip(np.rint(45 + 17 * rng.standard_normal(ROWS)).astype(np.int64), 18, 95)
    age = np.where(rng.random(ROWS) < 0.4, age // 10 * 10, age)
    _, found = drawn(Scale(0, 120), age)
    for decade in (30, 40, 50, 60):
        assert share(found, decade) == pytest.approx(share(age, decade), abs=0.01)


def test_round_values_that_noise_hides_are_not_missing():
    """Whole tens: how many hundreds there are is hidden, and they are drawn all the same."""
    rng = np.random.default_rng(5)
    points = np.rint(rng.normal(450, 80, 20_000) / 10).astype(np.int64) * 10
    shape = ladder(Scale(0, 10**6), points, 3e-6, rng)
    kinds = [*shape.kinds.classed, None]
    weights = np.array(shape.roundness).reshape(-1, len(kinds))[shape.decades.index(100)]
    found = dict(zip(kinds, weights.tolist(), strict=True))
    assert found[100, 0] > 0
    assert found[10, 0] > 0
    assert found[None] == found[5, 0] == found[25, 0] == found[10, 9] == 0


def test_quarters_are_kept():
    """Of rooms in quarters, in hundredths between loose bounds: no 3.55."""
    rng = RNG(0)
    rooms = np.clip(np.rint((2.1 + 0.8 * rng.standard_normal(ROWS)) * 4), 2, 32).astype(int) * 25
    _, found = drawn(Scale(0.0, 1000.0, grid=Fraction(1, 100)), rooms)
    assert np.mean(found % 25 == 0) > 0.95


def test_kinds_that_noise_hides_are_no_wider_than_it():
    """Of 20,000 rows, all quarters, and noise of 10: 30 at most are anything else."""
    form = rounds(Scale(0, 999))
    counts = np.zeros((3, form.kinds.classes))
    counts[2, form.kinds.classed.index((25, 0))] = 20_000
    found = Roundness(np.array([0, 10, 100, 1000]), form.kinds, counts, 10.0)
    quarter, others = _width(np.array([125, 126, 150]), found)
    assert others / quarter < 30 / 20_000


def test_prices_that_end_in_99_are_kept():
    """Most .99, some .95, the others anything: 99 and 95 are as frequent as they were."""
    rng = RNG(0)
    dollars, cents = np.floor(np.exp(2.5 + rng.standard_normal(ROWS))), rng.integers(0, 100, ROWS)
    cents = np.where(rng.random(ROWS) < 0.7, np.where(rng.random(ROWS) < 0.3, 95, 99), cents)
    for sign, bounds in ((1, (0.0, 10_000.0)), (-1, (-10_000.0, 0.0))):
        prices = sign * (dollars * 100 + cents).astype(np.int64)
        _, found = drawn(Scale(*bounds, grid=Fraction(1, 100)), prices)
        for ending in (99, 95):
            real, own = (np.mean(np.abs(each) % 100 == ending) for each in (prices, found))
            assert own == pytest.approx(real, abs=0.08)


def test_round_amounts_are_kept():
    rng = RNG(0)
    amount = np.exp(8.6 + 0.5 * rng.standard_normal(ROWS))
    amount = np.where(rng.random(ROWS) < 0.7, np.rint(amount / 100) * 100, amount).astype(np.int64)
    _, found = drawn(Scale(0, 10**6), amount)
    assert np.mean(found % 100 == 0) == pytest.approx(np.mean(amount % 100 == 0), abs=0.06)


def test_atoms_among_other_values_are_kept():
    rng = RNG(0)
    fee = np.exp(7 + 0.6 * rng.standard_normal(ROWS)).astype(np.int64)
    fee = np.where(rng.random(ROWS) < 0.1, 1250, fee)
    _, found = drawn(Scale(0, 10**5), fee)
    assert share(found, 1250) == pytest.approx(share(fee, 1250), abs=0.015)


def test_what_lies_beyond_a_bound_is_at_the_bound():
    rng = RNG(0)
    gain = np.minimum(np.exp(6 + 1.2 * rng.standard_normal(ROWS)), 2000).astype(np.int64)
    shape, found = drawn(Scale(0, 2000), gain)
    assert shape.edges[-1] == 2000
    assert share(found, 2000) == pytest.approx(share(gain, 2000), abs=0.01)
    assert found.max() == 2000


def test_prices_in_cents_are_whole_cents_and_legal():
    rng = RNG(0)
    cents = (np.floor(np.exp(2.5 + rng.standard_normal(ROWS))) * 100 + 99).astype(np.int64)
    shape, found = drawn(Scale(grid=Fraction(1, 100)), cents)
    column = Number("x", edges=shape.edges, decimals=2)
    assert column.grid.lows.tolist() == [shape.leaves[at] for at in shape.starts]
    assert errors(cents, found)[2] < 0.05


def test_heavy_tails_end_and_open_columns_have_no_island_far_away():
    tail = np.rint(1000 * RNG(0).random(ROWS) ** (-1 / 2.5)).astype(np.int64)
    for seed in range(5):
        _, found = drawn(Scale(), tail, seed=seed)
        assert found.max() < 20 * tail.max()
        assert errors(tail, found)[0] < 0.06


def test_noise_beside_the_last_values_is_no_tail():
    """Four cells of noise, none of them clear, look like what is before them."""
    scale = Scale(0, 10**7)
    edges = first(scale)
    counts = np.zeros(len(edges) - 1)
    at = {float(edge): cell for cell, edge in enumerate(edges[:-1])}
    for low, rows in ((1e4, 9_000), (1e5, 160), (2e5, 180), (5e5, 80), (1e6, 90), (2e6, 95)):
        counts[at[low]] = rows
    counts[at[5e6]] = 90
    shape = learned(scale, [Measured(edges, counts, 49.0)], None, 9_700)
    beyond = np.array(shape.leaves[:-1]) >= 10**6
    assert np.array(shape.weights)[beyond].sum() < 0.01 * sum(shape.weights)
    counts[at[5e6]] = 400
    shape = learned(scale, [Measured(edges, counts, 49.0)], None, 10_000)
    beyond = np.array(shape.leaves[:-1]) >= 5 * 10**6
    assert np.array(shape.weights)[beyond].sum() > 0.02 * sum(shape.weights)


def found_of(scale, rows, sigma=20.0, cuts=()):
    """The shape that exact counts of the first level tell: of rows by where their cells begin."""
    edges = first(scale)
    counts = np.zeros(len(edges) - 1)
    counts[[edges.index(low) for low in rows]] = list(rows.values())
    return learned(scale, [Measured(edges, counts, sigma)], None, sum(rows.values()), cuts)


def held(shape, low, high):
    """The share of the leaves that lie between two points."""
    weights, leaves = np.array(shape.weights), np.array(shape.leaves)
    return weights[(leaves[:-1] >= low) & (leaves[1:] <= high)].sum() / weights.sum()


BULK = {1000: 4000, 2000: 6000, 5000: 3000}


@pytest.mark.parametrize("sign", [1, -1])
def test_a_stray_cell_far_away_must_be_beyond_doubt(sign):
    """Further from zero than most rows, and apart from them; less will do elsewhere."""
    scale = Scale(-(10**9), 10**9)
    edges = first(scale)
    ends = dict(pairwise(edges))

    def part(low, high, more):
        """Of the rows between two values, mirrored at zero where `sign` says so."""
        rows = {**BULK, **more}
        if sign < 0:
            rows = {1 - ends[at]: count for at, count in rows.items()}
            low, high = 1 - high, 1 - low
        return held(found_of(scale, rows), low, high)

    assert part(10**6, 10**9, {10**8: 95}) < 1e-5
    assert part(10**6, 10**9, {10**8: 105}) == pytest.approx(105 / 13_105)
    together = {10**8: 82, 2 * 10**8: 82}
    assert part(10**6, 10**9, together) == pytest.approx(164 / 13_164, rel=0.05)
    as_far = {10**4: 2000, -19_999: 95}
    assert part(-(10**9), 0, as_far) == pytest.approx(95 / 15_095)


def test_light_runs_of_leaves_far_from_the_middle_half_go():
    def left(counts, edges, offset):
        """Where the leaves lie that stay, also of the same ones mirrored."""
        edges, mass = np.array(edges) + offset, np.array(counts, float)
        found = np.flatnonzero(_without_islands(edges, mass, np.full(len(mass), 10.0)))
        mirrored = _without_islands(1 - edges[::-1], mass[::-1], np.full(len(mass), 10.0))[::-1]
        assert np.array_equal(np.flatnonzero(mirrored), found)
        return found.tolist()

    edges, near = [0, 100, 200, 300, 900, 910, 920, 1000], [0, 100, 200, 300, 400, 410, 420, 1000]
    for offset in (0, 16_000):  # days since 1970 are as far apart as others
        assert left([90, 90, 90, 0, 20, 20, 0], edges, offset) == [
            0,
            1,
            2,
        ]  # together 2.8 deviations
        assert left([90, 90, 90, 0, 25, 25, 0], edges, offset) == [0, 1, 2, 4, 5]  # 3.5
        assert left([90, 90, 90, 0, 0, 20, 0], edges, offset) == [0, 1, 2]
        assert left([90, 90, 90, 0, 20, 20, 0], near, offset) == [0, 1, 2, 4, 5]


def test_what_is_not_seen_stands_only_where_nothing_was_found():
    """No row of 10⁸ where rows of a cell were found; else a condition on its cell could not be met."""
    rows = {**BULK, 10**6: 30, 2 * 10**7: 30}  # 1.5 deviations
    shape = found_of(Scale(0, 10**8), rows, cuts=[10**7])
    weights, starts = np.array(shape.weights), [*shape.starts, len(shape.weights)]
    cells = [weights[begin:stop] for begin, stop in pairwise(starts)]
    assert shape.edges[-2] == 10**7
    assert 0 < cells[-1].sum() < 1e-5 * weights.sum()
    for cell in cells[:-1]:
        assert cell.max() > 1e-3 * weights.sum()
        assert not np.any((cell > 0) & (cell < 1e-5 * weights.sum()))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_code_that_nobody_has_leaves_the_value_beside_it_alone(sign):
    """999, as a point without rows, and 1000, which many have, beside narrow leaves."""
    edges = np.array([0, 1, 900, 999, 1000, 1001, 1002, 1100, 5001])
    mass = np.array([0.0, 300, 40, 0, 500, 0, 60, 0])
    scale = Scale(0, 5000) if sign > 0 else Scale(-5000, 0)
    edges, mass = (edges, mass) if sign > 0 else (1 - edges[::-1], mass[::-1])
    leaves, held_ = _trimmed(scale, edges, mass, np.zeros(8))
    own = dict(zip(pairwise(leaves), held_, strict=True))
    assert own[(1000, 1001) if sign > 0 else (-1000, -999)] == 500


def test_a_code_that_nobody_has_is_one_of_many_values_beside_it():
    edges, mass = np.array([0, 900, 999, 1000, 1100, 5001]), np.array([300.0, 0, 0, 500, 0])
    leaves, held_ = _trimmed(Scale(0, 5000), edges, mass, np.zeros(5))
    assert (leaves.tolist(), held_.tolist()) == ([0, 900, 999, 1100, 5001], [300, 0, 500, 0])


@pytest.mark.parametrize("seed", range(3))
def test_a_round_value_beyond_the_precision_of_doubles_gives_a_shape(seed):
    """Of little above the noise: its piece of the axis has no length that a double holds."""
    shape, found = drawn(Scale(0, 10**18), np.full(ROWS, 10**17), 1e-7, seed)
    assert shape.leaves[-1] == 10**18 + 1
    assert found.max() <= 10**18


def test_values_that_fill_close_bounds_are_no_tail():
    """No cell of them is clear by itself, and all are together."""
    scores = RNG(0).integers(0, 101, ROWS)
    for seed in range(3):
        _, found = drawn(Scale(0, 100), scores, RHO / 40, seed)
        assert errors(scores, found)[3] < 0.05
    mostly_zero = np.where(RNG(1).random(ROWS) < 0.7, 0, scores)
    _, found = drawn(Scale(0, 100), mostly_zero, RHO / 10)
    assert errors(mostly_zero, found)[0] < 0.05


def test_days_follow_the_calendar():
    rng = RNG(0)
    day = (16_000 + rng.beta(2, 3, ROWS) * 900).astype(np.int64)
    scale = Scale(date(2013, 1, 1), date(2016, 12, 31), calendar=DAY)
    shape, found = drawn(scale, day)
    column = Date("x", edges=shape.edges)
    assert column.grid.lows.tolist() == [shape.leaves[at] for at in shape.starts]
    assert errors(day, found)[2] < 0.05


def test_midnights_stay_midnights():
    rng = RNG(0)
    seconds = (16_000 + (rng.random(ROWS) * 300).astype(np.int64)) * 86_400
    _, found = drawn(Scale(calendar=10**9), seconds)
    assert np.mean(found % 86_400 == 0) > 0.97


def test_public_cuts_are_edges():
    age = np.clip(np.rint(45 + 17 * RNG(0).standard_normal(ROWS)).astype(np.int64), 0, 95)
    scale, rng = Scale(0, 120), RNG(1)
    history = []
    for part in SHARES:
        edges = finer(scale, history) if history else first(scale)
        counts = np.histogram(age, [*edges[:-1], np.inf])[0]
        sigma = (2 * RHO * part) ** -0.5
        history.append(Measured(edges, counts + np.rint(rng.normal(0, sigma, len(counts))), sigma))
    shape = learned(scale, history, None, ROWS, cuts=(0, 18, 65, 120, 500))
    assert {0, 18, 65} <= set(shape.edges)
    assert Integer("x", edges=shape.edges).grid.lows.tolist() == list(shape.edges[:-1])
    points = shape.draw(np.arange(len(shape.starts)), rng)
    assert np.all(points < 121)


@pytest.mark.parametrize("scale", [Scale(), Scale(0), Scale(0, 10**6), Scale(0, 1), Scale(5, 90)])
@pytest.mark.parametrize("rho", [1e-9, 1e-6, 1.0])
def test_nothing_but_noise_still_gives_a_column(scale, rho):
    points = np.clip(np.zeros(50, np.int64), scale.low, scale.high)
    shape, found = drawn(scale, points, rho=rho)
    column = Integer("x", edges=shape.edges)
    assert column.grid.lows.tolist() == [shape.leaves[at] for at in shape.starts]
    assert column.grid.highs[-1] >= found.max()


@pytest.mark.parametrize("grid", [Fraction(1), None])
def test_all_rows_beyond_the_only_bound_still_give_a_column(grid):
    for scale, bound in ((Scale(None, 50, grid), 50), (Scale(50, None, grid), 50)):
        points = np.full(ROWS, bound, np.int64 if grid else np.float64)
        shape, found = drawn(scale, points)
        assert shape.edges[0] < shape.edges[-1]
        assert share(found, bound) > 0.9


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bounds", [(None, None), (-10.0, 10.0)])
def test_atoms_among_doubles_are_exact(bounds, dtype):
    rng = RNG(0)
    x = rng.choice([0.0, 2.5, -0.1], ROWS, p=[0.5, 0.3, 0.2])
    x = np.where(rng.random(ROWS) < 0.5, rng.standard_normal(ROWS), x)
    shape, found = drawn(Scale(*bounds, None), x)
    for value in (0.0, 2.5, -0.1):
        assert share(found, value) == pytest.approx(share(x, value), abs=0.01)
    column = Number("x", edges=shape.edges, shape=shape, dtype=dtype)
    codes = np.repeat(np.arange(column.size), 9)
    assert column.encode(column.decode(codes, rng)).tolist() == codes.tolist()


def test_less_noise_finds_more():
    prices = np.rint(np.exp(13 + 0.5 * RNG(0).standard_normal(ROWS))).astype(np.int64)
    off = []
    for rho in (RHO / 100, RHO, RHO * 100):
        runs = [errors(prices, drawn(Scale(), prices, rho, seed)[1])[2] for seed in range(3)]
        off.append(np.mean(runs))
    assert off[0] > 1.5 * off[1] > 2 * off[2]


def test_a_bound_without_rows_has_no_cell_and_nothing_lies_beyond_one():
    share_ = RNG(0).beta(2, 5, ROWS)
    for seed in range(5):
        shape, found = drawn(Scale(0.0, 100.0, None), share_, rho=RHO / 100, seed=seed)
        assert shape.edges[-1] == 100.0
        assert shape.edges[-2] < 50
        assert found.max() <= 100.0
    full = np.where(RNG(1).random(ROWS) < 0.2, 100.0, share_)
    shape, found = drawn(Scale(0.0, 100.0, None), full)
    assert share(found, 100.0) == pytest.approx(0.2, abs=0.01)
    column = Number("x", edges=shape.edges, shape=shape)
    codes = np.arange(column.size)
    assert column.encode(column.decode(codes, RNG(2))).tolist() == codes.tolist()


KINDS = {name: scale for name, (scale, _) in SCALES.items()}
KINDS |= {
    "from 999": Scale(999, 2000),
    "to -5": Scale(None, -5),
    "huge": Scale(-(10**18), 10**18),
    "signed doubles": Scale(-1e4, 1e4, None),
}


@settings(max_examples=examples(60, 1500), deadline=None)
@given(
    name=st.sampled_from(sorted(KINDS)),
    seed=st.integers(0, 2**32),
    sigma=st.floats(0.1, 1e4),
    rows=st.floats(1, 1e6),
    counted_=st.sampled_from(["noise", "below zero", "nothing", "some values", "a tail"]),
    round_=st.booleans(),
    cut=st.booleans(),
)
def test_whatever_was_counted_gives_a_shape(name, seed, sigma, rows, counted_, round_, cut):
    """Weights of about 10⁹ in all, leaves nested in cells, values that lie in their cells."""
    scale, rng, history = KINDS[name], RNG(seed), []

    def noisy(cells, deviation):
        noise = rng.normal(0, deviation, cells)
        if counted_ == "some values":
            noise[rng.integers(0, cells, 3)] += 10 ** rng.uniform(0, 6)
        elif counted_ == "a tail":
            noise += rows * np.exp(-np.linspace(0, 9, cells))
        ways = {"below zero": -np.abs(noise) - 1, "nothing": 0 * noise}
        return np.rint(ways.get(counted_, noise))

    for part in SHARES:
        edges = finer(scale, history) if history else first(scale)
        deviation = sigma * (SHARES[0] / part) ** 0.5
        history.append(Measured(edges, noisy(len(edges) - 1, deviation), deviation))
    table, form = None, rounds(scale)
    if form is not None and round_:
        cells = (len(form.edges) - 1) * form.kinds.classes
        table = Measured(form.edges, noisy(cells, 2 * sigma), 2 * sigma)
    cuts = rng.choice(len(history[-1].edges), 3) if cut else ()
    shape = learned(scale, history, table, rows, [history[-1].edges[at] for at in cuts])

    weights = np.array(shape.weights)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(10**9, abs=len(weights))
    assert len(shape.leaves) == len(weights) + 1
    for ends in (shape.leaves, shape.edges, shape.starts):
        assert all(one < other for one, other in pairwise(ends))
    assert shape.starts[0] == 0
    assert shape.starts[-1] < len(weights)
    lows = [scale.point(edge) for edge in shape.edges[:-1]]
    assert lows == [shape.leaves[at] for at in shape.starts]
    cells = np.repeat(np.arange(len(lows)), 5)
    points = shape.draw(cells, rng)
    assert np.array_equal(np.searchsorted(lows, points, side="right") - 1, cells)
    assert points.max() <= min(scale.high, shape.leaves[-1])
    assert points.min() >= scale.low


# Piecewise constant fits


def cost(counts, sigma, width, enter, step, inside, cuts, held):
    """What a division into segments costs, in the words of the docstring."""
    total, before = 0.0, inside
    for begin, end, holds in zip([0, *cuts], [*cuts, len(counts)], held, strict=True):
        y, s, w = counts[begin:end], sigma[begin:end], width[begin:end]
        level = max(0.0, np.sum(y * w / s**2) / np.sum(w**2 / s**2)) if holds else 0.0
        total += np.sum(((y - level * w) / s) ** 2)
        if holds:
            total += (step if before else enter) if begin or not inside else 0.0
        elif inside and (before or not begin):
            total += step
        before = holds
    return total


def cheapest(counts, *rest):
    """By brute force: where anything is held."""
    size = len(counts)
    best, found = np.inf, None
    for inner in product((False, True), repeat=size - 1):
        cuts = [at + 1 for at, cut in enumerate(inner) if cut]
        for held in product((False, True), repeat=len(cuts) + 1):
            if (price := cost(counts, *rest, cuts, held)) < best - 1e-9:
                best, found = price, (cuts, held)
    return best, found


@pytest.mark.parametrize("inside", [False, True])
def test_no_other_division_is_cheaper(inside):
    rng = np.random.default_rng(1)
    for _ in range(12):
        counts = rng.normal(0, 1, 5) + rng.choice([0, 0, 4, 9], 5)
        sigma, width = rng.uniform(0.5, 2, 5), rng.uniform(0.5, 2, 5)
        _, (cuts, held) = cheapest(counts, sigma, width, 9.0, 4.0, inside)
        fit = fitted(counts[None], sigma[None], width[None], 9.0, 4.0, inside, 1.5)[0]
        for begin, end, holds in zip([0, *cuts], [*cuts, 5], held, strict=True):
            if not holds:
                assert not fit[begin:end].any()
            elif end == begin + 1 and counts[begin] > 1.5 * sigma[begin]:
                assert fit[begin] == pytest.approx(counts[begin])


def test_noise_is_empty_and_a_heavy_cell_is_kept():
    counts = np.array([[3.0, -5.0, 120.0, 8.0, -2.0]])
    ones = np.ones_like(counts)
    assert fitted(counts, 10 * ones, ones, 16.0, 9.0, False, 1.5)[0].tolist() == [0, 0, 120, 0, 0]


def test_equal_densities_are_pooled_and_widths_count():
    rng = np.random.default_rng(2)
    width = np.array([[1.0, 2.0, 4.0, 2.0, 1.0, 5.0]])
    counts = 100 * width + rng.normal(0, 5, width.shape)
    fit = fitted(counts, np.full(width.shape, 5.0), width, 16.0, 9.0, True, 1.5)
    assert np.abs(fit / width - 100).max() < np.abs(counts / width - 100).max()


def test_short_rows_are_filled_up():
    y = np.array([[50.0, 60.0, 0.0], [50.0, 60.0, 400.0]])
    s = np.array([[5.0, 5.0, np.inf], [5.0, 5.0, 5.0]])
    w = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    short = fitted(y[:1, :2], s[:1, :2], w[:1, :2], 9.0, 4.0, True, 1.5)
    both = fitted(y, s, w, 9.0, 4.0, True, 1.5)
    assert both[0, :2].tolist() == pytest.approx(short[0].tolist())
    assert both[1, 2] == 400


def counted(points, scale, sigma, rng):
    history = []
    for _ in SHARES:
        edges = finer(scale, history) if history else first(scale)
        at = np.array([scale.point(edge) for edge in edges])
        counts = np.bincount(np.searchsorted(at, points, side="right") - 1, minlength=len(at) - 1)
        history.append(Measured(edges, counts + rng.normal(0, sigma, len(counts)), sigma))
    return history


def test_what_levels_say_of_cells_is_right_within_its_noise():
    rng, scale = np.random.default_rng(3), Scale(0, 10**6)
    points = np.rint(np.exp(9 + rng.standard_normal(20_000))).astype(np.int64).clip(0, 10**6)
    off = []
    for sigma in [1e-6, *[60.0] * 12]:
        history = counted(points, scale, sigma, rng)
        shape = learned(scale, history, None, len(points))
        cuts = [0, *shape.edges[1:-1], 10**6 + 1]
        true = np.histogram(points, cuts)[0]
        count, variance = np.array(told(scale, history, shape.edges)).T
        if sigma < 1:
            assert count == pytest.approx(true, abs=0.01)
        else:
            off += ((count - true) / np.sqrt(variance)).tolist()
            assert (variance < 12 * sigma**2).all()
    assert 0.75 < np.std(off) < 1.25


def test_cells_that_no_level_has_an_edge_of_are_not_told():
    scale = Scale(0, 10**6)
    history = [Measured((0, 10, 1000, 10**6 + 1), np.array([5, 50, 500]), 2.0)]
    assert told(scale, history, (0, 10, 500, 10**6)) == ((5, 4.0), (0.0, np.inf), (500.0, np.inf))


def test_a_tail_below_the_noise_goes_on_as_it_came():
    points = np.rint(np.exp(8 + 1.3 * RNG(5).standard_normal(ROWS))).astype(np.int64)
    for beyond in (100_000, 200_000):  # 69 and 11 rows, where a count has a noise of 85
        far = [
            np.mean(drawn(Scale(0, 10**7), points, rho=0.3 * RHO, seed=seed)[1] >= beyond)
            for seed in range(12)
        ]
        assert 0.5 < np.median(far) / np.mean(points >= beyond) < 2


def test_what_lies_beyond_the_longest_tail_stays_as_it_was_found():
    """Ages of which a tenth lie in many cells, each of them clear of noise but not by much."""
    rng = RNG(7)
    ages = np.where(rng.random(ROWS) < 0.1, rng.normal(66, 9, ROWS), rng.normal(34, 7, ROWS))
    ages = np.clip(np.rint(ages), 15, 95).astype(np.int64)
    for seed in range(3):
        _, found = drawn(Scale(15, 95), ages, seed=seed)
        assert np.mean(found >= 68) == pytest.approx(np.mean(ages >= 68), abs=0.01)


@pytest.mark.parametrize("upper", [10**7, None])
def test_rows_of_one_value_in_a_tail_are_no_noise(upper):
    """150 lots of five acres, which no tail expects: ten deviations show them."""
    lots = np.rint(np.exp(8.9 + 0.8 * RNG(0).standard_normal(ROWS))).astype(np.int64)
    lots = np.append(lots, np.full(150, 217_800))
    scale = Scale(0, upper)
    history: list[Measured] = []
    for part in SHARES:  # exact counts, said to be as noisy as those of a release
        edges = finer(scale, history) if history else first(scale)
        counts = np.histogram(lots, [scale.point(edge) for edge in edges])[0]
        history.append(Measured(edges, counts, 25.0 * (SHARES[0] / part) ** 0.5))
    form = rounds(scale)
    assert form is not None
    table = Measured(form.edges, np.zeros((len(form.edges) - 1) * form.kinds.classes), 40.0)
    shape = learned(scale, history, table, len(lots))
    rows = np.array(shape.weights) / sum(shape.weights) * len(lots)
    far = np.array(shape.leaves)[:-1] >= 200_000
    assert rows[far].sum() == pytest.approx(150, abs=10)
