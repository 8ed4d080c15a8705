"""From model to rows: values inside cells go along with each other, and codes stay."""

import numpy as np

from understudy.models import Empirical, Weighted
from understudy.releases.rows import decoded, drawn_rows, together
from understudy.schema import Schema

SCHEMA = Schema.loads(
    """
[understudy]
version = 1
unit = "row"

[[column]]
name = "size"
type = "integer"
lower = 0
upper = 9999
bins = 4
special = [-1]

[[column]]
name = "day"
type = "date"
dtype = "string"
format = "%d/%m/%Y"
lower = 2001-01-01
upper = 2020-12-31
bins = 3
nullable = true

[[column]]
name = "kind"
type = "category"
values = ["a", "b"]
"""
)


def _model(rows: int = 20_000) -> Weighted:
    """Days go along with sizes; some of both are special or null."""
    rng = np.random.default_rng(1)
    size, other = rng.standard_normal((2, rows))
    day = 0.9 * size + 0.44 * other
    codes = np.searchsorted([-1, 0, 1], size), np.searchsorted([-0.5, 0.5], day)
    codes[0][::10], codes[1][1::10] = 4, 3
    kinds = rng.integers(0, 2, rows)
    return Weighted((5, 4, 2), (*codes, kinds), np.ones(rows, np.float32))


def _numbers(table) -> tuple[np.ndarray, np.ndarray]:
    days = [None if d is None else d[6:] + d[3:5] + d[:2] for d in table["day"].to_pylist()]
    return table["size"].to_numpy(), np.array([-1 if d is None else int(d) for d in days])


class TestTogether:
    def test_values_of_one_cell_go_along_with_each_other(self) -> None:
        model = together(SCHEMA, _model())
        assert isinstance(model, Weighted)
        assert model.copula is not None
        assert model.copula.columns == (0, 1)
        codes, rows = drawn_rows(SCHEMA, model, 20_000, 3)
        _, apart = drawn_rows(SCHEMA, _model(), 20_000, 3)
        inside = (codes[0] == 2) & (codes[1] == 1)

        def agreement(table) -> float:
            return float(np.corrcoef([x[inside] for x in _numbers(table)])[0, 1])

        assert abs(agreement(apart)) < 0.1
        assert agreement(rows) > 0.15

    def test_codes_stay(self) -> None:
        codes, rows = drawn_rows(SCHEMA, together(SCHEMA, _model()), 5_000, 3)
        assert all(np.array_equal(a, b) for a, b in zip(SCHEMA.encode(rows), codes, strict=True))

    def test_columns_keep_their_values(self) -> None:
        """They are exchanged among the rows of a cell: of the same generator, the same values."""
        model, codes = together(SCHEMA, _model()), _model().codes
        assert isinstance(model, Weighted)
        assert model.copula is not None
        rng = np.random.default_rng(5)
        scores = model.copula.scores(codes, rng)
        state = rng.bit_generator.state
        with_scores = SCHEMA.decode(codes, rng, scores=scores)
        rng.bit_generator.state = state
        without = SCHEMA.decode(codes, rng)
        for name in ("size", "day", "kind"):
            pair = (t[name].to_pylist() for t in (with_scores, without))
            assert sorted(next(pair), key=str) == sorted(next(pair), key=str)
        assert with_scores["kind"].equals(without["kind"])

    def test_models_without_weights_and_tables_without_wide_cells_stay(self) -> None:
        model = _model(100)
        assert together(SCHEMA, listed := Empirical(model.shape, model.codes)) is listed
        narrow = Schema(SCHEMA.columns[2:])
        one = Weighted((2,), model.codes[2:], model.weights)
        assert together(narrow, one) is one

    def test_any_number_of_rows(self) -> None:
        model = together(SCHEMA, _model())
        rng = np.random.default_rng(0)
        for rows in (0, 1, 2):
            assert decoded(SCHEMA, model, model.sample(rows, rng), rng).num_rows == rows
