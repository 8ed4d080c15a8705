"""Purposes: how they are read, which tables they add with which weight, and what is refused."""

import itertools

import pytest

from understudy.errors import WorkloadError
from understudy.queries import Family, Workload, resolve
from understudy.queries.purpose import MOST_CELLS, Purpose, left_out, read, widened
from understudy.schema import Category, Identifier, Schema


def schema_of(**sizes):
    columns = (Category(name, tuple(f"v{i}" for i in range(k))) for name, k in sizes.items())
    return Schema((Identifier("id"), *columns))


FIVE = schema_of(a=2, b=3, c=2, d=4, y=2)


def pair_weights(workload):
    found = {}
    for family in workload.families:
        for pair in itertools.combinations(family.clique, 2):
            found[pair] = found.get(pair, 0.0) + family.weight
    return found


@pytest.mark.parametrize(
    ("text", "purpose"),
    [
        ("model:y", Purpose("model", "y")),
        (" model: marital status ", Purpose("model", "marital status")),
        ("subgroups:a:b", Purpose("subgroups", "a:b")),
        ("regression:y ~ a + b", Purpose("regression", "y", ("a", "b"))),
        ("regression:y~capital-gain", Purpose("regression", "y", ("capital-gain",))),
        ("regression:`y ~` ~ `a + b`+c", Purpose("regression", "y ~", ("a + b", "c"))),
    ],
)
def test_texts_are_read(text, purpose):
    assert read(text) == purpose


@pytest.mark.parametrize("text", ["", "model", "model:", "model: ", "modle:y", "y"])
def test_what_is_no_purpose_shows_the_forms(text):
    with pytest.raises(WorkloadError, match=r"model:TARGET.*regression:Y ~ A \+ B.*subgroups") as e:
        read(text)
    assert repr(text) in str(e.value)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("y", "one column before '~' and at least one after it"),
        ("y + a", "one column before '~'"),
        ("a + b ~ y", "one column before '~'"),
        ("y ~ a ~ b", "one column before '~'"),
        ("y ~", "a column name is missing at 'the end'"),
        ("~ a", "missing at '~ a'"),
        ("y ~ a ++ b", "missing at '[+] b'"),
        ("y ~ `a", "missing at '`a'"),
        ("y ~ `a` b", "missing at 'b'"),
    ],
)
def test_a_formula_is_strict(formula, said):
    with pytest.raises(WorkloadError, match=said):
        read(f"regression:{formula}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model:z", "purpose 'model:z': unknown column 'z'"),
        ("model:id", "column 'id' is of type 'identifier' and not modelled"),
        ("regression:y ~ a + a", "column 'a' is in it twice"),
        ("regression:y ~ y", "column 'y' is in it twice"),
        ("regression:y ~ log(a)", r"unknown column 'log\(a\)'"),
    ],
)
def test_columns_must_be_of_the_schema(text, said):
    with pytest.raises(WorkloadError, match=said):
        widened(resolve("marginals:2", FIVE), [text], FIVE)


def test_a_near_miss_is_named():
    with pytest.raises(WorkloadError, match="did you mean 'readmitted'"):
        read("model:readmited").families(schema_of(readmitted=2, age=3))


def test_a_table_of_one_column_has_no_purpose():
    with pytest.raises(WorkloadError, match="models no other column than 'a'"):
        read("model:a").families(schema_of(a=2))


@pytest.mark.parametrize("kind", ["model", "subgroups"])
def test_a_column_comes_with_every_pair(kind):
    """All pairs stay; pairs with y weigh at least eight times as much as any other."""
    workload = widened(resolve("marginals:2", FIVE), [f"{kind}:y"], FIVE)
    others = range(4)
    triples = {(*pair, 4) for pair in itertools.combinations(others, 2)}
    assert {c for c in workload.cliques if len(c) == 3} == triples
    assert set(resolve("marginals:2", FIVE).cliques) <= set(workload.cliques)
    weights = pair_weights(workload)
    assert min(weights[i, 4] for i in others) >= 8 * max(weights[p] for p in weights if 4 not in p)


def test_a_regression_wants_the_pairs_of_its_columns():
    workload = widened(resolve("marginals:2", FIVE), ["regression:y ~ a + c"], FIVE)
    assert [c for c in workload.cliques if len(c) == 3] == [(0, 2, 4)]
    weights = pair_weights(workload)
    wanted = {(0, 2), (0, 4), (2, 4)}
    assert min(weights[pair] for pair in wanted) > 8
    assert {weights[pair] for pair in weights if pair not in wanted} == {1.0}


def test_purposes_add_up_and_keep_the_workload():
    few = Workload((Family((0, 1), 3.0), Family((2,))))
    one, two = ("model:y", "subgroups:a")
    both = widened(few, [one, two], FIVE)
    assert both.families[0].weight > 3  # a × b, which subgroups:a wants as well
    assert {*widened(few, [one], FIVE).cliques, *widened(few, [two], FIVE).cliques} == set(
        both.cliques
    )
    assert widened(few, [], FIVE) is few
    # Weights are relative to the heaviest pair that was there.
    light = widened(Workload((Family((0, 1)),)), [one], FIVE)
    heavy = widened(Workload((Family((0, 1), 3.0),)), [one], FIVE)
    assert [f.weight for f in heavy.families] == [
        pytest.approx(3 * f.weight) for f in light.families
    ]


def test_large_triples_are_left_out_and_pairs_never():
    wide = schema_of(y=2, a=150, b=100, c=5)
    assert 2 * 150 * 100 > MOST_CELLS >= 2 * 150 * 5
    workload = widened(resolve("marginals:2", wide), ["model:y"], wide)
    assert left_out(["model:y"], wide) == ((0, 1, 2),)
    assert {c for c in workload.cliques if len(c) == 3} == {(0, 1, 3), (0, 2, 3)}
    assert left_out(["model:c"], wide) == ((1, 2, 3),)
    assert left_out([], wide) == ()
