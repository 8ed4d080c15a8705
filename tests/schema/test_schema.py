import os
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schema_strategies import TEXTS, columns
from understudy.errors import SchemaError, SourceError, WorkError
from understudy.privacy.sensitive import reveal
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Datetime,
    Identifier,
    Incomplete,
    Integer,
    Number,
    Schema,
    Text,
)
from understudy.source import read

RNG = np.random.default_rng
EVERY = Schema(
    (
        Identifier("person", "P-{:06d}"),
        Category("sex", ("F", "M"), nullable=True, null_values=("?",)),
        Boolean("smoker"),
        Integer("age", 18, 99, dtype="uint8"),
        Identifier("ssn"),
        Number("income", 0, 1e6, 20, decimals=2),
        Number("lab", edges=(0, 0.5, 10), dtype="float32", nullable=True),
        Date("visit", date(2020, 1, 1), date(2024, 12, 31), 20),
        Datetime("seen", "2020-01-01", "2024-12-31", 20, dtype="timestamp[ms, tz=UTC]"),
        Category(
            "city", ("A", "B"), True, dtype="dictionary<values=string, indices=int8, ordered=0>"
        ),
    ),
    rows_public=50_000,
    null_values=("NA",),
)


def some_codes(schema: Schema, rows: int, seed: int = 0) -> list[np.ndarray]:
    rng = RNG(seed)
    return [rng.integers(0, size, rows) for size in schema.shape]


class TestTables:
    def test_decoding_keeps_types_nulls_and_order(self):
        table = EVERY.decode(some_codes(EVERY, 500), RNG(0))
        assert " ".join(table.schema.names) == "person sex smoker age income lab visit seen city"
        assert [str(field.type) for field in table.schema] == [
            "string",
            "string",
            "bool",
            "uint8",
            "double",
            "float",
            "date32[day]",
            "timestamp[ms, tz=UTC]",
            "dictionary<values=string, indices=int8, ordered=0>",
        ]
        assert table.column("sex").null_count > 0
        assert table.column("age").null_count == 0
        assert EVERY.illegal(table) == []
        for codes, back in zip(some_codes(EVERY, 500), EVERY.encode(table), strict=True):
            np.testing.assert_array_equal(codes, back)

    def test_no_rows(self):
        table = EVERY.decode(some_codes(EVERY, 0), RNG(0))
        assert table.num_rows == 0
        assert EVERY.illegal(table) == []
        assert [len(codes) for codes in EVERY.encode(table)] == [0] * 8

    def test_batches_and_tables_give_the_same_codes(self):
        table = EVERY.decode(some_codes(EVERY, 100), RNG(0))
        (batch,) = table.combine_chunks().to_batches()
        for a, b in zip(EVERY.encode(table), EVERY.encode(batch), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_columns_are_found_by_name_and_the_schemas_null_values_hold(self):
        schema = Schema(
            (Category("a", ("x",), nullable=True), Integer("b", 0, 9)), null_values=["-"]
        )
        codes = schema.encode(pa.table({"b": ["3", "-"], "z": [1, 2], "a": ["-", "x"]}))
        assert [c.tolist() for c in codes] == [[1, 0], [3, 0]]

    def test_modelled_columns(self):
        assert [c.name for c in EVERY.modelled][:3] == ["sex", "smoker", "age"]
        assert EVERY.shape == tuple(c.size for c in EVERY.modelled)
        assert EVERY.position("age") == 2
        assert EVERY.column("age") is EVERY.modelled[2]

    def test_one_seed_gives_one_table(self):
        codes = some_codes(EVERY, 50)
        assert EVERY.decode(codes, RNG(1)).equals(EVERY.decode(codes, RNG(1)))
        assert not EVERY.decode(codes, RNG(1)).equals(EVERY.decode(codes, RNG(2)))


class TestIllegal:
    @pytest.mark.parametrize(
        ("name", "array", "said"),
        [
            ("sex", pa.array(["X"]), "column 'sex' has 1 values outside its domain, such as 'X'"),
            ("age", pa.array([100], pa.uint8()), "such as 100"),
            ("age", pa.array([50]), "column 'age' has dtype 'int64' and must have 'uint8'"),
            ("age", pa.array([None], pa.uint8()), "column 'age' has 1 nulls and must have none"),
            ("income", pa.array([3.14159]), "such as 3.14159"),
            ("income", pa.array([float("nan")]), "column 'income' has 1 values outside"),
            ("income", pa.array([-0.01]), "such as -0.01"),
            ("lab", pa.array([float("nan")], pa.float32()), "column 'lab' has 1 values outside"),
            ("visit", pa.array([date(2019, 12, 31)]), "2019"),
            ("seen", pa.array([1577836800001], pa.timestamp("ms", "UTC")), "column 'seen'"),
            ("person", pa.array(["real name"]), "such as 'real name'"),
            ("city", pa.array(["C"]).dictionary_encode(), "such as 'C'"),
        ],
    )
    def test_it_says_why(self, name, array, said):
        table = EVERY.decode(some_codes(EVERY, 1), RNG(0))
        place = table.schema.names.index(name)
        found = EVERY.illegal(table.set_column(place, name, array))
        assert len(found) == 1
        assert said in found[0]

    def test_names_and_order(self):
        table = EVERY.decode(some_codes(EVERY, 1), RNG(0))
        assert "in this order" in EVERY.illegal(table.select(table.schema.names[::-1]))[0]
        assert "must be" in EVERY.illegal(table.drop_columns("age"))[0]

    def test_ids_twice(self):
        table = EVERY.decode(some_codes(EVERY, 2), RNG(0))
        twice = table.set_column(0, "person", pa.array(["P-000001", "P-000001"]))
        assert "column 'person' has 1 values" in EVERY.illegal(twice)[0]


class TestFiles:
    @given(st.lists(columns(), min_size=1, max_size=3, unique_by=lambda c: c.name), st.data())
    def test_round_trip(self, found, data):
        rows = data.draw(st.none() | st.integers(1, 2**70))
        schema = Schema(tuple(found), rows)
        assert Schema.loads(schema.dumps()) == schema
        assert Schema.loads(schema.dumps(comments=False)) == schema
        assert Schema.loads(schema.dumps()).digest() == schema.digest()

    @given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), TEXTS)
    def test_any_text_survives(self, values, name):
        values = [v.encode("utf-8", "replace").decode() for v in values]
        schema = Schema((Category(name, tuple(dict.fromkeys(values))),))
        assert Schema.loads(schema.dumps()) == schema

    def test_every_kind_of_column_survives(self, tmp_path):
        more = (
            Text("note", nullable=True, read_from_rows=("type",)),
            Incomplete("u", "number", ("lower", "upper"), {"bins": 3}, dtype="float64"),
            Category("d", (date(2000, 1, 1), date(2001, 1, 1)), ordinal=True),
            Datetime(
                "e", edges=(datetime(2000, 1, 1), datetime(2001, 1, 1, 12, 30, 1)), format="%c"
            ),
        )
        schema = Schema((*EVERY.columns, *more), 7, ("?",))
        path = tmp_path / "s.toml"
        schema.save(path)
        assert Schema.load(path) == schema
        assert path.read_text() == schema.dumps()

    def test_the_shape_of_the_file(self):
        schema = Schema(
            (Integer("age", 17, 90, nullable=True),), rows_public=48842, null_values=["?"]
        )
        assert schema.dumps(comments=False) == (
            "[understudy]\n"
            "version = 1\n"
            "rows_public = 48842\n"
            'null_values = ["?"]\n'
            "\n"
            "[[column]]\n"
            'name = "age"\n'
            'type = "integer"\n'
            'dtype = "int64"\n'
            "nullable = true\n"
            "lower = 17\n"
            "upper = 90\n"
        )

    def test_the_digest_is_of_facts_and_not_of_comments(self):
        schema = Schema((Integer("age", 17, 90),))
        again = Schema.loads("# hello\n" + schema.dumps())
        assert again.digest() == schema.digest()
        assert Schema((Integer("age", 17, 91),)).digest() != schema.digest()
        assert len(schema.digest()) == 64

    def test_saving_is_all_or_nothing(self, tmp_path, monkeypatch):
        path = tmp_path / "s.toml"
        EVERY.save(path)
        before = path.read_bytes()

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(WorkError, match=r"s\.toml: was not written: No space left"):
            Schema((Integer("age", 17, 90),)).save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["s.toml"]


def test_more_texts_that_stand_for_null():
    columns = (Integer("a", 0, 3, nullable=True), Category("b=c", ("x",), nullable=True))
    schema = Schema(columns, null_values=("?",))
    told = schema.with_nulls(["-", "b=c=X", "?"])
    assert told.null_values == ("?", "-")
    assert [column.null_values for column in told.columns] == [(), ("X",)]
    rows = pa.table({"a": ["1", "-", "?"], "b=c": ["x", "X", "y"]})
    assert [codes.tolist() for codes in told.encode(rows)] == [[1, 4, 4], [0, 1, 0]]
    with pytest.raises(SchemaError, match="there is no column 'd'"):
        schema.with_nulls(["d=X"])
    with pytest.raises(SchemaError, match="one of the schema's null_values"):
        schema.with_nulls(["x"])
    with pytest.raises(SchemaError, match="'N' is both one of its values"):
        Schema((Integer("a", 0, 3, special=("N", 9)),)).with_nulls(["N"])
    with pytest.raises(SchemaError, match="nullable = true"):
        Schema((Integer("a", 0, 3),)).with_nulls(["a=9"])


def test_columns_that_the_schema_does_not_name_are_left_out_if_it_says_so():
    table = pa.table({"a": [1, 2], "secret": ["x", "y"]})
    schema = Schema((Integer("a", 0, 3),))
    with pytest.raises(SourceError, match="drop_other_columns"):
        read(table).bind(schema)
    dropping = replace(schema, drop_other_columns=True)
    assert Schema.loads(dropping.dumps()) == dropping
    assert reveal(read(table).bind(dropping).marginals([()]))[0] == 2
    with pytest.raises(SourceError, match="lacks 'b'"):
        read(table).bind(replace(dropping, columns=(Integer("a", 0, 3), Integer("b", 0, 3))))
    with pytest.raises(SchemaError, match="true or false"):
        replace(schema, drop_other_columns="yes")


def test_a_schema_shows_its_columns_one_to_a_line():
    columns = (Integer("age", 0, 99), Category("sex", ("F", "M"), read_from_rows=("categories",)))
    assert repr(Schema(columns)).splitlines() == [
        "Schema, columns: 2, number of rows: private",
        "  age  integer   100: 0, 1, …",
        "  sex  category  2: F, M  (to confirm: categories)",
    ]
    many = Schema(tuple(Integer(f"c{i}", 0, 1) for i in range(70)))
    assert repr(many).endswith("… and 10 more")
