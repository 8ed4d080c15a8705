"""Weighted records: shares, rows that have the model's marginals, and what is written and read."""

import json
import math
from itertools import combinations

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.models import Weighted, empirical, from_arrays, weighted

SHAPE = (2, 3, 1, 5)


def some(records=4_000, cliques=((0, 1), (1, 3), (0, 3)), key=0, shape=SHAPE):
    """Records in lexical order, as a junction tree leaves them, with uneven weights."""
    rng = np.random.default_rng(key)
    codes = np.stack([rng.integers(size, size=records) for size in shape])
    codes = codes[:, np.lexsort(codes[::-1])]
    tilt = 1 + np.sin(np.arange(records) / 300) ** 2 + (codes[0] + codes[-1]) % 3
    weights = rng.gamma(2.0, 1.0, records) * tilt
    return Weighted(shape, tuple(codes), (weights / weights.sum()).astype(np.float32), cliques)


def tabulate(codes, shape, clique):
    table = np.zeros(tuple(shape[i] for i in clique))
    np.add.at(table, tuple(codes[i] for i in clique), 1)
    return table


def squared_error(model, codes, rows):
    return sum(
        ((tabulate(codes, model.shape, c) - rows * model.marginal(c)) ** 2).sum()
        for c in model.cliques
    )


def test_marginals_are_shares_of_the_weights():
    model = some(500)
    for size in range(5):
        for clique in combinations(range(4), size):
            table, expected = model.marginal(clique), np.zeros([SHAPE[i] for i in clique])
            for record in range(model.size):
                expected[tuple(model.codes[i][record] for i in clique)] += model.weights[record]
            assert table.dtype == np.float64
            assert table.sum() == pytest.approx(1.0, abs=1e-12)
            np.testing.assert_allclose(table, expected / expected.sum(), atol=1e-7)
    np.testing.assert_array_equal(model.marginal((3, 0)), model.marginal((0, 3)).T)


def test_weights_need_not_sum_to_one():
    codes = (np.array([0, 1, 1]),)
    doubled = Weighted((2,), codes, np.array([2, 4, 4], np.float32))
    np.testing.assert_allclose(doubled.marginal((0,)), [0.2, 0.8])
    assert np.bincount(doubled.sample(10, np.random.default_rng(0))[0]).tolist() == [2, 8]


def test_marginals_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(empirical, "_MAX_CELLS", 5)
    with pytest.raises(InputError, match="too many"):
        some().marginal((0, 1))


# --- rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 2, 999, 20_000])
def test_rows_are_in_the_domain(rows):
    codes = some().sample(rows, np.random.default_rng(1))
    assert [column.shape for column in codes] == [(rows,)] * 4
    assert [column.dtype for column in codes] == [np.uint8] * 4
    assert all((column < size).all() for column, size in zip(codes, SHAPE, strict=True))


@pytest.mark.parametrize("rows", [1, 10, 777, 4_000, 50_000])
def test_every_record_gets_its_share_rounded_up_or_down_before_swaps(rows):
    model = some(1_000)
    shares = model.weights.astype(np.float64)
    shares /= shares.sum()
    for key in range(5):
        chosen = model._systematic(rows, np.random.default_rng(key))
        counts = np.bincount(chosen, minlength=model.size)
        assert counts.sum() == rows
        assert (counts >= np.floor(rows * shares - 1e-9)).all()
        assert (counts <= np.ceil(rows * shares + 1e-9)).all()
        # And every run of neighbours: cumulated counts are off by less than one row.
        off = np.cumsum(counts) - rows * np.cumsum(shares)
        assert np.abs(off).max() <= 1 + 1e-6


def test_without_marginals_rows_are_those_of_the_systematic_choice():
    model = some(cliques=())
    chosen = model._systematic(500, np.random.default_rng(3))
    sampled = np.stack(model.sample(500, np.random.default_rng(3)))
    expected = np.stack([column[chosen] for column in model.codes])
    assert sorted(map(tuple, sampled.T.tolist())) == sorted(map(tuple, expected.T.tolist()))


@pytest.mark.parametrize("rows", [50, 1_000, 10_000])
def test_swaps_lower_the_error_of_the_marginals(rows):
    model, plain = some(), some(cliques=())
    ours = squared_error(model, model.sample(rows, np.random.default_rng(2)), rows)
    before = squared_error(model, plain.sample(rows, np.random.default_rng(2)), rows)
    assert ours < 0.5 * before
    cells = sum(math.prod(SHAPE[i] for i in c) for c in model.cliques)
    assert ours <= 0.5 * cells  # about what rounding to whole rows must leave


def test_swaps_hold_merged_values_where_tables_are_large(monkeypatch):
    """Where the tables would be too large, the rarest values are held together."""
    shape = (40, 30, 2)
    model = some(5_000, ((0, 1), (1, 2)), shape=shape)
    monkeypatch.setattr(weighted, "_SWAP_CELLS", 200)
    records, sizes = model._compressed(list(model.cliques))
    assert 150 < sum(math.prod(sizes[i] for i in c) for c in model.cliques) <= 200
    assert records.shape == (5_000, 3)
    assert all((records[:, i] < sizes[i]).all() for i in range(3))
    for i in range(3):  # every label but the last stands for one value
        for label in range(sizes[i] - 1):
            assert np.unique(model.codes[i][records[:, i] == label]).size == 1
    rows = 3_000
    fine = squared_error(model, model.sample(rows, np.random.default_rng(2)), rows)
    independent = sum(rows * (1 - (model.marginal(c) ** 2).sum()) for c in model.cliques)
    assert fine < 0.25 * independent
    coarse = Weighted(tuple(sizes), tuple(records.T), model.weights, model.cliques)
    errors = [
        squared_error(coarse, coarse_rows(model, records, kept, rows), rows)
        for kept in (model.cliques, ())
    ]
    assert errors[0] < 0.5 * errors[1]


def coarse_rows(model, records, cliques, rows):
    """The merged codes of the rows chosen, with swaps for `cliques` or without."""
    rng = np.random.default_rng(2)
    chosen = model._systematic(rows, rng)
    if cliques:
        model._settle(chosen, rng)
    return list(records[chosen].T)


def test_many_marginals_and_little_work_still_give_rows(monkeypatch):
    monkeypatch.setattr(weighted, "_SWAP_WORK", 1_000)
    model = some(cliques=tuple(combinations(range(4), 2)) * 100)
    assert len(model.cliques) > 512
    codes = model.sample(200, np.random.default_rng(0))
    assert all(column.shape == (200,) for column in codes)


def test_rows_come_in_random_order():
    model = some()
    first = [[c[0] for c in model.sample(40, np.random.default_rng(k))] for k in range(200)]
    share = np.bincount([row[3] for row in first], minlength=5) / 200
    assert np.abs(share - model.marginal((3,))).max() < 0.13


def test_the_key_decides():
    model = some()
    one, two, other = (model.sample(300, np.random.default_rng(key)) for key in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_records_without_weight_are_never_drawn():
    weights = np.where(np.arange(100) % 2, 1.0, 0.0)
    model = Weighted((100,), (np.arange(100),), weights, ((0,),))
    for rows in (1, 30, 5_000):
        for key in range(3):
            assert (model.sample(rows, np.random.default_rng(key))[0] % 2 == 1).all()


# --- disk ---------------------------------------------------------------------------------------


def test_round_trip():
    model = some()
    description, arrays = model.to_arrays()
    back = from_arrays(json.loads(json.dumps(description)), arrays)
    assert isinstance(back, Weighted)
    assert (back.shape, back.cliques) == (model.shape, model.cliques)
    assert np.array_equal(back.weights, model.weights)
    assert all(np.array_equal(a, b) for a, b in zip(back.codes, model.codes, strict=True))
    rows = [m.sample(30, np.random.default_rng(0)) for m in (model, back)]
    assert all(np.array_equal(x, y) for x, y in zip(*rows, strict=True))


BAD_ARRAYS = {
    "weights below 0": {"weights": np.full(50, -1.0)},
    "weights not finite": {"weights": np.full(50, np.nan)},
    "infinite weights": {"weights": np.full(50, np.inf)},
    "no weight at all": {"weights": np.zeros(50)},
    "no records": {"weights": np.zeros(0), "column_0": np.zeros(0, int)},
    "weights in two dimensions": {"weights": np.ones((50, 1))},
    "fewer codes than weights": {"column_1": np.zeros(49, np.uint8)},
    "codes in two dimensions": {"column_1": np.zeros((50, 1), np.uint8)},
    "codes that are no integers": {"column_1": np.zeros(50)},
    "codes above the domain": {"column_1": np.full(50, 3)},
    "codes below the domain": {"column_1": np.full(50, -1)},
}


@pytest.mark.parametrize("change", BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_arrays_that_are_no_model_are_refused(change):
    description, arrays = some(50).to_arrays()
    with pytest.raises(InputError):
        from_arrays(description, {**arrays, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "pickle"},
        {"shape": None},
        {"cliques": 3},
        {"shape": [2, 3, 1]},
        {"cliques": [[0, 4]]},
        {"cliques": [[-1]]},
    ],
    ids=str,
)
def test_descriptions_that_do_not_fit_are_refused(change):
    description, arrays = some(50).to_arrays()
    if change == {"shape": [2, 3, 1]}:
        change = {**change, "cliques": [[0, 3]]}
    with pytest.raises(InputError):
        from_arrays({**description, **change}, arrays)


@pytest.mark.parametrize("missing", ["weights", "column_2"])
def test_an_array_that_is_not_there_is_an_error(missing):
    description, arrays = some(50).to_arrays()
    with pytest.raises((InputError, KeyError)):
        from_arrays(description, {k: v for k, v in arrays.items() if k != missing})


def test_a_description_without_swaps_is_an_older_one_and_has_twenty_a_row():
    description, arrays = some(400).to_arrays()
    del description["swaps"]
    assert from_arrays(description, arrays).swaps == weighted.MOST_SWAPS == 20


@pytest.mark.parametrize("swaps", [-1, 21])
def test_swaps_out_of_range_are_refused(swaps):
    description, arrays = some(50).to_arrays()
    with pytest.raises(InputError, match="swaps"):
        from_arrays({**description, "swaps": swaps}, arrays)


def test_no_swaps_leave_the_systematic_draw():
    description, arrays = some(400).to_arrays()
    still, free = ({**description, "swaps": 0}, {**description, "cliques": []})
    drawn = [
        from_arrays(each, arrays).sample(90, np.random.default_rng(4)) for each in (still, free)
    ]
    assert all((a == b).all() for a, b in zip(*drawn, strict=True))


def test_few_rows_are_tried_harder_than_many():
    tried = [weighted.swaps_for(rows) for rows in (0, 500, 10_000, 20_000, 50_000, 10**8)]
    assert tried == [20, 20, 20, 10, 4, 4]
