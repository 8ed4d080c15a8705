import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.schema_strategies import arrays, columns
from understudy.columns.base import near
from understudy.errors import WorkloadError
from understudy.schema import Boolean, Category, Date, Integer, Modelled, Number, Schema

RNG = np.random.default_rng


def everything(column: Modelled, copies: int = 3) -> np.ndarray:
    """Every code, several times."""
    return np.tile(np.arange(column.size), copies)


class TestRoundTrips:
    @given(columns(), st.integers(0, 9))
    def test_codes_survive_values(self, column, seed):
        codes = everything(column)
        values = column.decode(codes, RNG(seed))
        assert values.type == column.arrow_type
        assert values.null_count == (3 if column.nullable else 0)
        np.testing.assert_array_equal(column.encode(values), codes)
        assert column.legal(values).all()

    @given(columns())
    def test_values_stay_in_their_cell(self, column):
        values = column.decode(everything(column), RNG(0))
        again = column.decode(column.encode(values), RNG(1))
        np.testing.assert_array_equal(column.encode(values), column.encode(again))

    @given(columns())
    def test_codes_survive_text(self, column):
        assume(not (isinstance(column, Category) and isinstance(column.values[0], str)))
        codes = everything(column)
        texts = column.decode(codes, RNG(0)).cast(pa.string())
        np.testing.assert_array_equal(column.encode(texts), codes)

    @given(columns())
    def test_codes_survive_parquet(self, column):
        schema = Schema((column,))
        table = schema.decode([everything(column)], RNG(0))
        file = io.BytesIO()
        pq.write_table(table, file)
        back = pq.read_table(file)
        assert schema.illegal(back) == []
        np.testing.assert_array_equal(schema.encode(back)[0], everything(column))

    @given(columns())
    def test_codes_use_the_smallest_type_and_labels_fit(self, column):
        assert len(column.labels()) == column.size
        assert np.iinfo(column.code_dtype).max >= column.size - 1
        assert column.encode(pa.nulls(2)).dtype == column.code_dtype
        assert column.code_dtype == np.min_scalar_type(column.size - 1)

    def test_two_hundred_fifty_six_cells_fit_a_byte(self):
        assert Integer("x", 0, 255).code_dtype == np.uint8
        assert Integer("x", 0, 255, nullable=True).code_dtype == np.uint16


class TestEncodingNeverFails:
    @given(columns(), arrays())
    def test_any_array_has_codes(self, column, array):
        codes = column.encode(array, ["?"])
        assert len(codes) == len(array)
        assert codes.dtype == column.code_dtype
        assert (codes < column.size).all()

    @given(columns(), arrays())
    def test_a_code_depends_on_its_own_cell_alone(self, column, array):
        alone = [column.encode(array.slice(i, 1))[0] for i in range(len(array))]
        np.testing.assert_array_equal(column.encode(array), np.array(alone, column.code_dtype))

    @given(columns(), arrays())
    def test_misfits_cover_what_is_mended(self, column, array):
        masks = column.misfits(array)
        assert all(len(mask) == len(array) for mask in masks.values())
        mended = masks["null"] | masks["unreadable"] | masks["outside"]
        assert column.encode(array).shape == mended.shape

    def test_nothing_is_there(self):
        for column in (Integer("x", 0, 9), Category("x", ("a",)), Boolean("x")):
            assert column.encode(pa.array([], pa.string())).tolist() == []
            assert column.decode(np.array([], int), RNG(0)).type == column.arrow_type

    @pytest.mark.parametrize(
        ("column", "array", "codes"),
        [
            (Integer("x", 0, 9), [-5, 3, 99, None], [0, 3, 9, 0]),
            (Integer("x", 0, 9, nullable=True), [-5, 3, 99, None], [0, 3, 9, 10]),
            (Integer("x", 0, 9), [2.4, 2.6, float("inf"), float("-inf")], [2, 3, 9, 0]),
            (Integer("x", 0, 9, nullable=True), ["3", " 4", "x", "1e3", "5.0"], [3, 4, 10, 9, 5]),
            (Integer("x", 0, 9), ["+3", "99999999999999999999", "-1", ""], [3, 9, 0, 0]),
            (Integer("x", 0, 9), [True, False], [1, 0]),
            (Number("x", 0, 1, 2), [-1.0, 0.5, 9.0, float("inf")], [0, 1, 1, 1]),
            (Number("x", 0, 1, 2, nullable=True), [float("nan"), 0.4], [2, 0]),
            (Number("x", 0, 1, 2, nullable=True), ["nan", "0.4", "-Infinity", "abc"], [2, 0, 0, 2]),
            (Boolean("x", nullable=True), ["TRUE", "no", "maybe", None], [1, 0, 2, 2]),
            (Boolean("x"), [0.0, 1.0, 7.0, float("nan")], [0, 1, 1, 0]),
            (Category("x", ("a", "b")), ["b", "z", None], [1, 0, 0]),
            (Category("x", ("a", "b"), True), ["b", "z", None, "OTHER"], [1, 2, 2, 2]),
            (Category("x", ("a", "b"), True, nullable=True), ["z", None, ""], [2, 3, 3]),
            (Category("x", (1, 2), -1), [1.0, 1.5, 2.0], [0, 2, 1]),
            (Category("x", (1, 2), -1, nullable=True), ["1", "2.0", "x", ""], [0, 1, 2, 3]),
            (Category("x", ("1", "2"), nullable=True), [1.0, 2.0, float("nan")], [0, 1, 2]),
            (Category("x", ("True", "False"), nullable=True), [True, False, None], [0, 1, 2]),
            (Category("x", (True, False)), ["true", "0"], [0, 1]),
            (Date("x", "2014-01-01", "2014-01-03"), ["20140102", "2013-02-30"], [1, 0]),
            (Date("x", "2014-01-01", "2014-01-03"), [20140102, 20200101, 7], [1, 2, 0]),
            (Date("x", "2014-01-01", "2014-01-03", format="%d.%m.%Y"), ["02.01.2014"], [1]),
        ],
    )
    def test_mends(self, column, array, codes):
        assert column.encode(pa.array(array)).tolist() == codes


class TestDecoding:
    def test_codes_out_of_range_are_refused(self):
        with pytest.raises(ValueError, match=r"column 'x': codes must lie in 0\.\.9, not -1\.\.3"):
            Integer("x", 0, 9).decode(np.array([-1, 3]), RNG(0))


OPS = ["=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null"]


class TestComparisons:
    @given(columns(), st.data())
    def test_evaluation_lies_between_inner_and_outer(self, column, data):
        values = column.decode(everything(column), RNG(0))
        codes = column.encode(values)
        literals = [value for value in values.to_pylist() if value is not None]
        literals = [v.decode() if isinstance(v, bytes) else v for v in literals]
        op = data.draw(st.sampled_from(OPS))
        literal = data.draw(st.sampled_from(literals))
        if op in ("in", "not in"):
            literal = data.draw(st.lists(st.sampled_from(literals), min_size=1, max_size=4))
        try:
            inner, outer = column.compare(op, literal)
        except WorkloadError:
            assert isinstance(column, Category)  # no order, or the order of OTHER
            return
        found = column.evaluate(op, literal, values)
        assert (inner <= outer).all()
        assert (inner[codes] <= found).all()
        assert (found <= outer[codes]).all()
        if column.nullable and op != "is null":
            assert not outer[-1]

    @given(
        st.integers(-5, 5),
        st.integers(1, 12),
        st.integers(1, 13),
        st.sampled_from(OPS[:6]),
        st.fractions(-8, 20, max_denominator=2),
    )
    def test_integer_cells_against_brute_force(self, lower, width, bins, op, literal):
        column = Integer("x", lower, lower + width, min(bins, width + 1))
        points = np.arange(lower, lower + width + 1)
        codes = column.encode(pa.array(points))
        holds = np.array([_holds(int(point), op, literal) for point in points])
        inner, outer = column.compare(op, float(literal))
        for code in range(column.size):
            assert inner[code] == holds[codes == code].all()
            assert outer[code] == holds[codes == code].any()

    def test_a_full_list_is_inside(self):
        column = Integer("x", 0, 9, 5)
        inner, outer = column.compare("in", [0, 1, 2])
        assert inner.tolist() == [True, False, False, False, False]
        assert outer.tolist() == [True, True, False, False, False]

    def test_null_satisfies_nothing_else(self):
        column = Category("x", ("a", "b"), nullable=True)
        assert column.compare("!=", "a")[1].tolist() == [False, True, False]
        assert column.compare("is null")[0].tolist() == [False, False, True]
        assert column.compare("is not null")[0].tolist() == [True, True, False]
        assert not Category("x", ("a", "b")).compare("is null")[1].any()

    @pytest.mark.parametrize(
        ("column", "op", "literal", "said"),
        [
            (Category("c", ("Male", "Female")), "=", "Mal", "did you mean 'Male'"),
            (Category("c", ("Male", "Female")), "=", 7, "such as Male, Female"),
            (Category("c", ("a", "b")), "<", "a", "declare ordinal = true"),
            (Category("c", ("a",), True, True), "<", "OTHER", "no place in the order"),
            (Category("c", (1, 2)), "=", "x", "'x' is not one of its 2 values"),
            (Boolean("c"), "=", "maybe", "neither true nor false"),
            (Integer("c", 0, 9), "<", "many", "'many' is not a finite number"),
            (Integer("c", 0, 9), "<", True, "True is not a number"),
            (Integer("c", 0, 9), "<", float("nan"), "not a finite number"),
            (Integer("c", 0, 9), "~", 3, "unknown operator '~'"),
            (Integer("c", 0, 9), "in", 3, "needs a list"),
            (Date("c", "2014-01-01", "2014-01-04"), "<", "soon", "'soon' is not a date"),
            (Date("c", "2014-01-01", "2014-01-04"), "<", 7, "7 is not a date"),
        ],
    )
    def test_wrong_literals_are_named(self, column, op, literal, said):
        with pytest.raises(WorkloadError, match="column 'c'") as caught:
            column.compare(op, literal)
        assert said in str(caught.value)


def _holds(point, op, literal) -> bool:
    return {
        "=": point == literal,
        "!=": point != literal,
        "<": point < literal,
        "<=": point <= literal,
        ">": point > literal,
        ">=": point >= literal,
    }[op]


def test_only_what_is_about_as_near_is_named_beside_the_nearest():
    assert near("readmited", ("examide", "readmitted")) == " (did you mean 'readmitted'?)"
    assert near("dige", ("diga", "digs", "x")) == " (did you mean 'digs' or 'diga'?)"
