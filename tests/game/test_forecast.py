"""The error forecast: its formula, its limits, and how far it is from what releases do."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.thorough import examples
from understudy.game import forecast
from understudy.game.forecast import Errors, Knowledge, expected, shown, updated
from understudy.models import Measured, Weighted
from understudy.queries import counts
from understudy.schema import Category, Schema
from understudy.testing import SeededNoise

EPSILONS = ("0.1", "1", "10")


def generated(rows: int, sizes: tuple[int, ...], copies: float, skew: float, key: int):
    """Columns that copy their neighbour with some probability; how skewed they are is drawn."""
    rng = np.random.default_rng(key)
    columns: list[np.ndarray] = []
    for at, size in enumerate(sizes):
        fresh = rng.choice(size, size=rows, p=rng.dirichlet(np.full(size, skew)))
        if at:
            like = columns[-1] * size // sizes[at - 1]
            fresh = np.where(rng.random(rows) < copies, like, fresh)
        columns.append(fresh)
    schema = Schema(tuple(Category(f"c{i}", tuple(range(s))) for i, s in enumerate(sizes)))
    return pa.table({f"c{i}": column for i, column in enumerate(columns)}), schema


TABLES = {
    "few rows": (2000, (3, 4, 2, 6, 5), 0.3, 1.0, 1),
    "binary": (6000, (2,) * 8, 0.4, 2.0, 2),
    "large columns": (10_000, (3, 20, 8, 30, 5), 0.3, 0.7, 3),
    "independent": (5000, (6,) * 6, 0.0, 1.0, 4),
    "strongly dependent": (5000, (4, 8, 8, 3, 6), 0.7, 1.0, 5),
}


CASES = [(name, "marginals:2") for name in TABLES]
CASES += [("few rows", "marginals:3"), ("large columns", "marginals:3:5@0")]


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        pytest.param(*case, marks=pytest.mark.slow) if case[0] == "large columns" else case
        for case in CASES
    ],
)
def test_within_a_factor_of_two_of_what_is_seen(name, workload):
    table, schema = generated(*TABLES[name])
    rows, codes = table.num_rows, schema.encode(table)
    for epsilon in EPSILONS[:: examples(2, 1)]:
        choices = {"epsilon": epsilon, "workload": workload, "rows_public": rows}
        before = us.prepare(schema, **choices).forecast(rows).errors
        assert before is not None
        assert not before.noise
        made = us.release(table, schema, key=0, noise=SeededNoise(0), **choices)
        assert made.forecast is not None
        cliques = made.workload.cliques
        real = counts(codes, schema.shape, cliques)
        fake = counts(schema.encode(made.rows), schema.shape, cliques)
        gaps = [np.abs(r - f).sum() / 2 / rows for r, f in zip(real, fake, strict=True)]
        seen, after = float(np.mean(gaps)), made.forecast.mean
        assert 0.5 <= before.mean / seen <= 2, (epsilon, before.mean, seen)
        assert 0.5 <= after / seen <= 2, (epsilon, after, seen)


def of(shape, cliques, rows, sigma_one, sigma_two) -> Errors:
    knowledge = Knowledge(
        (sigma_one,) * len(shape),
        dict.fromkeys(itertools.combinations(range(len(shape)), 2), sigma_two),
    )
    return expected(shape, cliques, [1.0] * len(cliques), rows, knowledge)


def test_the_formula_cell_by_cell():
    shape, rows, one, two = (2, 3, 4), 700, 11.0, 23.0
    laws = [np.arange(1.0, size + 1) ** -forecast._SKEW for size in shape]
    laws = [law / law.sum() for law in laws]
    free = [1 - 1 / size for size in shape]

    def left(base, cells, phi, sigma):
        prior = (1 + rows * phi / cells) * base
        return sigma**2 * prior / (sigma**2 + prior)

    total, deviations = 0.0, []
    for cell in itertools.product(*map(range, shape)):
        p = [laws[i][v] for i, v in enumerate(cell)]
        share = math.prod(p)
        v = forecast._DRAWN * rows * share / (1 + rows * share / forecast._EVEN)
        for i in range(3):
            own = left(rows * p[i], shape[i], forecast._COLUMN, one)
            v += free[i] * own * (share / p[i]) ** 2
        for i, j in itertools.combinations(range(3), 2):
            own = left(rows * p[i] * p[j], shape[i] * shape[j], forecast._PAIR, two)
            v += free[i] * free[j] * own * (share / p[i] / p[j]) ** 2
        even = share / (1 + share * 24 / forecast._LARGE)
        v += math.prod(free) * (1 + rows * forecast._HIGHER / 24) * rows * even
        deviations.append(math.sqrt(v))
        most = 1.3 + 0.7 / (1 + rows * share)
        total += min(0.8 * math.sqrt(v), most * rows * share)
    deviations.sort(reverse=True)
    worst = max(d * math.sqrt(2 * math.log(2 * (k + 1))) for k, d in enumerate(deviations))
    found = of(shape, [(0, 1, 2)], rows, one, two).marginals[0]
    assert found.total_variation == pytest.approx(total / 2 / rows)
    assert found.worst == pytest.approx(worst / rows)


PAIRS = [(0, 1), (1, 2), (0, 2), (0,), (0, 1, 2)]


def test_errors_rise_with_noise_and_fall_with_rows():
    shape = (3, 20, 300)
    for errors in (
        [of(shape, PAIRS, 5000, s / 2, s) for s in (0.0, 1.0, 5.0, 25.0, 125.0, 1e4, 1e7)],
        [of(shape, PAIRS, n, 20, 40) for n in (10**6, 10**5, 10**4, 1000, 100, 1)],
    ):
        for better, worse in itertools.pairwise(errors):
            assert better.mean < worse.mean
            assert better.worst <= worse.worst
            for one, other in zip(better.marginals, worse.marginals, strict=True):
                assert one.total_variation <= other.total_variation


def test_errors_are_shares_and_noise_is_called_noise():
    blind = of((3, 20, 300), PAIRS, 10, 1e9, 1e9)
    assert blind.noise
    assert blind.mean == pytest.approx(blind.blind, rel=1e-3)
    assert "noise" in str(blind)
    assert all(0 <= e.total_variation <= 1 and 0 <= e.worst <= 1 for e in blind.marginals)
    clear = of((3, 20, 300), PAIRS, 10**6, 5, 5)
    assert not clear.noise
    assert "noise" not in str(clear)


def test_columns_of_one_value_and_empty_marginals_have_no_error_to_speak_of():
    found = of((1, 1, 1), [(0,), (0, 1), (0, 1, 2), ()], 1000, 50.0, 50.0)
    assert found.mean < 0.01


def test_larger_columns_are_worked_out_in_groups():
    """Groups of alike values change a forecast by little: a column of 5000 against brute force."""
    found = of((5000,), [(0,)], 10**5, 10.0, 10.0).marginals[0]
    shares = np.arange(1.0, 5001) ** -forecast._SKEW
    base = 10**5 * shares / shares.sum()
    prior = (1 + 10**5 * forecast._COLUMN / 5000) * base
    v = forecast._DRAWN * base / (1 + base / forecast._EVEN)
    v += (1 - 1 / 5000) * 100 * prior / (100 + prior)
    most = (1.3 + 0.7 / (1 + base)) * base
    total = np.minimum(0.8 * np.sqrt(v), most).sum() / 2 / 10**5
    assert found.total_variation == pytest.approx(total, rel=0.05)


def test_methods_that_cannot_say_say_nothing():
    _, schema = generated(*TABLES["few rows"])
    for method in ("independent", "mwem"):
        assert us.prepare(schema, epsilon=1, method=method).forecast(1000).errors is None


def test_json_keeps_the_forecast():
    errors = of((3, 20, 300), PAIRS, 5000, 10, 20)
    again = Errors.from_json(errors.to_json(), PAIRS)
    assert again.to_json() == errors.to_json()
    assert again.marginals[1].clique == (1, 2)


def test_older_bundles_state_no_intervals():
    stated = of((3, 20, 300), PAIRS, 5000, 10, 20).to_json()
    for name in ("variation", "worst_between", "variation_between"):
        del stated[name]
    old = Errors.from_json(stated, PAIRS)
    assert old.worst_between is None
    assert "between" not in str(old)
    assert set(old.to_json()) == set(stated)


def test_intervals_hold_what_is_expected_and_a_table_is_off_by_twice_its_worst_cell():
    for rows in (50, 5000, 10**6):
        found = of((2, 2, 2), [(0, 1), (1, 2)], rows, 10.0, 20.0)
        assert found.worst_between is not None
        assert found.variation_between is not None
        assert found.variation is not None
        assert found.worst_between[0] < found.worst < found.worst_between[1]
        assert found.variation_between[0] < found.variation <= found.variation_between[1] <= 1
        assert found.variation >= min(1, 2 * found.worst)


def test_the_certificate_moves_the_worst_cell_as_far_as_its_noise_allows():
    before = of((3, 20, 300), PAIRS, 5000, 10, 20)
    told = updated(before, 3 * before.worst, before.worst / 1000, 1.0)
    assert told.worst == pytest.approx(3 * before.worst, rel=0.01)
    assert told.worst_between is not None
    assert told.worst_between[1] / told.worst_between[0] < 1.05
    untold = updated(before, 30 * before.worst, 1000 * before.worst, 1.0)
    assert untold.worst == pytest.approx(0.82 * before.worst, rel=0.05)
    near = updated(before, 1.5 * before.worst, before.worst / 2, 1.0)
    assert before.worst * 0.82 < near.worst < 1.2 * before.worst  # noise is hardly believed
    bound = before.worst / 2
    assert updated(before, 3 * before.worst, before.worst, bound).worst == bound


def test_what_a_model_shows_cell_by_cell():
    """Two columns, one pair of them measured: the formula of the module on the model's own table."""
    rng, rows, one, two = np.random.default_rng(0), 900, 6.0, 15.0
    shape, records = (3, 4), 5000
    first = rng.integers(0, 3, records)
    second = np.where(rng.random(records) < 0.6, first, rng.integers(0, 4, records))
    codes = (first.astype(np.uint8), second.astype(np.uint8))
    model = Weighted(shape, codes, np.ones(records, np.float32), ())
    p = model.marginal((0, 1))
    laws = [p.sum(axis=1), p.sum(axis=0)]
    answers = [Measured((i,), np.zeros(size), one) for i, size in enumerate(shape)]
    answers.append(Measured((0, 1), np.zeros(shape), two))
    before = of(shape, [(0, 1)], rows, one, two)
    found = shown(before, [1.0], model, shape, answers)

    phi = 12 * ((p - np.outer(*laws)) ** 2).sum()
    assert phi > forecast._UNSEEN
    total, deviations = 0.0, []
    for i, j in itertools.product(range(3), range(4)):
        b = rows * p[i, j]
        v = forecast._DRAWN * b / (1 + b / forecast._EVEN)
        for share, size, other in ((laws[0][i], 3, 4), (laws[1][j], 4, 3)):
            precision = one**-2 + two**-2 / other
            prior = (1 + rows / size) * rows * share
            v += (1 - 1 / size) * prior / (1 + precision * prior) * (p[i, j] / share) ** 2
        prior = (1 + rows * phi / 12) * b
        v += (2 / 3) * (3 / 4) * prior / (1 + two**-2 * prior)
        deviations.append(math.sqrt(v))
        total += min(0.8 * math.sqrt(v), (1.3 + 0.7 / (1 + b)) * b)
    assert found.mean == pytest.approx(total / 2 / rows)
    deviations.sort(reverse=True)
    worst = max(d * math.sqrt(2 * math.log(2 * (k + 1))) for k, d in enumerate(deviations)) / rows
    assert found.marginals[0].worst == pytest.approx(worst)
    assert found.worst == pytest.approx(math.sqrt(worst * before.worst))


def test_a_release_keeps_its_forecast_and_still_verifies(tmp_path):
    table, schema = generated(*TABLES["few rows"])
    made = us.release(table, schema, epsilon=1)
    assert made.forecast is not None
    made.save(tmp_path / "r")
    assert us.verify(tmp_path / "r").passed
    again = us.Release.load(tmp_path / "r").forecast
    assert again is not None
    assert again.to_json() == made.forecast.to_json()


@pytest.mark.parametrize("rows_public", [None, 10])
def test_a_release_of_noise_says_so(rows_public):
    _, schema = generated(*TABLES["few rows"])
    table = pa.table({column.name: [0] * 10 for column in schema.columns})
    for _ in range(examples(1, 4)):
        made = us.release(table, schema, epsilon="0.01", rows_public=rows_public, rows=10)
        assert made.forecast is not None
        assert made.forecast.noise
        assert "noise" in str(made.forecast)
        assert schema.illegal(made.rows) == []
