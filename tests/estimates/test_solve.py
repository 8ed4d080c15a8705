"""Intervals: coverage on tables whose noise is simulated, what is flagged, and what is not told."""

from dataclasses import replace

import numpy as np
import pytest

from tests.estimates import tiny
from tests.thorough import some
from understudy.columns.shape import Search
from understudy.estimates import Known, estimate, statistic
from understudy.estimates.solve import FLAGGED
from understudy.models import Measured, Weighted
from understudy.schema import Boolean, Integer, Schema

ROWS, SIGMA, TIMES = 4000, 40.0, 300
ASKED = ("share(x >= 4 and b)", "mean(x)", "mean(x) where b", "correlation(x, b)", "median(x)",
         "ols(x ~ b)", "logit(b ~ x)", "odds(b, a = 'q')", "gini(x)")  # fmt: skip
X = 2 * tiny.ALL[2] + 0.5


def population(asked, shares):
    """The parameter, with values evenly inside cells."""
    w, b = shares.reshape(-1), tiny.ALL[1] == 1
    q, ints = tiny.ALL[0] == 1, np.bincount(tiny.ALL[2], shares.reshape(-1)).repeat(2) / 2
    mean = w @ X
    slope = (w * b) @ X / (w @ b) - (w * ~b) @ X / (w @ ~b)
    match asked:
        case "share(x >= 4 and b)":
            return w @ ((tiny.ALL[2] >= 2) & b)
        case "mean(x)":
            return mean
        case "mean(x) where b":
            return (w * b) @ X / (w @ b)
        case "correlation(x, b)":
            sd = np.sqrt((w @ (X - mean) ** 2 + 0.25) * (w @ b) * (w @ ~b))
            return w @ ((X - mean) * b) / sd
        case "median(x)":
            return float(np.searchsorted(np.cumsum(ints), 0.5))
        case "ols(x ~ b)":
            return slope
        case "odds(b, a = 'q')":
            return w[b & q].sum() * w[~b & ~q].sum() / w[b & ~q].sum() / w[~b & q].sum()
        case "gini(x)":
            values = np.arange(10.0)
            return ints @ np.abs(values[:, None] - values) @ ints / (2 * ints @ values)
    return None


def last(found):
    return found if hasattr(found, "value") else found[len(found) - 1]


@pytest.fixture(scope="module")
def releases():
    """Tables drawn from the population, with noise, and models that are wrong in a way of their own."""
    rng, truth, found = np.random.default_rng(5), tiny.truth(), []
    for _ in range(TIMES):
        counts = rng.multinomial(ROWS, truth.reshape(-1)).reshape(tiny.SHAPE)
        model = truth * np.exp(0.15 * rng.normal(size=tiny.SHAPE[:2])[..., None])
        tables = tiny.counted(counts, SIGMA, rng)
        found.append(tiny.known(model / model.sum(), tables, ROWS))
    return found


@pytest.mark.parametrize(
    "asked", some((asked for asked in ASKED if not asked.startswith("logit")), 2)
)
def test_intervals_cover(releases, asked):
    """At least .95 less 5 standard errors of 120 draws, and not by being wide: errors are as stated."""
    truth = population(asked, tiny.truth())
    told = [last(estimate(known, asked)) for known in releases[:120]]
    covered = np.mean([each.low <= truth <= each.high for each in told])
    assert covered >= 0.95 - 5 * np.sqrt(0.95 * 0.05 / 120)
    narrow = np.mean([each.low + 0.4 * (each.high - each.low) <= truth
                      <= each.high - 0.4 * (each.high - each.low) for each in told])  # fmt: skip
    if asked != "median(x)":  # whole numbers
        assert narrow < 0.7
    assert all(each.reliance < FLAGGED for each in told) or asked == "share(x >= 4 and b)"


def test_a_wrong_noise_does_not_cover(releases):
    asked = "odds(b, a = 'q')"
    truth, wrong = population(asked, tiny.truth()), []
    for known in releases[:60]:
        tables = [Measured(t.clique, t.values, t.sigma / 8) for t in known.tables]
        told = estimate(tiny.known(known.model.marginal((0, 1, 2)), tables, ROWS), asked, "table")
        wrong.append(told.low <= truth <= told.high)
    assert np.mean(wrong) < 0.8


def test_wide_bins_are_named_where_they_are_most_of_an_interval():
    rng, truth = np.random.default_rng(6), tiny.truth()
    tables = tiny.counted(np.rint(1e6 * truth), 1.0, rng)
    sure = tiny.known(truth, tables, 10**6)
    assert "wide bins" in estimate(sure, "mean(x)", "table").warning
    assert estimate(sure, "share(x >= 4 and b)", "table").warning is None


def test_parts_by_target(releases):
    population_, table = (estimate(releases[0], "mean(x)", t) for t in ("population", "table"))
    assert (table.parts.sampling, table.parts.rows) == (0.0, 0.0)
    shares = tiny.truth().reshape(-1)
    sd = np.sqrt(shares @ (X - shares @ X) ** 2 + 0.25)  # 0.25 inside cells
    assert population_.parts.sampling == pytest.approx(sd / np.sqrt(ROWS), rel=0.1)
    assert table.parts.inside > population_.parts.inside > 0
    assert table.parts.noise == population_.parts.noise > 0
    assert table.high - table.low < population_.high - population_.low


def test_units_with_many_rows_widen_the_sampling_part():
    rng = np.random.default_rng(6)
    tables = tiny.counted(ROWS * tiny.truth(), SIGMA, rng)
    one, four = (
        estimate(tiny.known(tiny.truth(), tables, ROWS, alike=k), "mean(x)") for k in (1, 4)
    )
    assert four.parts.sampling == pytest.approx(2 * one.parts.sampling)


def test_a_private_number_of_rows_is_a_part():
    rng = np.random.default_rng(7)
    tables = [t for t in tiny.counted(ROWS * tiny.truth(), SIGMA, rng) if len(t.clique) == 1]
    public = estimate(tiny.known(tiny.truth(), tables, ROWS), "count(b)", "table")
    private = estimate(
        tiny.known(tiny.truth(), tables, ROWS, rows_sigma=100.0), "count(b)", "table"
    )
    assert (public.parts.rows, private.parts.rows > 0) == (0.0, True)
    assert private.high - private.low > public.high - public.low
    hidden = estimate(tiny.known(tiny.truth(), [], ROWS, rows_sigma=2000.0), "mean(x)")
    assert not hidden.determined
    assert "number of rows" in hidden.warning


def test_sums_are_means_times_rows():
    rng = np.random.default_rng(8)
    known = tiny.known(tiny.truth(), tiny.counted(ROWS * tiny.truth(), SIGMA, rng), ROWS)
    total, mean = estimate(known, "sum(x)", "table"), estimate(known, "mean(x)", "table")
    assert total.value == pytest.approx(ROWS * mean.value, rel=1e-3)
    assert total.parts.noise == pytest.approx(ROWS * mean.parts.noise, rel=0.05)


def parity():
    """Pairs are independent; three columns together are not, for a ≠ 'p'."""
    shares = np.zeros(tiny.SHAPE)
    a, b, x = np.indices(tiny.SHAPE)
    shares[:] = 1 / 30
    odd = ((a == 1) ^ (b == 1) ^ (x >= 2)) & (x < 4)
    shares *= np.where(a == 0, 1.0, np.where(x < 4, np.where(odd, 1.8, 0.2), 1.0))
    return shares / shares.sum()


PARITY = (
    "share((a = 'q' and b or a = 'r' and not b) and x < 4 "
    "or (a = 'r' and b or a = 'q' and not b) and x >= 4)"
)


def test_what_only_three_columns_show_is_flagged_or_not_told():
    rng, counts = np.random.default_rng(9), ROWS * parity()
    tables = tiny.counted(counts, SIGMA, rng)
    flat = np.full(tiny.SHAPE, 1 / 30)
    told = estimate(tiny.known(flat, tables, ROWS), PARITY, "table")
    assert told.reliance > FLAGGED
    assert "three or more columns" in told.warning
    rare = "share(b and (x < 2 or x >= 8) and a = 'q' or not b and 2 <= x and x < 8 and a = 'q')"
    assert estimate(tiny.known(flat, tables, ROWS), rare).warning is not None


def test_only_a_certificate_speaks_where_nearly_all_is_unseen(monkeypatch):
    from understudy.estimates import solve

    monkeypatch.setattr(solve, "ONLY_CERTIFIED", 0.2)
    rng, counts = np.random.default_rng(10), ROWS * parity()
    tables, flat = tiny.counted(counts, SIGMA, rng), np.full(tiny.SHAPE, 1 / 30)
    silent = estimate(tiny.known(flat, tables, ROWS), PARITY, "table")
    assert (silent.value, silent.low, silent.high, silent.parts) == (None,) * 4
    assert "never measured" in silent.warning
    bound = estimate(
        tiny.known(flat, tables, ROWS, certified=lambda columns, rest: 0.3), PARITY, "table"
    )
    assert bound.parts.model >= 0.3


def test_small_groups_and_large_noise_are_not_determined():
    rng = np.random.default_rng(11)
    noisy = tiny.known(tiny.truth(), tiny.counted(300 * tiny.truth(), 200.0, rng), 300)
    for asked in ("mean(x) where b and a = 'r'", "gini(x)", "correlation(x, b)", "logit(b ~ x)"):
        told = last(estimate(noisy, asked))
        assert (told.determined, told.value, told.low) == (False, None, None), asked
        assert str(told).endswith(")")
        assert "not determined" in str(told)


def test_a_number_in_one_bin_tells_neither_its_spread_nor_of_anything_else():
    """Its values may depend on another column in any way; a correlation of 0 ± 0 would be wrong."""
    schema = Schema((Boolean("b"), Integer("x", 0, 9, bins=1)))
    table = Measured((0, 1), np.array([[600], [400]]), 10.0)
    model = Weighted((2, 1), (np.array([0, 1]), np.array([0, 0])), np.array([0.6, 0.4], np.float32))
    known = Known(schema, model, [table, Measured((0,), np.array([600, 400]), 10.0)], 1000.0)
    related = ("correlation(x, b)", "difference(mean(x) by b)", "mean(x) where b", "ols(x ~ b)")
    for asked in (*related, "gini(x)"):
        assert not last(estimate(known, asked)).determined, asked
    assert "in one bin" in estimate(known, "gini(x)").warning
    assert estimate(known, "share(b)").determined


def test_a_small_group_keeps_its_size_when_its_mean_is_corrected():
    """Tilting towards a far mean may not let the group grow, or its noise would look smaller."""
    truth = tiny.truth()
    wrong = truth.copy()
    wrong[2, 1] *= np.linspace(0.1, 3.0, 5)  # a group whose mean the model misses
    rng = np.random.default_rng(12)
    tables = tiny.counted(20 * ROWS * truth, SIGMA, rng, most=3)
    told = estimate(
        tiny.known(wrong / wrong.sum(), tables, 20 * ROWS), "mean(x) where b and a = 'r'"
    )
    held = truth[2, 1] / truth[2, 1].sum()
    assert told.low <= held @ (2 * np.arange(5) + 0.5) <= told.high
    weight = SIGMA / (20 * ROWS) / truth[2, 1].sum()  # a cell's noise over the share of the group
    spread = np.linalg.norm(2 * np.arange(5) + 0.5 - held @ (2 * np.arange(5) + 0.5))
    assert told.parts.noise == pytest.approx(weight * spread, rel=0.4)


@pytest.mark.parametrize("at", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("bins", [8, 16])
@pytest.mark.parametrize("power", [1.0, 1.11, 1.25])
def test_quantiles_inside_wide_bins_of_skewed_numbers(at, bins, power):
    """Where shares of bins are known, only what bins hide is left: densities may bend in them."""
    schema = Schema.loads(
        '[understudy]\nversion = 1\n[[column]]\nname = "x"\ntype = "number"\nlower = 0\nupper = 10\n'
        f"bins = {bins}\n"
    )
    edges = np.linspace(0, 10, bins + 1)
    edges[-1] = np.inf
    counts = -np.diff(np.exp(-((edges / 2) ** power))) * 20_000
    model = Weighted((bins,), (np.arange(bins),), counts.astype(np.float32))
    tables = [Measured((0,), counts, 10.0)]
    known = Known(schema, model, tables, 20_000.0)
    told = estimate(known, f"quantile(x, {at})", "table")
    assert told.low <= 2 * (-np.log(1 - at)) ** (1 / power) <= told.high
    assert told.high - told.low < 10 / bins


ROUND = """[understudy]
version = 1
[[column]]
name = "h"
type = "integer"
lower = 0
upper = 79
bins = 8
[[column]]
name = "a"
type = "integer"
lower = 15
upper = 94
bins = 16
"""


@pytest.mark.parametrize(
    ("strength", "usual"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.45), (0.9, 0.2), (0.9, 0.45)]
)
def test_round_numbers_in_wide_bins_are_in_the_interval(strength, usual):
    """All bins of a column err the same way, so that nothing averages out over them."""
    rng, rows = np.random.default_rng(3), 200_000
    hours, age = 38 + 11 * rng.normal(size=rows), 20 + 60 * rng.beta(1.6, 2.2, rows)
    step = rng.choice([1, 5, 10], rows, p=[1 - strength, 0.4 * strength, 0.6 * strength])
    hours = np.where(rng.random(rows) < usual, 40, step * np.rint(hours / step))
    rounding = rng.choice([1, 5, 10], rows, p=[1 - strength / 3, strength / 6, strength / 6])
    hours, age = np.clip(hours, 0, 79), np.clip(rounding * np.rint(age / rounding), 15, 94)
    schema = Schema.loads(ROUND)
    codes = (hours // 10).astype(int), ((age - 15) // 5).astype(int)
    pair = np.zeros(schema.shape)
    np.add.at(pair, codes, 1)
    tables = [Measured((0,), pair.sum(1), 10.0), Measured((1,), pair.sum(0), 10.0)]
    tables.append(Measured((0, 1), pair, 10.0))
    model = Weighted(schema.shape, np.indices(pair.shape).reshape(2, -1), pair.reshape(-1))
    known = Known(schema, model, tables, float(rows))
    ratio = statistic(lambda f, w: w @ f["h"] / (w @ f["a"]), columns=["h", "a"])
    truths = {
        "mean(h)": hours.mean(),
        "mean(a)": age.mean(),
        "mean(h) where a >= 40": hours[age >= 40].mean(),
        "median(h)": np.median(hours),
        "share(h > 42)": np.mean(hours > 42),
        "correlation(h, a)": np.corrcoef(hours, age)[0, 1],
    }
    for asked, truth in truths.items():
        told = estimate(known, asked, "table")
        if "share" not in asked or told.determined:  # a share may be anything from 0 to 1
            assert told.low <= truth <= told.high, asked
    told = estimate(known, ratio, "table")
    assert told.low <= hours.mean() / age.mean() <= told.high
    assert told.parts.inside > told.parts.noise
    assert "wide bins" in told.warning


def test_measured_numbers_are_not_taken_for_round_ones():
    """A column without decimals, or with single values, is not wider by what people round."""
    rows = 50_000
    counts = np.exp(-(((np.arange(16) - 7.5) / 4) ** 2) / 2)
    counts *= rows / counts.sum()
    widths = []
    for kind in ("", "decimals = 0"):
        text = ROUND.split("[[column]]")[0] + (
            f'[[column]]\nname = "x"\ntype = "number"\nlower = 0\nupper = 80\nbins = 16\n{kind}\n'
        )
        schema = Schema.loads(text)
        model = Weighted((16,), (np.arange(16),), counts.astype(np.float32))
        known = Known(schema, model, [Measured((0,), counts, 10.0)], float(rows))
        told = estimate(known, "mean(x)")
        widths.append((told.value - told.low, told.high - told.value))
    measured, whole = widths
    assert measured[0] == pytest.approx(measured[1])
    assert whole[1] == pytest.approx(measured[1], rel=0.5)
    assert whole[0] > 2 * measured[0]  # round numbers are the first ones of these bins


def test_values_that_a_search_could_not_find_are_not_told():
    counts = np.array([500.0, 500.0])
    column = '[[column]]\nname = "x"\ntype = "integer"\nedges = [0, 40, 80]\n'
    column += "shape = { leaves = [0, 40, 41, 81], weights = [1, 1, 0] }\n"
    schema = Schema.loads(ROUND.split("[[column]]")[0] + column)
    model = Weighted((2,), (np.arange(2),), counts.astype(np.float32))
    known = Known(schema, model, [Measured((0,), counts, 10.0)], 1000.0)
    for noise, found in ((20.0, True), (200.0, False)):
        search = Search(np.arange(0, 81, 2), noise, 2 * noise)
        told = estimate(replace(known, searches={0: search}), "mean(x)")
        assert told.determined is found
    assert "too much noise to find them" in told.warning
