"""Whatever counts where the rows are: types, units, what comes back, and what may go wrong."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.source.engines import (
    ENGINES,
    EVIL,
    OPEN,
    in_duckdb,
    in_postgres,
    in_spark,
    same_counts,
    tables,
)
from tests.thorough import examples, some
from tests.tools import servers
from understudy.columns.kinds import Kinds
from understudy.columns.roundness import Roundness
from understudy.errors import SourceError
from understudy.privacy.sensitive import reveal
from understudy.queries.evaluate import counts
from understudy.schema import Boolean, Category, Date, Datetime, Identifier, Integer, Number, Schema
from understudy.source import read
from understudy.source.pushed import JOINT_CELLS, engine_costs, unions
from understudy.units import Unit


@pytest.mark.parametrize("engine", ENGINES)
@given(table=tables)
@settings(max_examples=examples(4, 8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_type_is_counted_as_in_memory(engine, table):
    same_counts(engine(table), table)


@pytest.mark.parametrize("engine", ENGINES)
def test_special_values_are_counted_as_in_memory(engine):
    spelled = [
        "N",
        " N ",
        "-",
        "",
        "?",
        None,
        "12",
        "12.0",
        "-9",
        "1e3",
        "1e999",
        "inf",
        "4,5",
        "nan",
    ]
    spelled += ["5e-324", "-5e-324", "0", "+7.", ".5", "999", "1e-400", "x", "n", "00012", "1e-5"]
    whole = [*range(-9, 12), None, 99, 98, 100]
    days = [date(2024, 1, i) for i in range(1, 24)] + [date(9999, 12, 31), None]
    table = pa.table(
        {
            "income": pa.array(spelled, pa.string()),
            "years": pa.array(spelled, pa.string()),
            "age": pa.array(whole, pa.int64()),
            "cost": pa.array([None if i is None else i / 4 for i in whole], pa.float64()),
            "day": pa.array(days, pa.date32()),
        }
    )
    schema = Schema(
        (
            Number(
                "income", -1, 100, edges=(-1, 0, 12, 100), special=("N", "-", 12), nullable=True
            ),
            Integer("years", 0, 20, special=("N", 12, 999)),
            Integer("age", 0, 120, bins=7, special=(99, 3, -9), nullable=True),
            Number("cost", 0, 30, bins=4, special=(-2.25, 2, 0.5)),
            Date("day", date(2024, 1, 1), date(2024, 2, 1), bins=3, special=(date(9999, 12, 31),)),
        ),
        null_values=("?",),
    )
    same_counts(engine(table), table, schema, [(i,) for i in range(5)])


@pytest.mark.parametrize("engine", ENGINES)
def test_round_values_among_special_ones_are_counted_as_in_memory(engine):
    """No text that is no number is read as one: a database would stop there, after the charge."""
    texts = ["N", " N", "x", "", None, "?", "10", "12", "12.5", "1e1", "1e999", "nan", "999", "20"]
    wholes = [5, 10, 99, None, -3, 1000, 12, 13, 14, 15, 20, 25, 30, 40]
    table = pa.table(
        {
            "a": pa.array(texts, pa.string()),
            "b": pa.array(texts, pa.string()),
            "c": pa.array(wholes, pa.int64()),
        }
    )
    schema = Schema(
        tuple(
            Roundness.of(column, Kinds((10, 10, 5), (0, 9, 0)))
            for column in (
                Integer("a", edges=(0, 11, 100, 500), special=("N", 999, 12), nullable=True),
                Integer("b", edges=(4, 11, 100), special=("N",)),
                Integer("c", edges=(0, 10, 40), special=(99, 20), nullable=True),
            )
        ),
        null_values=("?",),
    )
    same_counts(engine(table), table, schema, [(0,), (1,), (2,)])


@pytest.mark.parametrize("engine", ENGINES)
def test_codes_with_parents_are_counted_as_in_memory(engine):
    texts = [
        "250.1",
        "250.2",
        "25",
        "",
        None,
        "?",
        "?x",
        "Zürich",
        "Zü",
        "zü",
        " 250.1",
        "4",
        "OTHER",
    ]
    table = pa.table({"code": texts, "whole": pa.array([None, *range(245, 257)], pa.int64())})
    schema = Schema(
        (
            Category(
                "code", ("250.1", "250*", "Zü*", "?*"), True, prefixes=(3, 2, 1), nullable=True
            ),
            Category("whole", ("25*", "24*", "246"), True, prefixes=(2,)),
        ),
        null_values=("?",),
    )
    same_counts(engine(table), table, schema, [(0,), (1,), (0, 1)])


@pytest.mark.parametrize("engine", ENGINES)
def test_names_and_values_that_are_commands_are_not_obeyed(engine):
    """A column, its categories, a unit and its salt, each of which would drop the table x."""
    drops = [EVIL, '"; DROP TABLE x; --', "`; DROP TABLE x; --", "x'; DROP TABLE x; --\\"]
    columns = tuple(Category(name, tuple(drops[1:]), other=True) for name in drops)
    schema = Schema((Identifier("who; DROP TABLE x"), *columns), null_values=tuple(drops[:1]))
    schema = replace(schema, unit=Unit("who; DROP TABLE x", 2, "'); DROP TABLE x; --"))
    table = pa.table({column.name: drops for column in schema.columns})
    servers.create(pa.table({"a": [1]}), "x")
    source = engine(table)
    if engine is in_duckdb:
        source._backend.raw_sql("CREATE TABLE x AS SELECT 1 AS a")
    pairs = list(combinations(range(4), 2))
    bound, expected = source.bind(schema), read(table).bind(schema)
    for one, other in zip(
        reveal(bound.marginals(pairs)), reveal(expected.marginals(pairs)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert reveal(bound.marginals([()]))[0] == 3  # the first stands for null, and is nobody
    with servers.executed("SELECT 1") as connection:
        assert connection.execute("SELECT count(*) FROM x").fetchone() == (1,)
    if engine is in_duckdb:
        assert source._backend.con.sql("SELECT count(*) FROM x").fetchall() == [(1,)]


@pytest.mark.parametrize("engine", ENGINES)
def test_cells_of_any_size(engine):
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.integers(0, 1000, 50) for i in range(6)})
    schema = Schema(tuple(Integer(name, 0, 999) for name in table.column_names))
    bound = engine(table).bind(schema)
    ((at, number),) = reveal(bound.sparse([(0, 1, 2, 3, 4, 5)]))
    packed = np.zeros(50, np.int64)
    for column in table.columns:
        packed = packed * 1000 + column.to_numpy()
    expected, times = np.unique(packed, return_counts=True)
    assert at.tolist() == expected.tolist()
    assert number.tolist() == times.tolist()


UNITS = Schema(
    (Identifier("who"), Integer("a", 0, 4), Category("b", ("x", "y"), nullable=True)),
    null_values=("?",),
    unit=Unit("who", 3, "salt"),
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["text", "whole"])
def test_at_most_k_rows_of_a_unit_the_same_ones_everywhere(engine, kind):
    rng = np.random.default_rng(2)
    who = rng.choice([1, 1, 1, 1, 2, 2, 3, 4, 5], 120)
    if kind == "text":
        names = [None, " ann ", "bo", "?", "", "ann"]
        ids = pa.array([names[i] for i in who], pa.string())
    else:
        ids = pa.array([None if i == 5 else int(i) for i in who], pa.int64())
    table = pa.table(
        {
            "who": ids,
            "a": pa.array(rng.integers(0, 5, 120)),
            "b": pa.array(rng.choice(["x", "y", "z"], 120).tolist(), pa.string()),
        }
    )
    cliques = [(0, 1), ()]
    bound, expected = engine(table).bind(UNITS), read(table).bind(UNITS)
    for one, other in zip(
        reveal(bound.marginals(cliques)), reveal(expected.marginals(cliques)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert bound.unit == UNITS.unit
    assert reveal(bound.marginals([()]))[0] == (9 if kind == "text" else 12) - (kind == "text") * 3


@pytest.mark.parametrize("engine", ENGINES)
def test_somebody_with_a_hundred_thousand_rows_moves_nothing_by_more_than_k(engine):
    rng = np.random.default_rng(6)

    def rows(people):
        some = len(people)
        return pa.table(
            {"who": people, "a": rng.integers(0, 5, some), "b": rng.choice(["x", "y"], some)}
        )

    others = rows([f"u{i % 40}" for i in range(90)])
    cliques = [(), (0,), (1,), (0, 1)]
    before, after = (
        reveal(engine(table).bind(UNITS).marginals(cliques))
        for table in (others, pa.concat_tables([rows(["busy"] * 10**5), others]))
    )
    for one, other in zip(before, after, strict=True):
        assert (other >= one).all()
        assert (other - one).sum() == UNITS.unit.max_rows


@pytest.mark.parametrize("engine", ENGINES)
def test_a_unit_of_a_type_that_is_no_name(engine):
    table = pa.table({"who": [1.5], "a": [1], "b": ["x"]})
    with pytest.raises(SourceError, match=r"unit 'who' has type .* whole numbers"):
        engine(table).bind(UNITS)


@given(shape=st.lists(st.integers(1, 40), min_size=1, max_size=6), data=st.data())
def test_unions_cover_every_clique_and_stay_small(shape, data):
    subset = st.sets(st.integers(0, len(shape) - 1), max_size=3).map(lambda s: tuple(sorted(s)))
    cliques = data.draw(st.lists(subset, max_size=8))
    groups = unions(shape, cliques)
    members = [clique for group in groups.values() for clique in group]
    assert sorted(members) == sorted(set(cliques))
    for union, group in groups.items():
        assert all(set(clique) <= set(union) for clique in group)
        size = int(np.prod([shape[i] for i in union]))
        assert size <= JOINT_CELLS or union in cliques


def test_small_tables_are_counted_in_one_query(monkeypatch):
    asked = []
    source = in_duckdb(pa.table({name: [1, 0, 1] for name in "abcde"}))
    bound = source.bind(Schema(tuple(Integer(name, 0, 1) for name in "abcde")))
    backend = source._backend
    fetch = backend.to_pyarrow
    monkeypatch.setattr(backend, "to_pyarrow", lambda e, **k: asked.append(e) or fetch(e, **k))
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    reveal(bound.marginals(pairs))
    assert len(asked) == 1


def test_the_costs_are_what_engines_do(monkeypatch):
    rng = np.random.default_rng(3)
    table = pa.table({f"c{i}": rng.integers(0, 30, 200) for i in range(6)})
    schema = Schema(tuple(Integer(name, 0, 29) for name in table.column_names))
    cliques = [*combinations(range(6), 3), (0,), (1, 2)]
    sql, spark = engine_costs(schema.shape, cliques, 200)[2:]
    source = in_duckdb(table)
    bound = source.bind(schema)
    answers = []
    fetch = source._backend.to_pyarrow
    monkeypatch.setattr(
        source._backend, "to_pyarrow", lambda e, **k: answers.append(fetch(e, **k)) or answers[-1]
    )
    expected = counts(schema.encode(table), schema.shape, cliques)
    for one, other in zip(reveal(bound.marginals(cliques)), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(answers) == sql.passes > spark.passes >= 1
    assert sum(16 * answer.num_rows for answer in answers) <= sql.bytes_back
    assert sql.rows == 200 * sql.passes


def test_columns_and_types_that_do_not_fit():
    servers.create(pa.table({"a": pa.array(["SECRET"]), "b": [1]}), "fits")
    source = read(servers.postgres(), table="fits")
    with pytest.raises(SourceError, match=r"lacks 'c'"):
        source.bind(Schema((Category("a", ("x",)), Integer("b", 0, 1), Boolean("c"))))
    with pytest.raises(
        SourceError, match="'a' is of type 'integer' in the schema and text"
    ) as said:
        source.bind(Schema((Integer("a", 0, 1), Integer("b", 0, 1))))
    assert "cast" in str(said.value)
    assert "SECRET" not in str(said.value)
    with servers.executed(
        "DROP TABLE IF EXISTS rare; CREATE TABLE rare (j json, m money, p point)"
    ):
        rare = read(servers.postgres(), table="rare")
        other = (Identifier("m"), Identifier("p"))
        with pytest.raises(SourceError, match="column 'j' has type 'json', which"):
            rare.bind(Schema((Category("j", ("x",)), *other)))
        with pytest.raises(SourceError, match="does not compare column 'm'"):
            rare.bind(Schema((Identifier("j"), Integer("m", 0, 9), Identifier("p"))))


@pytest.mark.parametrize(
    ("column", "ibis_type", "spark_type"),
    [
        (Integer("a", 0, 1), "int64", "bigint"),
        (Number("a", 0, 1, bins=2), "float64", "double"),
        (Date("a", date(2024, 1, 1), date(2024, 1, 3)), "date", "date"),
        (
            Datetime("a", datetime(2024, 1, 1), datetime(2024, 1, 3), bins=2),
            "timestamp",
            "timestamp_ntz",
        ),
        (Category("a", (1, 2)), "int64", "bigint"),
        (Category("a", (date(2024, 1, 1),)), "date", "date"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_remedy_for_texts_is_the_cast_that_is_needed(engine, column, ibis_type, spark_type):
    """And it works: what is cast as it says is bound."""
    table = pa.table({"a": pa.array(["1", "2"])})
    source = engine(table)
    wanted = spark_type if engine is in_spark else ibis_type
    with pytest.raises(SourceError, match=rf"text in the table: .*cast\('{wanted}'\)") as said:
        source.bind(Schema((column,)))
    on_spark = engine is in_spark
    given = source._frame if on_spark else source._expression
    remedy = str(said.value).partition("frame.with" if on_spark else "table.mut")
    cast = eval(remedy[1] + remedy[2], {"frame": given, "table": given})  # noqa: S307
    read(cast).bind(Schema((column,)))


def test_moments_before_and_after_all_bounds():
    far = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None]
    edge = [datetime(2024, 1, 1) + timedelta(microseconds=i) for i in (-1, 0, 1)]
    table = pa.table({"m": pa.array([*far, *edge], pa.timestamp("us"))})
    column = Datetime("m", datetime(2024, 1, 1), datetime(2024, 1, 2), bins=3, nullable=True)
    for engine in (in_duckdb, in_postgres):
        same_counts(engine(table), table, Schema((column,)), [(0,)])
    with servers.executed(
        "DROP TABLE IF EXISTS ever; CREATE TABLE ever (m timestamp); "
        "INSERT INTO ever VALUES ('infinity'), ('-infinity')"
    ):
        bound = read(servers.postgres(), table="ever").bind(Schema((column,)))
        assert reveal(bound.marginals([(0,)]))[0].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("engine", some(ENGINES, 9))
def test_a_release_is_the_same_wherever_the_rows_are(engine):
    """People of several rows, values, quantiles and shapes that are found, rules, the certificate."""
    import understudy as us
    from understudy.testing.stand_ins import StillNoise

    rng = np.random.default_rng(9)
    ill = rng.random(3000) < 0.4
    table = pa.table(
        {
            "who": [f"u{i}" for i in rng.integers(0, 900, 3000)],
            "town": rng.choice(["Ulm", "Bonn", "-", "?"], 3000),
            "age": np.where(ill, rng.integers(16, 90, 3000), rng.integers(0, 90, 3000)),
            "paid": np.round(rng.exponential(20, 3000), 2),
            "fee": np.round(rng.lognormal(4, 1, 3000), 2),
            "ill": ill,
        }
    )
    schema = Schema.loads(
        OPEN.replace("UNIT", 'unit = "who"\nmax_rows = 2')
        + """
[[column]]
name = "age"
type = "integer"
lower = 0
upper = 89
edges = [0, 16, 40, 89]
[[column]]
name = "paid"
type = "number"
lower = 0
upper = 100
bins = {quantiles = 4}
[[column]]
name = "fee"
type = "number"
decimals = 2
[[column]]
name = "ill"
type = "boolean"
[[rule]]
says = "ill implies age >= 16"
"""
    )
    one, other = (
        us.release(source, schema, epsilon=4, delta="1e-6", key=5, noise=StillNoise())
        for source in (engine(table), read(table))
    )
    assert one.schema == other.schema
    assert set(one.schema.columns[1].values) >= {"Ulm", "Bonn"}
    assert one.rows.equals(other.rows)
    assert one.certificate.to_json() == other.certificate.to_json()
    assert one.schema.illegal(one.rows) == []
