"""Values inside cells: they follow the correlation of a normal law, keep cells, and nothing else."""

import json

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.models import Weighted, from_arrays
from understudy.models.copula import MOST_COLUMNS, Copula, copula_of

RNG = np.random.default_rng
CUTS = [-1.0, 0.0, 0.5]


def _normal(rows: int, r: float, key: int = 1) -> np.ndarray:
    """Two normal columns of this correlation, and an independent one."""
    a, b, c = RNG(key).standard_normal((3, rows))
    return np.stack([a, r * a + np.sqrt(1 - r * r) * b, c])


def _cut(values: np.ndarray) -> list[np.ndarray]:
    return [np.searchsorted(CUTS, column).astype(np.uint8) for column in values]


def _found(codes: list[np.ndarray], wide: tuple[int, ...] = (0, 1), **more: object) -> Copula:
    rows = len(codes[0])
    ordered = [4] * len(codes)
    found = copula_of(codes, np.full(rows, 1 / rows, np.float32), ordered, wide, RNG(0))
    assert found is not None
    return found


class TestFound:
    @pytest.mark.parametrize("r", [-0.8, 0.3, 0.95])
    def test_the_correlation_behind_the_cells(self, r: float) -> None:
        found = _found(_cut(_normal(40_000, r)), (0, 1, 2))
        matrix = np.array(found.correlations)
        assert matrix[0, 1] == pytest.approx(r, abs=0.04)
        assert abs(matrix[0, 2]) < 0.04

    def test_not_of_the_codes_alone(self) -> None:
        """Codes of few cells are less correlated than what they were cut from."""
        codes = _cut(_normal(40_000, 0.95))
        assert np.corrcoef(codes[:2])[0, 1] < 0.9

    def test_ends_are_the_scores_of_cells(self) -> None:
        assert np.allclose(_found(_cut(_normal(200_000, 0.5))).ends[0], CUTS, atol=0.02)

    def test_weights_count(self) -> None:
        values = _normal(20_000, 0.9)
        codes, weights = _cut(values), np.exp(values[0]).astype(np.float32)
        found = copula_of(codes, weights, [4, 4, 4], (0, 1), RNG(0))
        assert found is not None
        assert np.allclose(found.ends[0], np.array(CUTS) - 1, atol=0.05)  # tilted by one deviation

    def test_narrow_columns_are_taken_in_where_they_say_something(self) -> None:
        assert _found(_cut(_normal(5_000, 0.8)), (0,)).columns == (0, 1)

    def test_none_where_nothing_is_to_be_said(self) -> None:
        codes, rows = _cut(_normal(500, 0.0)), np.ones(500, np.float32)
        assert copula_of(codes, rows, [4, 4, 4], (), RNG(0)) is None
        assert copula_of(codes, rows, [4, 4, 4], (2,), RNG(0)) is None
        assert copula_of(codes, rows, [4, 0, 0], (0,), RNG(0)) is None

    def test_one_record_says_nothing(self) -> None:
        one = [np.zeros(1, int)] * 2
        assert copula_of(one, np.ones(1, np.float32), [4, 4], (0, 1), RNG(0)) is None

    def test_no_more_columns_than_allowed(self) -> None:
        codes = [*RNG(3).integers(0, 4, (MOST_COLUMNS + 9, 200), dtype=np.uint8)]
        found = _found(codes, tuple(range(len(codes))))
        assert found.columns == tuple(range(MOST_COLUMNS))


class TestScores:
    def test_inside_the_cells_of_their_codes(self) -> None:
        codes = _cut(_normal(40_000, 0.9))
        scores = _found(codes).scores(codes, RNG(4))
        found = _found(codes)
        for i, ends in zip(found.columns, found.ends, strict=True):
            below, above = np.array([-np.inf, *ends]), np.array([*ends, np.inf])
            assert (scores[i] >= below[codes[i]]).all()
            assert (scores[i] <= above[codes[i]]).all()

    @pytest.mark.parametrize("r", [0.0, 0.6, 0.95])
    def test_as_correlated_as_what_was_cut(self, r: float) -> None:
        values = _normal(40_000, r)
        codes = _cut(values)
        scores = _found(codes).scores(codes, RNG(5))
        assert np.corrcoef(scores[0], scores[1])[0, 1] == pytest.approx(r, abs=0.05)
        inside = (codes[0] == 3) & (codes[1] == 3)
        real, drawn = (
            np.corrcoef(pair[0][inside], pair[1][inside])[0, 1] for pair in (values, scores)
        )
        assert drawn == pytest.approx(real, abs=0.1)

    def test_codes_beside_the_order_are_free(self) -> None:
        codes = _cut(_normal(20_000, 0.9))
        codes[1][::2] = 4
        found = copula_of(codes, np.ones(20_000, np.float32), [4, 4, 4], (0, 1), RNG(0))
        assert found is not None
        assert found.correlations[0][1] == pytest.approx(0.9, abs=0.06)
        assert np.isfinite(found.scores(codes, RNG(6))[1]).all()

    def test_finite_in_the_furthest_tails(self) -> None:
        matrix = ((1.0, 0.99), (0.99, 1.0))
        found = Copula((0, 1), ((-6.0, 6.0), (-6.0, 6.0)), matrix)
        codes = [np.array([0, 2, 0, 2]), np.array([2, 0, 0, 2])]
        scores = found.scores(codes, RNG(7))
        assert all(np.isfinite(each).all() for each in scores.values())

    def test_of_no_rows(self) -> None:
        none = np.zeros(0, np.uint8)
        assert all(not len(s) for s in _found(_cut(_normal(900, 0.5))).scores([none] * 3, RNG(1)))

    def test_the_same_for_the_same_generator(self) -> None:
        codes = _cut(_normal(40_000, 0.5))
        found = _found(codes)
        one, two = (found.scores(codes, RNG(8)) for _ in range(2))
        assert all(np.array_equal(one[i], two[i]) for i in found.columns)


class TestDescribed:
    def test_comes_back_with_its_model(self) -> None:
        codes = tuple(_cut(_normal(2_000, 0.7)))
        model = Weighted((4, 4, 4), codes, np.ones(2_000), copula=_found(list(codes)))
        told, arrays = model.to_arrays()
        again = from_arrays(json.loads(json.dumps(told)), arrays)
        assert isinstance(again, Weighted)
        assert again.copula is not None
        assert again.to_arrays()[0] == told
        assert model.thinned(100).copula is model.copula

    @pytest.mark.parametrize(
        ("columns", "ends", "matrix", "words"),
        [
            ((0,), ((),), ((1.0,),), "2 to 64 columns"),
            ((0, 0), ((), ()), ((1.0, 0.0), (0.0, 1.0)), "each of them once"),
            ((0, 1), ((),), ((1.0, 0.0), (0.0, 1.0)), "for each of its columns"),
            ((0, 1), ((), ()), ((1.0, 0.0), (0.0,)), "for each of its columns"),
            ((0, 1), ((1.0, 1.0), ()), ((1.0, 0.0), (0.0, 1.0)), "increase"),
            ((0, 1), ((), ()), ((1.0, 0.1), (0.0, 1.0)), "symmetric"),
            ((0, 1), ((), ()), ((1.0, 0.1), (0.1, 0.9)), "diagonal"),
            ((0, 1), ((), ()), ((1.0, 1.0), (1.0, 1.0)), "definite"),
        ],
    )
    def test_what_is_none_is_refused(
        self, columns: tuple, ends: tuple, matrix: tuple, words: str
    ) -> None:
        with pytest.raises(InputError, match=words):
            Copula(columns, ends, matrix)

    @pytest.mark.parametrize(
        ("columns", "ends"), [((0, 3), ((), ())), ((0, 1), ((), (1, 2, 3, 4)))]
    )
    def test_a_model_refuses_one_of_other_cells(self, columns: tuple, ends: tuple) -> None:
        copula = Copula(columns, ends, ((1.0, 0.5), (0.5, 1.0)))
        codes = tuple(_cut(_normal(10, 0.5)))
        with pytest.raises(InputError, match="leaves its cells"):
            Weighted((4, 4, 4), codes, np.ones(10), copula=copula)
