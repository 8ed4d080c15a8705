"""Families made from a model of their views, held against `ViewCounts`, which counts another way."""

import itertools

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.models import _exchange as kernels
from understudy.models import families as module
from understudy.models.families import generate
from understudy.models.weighted import Weighted
from understudy.queries.families import EncodedFamilies, ViewCounts
from understudy.schema.family import Layout, weight_of

PARENTS, CHILDREN, MOST = (3, 2), (4, 3), 4


def made(ordered, childless, number=300, key=0):
    """(families whose members resemble each other, layout, shape of their views)."""
    rng = np.random.default_rng(key)
    sizes = rng.integers(0 if childless else 1, MOST + 1, number)
    owner = np.repeat(np.arange(number), sizes)
    parents = [rng.integers(n, size=number).astype(np.uint8) for n in PARENTS]
    shared = rng.integers(CHILDREN[0], size=number)
    first = np.where(rng.random(owner.size) < 0.9, shared[owner], 0).astype(np.uint8)
    second = np.where(rng.random(owner.size) < 0.8, parents[0][owner], 1).astype(np.uint8)
    shape = [*PARENTS, MOST + childless, *(n + childless for n in CHILDREN)]
    pos = len(shape) if ordered else None
    shape += [4 + childless] if ordered else []
    layout = Layout((0, 1), 2, (3, 4), (len(shape), len(shape) + 1), CHILDREN, pos, childless)
    shape += [n + 1 for n in CHILDREN]
    return EncodedFamilies(tuple(parents), sizes, (first, second)), layout, tuple(shape)


def model_of(families, layout, shape):
    """The exact law of the views of some families."""
    weight = weight_of(MOST, ordered=layout.ordered)
    cells, counts = ViewCounts(families, layout, weight, shape).sparse([tuple(range(len(shape)))])[
        0
    ]
    return Weighted(shape, np.unravel_index(cells, shape), counts / counts.sum())


def pairs(layout, shape):
    siblings = set(layout.sibling)
    free = [i for i in range(len(shape)) if i not in siblings]
    return [*itertools.combinations(free, 2), *itertools.product(layout.child, layout.sibling)]


def tables(families, layout, shape, cliques):
    views = ViewCounts(families, layout, weight_of(MOST, ordered=layout.ordered), shape)
    return [table / views.total for table in views.tables(cliques)]


def distance(one, other):
    return np.mean([np.abs(a - b).sum() / 2 for a, b in zip(one, other, strict=True)])


KINDS = list(itertools.product([False, True], repeat=2))


@pytest.mark.parametrize(("ordered", "childless"), KINDS)
def test_families_are_whole_legal_and_like_the_model(ordered, childless):
    families, layout, shape = made(ordered, childless)
    cliques = pairs(layout, shape)
    model = model_of(families, layout, shape)
    found = {
        effort: generate(model, layout, 400, cliques, np.random.default_rng(1), effort)
        for effort in (0, 30)
    }
    for made_ones in found.values():
        assert made_ones.sizes.size == 400
        assert made_ones.sizes.min() >= (0 if childless else 1)
        assert made_ones.sizes.max() <= MOST
        assert all(c.max() < n for c, n in zip(made_ones.children, CHILDREN, strict=True))
        assert all(column.size == made_ones.sizes.sum() for column in made_ones.children)
    goal = [model.marginal(clique) for clique in cliques]
    begun, ended = (distance(tables(f, layout, shape, cliques), goal) for f in found.values())
    assert ended < min(begun, 0.03)


def test_two_heads_are_rare_where_a_size_was_given_too_many():
    """In the model no head has a head beside it, but of pairs more than half are heads."""
    families, layout, shape = made(ordered=False, childless=False, number=1200)
    starts = np.cumsum(families.sizes) - families.sizes
    first = np.array(families.children[0] % 3 + 1)
    first[starts] = 0
    families = EncodedFamilies(families.parents, families.sizes, (first, families.children[1]))
    exact = model_of(families, layout, shape)
    size, role = exact.codes[layout.size], exact.codes[layout.child[0]]
    weights = exact.weights * np.where((size == 1) & (role == 0), 1.1, 1.0)
    model = Weighted(shape, exact.codes, weights / weights.sum())
    cliques = pairs(layout, shape)
    drawn = generate(model, layout, 1200, cliques, np.random.default_rng(1), 0)
    ended = generate(model, layout, 1200, cliques, np.random.default_rng(1))
    both = layout.child[0], layout.sibling[0]
    begun, left = (1200 * tables(f, layout, shape, [both])[0][0, 0] for f in (drawn, ended))
    assert begun > 20
    assert left < 4  # exchanges between families of one size would leave 14 pairs of two heads


@pytest.mark.parametrize(("ordered", "childless"), KINDS)
def test_the_objective_is_that_of_the_views_and_only_falls(ordered, childless):
    families, layout, shape = made(ordered, childless, number=60)
    cliques = [
        (0, 3),
        (2, 4),
        *itertools.product(layout.child, layout.sibling),
        (0, 3, layout.sibling[0]),
    ]
    rng = np.random.default_rng(2)
    goals = [3 * rng.random([shape[i] for i in clique]) for clique in cliques]

    def weight(goal):
        return module._rounded(np.where(goal < 1, 4, 1) / np.sqrt(1 + goal))

    crowd = module._Crowd(
        layout, shape, np.stack(families.parents, 1), families.sizes, np.stack(families.children, 1)
    )
    held = module._Tables(crowd, cliques)
    held.aim(goals, [])

    def objective():
        counted = tables(crowd.families(), layout, shape, cliques)
        return sum(
            ((table * 60 - goal) ** 2 * weight(goal))[some].sum()
            for table, goal, clique in zip(counted, goals, cliques, strict=True)
            # What childless parents have in the tables of children never moves.
            for some in [
                np.ix_(*(range(shape[i] - (childless and i in layout.child)) for i in clique))
            ]
        )

    def kept():
        some = held.slopes[1] > 0
        return float((held.slopes[0, some] ** 2 / held.slopes[1, some]).sum())

    before, still = objective(), kept() - objective() if not childless else None
    accepted = 0
    for turn in range(12):
        pairs = (crowd._alike, crowd._any, crowd._anywhere)[turn % 3](rng)
        for pair in pairs.T[:, :, None]:
            accepted += held.exchange(pair)
            after = objective() if accepted < 40 else before
            assert after <= before + 1e-9
            before = after
        if still is not None:
            assert kept() - objective() == pytest.approx(still, abs=1e-6)
    assert accepted > 20


def test_the_same_generator_gives_the_same_families():
    families, layout, shape = made(False, False)
    model, cliques = model_of(families, layout, shape), pairs(layout, shape)
    one, same, other = (
        generate(model, layout, 100, cliques, np.random.default_rng(key), 4) for key in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one.children, same.children, strict=True))
    assert np.array_equal(one.sizes, same.sizes)
    assert not all(np.array_equal(a, b) for a, b in zip(one.children, other.children, strict=True))


@pytest.mark.parametrize(("ordered", "childless"), KINDS)
@pytest.mark.parametrize("strict", [False, True])
def test_forbidden_cells_stay_empty(ordered, childless, strict):
    families, layout, shape = made(ordered, childless)
    model, cliques = model_of(families, layout, shape), pairs(layout, shape)
    twin = layout.sibling[0]
    codes = range(CHILDREN[0])
    falls = np.zeros((shape[3], shape[twin]), np.bool_)
    for a, b in itertools.product(codes, codes):
        falls[a, b] = a < b if not strict else a != b
    unlike = np.zeros((shape[0], shape[4]), np.bool_)
    unlike[2, 1] = True
    forbidden = {(0, 4): unlike}
    if ordered or strict:  # without an order every pair is seen both ways
        forbidden[3, twin] = falls
    broken = tables(families, layout, shape, list(forbidden))
    assert any(
        (table[ban] > 0).any() for table, ban in zip(broken, forbidden.values(), strict=True)
    )
    found = generate(model, layout, 300, cliques, np.random.default_rng(3), 10, forbidden)
    for table, ban in zip(
        tables(found, layout, shape, list(forbidden)), forbidden.values(), strict=True
    ):
        assert not table[ban].any()
    assert found.sizes.size == 300


def test_where_no_siblings_keep_the_rules_there_are_none():
    families, layout, shape = made(False, False)
    model = model_of(families, layout, shape)
    twin = layout.sibling[0]
    never = np.ones((shape[3], shape[twin]), np.bool_)
    never[:, -1] = False  # nobody
    found = generate(model, layout, 20, [], np.random.default_rng(0), 1, {(3, twin): never})
    assert found.sizes.tolist() == [1] * 20


def test_a_model_without_children_is_refused():
    _, layout, shape = made(False, True)
    codes = [np.array([0, 0])] * 2 + [np.array([1, 2])] + [np.array([n - 1] * 2) for n in shape[3:]]
    model = Weighted(shape, tuple(codes), np.ones(2))
    with pytest.raises(InputError, match="no row with a child"):
        generate(model, layout, 5, [], np.random.default_rng(0))


def test_parents_alone_need_no_exchange():
    _, layout, shape = made(True, True)
    codes = [np.array([1]), np.array([0]), np.array([0])] + [np.array([n - 1]) for n in shape[3:]]
    model = Weighted(shape, tuple(codes), np.ones(1))
    found = generate(model, layout, 5, pairs(layout, shape), np.random.default_rng(0))
    assert not found.sizes.any()
    assert all(column.size == 0 for column in found.children)


def test_matching_prefers_leading_columns():
    wanted = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    offered = [np.array([1, 1, 0, 0, 2]), np.array([1, 1, 1, 0, 0])]
    chosen = module._matched(wanted, offered, np.random.default_rng(0))
    assert sorted(chosen[2:]) == [0, 1]
    assert chosen[0] == 3
    assert chosen[1] == 2


def test_counts_of_the_kernel_are_those_of_the_views():
    for ordered, childless in KINDS:
        families, layout, shape = made(ordered, childless, number=40)
        cliques = [(0, 3), (1, 2, 4), (3, layout.sibling[1]), (1, 4, layout.sibling[0])]
        crowd = module._Crowd(
            layout,
            shape,
            np.stack(families.parents, 1),
            families.sizes,
            np.stack(families.children, 1),
        )
        held = module._Tables(crowd, cliques)
        found = np.zeros(held.slopes.shape[1])
        kernels.count(*held.where, found, held.scratch)
        want = np.concatenate(
            [t.reshape(-1) * 40 for t in tables(families, layout, shape, cliques)]
        )
        here = want > 0
        if childless:  # their views have no A, and are not counted
            here &= found > 0
        np.testing.assert_allclose(found[here], want[here])
        assert found.sum() == pytest.approx(len(cliques) * (families.sizes > 0).sum())


def test_a_sibling_that_is_missing_is_drawn_by_the_law_of_its_column():
    families, layout, shape = made(False, False)
    model = model_of(families, layout, shape)
    pool = model.sample(4_000, np.random.default_rng(5))
    before = [column.copy() for column in pool]
    module._fill_in(pool, model, layout, np.random.default_rng(6))
    for i, twin in zip(layout.child, layout.sibling, strict=True):
        there = before[twin] < shape[twin] - 1
        assert not there.all()
        np.testing.assert_array_equal(pool[twin][there], before[twin][there])
        assert pool[twin].max() < shape[twin] - 1
        law = model.marginal((i, twin))[:, :-1]
        drawn = np.zeros_like(law)
        np.add.at(drawn, (pool[i][~there], pool[twin][~there]), 1)
        assert not drawn[law == 0].any()


def test_what_tells_most_of_children_is_matched_first():
    families, layout, shape = made(True, False)
    cliques = pairs(layout, shape)
    told = module._importance(model_of(families, layout, shape), layout, cliques)
    # Siblings share their first column, and parents tell the second one.
    assert told[layout.sibling[0]] > told[layout.parent[1]]
    assert told[layout.parent[0]] > told[layout.parent[1]]


@pytest.mark.parametrize("evenly", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_a_child_in_too_full_a_cell_is_offered_one_with_which_both_families_gain(wide, evenly):
    families, layout, shape = made(ordered=True, childless=False)
    children = np.stack(families.children, axis=1)
    crowd = module._Crowd(layout, shape, np.stack(families.parents, 1), families.sizes, children)
    clique = (0, 2, layout.pos, 3, layout.sibling[0]) if wide else (3, layout.sibling[0])
    slope = np.zeros([shape[i] for i in clique])
    slope[..., 1, 0], slope[..., 3, 0], slope[..., 1, 2] = 1.0, -1.0, -1.0
    pair = slope[(0,) * (slope.ndim - 2)]
    rng = np.random.default_rng(0)
    offers = [crowd._wanted(clique, slope, 0.25, evenly, rng) for _ in range(20)]
    some = np.flatnonzero(families.sizes[crowd.owner] > 1)
    assert max(pairs.shape[1] for pairs in offers) > 0
    values = children[:, 0].astype(int)
    for one, other in offers:
        assert one.size <= some.size // 4
        assert np.isin(other, some).all()
        one, other = one.astype(int), other.astype(int)
        good = np.zeros(one.size, bool)
        for away in (-1, 1):  # the sibling that stays: before, or after
            mine, others = (np.clip(x + away, 0, len(values) - 1) for x in (one, other))
            kin = (crowd.owner[mine] == crowd.owner[one]) & (
                crowd.owner[others] == crowd.owner[other]
            )
            table = pair if away < 0 else pair.T
            full = table[values[one], values[mine]]
            gain = full + table[values[other], values[others]]
            gain -= table[values[other], values[mine]] + table[values[one], values[others]]
            good |= kin & (mine != one) & (others != other) & (full > 0) & (gain > 0)
        assert good.all()
