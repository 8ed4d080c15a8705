"""Workloads: the short form, files, lists, and every way of getting them wrong."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import WorkloadError
from understudy.queries import Family
from understudy.queries.workload import Every, Workload, _combination, marginals, parse, resolve
from understudy.schema import Category, Identifier, Integer, Number, Schema


def column(name, size):
    return Category(name, tuple(f"v{i}" for i in range(size)))


@pytest.fixture(scope="module")
def schema():
    return Schema(
        (
            Identifier("id"),
            Integer("age", 0, 9),
            column("sex", 2),
            Number("income", 0, 100, bins=5, nullable=True),
            column("marital-status", 3),
        )
    )


@pytest.fixture(scope="module")
def wide():
    return Schema(tuple(column(f"c{i}", 2) for i in range(15)))


def test_all_marginals_in_the_schemas_order(schema):
    workload = parse("marginals:2", schema)
    assert workload.cliques == tuple(itertools.combinations(range(4), 2))
    assert set(workload.weights) == {1.0}
    assert workload.sizes(schema.shape) == (20, 60, 30, 12, 6, 18)
    assert workload.cells(schema.shape) == 146


def test_the_sampled_short_form_is_what_numpy_picks(wide):
    every = list(itertools.combinations(range(15), 3))
    picks = np.random.RandomState(0).choice(len(every), 64, replace=False)
    workload = parse("marginals:3:64@0", wide)
    assert workload.cliques == tuple(every[i] for i in picks)
    assert resolve("marginals:3:64", wide) == workload
    assert resolve(marginals(3, 64), wide) == workload
    assert resolve(marginals(3, 64, seed=1), wide) != workload


@given(st.integers(1, 9), st.data())
def test_unranking_follows_itertools(columns, data):
    k = data.draw(st.integers(1, columns))
    every = list(itertools.combinations(range(columns), k))
    assert [_combination(rank, columns, k) for rank in range(len(every))] == every


@pytest.mark.parametrize("held", [("sex",), ("sex", "income"), ("sex", "income", "age")])
def test_marginals_that_hold_columns(held, schema):
    """All of three columns that have them, in the order of the others."""
    places = {schema.position(name) for name in held}
    workload = parse(f"marginals:3:with={','.join(held)}", schema)
    every = itertools.combinations(range(4), 3)
    assert workload.cliques == tuple(c for c in every if places <= set(c))
    assert resolve(marginals(3, holding=held), schema) == workload


def test_holders_are_sampled_and_joined(wide):
    sampled = parse("marginals:3:5@1:with=c7", wide)
    assert len(sampled) == 5
    assert set(sampled.cliques) < set(parse("marginals:3:with=c7", wide).cliques)
    joined = parse("marginals:1+marginals:2:with=c1+marginals:2:with=c2", wide)
    assert len(joined) == 15 + 14 + 14 - 1
    assert {f.clique: f.weight for f in joined.families if f.weight != 1} == {(1, 2): 2.0}


def test_a_name_with_a_comma_stands_alone():
    odd = Schema((column("a,b", 2), column("a", 2), column("b", 2)))
    assert parse("marginals:2:with=a,b", odd).cliques == ((0, 1), (0, 2))
    assert parse("marginals:2:with=a, b", odd).cliques == ((1, 2),)


def test_a_spec_prints_as_its_short_form(schema):
    assert str(marginals(3, 2, holding=["sex", "age"])) == "marginals:3:2@0:with=sex,age"
    assert str(marginals(2)) == "marginals:2"
    assert str(marginals(2, 3, seed=7)) == "marginals:2:3@7"
    for spec in (marginals(2), marginals(2, 3, seed=7)):
        assert parse(str(spec), schema) == spec.resolve(schema)


def test_json_and_toml_files(schema, tmp_path):
    expected = Workload((Family((0, 1)), Family((0, 3), 2.5)))
    listed = [["sex", "age"], {"columns": ["marital-status", "age"], "weight": 2.5}]
    (tmp_path / "w.json").write_text(json.dumps(listed))
    (tmp_path / "w.toml").write_text(
        'marginals = [["sex", "age"], {columns = ["age", "marital-status"], weight = 2.5}]'
    )
    (tmp_path / "tables.toml").write_text(
        '[[marginals]]\ncolumns = ["age", "sex"]\n\n'
        '[[marginals]]\ncolumns = ["age", "marital-status"]\nweight = 2.5\n'
    )
    for name in ("w.json", "w.toml", "tables.toml"):
        assert parse(tmp_path / name, schema) == expected
        assert resolve(str(tmp_path / name), schema) == expected
    assert resolve(
        [("age", "sex"), {"columns": ("age", "marital-status"), "weight": 2.5}], schema
    ) == (expected)
    assert Workload.from_json(json.loads(json.dumps(expected.to_json(schema))), schema) == expected


def test_resolve_keeps_a_workload_and_checks_that_it_fits(schema):
    workload = Workload((Family((0, 3)),))
    assert resolve(workload, schema) is workload
    with pytest.raises(WorkloadError, match="past the 4 modelled columns"):
        resolve(Workload((Family((0, 4)),)), schema)


@pytest.mark.parametrize(
    "text",
    [
        "marginals",
        "marginals:",
        "marginals:x",
        "marginals:-1",
        "marginals:3:",
        "marginals:3:4@",
        "marginals:3@0",
        "marginals:3:4@0:1",
        "marginals:3:with=",
        "marginals:3:with=age:4@0+x",
        "all",
        "",
    ],
)
def test_a_malformed_short_form_shows_the_forms(text, schema):
    with pytest.raises(WorkloadError, match=r"'marginals:3:64@0'") as caught:
        parse(text, schema)
    assert repr(text) in str(caught.value) or text == ""


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("marginals:5", r"'marginals:5' asks for marginals of 5 columns, the schema models 4"),
        ("marginals:0", r"k must be a whole number from 1"),
        ("marginals:2:0", r"count must be a whole number from 1"),
        ("marginals:2:7@0", r"asks for 7 marginals: there are 6 of 2"),
        ("marginals:2:3@4294967296", r"seed must be below"),
        ("marginals:2:with=sx", r"unknown column 'sx' \(did you mean 'sex'\?\)"),
        ("marginals:1:with=age,sex", r"of 1 columns that hold 2: ask for at least 2"),
        ("marginals:2:4@0:with=sex", r"asks for 4 marginals: there are 3 of 2"),
        ("prefixes:1:with=sex", r"column 'sex' is not ordered, and prefixes"),
        (marginals(2, holding="id"), r"column 'id' is of type 'identifier'"),
        ("missing.json", r"missing\.json' cannot be read \(No such file"),
        ([], r"the workload is empty"),
        ([[]], r"is empty: name at least one column"),
        ([["age", "sx"]], r"unknown column 'sx' \(did you mean 'sex'\?\)"),
        ([["zzz"]], r"unknown column 'zzz'; known are age, sex, income, marital-status"),
        ([["age", "id"]], r"column 'id' is of type 'identifier' and not modelled"),
        ([["age", "age"]], r"\['age', 'age'\] names a column twice"),
        ([["age", "sex"], ["sex", "age"]], r"age × sex is listed twice"),
        ([{"columns": ["age"], "weight": 0}], r"the marginal age has weight 0\.0: a weight must"),
        ([{"columns": ["age"], "weight": -1}], r"above 0"),
        ([{"columns": ["age"], "weight": float("nan")}], r"above 0"),
        ([{"columns": ["age"], "weight": "2"}], r"weight '2', not a number"),
        ([{"columns": ["age"], "wieght": 2}], r"it takes 'columns' and 'weight'"),
        ([{"weight": 2}], r"it takes 'columns' and 'weight'"),
        (["age"], r"the marginal 'age' is malformed: write a list"),
        ([[1]], r"\[1\] does not consist of column names"),
        ({"marginal": []}, r"only 'marginals'"),
        (7, r"not a list"),
    ],
)
def test_what_is_wrong_is_named_with_the_remedy(wanted, message, schema, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkloadError, match=message):
        resolve(wanted, schema)


@pytest.mark.parametrize(
    ("name", "content"), [("w.json", "[["), ("w.toml", "= 3"), ("w.json", b"\xff")]
)
def test_a_malformed_file(name, content, schema, tmp_path):
    path = Path(tmp_path, name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(WorkloadError, match="is malformed"):
        parse(path, schema)


def test_a_marginal_with_too_many_cells_is_named():
    big = Schema((column("a", 5000), column("b", 5000), column("c", 5)))
    for wanted in (
        "marginals:3",
        "marginals:3:1@0",
        [("a", "b", "c")],
        Workload((Family((0, 1, 2)),)),
    ):
        with pytest.raises(WorkloadError, match=r"a × b × c has 125,000,000 cells.*coarser bins"):
            resolve(wanted, big)
    assert len(resolve("marginals:2", big)) == 3


def test_too_many_marginals_are_refused_before_they_are_listed():
    many = Schema(tuple(column(f"c{i}", 2) for i in range(60)))
    with pytest.raises(WorkloadError, match=r"5,461,512 marginals.*'marginals:5:1000@0'"):
        resolve("marginals:5", many)
    assert len(resolve("marginals:5:10@0", many)) == 10
    with pytest.raises(WorkloadError, match="take fewer columns"):
        resolve("marginals:30:10@0", many)


def test_marginals_and_workloads_check_themselves():
    for clique in [(), (1, 0), (0, 0), (-1,)]:
        with pytest.raises(WorkloadError):
            Family(clique)
    for weight in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(WorkloadError, match="above 0"):
            Family((0,), weight)
    with pytest.raises(WorkloadError, match="twice"):
        Workload((Family((0,)), Family((0,), 2.0)))
    with pytest.raises(WorkloadError, match="empty"):
        Workload(())
    for wrong in (0, True, 1.5, "3"):
        with pytest.raises(WorkloadError, match="whole number"):
            Every(wrong)


def test_more_cells_in_all_than_64_bits_can_number_are_refused():
    schema = Schema(tuple(Integer(f"c{i}", 0, 999) for i in range(15)))
    chosen = [marginals([f"c{i}" for i in range(k, k + 6)]) for k in range(10)]
    with pytest.raises(WorkloadError, match=r"1\.0e\+19 cells in all.*coarser bins"):
        resolve(sum(chosen[1:], chosen[0]), schema, max_cells=2**62)
    resolve(sum(chosen[1:9], chosen[0]), schema, max_cells=2**62)
