"""Classes of queries: every enumeration against brute force over all records of tiny domains."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from tests.queries.brute_force import holds, queries
from understudy.errors import WorkloadError
from understudy.privacy.products import Rule
from understudy.queries import Family, Workload, parse, resolve, separator
from understudy.queries.classes import KINDS, MAX_PARITY
from understudy.schema import Schema

SHAPES = [(3,), (2,), (1,), (2, 3), (3, 4), (1, 3), (2, 2, 3)]
SCHEMA = Schema.loads("""
[understudy]
version = 1
[[column]]
name = "age"
type = "integer"
lower = 0
upper = 39
bins = 4
nullable = true
[[column]]
name = "sex"
type = "category"
values = ["F", "M"]
[[column]]
name = "grade"
type = "category"
values = ["low", "mid", "high"]
ordinal = true
[[column]]
name = "town"
type = "category"
values = ["A", "B", "C"]
""")


def records(shape):
    """All records, one code array per column."""
    return [np.array(codes) for codes in zip(*itertools.product(*map(range, shape)), strict=True)]


def truths(kind, shape):
    """The class by its definition: the set of truth tables over all records, made naively."""
    tables = set()
    for values in itertools.product(*map(range, shape)):
        for negated in itertools.product((False, True), repeat=len(shape)):
            if any(negated) and kind in ("marginals", "prefixes", "parities"):
                continue
            rows = []
            for record in itertools.product(*map(range, shape)):
                if kind == "prefixes":
                    literals = [x <= v for x, v in zip(record, values, strict=True)]
                else:
                    literals = [
                        (x == v) != n for x, v, n in zip(record, values, negated, strict=True)
                    ]
                if kind == "halfspaces":
                    rows.append([sum(literals) >= m for m in range(1, len(shape) + 1)])
                else:
                    joins = {"disjunctions": any, "parities": lambda p: sum(p) % 2 == 1}
                    rows.append([bool(joins.get(kind, all)(literals))])
            tables.update(zip(*rows, strict=True))
    return tables


def up_to_complement(tables):
    return {min(t, tuple(not x for x in t)) for t in tables}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_queries_are_the_class_each_once(kind, shape):
    family = Family(tuple(range(len(shape))), kind=kind)
    every = queries(family, shape)
    found = [tuple(bool(x) for x in holds(query, records(shape))) for query in every]
    assert len(every) == family.size(shape) == family.products(shape).size
    if kind == "parities":  # a negated literal is the complement, and x = 0 is that of x = 1
        assert up_to_complement(found) == up_to_complement(truths(kind, shape))
        assert len(up_to_complement(found)) == len(found)
    else:
        trivial = {
            tuple([False] * math.prod(shape)),
            tuple([True] * math.prod(shape)),
        }  # of columns of a single value
        assert set(found) - trivial == truths(kind, shape) - trivial
        telling = [one for one in found if kind != "halfspaces" or one not in trivial]
        assert len(set(telling)) == len(telling)


def test_halfspaces_hold_conjunctions_and_disjunctions():
    shape = (2, 3, 3)

    def found(kind):
        family = Family((0, 1, 2), kind=kind)
        return {tuple(holds(query, records(shape))) for query in queries(family, shape)}

    assert found("conjunctions") | found("disjunctions") < found("halfspaces")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", list(KINDS))
def test_matrices_count_what_the_queries_say(kind, shape):
    """The row of every query, and all answers at once, against the query itself."""
    family = Family(tuple(range(len(shape))), kind=kind)
    products = family.products(shape)
    table = np.random.default_rng(0).integers(0, 50, shape)
    answers = products.answers(table)
    for index, query in zip(np.ndindex(*products.shape), queries(family, shape), strict=True):
        inside = holds(query, records(shape)).reshape(shape)
        assert answers[index] == table[inside].sum()


def test_a_family_on_some_columns_speaks_of_those():
    shape = (3, 2, 4)
    family = Family((0, 2), kind="disjunctions")
    query = family.query((4, 1), shape)
    assert holds(query, np.array([[1, 0], [0, 0], [0, 0]])).tolist() == [False, True]
    assert family.products(shape).domain == (3, 4)


def test_disjunctions_and_conjunctions_are_complements():
    shape = (3, 4)
    both = [
        {tuple(holds(q, records(shape))) for q in queries(Family((0, 1), kind=kind), shape)}
        for kind in ("conjunctions", "disjunctions")
    ]
    assert {tuple(not x for x in t) for t in both[0]} == both[1]


def test_the_separator_tells_all_records_apart():
    shape = (2, 3, 1)
    literals = separator(shape)
    assert len(literals) == sum(shape)
    rows = list(zip(*records(shape), strict=True))
    for one, other in itertools.combinations(rows, 2):
        assert any(
            (c.low <= one[c.column] <= c.high) != (c.low <= other[c.column] <= c.high)
            for c in literals
        )


# -- writing it down -------------------------------------------------------------------------------


def test_short_forms_builders_and_files_agree(tmp_path):
    prefixes = Workload((Family((0,), kind="prefixes"), Family((2,), kind="prefixes")))
    assert parse("prefixes:1", SCHEMA) == prefixes  # the ordered columns only
    assert resolve(us.workload.prefixes(1), SCHEMA) == prefixes
    assert len(parse("conjunctions:2", SCHEMA)) == 6
    assert parse("parities:3:2@1", SCHEMA) == resolve(us.workload.parities(3, 2, 1), SCHEMA)
    joined = parse("marginals:4+prefixes:1", SCHEMA)
    assert joined == resolve(us.workload.marginals(4) + us.workload.prefixes(1), SCHEMA)
    assert joined.kinds == ("marginals", "prefixes")
    named = us.workload.prefixes(["grade", "age"]) + us.workload.conjunctions(["sex", "town"])
    expected = Workload((Family((0, 2), kind="prefixes"), Family((1, 3), kind="conjunctions")))
    assert resolve(named, SCHEMA) == expected
    file = tmp_path / "w.toml"
    file.write_text('prefixes = [["age", "grade"]]\nconjunctions = [["sex", "town"]]\n')
    assert parse(file, SCHEMA) == expected
    assert us.marginals(3) == us.workload.marginals(3)


@pytest.mark.parametrize(
    "text",
    ["marginals:2", "conjunctions:2", "disjunctions:1", "parities:3", "prefixes:2+marginals:1"],
)
def test_json_keeps_kind_order_and_weight(text):
    workload = parse(text, SCHEMA)
    first = replace(workload.families[0], weight=2.5)
    workload = Workload((*workload.families[1:], first))
    written = json.loads(json.dumps(workload.to_json(SCHEMA)))
    assert Workload.from_json(written, SCHEMA) == workload
    for entry, family in zip(written, workload.families, strict=True):
        assert entry.get("kind", "marginals") == family.kind


# -- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (us.workload.prefixes(["town"]), r"'town' of type 'category' has no order.*ordinal"),
        (us.workload.prefixes(["age", "sex"]), r"'sex'.*no order"),
        ("prefixes:3", r"the schema has 2 ordered ones: take a number up to 2"),
        (us.workload.conjunctions(["agee"]), r"unknown column 'agee' \(did you mean 'age'"),
        (us.workload.parities(["age", "age"]), "names a column twice"),
        ("parities:5", "asks for parities of 5 columns, the schema models 4"),
        ("conjunctions", "is malformed"),
        ("conjunctions:2+", "is malformed"),
        ("marginals:2+cubes:1", "is malformed"),
        ([{"kind": "cubes", "columns": ["age"]}], r"the kind 'cubes' is not known"),
        ([{"kind": 3, "columns": ["age"]}], r"the kind 3 is not known"),
        ({"prefixes": [["age"]], "cubes": []}, r"only 'marginals', 'conjunctions'"),
        ({"prefixes": "age"}, "not a list"),
        ({}, "only 'marginals'"),
        ("prefixes:1+prefixes:1", "listed twice"),
        ([{"kind": "prefixes", "columns": ["age"], "weight": 0}], "prefixes age has weight"),
    ],
)
def test_what_is_wrong_is_named_with_the_remedy(wanted, message):
    with pytest.raises(WorkloadError, match=message):
        resolve(wanted, SCHEMA)


def test_builders_refuse_a_bare_name():
    with pytest.raises(WorkloadError, match=r"\['age'\]"):
        us.workload.prefixes("age")
    with pytest.raises(WorkloadError, match="count is for a number"):
        us.workload.prefixes(["age"], 3)
    with pytest.raises(TypeError):
        us.workload.prefixes(1) + "marginals:2"


def test_too_many_queries_are_counted_before_they_are_listed():
    wide = Schema.loads(
        "[understudy]\nversion = 1\n"
        + "".join(
            f'[[column]]\nname = "c{i}"\ntype = "integer"\nlower = 1\nupper = 300\n'
            for i in range(12)
        )
    )
    with pytest.raises(WorkloadError, match=r"23,760,000 queries, more than 4,000,000.*coarser"):
        parse("conjunctions:2", wide)
    with pytest.raises(WorkloadError, match="27,000,300 queries"):
        resolve(us.workload.marginals(["c1"]) + us.workload.prefixes(["c1", "c2", "c3"]), wide)
    with pytest.raises(WorkloadError, match=f"at most {MAX_PARITY}"):
        Family(tuple(range(MAX_PARITY + 1)), kind="parities")


def test_rules_have_the_words_of_the_data_player():
    """`players.data` speaks of rules by their text, not knowing the privacy room."""
    assert {str(rule) for rule in Rule} == {"all", "any", "odd", "least"}
