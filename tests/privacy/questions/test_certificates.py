"""The lattice certificate: its exact privacy on all neighbours, and its coverage."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.exact_privacy import PrivacyViolation, check, compare, discrete_laplace_law, neighbours
from tests.privacy.privacy_fakes import FakeTables, LoggedCharges, LoggedNoise
from understudy.privacy import accounting
from understudy.privacy.cost import Gaussian, Laplace
from understudy.privacy.gate import Gate
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import (
    MOST_SYNTHETIC,
    VARIATION_GRID,
    TotalVariations,
    WorstError,
    WorstQueryError,
    variation_step,
)
from understudy.privacy.questions.certificates import absolute, apart, largest
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise
from understudy.testing.stand_ins import TinyCounts, table_of

SHAPE = (2, 2)
UNIVERSE = tuple(itertools.product((0, 1), repeat=2))
CLIQUES = ((0,), (1,), (0, 1))
N = 3
CASES = [
    pytest.param(Relation.REPLACE, N, id="replace"),
    pytest.param(Relation.ADD_REMOVE, N, id="add-remove-public-n"),
    pytest.param(Relation.ADD_REMOVE, None, id="add-remove-private-n"),
]
SYNTHETICS = [
    (UNIVERSE[0],),
    (UNIVERSE[0], UNIVERSE[3]),
    (UNIVERSE[1], UNIVERSE[1], UNIVERSE[2]),
    (*UNIVERSE, UNIVERSE[0]),
]


def unordered(relation):
    """All neighbours, each pair of multisets once: counts do not see the order of rows."""
    every = neighbours(UNIVERSE, N, relation.value)
    return list(dict.fromkeys((tuple(sorted(a)), tuple(sorted(b))) for a, b in every))


def tables(rows):
    return tuple(table_of(rows, SHAPE, clique) for clique in CLIQUES)


def certify(rows, synthetic, event, relation, public, noise):
    gate = Gate(
        TinyCounts(SHAPE, rows), LoggedCharges(c=event, relation=relation), relation, noise, public
    )
    return gate.ask("c", WorstError(CLIQUES, tables(synthetic), len(synthetic)))


def certificate_law(synthetic, event, relation, public, factor=1.0):
    """The exact law of what the gate hands out: the sampler's argument, plus discrete Laplace."""

    def mechanism(rows):
        noise = LoggedNoise()
        certify(rows, synthetic, event, relation, public, noise)
        ((centre,),) = (np.ravel(values) for values in noise.values)
        ((_, scale),) = noise.log
        return discrete_laplace_law(int(centre), factor * scale, range(0, 5 * event.l1))

    return mechanism


@pytest.mark.parametrize(("relation", "public"), CASES)
@pytest.mark.parametrize("synthetic", SYNTHETICS, ids=len)
@pytest.mark.parametrize("l1", [1, 16])
def test_certificate_keeps_what_is_charged_on_every_neighbour(relation, public, synthetic, l1):
    pairs = unordered(relation)
    event = Laplace(l1 / 0.4, l1=l1)
    epsilon, rho = float(accounting.pure(event)), float(accounting.rho(event))
    assert epsilon == pytest.approx(0.4)
    report = check(
        certificate_law(synthetic, event, relation, public), pairs, pure=epsilon, rho=rho
    )
    assert report.pure <= epsilon + 1e-12
    half = certificate_law(synthetic, event, relation, public, factor=0.5)
    with pytest.raises(PrivacyViolation):
        check(half, pairs, pure=report.pure)


@pytest.mark.parametrize(("relation", "public"), CASES)
def test_the_worst_case_ratio_is_exactly_the_charge(relation, public):
    pairs = unordered(relation)
    event = Laplace(40.0, l1=16)
    ratios = [
        check(certificate_law(s, event, relation, public), pairs, pure=0.4).pure
        for s in ((UNIVERSE[0],), (UNIVERSE[0], UNIVERSE[0]))
    ]
    assert max(ratios) == pytest.approx(0.4, abs=1e-12)


def test_the_ratio_is_reached_on_both_tails_and_nowhere_exceeded():
    """Copies shifted by the sensitivity: e^ε outside the shift, less inside."""
    found = compare(*(discrete_laplace_law(c, 10.0, range(-30, 50)) for c in (0, 16)))
    ratios = dict(zip(found.outputs, found.log_ratios, strict=True))
    for x in range(-30, 50):
        expected = (abs(x - 16) - abs(x)) / 10.0
        assert ratios[x] == pytest.approx(expected, abs=1e-12)
    assert found.max_log_ratio == pytest.approx(1.6, abs=1e-12)


# --- coverage -----------------------------------------------------------------------------------


def margin(scale, beta):
    """Least t with a^{t+1}/(1+a) <= beta: then P(Z < -t) <= beta for discrete Laplace Z."""
    a = math.exp(-1 / scale)
    t = max(0, math.ceil(scale * math.log(1 / (beta * (1 + a))) - 1) - 2)
    while a ** (t + 1) / (1 + a) > beta:
        t += 1
    return t


@pytest.mark.parametrize("scale", [1.0, 7.5, 320.0])
@pytest.mark.parametrize("beta", [0.01, 0.05, 0.25])
def test_margin_is_the_exact_quantile(scale, beta):
    a, t = math.exp(-1 / scale), margin(scale, beta)

    def miss(t):
        z = np.arange(t + 1, t + 2000 + int(60 * scale))
        return float(((1 - a) / (1 + a) * a**z).sum())

    assert miss(t) == pytest.approx(a ** (t + 1) / (1 + a), rel=1e-9)
    assert miss(t) <= beta
    assert t == 0 or miss(t - 1) > beta


def covers(misses, times, beta, deviations):
    sd = math.sqrt(beta * (1 - beta) / times)
    return abs(misses / times - beta) <= deviations * sd


TRUE_ROWS = ((0, 0),) * 4 + ((0, 1),) * 2 + ((1, 1),)
FAKE_ROWS = ((1, 0), (0, 0), (1, 1))


SAMPLERS = [
    pytest.param(lambda: SeededNoise(2), 0.05, 3.0, id="seeded-0.05"),
    pytest.param(lambda: SeededNoise(2), 0.25, 3.0, id="seeded-0.25"),
]


@pytest.mark.parametrize(("make", "beta", "deviations"), SAMPLERS)
def test_two_thousand_certificates_miss_as_often_as_stated(make, beta, deviations):
    times, event = 2_000, Laplace(320.0, l1=16)
    n, size, relation = len(TRUE_ROWS), len(FAKE_ROWS), Relation.ADD_REMOVE
    worst = max(
        np.abs(t / n - s / size).max()
        for t, s in zip(tables(TRUE_ROWS), tables(FAKE_ROWS), strict=True)
    )
    noise = make()
    answers = [certify(TRUE_ROWS, FAKE_ROWS, event, relation, None, noise) for _ in range(times)]

    def misses(t):
        return sum((answer + t) / (event.l1 * n) < worst - 1e-12 for answer in answers)

    assert covers(misses(margin(event.scale, beta)), times, beta, deviations)
    for wrong in (margin(event.scale * 2 / 3, beta), margin(event.scale * 3 / 2, beta)):
        assert not covers(misses(wrong), times, beta, deviations)


# --- very many rows: M·c − n·ĉ passes 64 bits ---------------------------------------------------

MOST, MANY = 2**42, MOST_SYNTHETIC
sizes = st.integers(1, MANY) | st.sampled_from([1, 2**20 - 1, 2**20, MANY - 1, MANY])
totals = st.integers(0, MOST) | st.sampled_from([0, 1, 2**20, MOST - 1, MOST])


@st.composite
def differences(draw):
    """(M, counts, n, synthetic counts), in Python's integers."""
    size, n = draw(sizes), draw(totals)
    cell = st.tuples(st.integers(0, MOST) | totals, st.integers(0, size) | st.just(size))
    cells = draw(st.lists(cell, max_size=6))
    return size, [c for c, _ in cells], n, [s for _, s in cells]


@given(differences(), st.sampled_from(["int64", "uint32", "uint64"]))
@example((MANY, [MOST, 0], MOST, [0, MANY]), "int64")
@example((MANY, [0] * 3, MOST, [MANY] * 3), "int64")
@example((1, [1], 0, [1]), "int64")
def test_differences_in_two_parts_are_those_of_whole_numbers(given_numbers, kind):
    size, counts, n, synthetic = given_numbers
    expected = [size * c - n * s for c, s in zip(counts, synthetic, strict=True)]
    kind = "uint64" if kind == "uint32" and max(synthetic, default=0) >= 2**32 else kind
    high, low = apart(size, np.array(counts, np.int64), n, np.array(synthetic, kind))
    assert high.dtype == low.dtype == np.int64
    assert all(0 <= part < 2**20 for part in low.tolist())
    whole = [(h << 20) + part for h, part in zip(high.tolist(), low.tolist(), strict=True)]
    assert whole == expected
    assert largest(high, low) == max(map(abs, expected), default=0)
    assert absolute(high, low) == sum(map(abs, expected))


beyond = st.sampled_from([2**44 - 2, 2**44 - 1, 2**44, 2**44 + 1, 2**60])


@given(beyond, st.lists(beyond, min_size=1, max_size=4), sizes, st.integers(0, MANY))
@example(2**60, [2**60] * 4, MANY, MANY)
def test_beyond_the_largest_counts_a_row_still_moves_no_more_than_a_row(n, counts, size, fixed):
    """One cell and n move by one: K by at most M, the sum of errors by at most 2M."""
    fixed = min(fixed, size)
    synthetic = np.array([fixed, *[0] * (len(counts) - 1)])
    if len(counts) > 1:
        synthetic[1] = size - fixed
    parts = [
        apart(size, np.array([counts[0] + more, *counts[1:]]), n + more, synthetic)
        for more in (0, 1)
    ]
    assert abs(largest(*parts[0]) - largest(*parts[1])) <= size
    assert abs(absolute(*parts[0]) - absolute(*parts[1])) <= 2 * size


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@given(counts=st.lists(totals, min_size=3, max_size=3), size=sizes, first=st.integers(0, MANY))
@example(counts=[MOST, 0, 0], size=MANY, first=0)
@example(counts=[MOST, MOST, MOST], size=MANY, first=MANY)
def test_certificates_of_very_many_rows_do_not_wrap(relation, counts, size, first):
    first = min(first, size)
    fixed, n, l1 = [first, size - first, 0], sum(counts), 16
    apart_by = [abs(size * c - n * s) for c, s in zip(counts, fixed, strict=True)]
    step = variation_step(relation, rows_public=True)
    charges = LoggedCharges(
        worst=Laplace(2.0, l1=l1), tv=Gaussian(2.0, step=step), relation=relation
    )
    gate = Gate(FakeTables(counts), charges, relation, LoggedNoise(), n)
    tables = (np.array(fixed),)
    worst = gate.ask("worst", WorstError(((0,),), tables, size))
    assert worst == -(-l1 * max(apart_by) // size)
    variations = gate.ask("tv", TotalVariations(((0,),), tables, size))
    assert variations.tolist() == [-(-VARIATION_GRID * sum(apart_by) // size)]
    cells = ProductQueries((0,), (np.eye(3, dtype=np.int64),))
    assert gate.ask("worst", WorstQueryError((cells,), tables, size)) == worst
