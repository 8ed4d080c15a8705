"""Which rows of a unit count: the definition, engine by engine."""

import hashlib
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source.engines import ENGINES
from tests.thorough import examples
from understudy.errors import InputError, SchemaError
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, RowCount
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import reveal
from understudy.schema import Schema
from understudy.source import read
from understudy.source.base import EncodedCounts, StreamedCounts, with_nulls
from understudy.source.duckdb import DuckDBSource
from understudy.source.units import chosen, turn
from understudy.testing.stand_ins import StillNoise, StrictCharges
from understudy.units import Unit

SCHEMA = """
[understudy]
version = 1
unit = "who"
max_rows = 3
null_values = ["?"]

[[column]]
name = "who"
type = "identifier"

[[column]]
name = "a"
type = "integer"
lower = 0
upper = 4

[[column]]
name = "b"
type = "category"
values = ["x", "y"]
"""


def naive(codes, units, unit):
    """The definition, word by word: a multiset of the rows that count, by unit."""
    held = defaultdict(list)
    seen = defaultdict(int)
    for *row, who in zip(*codes, units, strict=True):
        if who is not None:
            row = tuple(int(code) for code in row)
            seen[who, row] += 1
            text = f"{unit.salt}|{','.join(map(str, row))}|{seen[who, row]}|{who}"
            held[who].append((hashlib.md5(text.encode()).hexdigest(), row))
    return {who: sorted(row for _, row in sorted(rows)[: unit.kept]) for who, rows in held.items()}


def kept(codes, units, unit):
    found = defaultdict(list)
    for at in chosen(codes, units, unit):
        found[units[int(at)].as_py()].append(tuple(int(array[at]) for array in codes))
    return {who: sorted(rows) for who, rows in found.items()}


tables = st.lists(
    st.tuples(
        st.sampled_from([None, "1", "2", "é|,", "4", "'"]), st.integers(0, 2), st.integers(0, 300)
    ),
    max_size=30,
)


@settings(max_examples=examples(15, 25), deadline=None)
@given(rows=tables, most=st.integers(1, 4), salt=st.sampled_from(["", "spring 2024"]))
def test_the_choice_is_the_definition(rows, most, salt):
    codes = [
        np.array([row[1] for row in rows], np.uint8),
        np.array([row[2] for row in rows], np.uint16),
    ]
    units, unit = pa.array([row[0] for row in rows], pa.string()), Unit("who", most, salt)
    assert kept(codes, units, unit) == naive(codes, units.to_pylist(), unit)


def test_the_choice_is_blind_to_order_and_to_other_units():
    rng = np.random.default_rng(1)
    units = rng.integers(0, 8, 200).astype(str)
    codes = [rng.integers(0, 6, 200).astype(np.uint8)]
    unit = Unit("who", 2)
    whole = kept(codes, pa.array(units), unit)
    order = rng.permutation(200)
    assert kept([codes[0][order]], pa.array(units[order]), unit) == whole
    some = np.isin(units, ["3", "5"])
    alone = kept([codes[0][some]], pa.array(units[some]), unit)
    assert alone == {who: whole[who] for who in ("3", "5")}
    other = kept(codes, pa.array(units), Unit("who", 2, "another"))
    assert other != whole
    assert {who: len(rows) for who, rows in other.items()} == dict.fromkeys(whole, 2)


def test_the_choice_is_fair():
    """Of 4 different rows each counts for about half of 2000 units; 2 of 4 are kept of each."""
    units = pa.array([str(i // 4) for i in range(8000)])
    codes = [np.tile(np.arange(4, dtype=np.uint8), 2000)]
    times = np.bincount(codes[0][chosen(codes, units, Unit("who", 2))])
    assert times.sum() == 4000
    assert (abs(times - 1000) < 150).all()  # six standard deviations, and always the same


def table(rows, rng):
    who = rng.integers(0, rows // 4 + 1, rows)
    return pa.table(
        {
            "who": pa.array([None if w % 7 == 3 else "?" if w % 7 == 4 else f" u{w}" for w in who]),
            "a": rng.integers(-1, 7, rows),
            "b": rng.choice(["x", "y", "z"], rows),
        }
    )


def opened(bound, unit):
    """Exact counts, by a gate without noise."""
    cliques = ((0,), (0, 1))
    plan = Plan((Charge("tables", Gaussian(1.0, changes=2)), Charge("n", Gaussian(1.0))))
    charges = StrictCharges(plan)
    charges.unit = unit
    gate = Gate(bound, charges, Relation.ADD_REMOVE, StillNoise())
    return gate.ask("n", RowCount()), [t.tolist() for t in gate.ask("tables", Marginals(cliques))]


def test_every_engine_counts_the_same_rows(tmp_path):
    schema = Schema.loads(SCHEMA)
    rng = np.random.default_rng(3)
    given = table(400, rng)
    pq.write_table(given, tmp_path / "t.parquet", row_group_size=50)
    codes = schema.encode(given)
    named = [None if w in (None, "?") else w.strip() for w in given["who"].to_pylist()]
    rows = [row for own in naive(codes, named, schema.unit).values() for row in own]
    expected = np.zeros(schema.shape, np.int64)
    for row in rows:
        expected[row] += 1
    truth = (len(rows), [expected.sum(axis=1).tolist(), expected.tolist()])
    assert len(rows) < 400 - sum(w is None for w in named)

    memory = read(given).bind(schema)
    assert isinstance(memory, EncodedCounts)
    assert opened(memory, schema.unit) == truth
    assert opened(read(tmp_path / "t.parquet").bind(schema), schema.unit) == truth
    streamed = read(tmp_path / "t.parquet", engine="duckdb").bind(schema)
    assert isinstance(streamed, StreamedCounts)
    assert opened(streamed, schema.unit) == truth
    source = read(tmp_path / "t.parquet", engine="duckdb")
    assert opened(StreamedCounts(source, schema, turns=5), schema.unit) == truth


def test_turns_divide_the_units():
    units = pa.array(["a", "b", None, "a", "c", "d", "e"])
    turns = np.array([turn(units, at, 3) for at in range(3)])
    assert turns.sum(axis=0).tolist() == [1, 1, 0, 1, 1, 1, 1]
    assert (turns[:, 0] == turns[:, 3]).all()


@pytest.mark.parametrize("most", [1, 5])
def test_somebody_with_a_hundred_thousand_rows_moves_nothing_by_more_than_k(most):
    schema = Schema.loads(SCHEMA.replace("max_rows = 3", f"max_rows = {most}"))
    rng = np.random.default_rng(5)
    others = table(300, rng)
    busy = pa.table(
        {
            "who": pa.array(["busy"] * 10**5),
            "a": rng.integers(0, 5, 10**5),
            "b": rng.choice(["x", "y"], 10**5),
        }
    )
    n, before = opened(read(others).bind(schema), schema.unit)
    m, after = opened(read(pa.concat_tables([busy, others])).bind(schema), schema.unit)
    assert m - n == most
    for one, two in zip(before, after, strict=True):
        assert (np.array(two) >= np.array(one)).all()
        assert np.sum(np.array(two) - np.array(one)) == most


def test_whole_weights_are_rows_repeated():
    """As docs/unit.md has it: with max_rows = m every row counts as often as it weighs, up to m."""
    rng = np.random.default_rng(2)
    weight, a = rng.integers(0, 9, 200), rng.integers(0, 5, 200)
    schema = Schema.loads(SCHEMA.replace("max_rows = 3", "max_rows = 6"))
    rows = pa.table({"who": np.arange(200), "a": a, "b": ["x"] * 200}).take(
        pa.array(np.repeat(np.arange(200), weight))
    )
    n, (counts, _) = opened(read(rows).bind(schema), schema.unit)
    bounded = np.minimum(weight, 6)
    assert n == bounded.sum()
    assert counts == np.bincount(a, bounded).tolist()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 1, 2, None], pa.int64()),
        pa.array([1.0, 1.0, 2.0, float("nan")], pa.float64()),
        pa.array([" 1", "1 ", "2", "  "]),
        pa.array([b"1", b"1", b"2", None], pa.binary()),
        pa.array(["1", "1", "2", "?"]).dictionary_encode(),
    ],
)
def test_units_are_texts_whatever_they_are_stored_as(column):
    schema = Schema.loads(SCHEMA)
    batch = pa.table({"who": column, "a": [0] * 4, "b": ["x"] * 4})
    assert schema.units(batch).to_pylist() == ["1", "1", "2", None]


def test_units_of_a_kind_without_text_are_no_units():
    schema = Schema.loads(SCHEMA)
    batch = pa.table({"who": [[1], [2]], "a": [0, 1], "b": ["x", "x"]})
    assert schema.units(batch).to_pylist() == [None, None]
    assert opened(read(batch).bind(schema), schema.unit)[0] == 0


def test_no_rows(tmp_path):
    schema = Schema.loads(SCHEMA)
    empty = table(8, np.random.default_rng(0)).slice(0, 0)
    assert opened(read(empty).bind(schema), schema.unit) == (0, [[0] * 5, [[0, 0]] * 5])
    (tmp_path / "t.csv").write_text("who,a,b\n")
    assert opened(read(tmp_path / "t.csv").bind(schema), schema.unit)[0] == 0


# --- rows that share a weight ---------------------------------------------------------------------

EQUAL = Schema.loads(SCHEMA.replace("max_rows = 3", 'max_rows = 3\nweight = "equal"'))
PAIRS = [(), (0,), (0, 1)]


def weighed(source, schema=EQUAL):
    bound = source.bind(schema)
    found = [table.tolist() for table in reveal(bound.marginals(PAIRS))]
    sparse = reveal(bound.sparse(PAIRS))
    return [
        reveal(bound.marginals([()]))[0],
        *found,
        *([part.tolist() for part in t] for t in sparse),
    ]


def by_definition(given):
    """Of every unit the rows that count, each with a share of M = 6."""
    encoded = with_nulls(EQUAL, ())
    codes, units = encoded.encode(given), encoded.units(given).to_pylist()
    made = np.zeros((5, 2), np.int64)
    for rows in naive(codes, units, EQUAL.unit).values():
        for row in rows:
            made[row] += 6 // len(rows)
    return made


def test_all_rows_of_a_unit_weigh_as_much_as_one():
    given = table(120, np.random.default_rng(5))
    found = weighed(read(given))
    assert EQUAL.weight == EQUAL.unit.max_rows == 6
    assert found[3] == by_definition(given).tolist()
    assert found[0] == sum(map(sum, found[3]))


@pytest.mark.parametrize("engine", [*ENGINES, "files"])
def test_weights_are_the_same_everywhere(engine, tmp_path, monkeypatch):
    given = table(120, np.random.default_rng(6))
    if engine == "files":
        monkeypatch.setattr(DuckDBSource, "turns", 3)
        pq.write_table(given, tmp_path / "t.parquet")
        source = read(tmp_path / "t.parquet", engine="duckdb")
    else:
        source = engine(given)
    assert weighed(source) == weighed(read(given))


def test_a_unit_moves_its_own_weights_alone_and_by_no_more_than_m():
    units = [[("1", 0, "x")] * n + [("1", 4, "y")] * m for n in range(4) for m in range(4)]
    others = [("2", 0, "x"), ("2", 1, "y"), ("3", 0, "x")]

    def counted(rows):
        types = {"who": pa.string(), "a": pa.int64(), "b": pa.string()}
        columns = [[row[i] for row in rows] for i in range(3)]
        made = pa.table(columns, schema=pa.schema(types))
        return np.array(reveal(read(made).bind(EQUAL).marginals([(0, 1)]))[0])

    base = counted(others)
    for rows in units:
        alone = counted(rows)
        np.testing.assert_array_equal(counted([*rows, *others]) - base, alone)
        assert alone.sum() == (6 if rows else 0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('weight = "equal"', 'weight = "even"'), "weight = 'even' must be \"equal\""),
        (("max_rows = 3", "max_rows = 1001"), "from 1 to 1,000"),
        (("max_rows = 3", ""), "needs max_rows"),
        (('unit = "who"\nmax_rows = 3', ""), "says nothing without a unit"),
        (('values = ["x", "y"]', 'values = "discover"'), "column 'b' is to be found privately"),
    ],
)
def test_weights_that_are_refused(change, told):
    text = SCHEMA.replace("max_rows = 3", 'max_rows = 3\nweight = "equal"').replace(*change)
    with pytest.raises(SchemaError, match=told):
        Schema.loads(text)


def test_weights_are_written_and_read_again():
    assert Schema.loads(EQUAL.dumps()) == EQUAL
    assert Unit.from_json(EQUAL.unit.to_json()) == EQUAL.unit
    with pytest.raises(InputError, match="is none"):
        Unit.from_json({**EQUAL.unit.to_json(), "max_rows": 5})


def test_weights_do_not_depend_on_where_batches_end(tmp_path, monkeypatch):
    """A unit's rows in several batches are one unit's."""
    given = table(120, np.random.default_rng(7))
    wanted = weighed(read(given))
    pq.write_table(given, tmp_path / "t.parquet", row_group_size=5)
    monkeypatch.setattr("understudy.source.base.BATCH_ROWS", 3)
    monkeypatch.setattr("understudy.source.duckdb.BATCH_ROWS", 3)
    monkeypatch.setattr(DuckDBSource, "turns", 2)
    for source in (read(given), read(tmp_path / "t.parquet", engine="duckdb")):
        assert weighed(source) == wanted
