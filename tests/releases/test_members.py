"""Rules between members of families: values that keep them, and who breaks one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from understudy.constraints.rule import Rule
from understudy.queries.families import EncodedFamilies, views_of
from understudy.releases.members import breaking, in_order
from understudy.schema import Category, Date, Identifier, Integer, Schema
from understudy.schema.family import Family, FamilySchema

PARENTS = Schema((Identifier("id"), Integer("since", lower=0, upper=19, bins=4)))
CHILDREN = Schema(
    (
        Identifier("id"),
        Integer("x", lower=0, upper=19, bins=4),
        Integer("y", lower=0, upper=19, edges=[0, 3, 11, 19], nullable=True),
        Category("role", ("head", "child"), nullable=True),
        Category("stage", ("I", "II", "III"), ordinal=True),
    )
)


def schema_of(*says, order="x", most=4):
    family = Family("homes", "id", "people", "id", most, 0, order)
    return FamilySchema.of(PARENTS, CHILDREN, family, None, [Rule(each) for each in says])


def drawn(schema, number=400, key=0):
    """Random codes, and values of theirs."""
    rng = np.random.default_rng(key)
    sizes = rng.integers(0, 5, number)
    parents, children, _ = schema.tables
    codes = EncodedFamilies(
        tuple(rng.integers(0, n, number) for n in parents.shape),
        sizes,
        tuple(rng.integers(0, n, int(sizes.sum())) for n in children.shape),
    )
    tables = (parents.decode(codes.parents, rng), children.decode(codes.children, rng))
    return codes, tables


def test_views_are_all_of_a_family():
    sizes = np.array([0, 1, 3])
    ((family, child, sibling),) = views_of(sizes, np.arange(3), ordered=False)
    assert list(zip(family, child, sibling, strict=True)) == [
        (0, -1, -1), (1, 0, -1), (2, 1, 2), (2, 1, 3), (2, 2, 1), (2, 2, 3), (2, 3, 1), (2, 3, 2)
    ]  # fmt: skip
    ((family, child, sibling),) = views_of(sizes, np.array([0, 2]), ordered=True)
    assert list(zip(family, child, sibling, strict=True)) == [
        (0, -1, -1), (2, 1, -1), (2, 2, 1), (2, 3, 2)
    ]  # fmt: skip


def naive(schema, codes, cells, says):
    """Whether values of these cells can keep `says`, by trying all of them; a family at a time."""
    starts = np.cumsum(codes.sizes) - codes.sizes
    found = []
    for f, size in enumerate(codes.sizes):
        parent = cells["since"][codes.parents[0][f]]
        own = [cells["x"][codes.children[0][starts[f] + i]] for i in range(size)]
        fits = (says(p, c) for p in parent for c in itertools.product(*own))
        found.append(any(fits))
    return np.array(found)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (("previous.x < x",), lambda p, c: all(a < b for a, b in itertools.pairwise(c))),
        (
            ("previous.x + 2 <= x", "since <= x"),
            lambda p, c: (
                all(a + 2 <= b for a, b in itertools.pairwise(c)) and all(p <= x for x in c)
            ),
        ),
        (
            ("x <= previous.x + 3", "since > people.x"),
            lambda p, c: (
                all(b <= a + 3 for a, b in itertools.pairwise(c)) and all(p > x for x in c)
            ),
        ),
    ],
)
def test_values_are_found_exactly_where_there_are_some(rules, says):
    schema = schema_of(*rules)
    codes, tables = drawn(schema, 150)
    near = EncodedFamilies(  # cells close together, so that many families can keep the rules
        tuple(column // 2 for column in codes.parents),
        codes.sizes,
        (codes.children[0] // 2 + 1, *codes.children[1:]),
    )
    rng = np.random.default_rng(3)
    parents, children, _ = schema.tables
    tables = (parents.decode(near.parents, rng), children.decode(near.children, rng))
    (made_parents, made), none = in_order(schema, near, tables, rng)
    cells = {name: [range(5 * i, 5 * i + 5) for i in range(4)] for name in ("since", "x")}
    possible = naive(schema, near, cells, says)
    assert (none == ~possible).all()
    assert possible.any()
    assert not possible.all()
    for broken in breaking(schema, near.sizes, made_parents, made).values():
        assert not (broken & possible).any()
    assert all((a == b).all() for a, b in zip(children.encode(made), near.children, strict=True))
    assert all(
        (a == b).all() for a, b in zip(parents.encode(made_parents), near.parents, strict=True)
    )


def test_values_of_one_cell_are_only_sorted():
    schema = schema_of("previous.x <= x")
    codes = EncodedFamilies(
        (np.zeros(200, np.int64),),
        np.full(200, 4),
        tuple(np.zeros(800, np.int64) for _ in range(4)),
    )
    parents, children, _ = schema.tables
    rng = np.random.default_rng(0)
    tables = (parents.decode(codes.parents, rng), children.decode(codes.children, rng))
    (_, made), none = in_order(schema, codes, tables, rng)
    assert not none.any()
    before, after = (t["x"].to_numpy().reshape(200, 4) for t in (tables[1], made))
    assert (np.sort(before, axis=1) == after).all()


def test_conditions_hold_for_all_pairs_and_nulls_say_nothing():
    schema = schema_of(
        "role = 'child' and sibling.role = 'head' implies x < sibling.x",
        "role = 'head' implies y >= 3",
        "sibling.stage = 'III' implies stage != 'I'",
        order=None,
    )
    codes, tables = drawn(schema)
    (parents, children), none = in_order(schema, codes, tables, np.random.default_rng(1))
    found = breaking(schema, codes.sizes, parents, children)
    rows = children.to_pylist()
    starts = np.cumsum(codes.sizes) - codes.sizes
    younger, stages = np.zeros_like(none), np.zeros_like(none)
    for f, size in enumerate(codes.sizes):
        own = rows[starts[f] : starts[f] + size]
        for a, b in itertools.permutations(own, 2):
            younger[f] |= a["role"] == "child" and b["role"] == "head" and not a["x"] < b["x"]
            stages[f] |= b["stage"] == "III" and a["stage"] == "I"
    says = [
        "people.role = 'child' and sibling.role = 'head' implies people.x < sibling.x",
        "sibling.stage = 'III' implies people.stage != 'I'",
    ]
    assert (found[says[0]] == younger).all()
    assert (found[says[1]] == stages).all()
    assert younger.any()
    assert stages.any()


def test_figures_of_families_are_columns_of_rules():
    schema = schema_of(
        "people.count = 3 implies since >= 5",
        "people.position = 'last' implies x >= 5",
        "previous.stage <= stage",
    )
    codes, (parents, children) = drawn(schema)
    found = breaking(schema, codes.sizes, parents, children)
    since, x = parents["since"].to_numpy(), children["x"].to_numpy()
    last = np.cumsum(codes.sizes) - 1
    some = codes.sizes > 1
    assert (
        found["people.count = 3 implies homes.since >= 5"] == ((codes.sizes == 3) & (since < 5))
    ).all()
    wrong = np.zeros(codes.sizes.size, np.bool_)
    wrong[some] = x[last[some]] < 5
    assert (found["people.position = 'last' implies people.x >= 5"] == wrong).all()
    assert found["previous.stage <= people.stage"].any()


def test_what_is_computed_follows_the_values_that_were_drawn_again():
    days = replace(
        CHILDREN,
        columns=(*CHILDREN.columns, Integer("twice", lower=0, upper=38, bins=2, nullable=True)),
    )
    family = Family("homes", "id", "people", "id", 4, 0, "x")
    schema = FamilySchema.of(
        PARENTS, days, family, None, [Rule("twice = x + y"), Rule("previous.x <= x")]
    )
    assert "people.twice" not in [column.name for column in schema.modelled]
    codes, tables = drawn(schema)
    codes = replace(codes, children=(np.zeros_like(codes.children[0]), *codes.children[1:]))
    rng = np.random.default_rng(4)
    _, children, _ = schema.tables
    tables = (tables[0], children.decode(codes.children, rng))
    (_, made), _ = in_order(schema, codes, tables, rng)
    assert not made["x"].equals(tables[1]["x"])
    assert not children.illegal(made)


def test_dates_too():
    visits = Schema((Identifier("id"), Date("day", lower="2020-01-01", upper="2020-12-30", bins=3)))
    family = Family("homes", "id", "visits", "id", 4, 0, "day")
    schema = FamilySchema.of(PARENTS, visits, family, None, [Rule("previous.day < day")])
    codes = EncodedFamilies((np.zeros(50, np.int64),), np.full(50, 4), (np.tile([0, 0, 1, 1], 50),))
    rng = np.random.default_rng(0)
    tables = (schema.tables[0].decode(codes.parents, rng), visits.decode(codes.children, rng))
    (_, made), none = in_order(schema, codes, tables, rng)
    assert not none.any()
    assert (np.diff(made["day"].cast(pa.int32()).to_numpy().reshape(50, 4)) > 0).all()
