"""From model to rows: values inside cells go along with each other, and codes stay."""

from dataclasses import replace

import numpy as np
import pytest

from tools import verify_release as stranger
from understudy.errors import BundleError, InputError
from understudy.models import Empirical, Weighted
from understudy.models.copula import Copula
from understudy.releases import form
from understudy.releases.rows import drawn_rows, fresh_rows, together
from understudy.schema import Schema

TOML = """
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
SCHEMA = Schema.loads(TOML)


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

    def test_codes_that_rules_move_lie_together_where_they_are_moved_to(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ruled = Schema.loads(TOML + "\n[[rule]]\nsays = \"kind = 'a' implies size < 2500\"\n")
        model, codes = together(ruled, _model()), _model().codes
        moved = ruled.project(codes)
        assert (moved[0] != codes[0]).any()
        monkeypatch.setattr(Weighted, "sample", lambda self, rows, rng: list(self.codes))
        models = (model, replace(model, codes=tuple(moved)))
        pair = [fresh_rows(ruled, m, len(codes[0]), np.random.default_rng(4)) for m in models]
        assert pair[0][1].equals(pair[1][1])
        assert all(map(np.array_equal, pair[0][0], moved))

    def test_any_number_of_rows(self) -> None:
        model = together(SCHEMA, _model())
        rng = np.random.default_rng(0)
        for rows in (0, 1, 2):
            assert fresh_rows(SCHEMA, model, rows, rng)[1].num_rows == rows


COPULA = {"columns": [0, 1], "ends": [[-1.0, 0.5], []], "correlations": [[1.0, 0.5], [0.5, 1.0]]}


def _described(**changed: object) -> dict:
    return {
        "kind": "weighted",
        "shape": [4, 3],
        "cliques": [],
        "copula": {**COPULA, **changed},
    }


class TestForm:
    def test_both_verifiers_take_one(self) -> None:
        form.require_description(_described())
        assert list(stranger.copula_problems(COPULA, [4, 3])) == []

    @pytest.mark.parametrize(
        "changed",
        [
            {"columns": [0]},
            {"columns": [0, "1"]},
            {"correlations": [[1.0, 2.0], [2.0, 1.0]]},
            {"ends": [[-1e9], []]},
            {"more": 1},
            {"correlations": [[1.0, np.nan], [np.nan, 1.0]]},
            {"ends": [[np.nan], []]},
            {"columns": [*range(65)]},
            {"columns": [0, 1 - 2**70]},
        ],
    )
    def test_a_description_of_another_form_is_refused(self, changed: dict) -> None:
        with pytest.raises(BundleError, match="copula"):
            form.require_description(_described(**changed))

    @pytest.mark.parametrize(
        "changed",
        [
            {"columns": [0, 0]},
            {"columns": [0, 2]},
            {"columns": [0, 1, 2]},
            {"ends": [[0.5, -1.0], []]},
            {"ends": [[], [0.0, 1.0, 2.0]]},
            {"correlations": [[1.0, 0.5], [0.4, 1.0]]},
            {"correlations": [[0.9, 0.5], [0.5, 1.0]]},
            {"correlations": [[1.0, 1.0], [1.0, 1.0]]},
            {"correlations": [[1.0, 1 - 2**-40], [1 - 2**-40, 1.0]]},
        ],
    )
    def test_neither_verifier_takes_what_is_no_normal_law_of_its_cells(self, changed: dict) -> None:
        assert list(stranger.copula_problems({**COPULA, **changed}, [4, 3]))
        codes = tuple(np.zeros(5, int) for _ in range(2))
        with pytest.raises(InputError):
            Weighted((4, 3), codes, np.ones(5), copula=Copula.from_json({**COPULA, **changed}))

    def test_the_second_verifier_draws_the_same_scores(self) -> None:
        model = together(SCHEMA, _model())
        assert isinstance(model, Weighted)
        assert model.copula is not None
        codes = [column[:40_000] for column in (*_model(40_000).codes,)]
        ours = model.copula.scores(codes, np.random.default_rng(2))
        theirs = stranger.scores_of(model.copula.to_json(), codes, np.random.default_rng(2))
        assert all(np.allclose(ours[i], theirs[i], rtol=1e-9, atol=1e-12) for i in ours)
