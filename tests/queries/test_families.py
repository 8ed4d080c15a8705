"""Tables of views against a plain enumeration of every view."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from understudy.queries.families import EncodedFamilies, ViewCounts
from understudy.schema import Category, Identifier, Schema
from understudy.schema.family import Family, FamilySchema

PARENTS = Schema((Identifier("k"), Category("p", ("a", "b"))))
CHILDREN = Schema((Identifier("k"), Category("c", ("x", "y", "z")), Category("d", ("0", "1"))))


def schema_of(*, ordered, least, most=4):
    order = "c" if ordered else None
    return FamilySchema.of(PARENTS, CHILDREN, Family("P", "k", "C", "k", most, least, order, "all"))


def drawn(schema, number, rng):
    family = schema.family
    sizes = rng.integers(family.min_children, family.max_children + 1, number)
    total = int(sizes.sum())
    return EncodedFamilies(
        (rng.integers(0, 2, number),), sizes, (rng.integers(0, 3, total), rng.integers(0, 2, total))
    )


def enumerated(families, schema):
    """(view, weight) one by one, as the module of schemas says it."""
    start, layout, ordered = 0, schema.layout, schema.layout.ordered
    for at, size in enumerate(families.sizes):
        kids = range(start, start + size)
        start += size
        if size == 0:
            pairs = [(None, None)]
        elif ordered:
            pairs = [(k, k - 1 if k > kids[0] else None) for k in kids]
        else:
            pairs = list(itertools.permutations(kids, 2)) or [(kids[0], None)]
        for a, b in pairs:
            view = [0] * len(schema.shape)
            view[layout.parent[0]] = families.parents[0][at]
            view[layout.size] = size - (not layout.childless)
            for k, (i, j) in enumerate(zip(layout.child, layout.sibling, strict=True)):
                view[i] = schema.shape[i] - 1 if a is None else families.children[k][a]
                view[j] = schema.shape[j] - 1 if b is None else families.children[k][b]
            if ordered:
                if a is None:
                    view[layout.pos] = 4
                elif size == 1:
                    view[layout.pos] = 0
                else:
                    view[layout.pos] = 1 if a == kids[0] else 3 if a == kids[-1] else 2
            yield tuple(view), schema.weight // len(pairs)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("least", [0, 1])
def test_every_table_is_that_of_all_views(ordered, least):
    schema, rng = schema_of(ordered=ordered, least=least), np.random.default_rng(1)
    families = drawn(schema, 60, rng)
    counts = ViewCounts(families, schema.layout, schema.weight, schema.shape)
    width = len(schema.shape)
    cliques = [(), *((i,) for i in range(width)), *itertools.combinations(range(width), 2)]
    wanted = {clique: np.zeros([schema.shape[i] for i in clique], np.int64) for clique in cliques}
    for view, weight in enumerated(families, schema):
        for clique in cliques:
            wanted[clique][tuple(view[i] for i in clique)] += weight
    for clique, table in zip(cliques, counts.tables(cliques), strict=True):
        assert (table == wanted[clique]).all(), clique
    assert counts.total == wanted[()] == 60 * schema.weight
    for clique, (cells, found) in zip(cliques[5:9], counts.sparse(cliques[5:9]), strict=True):
        flat = wanted[clique].reshape(-1)
        assert (np.flatnonzero(flat) == cells).all()
        assert (flat[cells] == found).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_one_family_moves_every_table_by_at_most_its_weight(ordered):
    """All families of a tiny universe: L1 of what each adds to a table is at most M, so is L2."""
    schema = schema_of(ordered=ordered, least=0, most=2)
    layout, shape = schema.layout, schema.shape
    cliques = list(itertools.combinations(range(len(shape)), 2))
    seen = 0
    for size in range(3):
        for codes in itertools.product(
            range(2), *[list(itertools.product(range(3), range(2)))] * size
        ):
            own = EncodedFamilies(
                (np.array(codes[:1]),),
                np.array([size]),
                tuple(np.array([child[k] for child in codes[1:]], np.int64) for k in range(2)),
            )
            for table in ViewCounts(own, layout, schema.weight, shape).tables(cliques):
                assert 0 < table.sum() <= schema.weight
                assert table.min() >= 0
            seen += 1
    assert seen == 2 + 12 + 72


def test_weights_that_do_not_divide_stay_below_the_bound():
    schema, rng = schema_of(ordered=False, least=0, most=50), np.random.default_rng(2)
    for size in (7, 17, 49, 50):
        own = EncodedFamilies(
            (np.array([0]),), np.array([size]), (rng.integers(0, 3, size), rng.integers(0, 2, size))
        )
        counts = ViewCounts(own, schema.layout, schema.weight, schema.shape)
        cliques = [(0, 1), (0, 2), (2, 4)]
        totals = {int(table.sum()) for table in counts.tables(cliques)}
        assert totals == {counts.total}
        assert 0.9 * schema.weight < counts.total <= schema.weight


def test_one_view_of_every_family():
    schema, rng = schema_of(ordered=False, least=0), np.random.default_rng(3)
    families = drawn(schema, 40, rng)
    counts = ViewCounts(families, schema.layout, schema.weight, schema.shape)
    views = {at: set() for at in range(40)}
    for at in range(40):
        size, start = families.sizes[at], families.sizes[:at].sum()
        one = EncodedFamilies(
            (families.parents[0][at : at + 1],),
            families.sizes[at : at + 1],
            tuple(column[start : start + size] for column in families.children),
        )
        views[at] = {view for view, _ in enumerated(one, schema)}
    for _ in range(5):
        picked = counts.one_each(rng)
        assert all(tuple(int(c[at]) for c in picked) in views[at] for at in range(40))
