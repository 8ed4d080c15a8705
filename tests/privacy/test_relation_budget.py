"""Sensitivities against exhaustive neighbours; budgets in exact arithmetic."""

import math
import time
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.privacy.budget import Budget, decimal, exact, exact_text, split
from understudy.privacy.relation import Relation
from understudy.testing.exact import neighbours

UNIVERSE = list(product((0, 1), repeat=2))
CLIQUES = ((0,), (1,), (0, 1))
N = 3


def unordered(relation):
    """All neighbours, each pair of multisets once: counts do not see the order of rows."""
    every = neighbours(UNIVERSE, N, relation.value)
    return list(dict.fromkeys((tuple(sorted(a)), tuple(sorted(b))) for a, b in every))


PAIRS = {relation: unordered(relation) for relation in Relation}


def table(data, clique):
    out = np.zeros((2,) * len(clique), dtype=np.int64)
    for row in data:
        out[tuple(row[i] for i in clique)] += 1
    return out


@cache
def stacked(data, cliques=CLIQUES):
    return np.concatenate([table(data, clique).ravel() for clique in cliques])


def largest(relation, distance):
    return max(distance(a, b) for a, b in PAIRS[relation])


def synthetic_tables():
    return [rows for size in (1, 2, 3) for rows in combinations_with_replacement(UNIVERSE, size)]


# --- the relation -------------------------------------------------------------------------------


def test_relation_values():
    assert Relation("add-remove") is Relation.ADD_REMOVE
    assert Relation("replace") is Relation.REPLACE
    assert len(Relation) == 2
    assert f"{Relation.REPLACE}" == "replace"
    with pytest.raises(ValueError):
        Relation("zero-out")


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("clique", CLIQUES)
def test_one_marginal_moves_exactly_as_stated(relation, clique):
    def moved(a, b):
        return np.abs(table(a, clique) - table(b, clique))

    assert largest(relation, lambda a, b: moved(a, b).sum()) == relation.marginal_l1()
    assert (
        largest(relation, lambda a, b: (moved(a, b) ** 2).sum()) == relation.marginal_l2_squared()
    )
    assert largest(relation, lambda a, b: (moved(a, b) > 0).sum()) == relation.multiplicity
    assert largest(relation, lambda a, b: moved(a, b).max()) == 1


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("tables", [1, 2, 3])
def test_stacked_marginals_move_exactly_as_stated(relation, tables):
    cliques = CLIQUES[:tables]

    def moved(a, b):
        return np.abs(stacked(a, cliques) - stacked(b, cliques))

    assert largest(relation, lambda a, b: moved(a, b).sum()) == relation.marginal_l1(tables)
    squared = relation.marginal_l2_squared(tables)
    assert largest(relation, lambda a, b: (moved(a, b) ** 2).sum()) == squared
    assert isinstance(squared, int)


def test_stated_sensitivities():
    assert (Relation.ADD_REMOVE.multiplicity, Relation.REPLACE.multiplicity) == (1, 2)
    for tables in (1, 2, 7):
        assert Relation.ADD_REMOVE.marginal_l1(tables) == tables
        assert Relation.REPLACE.marginal_l1(tables) == 2 * tables
        assert Relation.ADD_REMOVE.marginal_l2_squared(tables) == tables
        assert Relation.REPLACE.marginal_l2_squared(tables) == 2 * tables


def lattice(data, rows, synthetic):
    """M c - n c_hat, stacked over all cells of all marginals."""
    return len(synthetic) * stacked(data) - rows * stacked(synthetic)


CASES = [
    (Relation.REPLACE, True),
    (Relation.ADD_REMOVE, True),
    (Relation.ADD_REMOVE, False),
]


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_lattice_worst_error_moves_by_at_most_the_synthetic_size(relation, public):
    """K = max |M c - n c_hat| moves by at most M: exhaustive, and M is reached."""
    reached = []
    for synthetic in synthetic_tables():
        size, worst = len(synthetic), 0
        for a, b in PAIRS[relation]:
            rows = (N, N) if public else (len(a), len(b))
            k = [
                int(np.abs(lattice(d, n, synthetic)).max())
                for d, n in zip((a, b), rows, strict=True)
            ]
            worst = max(worst, abs(k[0] - k[1]))
        assert worst <= size
        reached.append(worst == size)
    assert any(reached)


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_lattice_total_variation_moves_by_the_stated_steps(relation, public):
    """sum over one marginal's cells of |M c - n c_hat| moves by at most steps * M, and does."""
    steps = relation.total_variation_steps(rows_public=public)
    assert isinstance(steps, int)
    ends = np.cumsum([0] + [2 ** len(clique) for clique in CLIQUES])
    reached = []
    for synthetic in synthetic_tables():
        size, worst = len(synthetic), 0
        for a, b in PAIRS[relation]:
            rows = (N, N) if public else (len(a), len(b))
            va, vb = (np.abs(lattice(d, n, synthetic)) for d, n in zip((a, b), rows, strict=True))
            tv = [np.add.reduceat(v, ends[:-1]) for v in (va, vb)]
            worst = max(worst, int(np.abs(tv[0] - tv[1]).max()))
        assert worst <= steps * size
        reached.append(worst == steps * size)
    assert any(reached), "the stated sensitivity is larger than it has to be"


def test_total_variation_steps():
    assert Relation.REPLACE.total_variation_steps(rows_public=True) == 2
    assert Relation.ADD_REMOVE.total_variation_steps(rows_public=True) == 1
    assert Relation.ADD_REMOVE.total_variation_steps(rows_public=False) == 2


def test_normalised_sensitivities_of_the_literature():
    """n = 3 on {0,1}²: worst error 1/3, TV vector L2 sqrt(3)/3, mean 2J/(nC), RMSE sqrt(2J/C)/n."""
    ends = np.cumsum([0] + [2 ** len(clique) for clique in CLIQUES])
    cells, tables = int(ends[-1]), len(CLIQUES)
    g = tv = mean = rmse = 0.0
    for synthetic in synthetic_tables():
        for a, b in PAIRS[Relation.REPLACE]:
            va, vb = (stacked(d) / N - stacked(synthetic) / len(synthetic) for d in (a, b))
            ta, tb = (0.5 * np.add.reduceat(np.abs(v), ends[:-1]) for v in (va, vb))
            g = max(g, abs(np.abs(va).max() - np.abs(vb).max()))
            tv = max(tv, float(np.linalg.norm(ta - tb)))
            mean = max(mean, abs(np.abs(va).mean() - np.abs(vb).mean()))
            rmse = max(rmse, abs(np.sqrt((va**2).mean()) - np.sqrt((vb**2).mean())))
    assert g == pytest.approx(1 / 3)
    assert tv == pytest.approx(math.sqrt(3) / 3)
    assert mean == pytest.approx(2 * tables / (N * cells))
    assert rmse == pytest.approx(math.sqrt(2 * tables / cells) / N)


# --- exact numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        (1, Fraction(1)),
        ("1e-9", Fraction(1, 10**9)),
        (1e-9, Fraction(1, 10**9)),
        (Fraction(1, 3), Fraction(1, 3)),
        (0.3, Fraction(3, 10)),
        (2.5, Fraction(5, 2)),
        (np.float64(0.1), Fraction(1, 10)),
    ],
)
def test_exact(value, expected):
    result = exact(value)
    assert isinstance(result, Fraction)
    assert result == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_is_the_shortest_decimal_of_a_float(value):
    assert exact(value) == Fraction(repr(value))
    assert float(exact(value)) == value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "nan", "inf", "one", "", None, [], "1,5", object()]
)
def test_exact_refuses(value):
    with pytest.raises(InputError):
        exact(value)


@pytest.mark.parametrize(
    "value",
    ["1e99999999", "-1e-99999999", "1e309", "9" * 400_000, "x" * 400_000, 10**5000],
    ids=["large", "small", "no float", "digits", "letters", "integer"],
)
def test_numbers_beyond_all_use_are_refused_at_once_in_a_line(value):
    begun = time.perf_counter()
    with pytest.raises(InputError, match="epsilon = ") as refusal:
        exact(value, "epsilon")
    assert time.perf_counter() - begun < 0.5
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "text",
    ["1e300000000", "1E-300000000", "1" * 20_000, "1e" + "0" * 50],
    ids=["large", "small", "digits", "zeros"],
)
def test_a_stored_budget_beyond_all_use_is_refused_at_once(text):
    begun = time.perf_counter()
    with pytest.raises(InputError, match="of a bearable size"):
        Budget.from_json({"epsilon": text, "delta": "0"})
    assert time.perf_counter() - begun < 0.5


def test_the_smallest_and_largest_numbers_are_kept_whole():
    for value in (5e-324, 1.7e308, "1e-320", "0e999999999", Fraction(1, 7**400)):
        assert exact_text(decimal(exact(value))) == exact(value)


def test_budget_is_exact():
    budget = Budget.of(0.1, "1e-9")
    assert budget.epsilon == Fraction(1, 10)
    assert budget.delta == Fraction(1, 10**9)
    assert Budget.of("0.1", 1e-9) == budget
    assert Budget.of(1, 0).delta == 0
    with pytest.raises(AttributeError):
        budget.epsilon = Fraction(2)


@pytest.mark.parametrize("epsilon", [0, -1, "0", "-0.5", math.nan, math.inf, "x", None])
def test_budget_names_a_bad_epsilon(epsilon):
    with pytest.raises(InputError) as caught:
        Budget.of(epsilon, "1e-9")
    message = str(caught.value)
    assert "epsilon" in message
    assert str(epsilon) in message


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, "1", math.nan, math.inf, "x"])
def test_budget_names_a_bad_delta(delta):
    with pytest.raises(InputError) as caught:
        Budget.of(1, delta)
    message = str(caught.value)
    assert "delta" in message
    assert str(delta) in message


# --- splitting ----------------------------------------------------------------------------------


def test_split_by_shares():
    total = Fraction(1, 3)
    parts = split(total, {"select": "0.3", "measure": 0.68, "certificate": Fraction(2, 100)})
    assert list(parts) == ["select", "measure", "certificate"]
    assert sum(parts.values()) <= total
    assert parts["select"] == Fraction(1, 10)
    assert all(isinstance(part, Fraction) for part in parts.values())


@settings(max_examples=200)
@given(
    st.fractions(min_value=Fraction(1, 10**12), max_value=1000),
    st.lists(st.floats(min_value=1e-6, max_value=1.0), min_size=1, max_size=12),
)
def test_split_never_gives_away_more_than_there_is(total, weights):
    scale = sum(exact(w) for w in weights)
    shares = {str(i): exact(w) / scale for i, w in enumerate(weights)}
    parts = split(total, shares)
    assert set(parts) == set(shares)
    assert sum(parts.values()) <= total
    assert sum(parts.values()) >= total * Fraction(999_999, 1_000_000)
    assert all(part >= 0 for part in parts.values())


@pytest.mark.parametrize(
    "shares",
    [{"a": "0.6", "b": "0.6"}, {"a": -0.1, "b": 1}, {"a": "1.0000001"}, {"a": math.nan}],
    ids=["over", "negative", "one over", "nan"],
)
def test_split_refuses_or_stays_within(shares):
    """Shares above one may be refused or scaled down; they may never add up to more than total."""
    try:
        parts = split(Fraction(1), shares)
    except InputError:
        return
    assert sum(parts.values()) <= 1
    assert all(part >= 0 for part in parts.values())
