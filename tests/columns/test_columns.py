import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.schema_strategies import arrays, columns

from understudy.errors import WorkloadError
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Datetime,
    Identifier,
    Integer,
    Modelled,
    Number,
    Schema,
)

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

    def test_null_values_are_null_where_they_are_text(self):
        column = Category("x", ("a",), nullable=True, null_values=("?",))
        assert column.encode(pa.array(["a", "?", " ? ", "-"]), ["-"]).tolist() == [0, 1, 1, 1]
        number = Integer("x", 0, 9, nullable=True, null_values=("9",))
        assert number.encode(pa.array(["9", "8"])).tolist() == [10, 8]
        assert number.encode(pa.array([9, 8])).tolist() == [9, 8]

    def test_large_unsigned_and_wide_decimals_clamp(self):
        column = Integer("x", 0, 9)
        assert column.encode(pa.array([2**64 - 1, 1], pa.uint64())).tolist() == [9, 1]
        assert column.encode(pa.array([10**30], pa.decimal128(38, 0))).tolist() == [9]

    def test_a_date_is_what_the_wall_clock_shows(self):
        column = Date("x", "2014-01-01", "2014-01-03")
        late = pa.array([1388712600], pa.timestamp("s", "America/New_York"))  # 2nd, 20:30 local
        assert column.encode(late).tolist() == [1]
        assert column.encode(late.cast(pa.timestamp("s", "Not/AZone"))).tolist() == [2]

    def test_texts_that_are_not_unicode(self):
        raw = pa.array([b"\xff", b"a", b"7"])
        array = raw.cast(pa.string(), safe=False)
        assert Category("x", ("a",), True).encode(array).tolist() == [1, 0, 1]
        assert Integer("x", 0, 9, nullable=True).encode(array).tolist() == [10, 10, 7]

    def test_the_ends_of_time_do_not_wrap(self):
        column = Date("x", "2014-01-01", "2014-01-03")
        ends = pa.array([-(2**63) + 1, 2**63 - 1])
        for zone in (None, "Asia/Tokyo", "America/New_York"):
            assert column.encode(ends.cast(pa.timestamp("ns", zone))).tolist() == [0, 2]

    def test_an_instant_is_an_instant(self):
        column = Datetime(
            "x", "2014-01-01", "2014-01-03", 2, resolution="hour", dtype="timestamp[s, tz=UTC]"
        )
        assert column.encode(pa.array(["2014-01-01T23:30:00-05:00"])).tolist() == [1]
        naive = Datetime("x", "2014-01-01", "2014-01-03", 2, resolution="hour")
        assert naive.encode(pa.array(["2014-01-01T23:30:00-05:00"])).tolist() == [0]


class TestDecoding:
    def test_numbers_never_leave_their_cell_whatever_the_type(self):
        for dtype in ("float64", "float32", "float16"):
            column = Number("x", 0.1, 0.7, 3, dtype=dtype)
            codes = np.repeat(np.arange(3), 20_000)
            values = column.decode(codes, RNG(0)).to_numpy().astype(float)
            assert values.min() >= 0.1
            assert values.max() <= 0.7
            np.testing.assert_array_equal(column.encode(pa.array(values)), codes)

    def test_integers_are_uniform_within_their_bin(self):
        column = Integer("x", 0, 9, 2)
        drawn = column.decode(np.zeros(50_000, int), RNG(0)).to_numpy()
        counts = np.bincount(drawn, minlength=10)
        assert (counts[5:] == 0).all()
        assert np.abs(counts[:5] - 10_000).max() < 500

    def test_decimals_are_kept(self):
        column = Number("x", 0, 1, 3, decimals=1)
        drawn = column.decode(np.repeat(np.arange(3), 500), RNG(0)).to_pylist()
        assert set(drawn) == {i / 10 for i in range(11)}

    def test_dates_by_day_and_times_by_resolution(self):
        column = Datetime("x", "2014-01-01", "2014-12-31", 4, resolution="hour")
        drawn = column.decode(np.repeat(np.arange(4), 100), RNG(0)).to_pylist()
        assert all(moment.minute == moment.second == 0 for moment in drawn)

    def test_ids_are_fresh_and_unique(self):
        column = Identifier("id", "P-{:06d}")
        assert column.generate(3).to_pylist() == ["P-000001", "P-000002", "P-000003"]
        assert (
            Identifier("id", "{}", dtype="int32").generate(2).equals(pa.array([1, 2], pa.int32()))
        )
        assert column.legal(pa.array(["P-000001", "P-000001", None, "Q"])).tolist() == [
            True,
            False,
            False,
            False,
        ]

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

    def test_cut_cells_touch(self):
        inner, outer = Number("x", 0, 10, 5).compare("<", 5)
        assert inner.tolist() == [True, True, False, False, False]
        assert outer.tolist() == [True, True, True, False, False]
        inner, outer = Number("x", 0, 10, 5).compare("<", 4)
        assert inner.tolist() == outer.tolist() == [True, True, False, False, False]
        inner, outer = Number("x", 0, 10, 5, decimals=1).compare("=", 4.05)
        assert not outer.any()

    def test_null_satisfies_nothing_else(self):
        column = Category("x", ("a", "b"), nullable=True)
        assert column.compare("!=", "a")[1].tolist() == [False, True, False]
        assert column.compare("is null")[0].tolist() == [False, False, True]
        assert column.compare("is not null")[0].tolist() == [True, True, False]
        assert not Category("x", ("a", "b")).compare("is null")[1].any()

    def test_other_is_never_a_declared_value(self):
        column = Category("x", (1, 2, 3), -1)
        assert column.compare("=", 1)[1].tolist() == [True, False, False, False]
        assert column.compare("!=", 1)[0].tolist() == [False, True, True, True]
        inner, outer = column.compare("<", 3)
        assert inner.tolist() == [True, True, False, False]
        assert outer.tolist() == [True, True, False, True]
        assert column.compare("=", -1)[0].tolist() == [False, False, False, True]
        assert column.evaluate("<", 3, pa.array([1, 3, -1])).tolist() == [True, False, False]

    def test_texts_follow_the_declared_order_if_it_means_something(self):
        sizes = Category("size", ("S", "M", "L"), ordinal=True)
        assert sizes.ordered
        assert sizes.compare(">=", "M")[0].tolist() == [False, True, True]

    def test_dates_take_texts_and_dates(self):
        column = Date("d", "2014-01-01", "2014-01-04", 2)
        inner, outer = column.compare(">=", "2014-01-02")
        assert inner.tolist() == [False, True]
        assert outer.tolist() == [True, True]
        times = Datetime("d", "2014-01-01", "2014-01-04", 3)
        assert times.compare("<", "2014-01-02T00:00:00.5")[1].tolist() == [True, True, False]

    @pytest.mark.parametrize(
        ("column", "op", "literal", "said"),
        [
            (Category("c", ("Male", "Female")), "=", "Mal", "did you mean 'Male'"),
            (Category("c", ("Male", "Female")), "=", 7, "use one of Male, Female"),
            (Category("c", ("a", "b")), "<", "a", "declare ordinal = true"),
            (Category("c", ("a",), True, True), "<", "OTHER", "no place in the order"),
            (Category("c", (1, 2)), "=", "x", "'x' is not one of its 2 declared values"),
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
