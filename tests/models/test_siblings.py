"""What is believed of tables of siblings is what made them, on either side of who has a sibling."""

import math

import numpy as np
import pytest

from understudy.models.blocks import blocks_of
from understudy.models.measured import Measured
from understudy.models.siblings import Seen, agree, apart, believed, sides

ROWS, SIGMA, VALUES = 100_000.0, 300.0, 12


def table(alike, alone, rng):
    """(counts of a child's column and its sibling's, those expected of independent columns).

    `alike` is the deviation of the logarithm of every cell of two siblings, `alone` of who has none.
    """
    own, other = rng.dirichlet(np.full(VALUES, 5.0)), rng.dirichlet(np.full(VALUES, 5.0))
    lonely = 0.7 * np.exp(alone * rng.standard_normal(VALUES))
    joint = np.multiply.outer(own, other) * np.exp(alike * rng.standard_normal((VALUES, VALUES)))
    counts = np.column_stack([0.3 * joint, own * lonely])
    counts *= ROWS / counts.sum()
    return counts, np.multiply.outer(counts.sum(axis=1), counts.sum(axis=0)) / ROWS


def beyond_columns(residual):
    for axis in (0, 1):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    return residual


@pytest.mark.parametrize("key", range(5))
def test_who_has_a_sibling_says_nothing_of_what_siblings_share(key):
    rng = np.random.default_rng(key)
    counts, base = table(0.0, 0.5, rng)
    noise = np.full(base.size, SIGMA**2)
    residual = beyond_columns(counts + rng.normal(0, SIGMA, base.shape) - base)
    kappa = believed(residual, base, noise).reshape(base.shape)
    unit = SIGMA**2 / base[:, :-1].mean()
    assert len({*kappa[:, :-1].reshape(-1)}) == len({*kappa[:, -1]}) == 1
    assert kappa[0, 0] < 0.5 * unit  # noise is not believed
    assert kappa[0, -1] > 2 * kappa[0, 0]


@pytest.mark.parametrize("key", range(5))
def test_what_siblings_share_is_believed(key):
    rng = np.random.default_rng(key)
    counts, base = table(1.5, 0.0, rng)
    noise = np.full(base.size, SIGMA**2)
    residual = beyond_columns(counts + rng.normal(0, SIGMA, base.shape) - base)
    kappa = believed(residual, base, noise).reshape(base.shape)
    variance = ((counts - base)[:, :-1] ** 2).sum() / base[:, :-1].sum()
    assert variance / 4 < kappa[0, 0] < 4 * variance


def test_the_fit_uses_it_for_columns_of_siblings_alone():
    rng = np.random.default_rng(3)
    counts, _ = table(0.0, 0.5, rng)
    measured = [Measured((0, 1), np.rint(counts + rng.normal(0, SIGMA, counts.shape)), SIGMA)]
    columns = counts.sum(axis=1), counts.sum(axis=0)
    shape = (*counts.shape, VALUES)  # the column of which the second is a sibling's
    own, joined = (
        blocks_of(shape, measured, columns, ROWS, twins=twins)[0][0] for twins in ((), ((2, 1),))
    )
    inner = np.arange(counts.size).reshape(counts.shape)[:, :-1]
    assert joined.y == pytest.approx(own.y)
    assert (joined.ratio[inner] > 2 * own.ratio[inner]).all()
    both = blocks_of(shape, measured, columns, ROWS, twins=((2, 0), (2, 1)))[0][0]
    assert (both.ratio == own.ratio).all()


def test_a_trend_that_is_believed_by_itself_does_not_count():
    rng = np.random.default_rng(4)
    counts, base = table(0.0, 0.0, rng)
    score = np.linspace(-1.5, 1.5, VALUES)
    trend = np.outer(score, np.append(score, 0.0))
    apart_from = counts[:, :-1].sum(axis=0) / counts[:, :-1].sum()
    moved = np.outer(counts[:, :-1].sum(axis=1), apart_from) * 0.5 * trend[:, :-1]
    counts[:, :-1] += moved - moved.mean(axis=0) - moved.mean(axis=1, keepdims=True) + moved.mean()
    noise = np.full(base.size, SIGMA**2)
    residual = beyond_columns(counts + rng.normal(0, SIGMA, base.shape) - base)
    whole, rest = (believed(residual, base, noise, each)[0] for each in (None, trend))
    assert rest < 0.5 * whole


def stays(back, rng, spread=1.0):
    """(counts of a column and the same before, expected ones): mostly equal, seldom below."""
    size = 10
    own = rng.dirichlet(np.full(size, 5.0))
    steps = np.subtract.outer(np.arange(size), np.arange(size))
    law = np.diag(own) + 0.08 * np.where(steps == 1, own, 0.0)
    away = np.where(steps < 0, np.exp(steps / spread) * own[:, None], 0.0)
    law = (1 - back) * law / law.sum() + back * away / away.sum()
    counts = np.column_stack([0.2 * ROWS * law, 0.8 * ROWS * law.sum(axis=1)])
    return counts, np.multiply.outer(counts.sum(axis=1), counts.sum(axis=0)) / ROWS


def above(table):
    return np.triu(np.ones(table.shape, bool), 1)


@pytest.mark.parametrize("back", [0.0, 0.03, 0.1])
def test_how_often_a_column_goes_back_is_one_number(back):
    """Noise of a side's sum is 3.4 % of all siblings, of the neighbours of the diagonal 1.5 %."""
    found, plain, noise = [], [], SIGMA / 3
    for key in range(10):
        rng = np.random.default_rng(key)
        counts, base = stays(back, rng)
        values = counts + rng.normal(0, noise, counts.shape)
        residual = beyond_columns(values - base)
        told = sides(values[:, :-1], apart(residual, base), noise**2)
        seen = above(told)
        assert not np.isnan(told[seen]).any()
        assert np.isnan(np.diag(told)).all()
        found.append(told[seen].sum() / (0.2 * ROWS) - back)
        plain.append(values[:, :-1][seen].sum() / (0.2 * ROWS) - back)
    if back == 0:
        assert np.median(found) == 0
    assert np.mean(np.abs(found)) < np.mean(np.abs(plain))


def test_cells_that_one_number_does_not_explain_are_left_alone():
    rng = np.random.default_rng(7)
    counts, base = stays(0.0, rng)
    counts[2, 8] += 0.1 * ROWS
    values = counts + rng.normal(0, SIGMA, counts.shape)
    told = sides(values[:, :-1], apart(beyond_columns(values - base), base), SIGMA**2)
    assert np.isnan(told[above(told)]).all()


def test_the_fit_leaves_a_side_empty_of_a_column_and_itself_alone():
    rng = np.random.default_rng(5)
    counts, _ = stays(0.0, rng)
    measured = [Measured((0, 1), np.rint(counts + rng.normal(0, 100, counts.shape)), 100.0)]
    columns = counts.sum(axis=1), counts.sum(axis=0)
    shape = (*counts.shape, counts.shape[0])
    for twins, empty in ((((0, 1),), True), (((2, 1),), False)):
        block = blocks_of(shape, measured, columns, ROWS, twins=twins)[0][0]
        current = (np.multiply.outer(*columns) / ROWS).reshape(-1)
        for _ in range(5):
            current = current * block.refine(current, ROWS)
        inner = current.reshape(counts.shape)[:, :-1]
        assert (inner[above(inner)].sum() == 0) == empty
        np.testing.assert_allclose(inner.sum(axis=1), counts[:, :-1].sum(axis=1), atol=500)


SHAPE = (5, 7, 6, 8)
"""Two columns of a child and those of a sibling, which have one code more: there is none."""


def seen(share, rng, childless=0):
    """What siblings have in common in two columns, and the other way round: (as made, as seen).

    `share` of their deviations are the same in both tables. Where some parents are childless a column
    has one code more: there is no child.
    """
    made, tables = {}, {}
    both = rng.standard_normal((5, 7))
    for clique in ((0, 3), (1, 2)):
        own = math.sqrt(share) * both + math.sqrt(1 - share) * rng.standard_normal((5, 7))
        own = beyond_columns(own) if clique == (0, 3) else beyond_columns(own).T
        base = np.full((own.shape[0] + childless, own.shape[1] + 1), 200.0)
        base[:, -1] = 5000.0
        base[own.shape[0] :, :-1] = 1.0
        made[clique] = base.copy()
        made[clique][: own.shape[0], :-1] += 150 * own
        noise = beyond_columns(rng.normal(0, 150, base.shape))
        margins = base.sum(axis=1), base.sum(axis=0)
        flat = (made[clique] + noise).reshape(-1)
        variance = np.full(base.size, 150.0**2)
        tables[clique] = Seen(flat, np.full(base.size, 200.0), variance, margins, None)
    return made, tables


def squares(made, tables):
    """How far tables are off those of siblings."""
    off = [tables[clique].y.reshape(table.shape) - table for clique, table in made.items()]
    return sum(float((each[:, :-1] ** 2).sum()) for each in off)


@pytest.mark.parametrize("childless", [0, 1])
@pytest.mark.parametrize(("share", "least", "most"), [(1.0, 0.0, 0.85), (0.0, 0.9, 1.1)])
def test_two_columns_of_siblings_are_seen_the_other_way_round_as_well(
    share, least, most, childless
):
    before = after = 0.0
    shape = (SHAPE[0] + childless, SHAPE[1] + childless, *SHAPE[2:])
    for key in range(20):
        made, tables = seen(share, np.random.default_rng(key), childless)
        before += squares(made, tables)
        agree(tables, ((0, 2), (1, 3)), shape)
        after += squares(made, tables)
    assert least < after / before < most


def lonely(rng):
    """Two tables of a column of two values, the noise of one three times that of the other."""
    margins = np.array([500.0, 500.0]), np.array([200.0, 200.0, 600.0])
    return {
        (0, twin): Seen(rng.normal(200, 20, 6), np.ones(6), np.full(6, variance), margins, None)
        for twin, variance in ((2, 1.0), (3, 3.0))
    }


def test_who_has_no_sibling_is_the_mean_of_what_all_tables_of_a_column_say():
    tables = lonely(np.random.default_rng(0))
    one, other = (tables[0, twin].y.reshape(2, 3)[:, -1].copy() for twin in (2, 3))
    agree(tables, ((0, 2), (1, 3)), (2, 2, 3, 3))
    for twin in (2, 3):
        assert tables[0, twin].y.reshape(2, 3)[:, -1] == pytest.approx(0.75 * one + 0.25 * other)


def test_a_sibling_whose_value_is_null_is_not_taken_for_none():
    tables = lonely(np.random.default_rng(0))
    before = [tables[0, twin].y.reshape(2, 3)[:, -1].copy() for twin in (2, 3)]
    agree(tables, ((0, 2), (1, 3)), (2, 3, 3, 3))  # null is the last code of the second column
    for twin, end in zip((2, 3), before, strict=True):
        assert (tables[0, twin].y.reshape(2, 3)[:, -1] == end).all()
