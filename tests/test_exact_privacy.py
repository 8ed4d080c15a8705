"""The exact-privacy harness tells right mechanisms from broken ones."""

import math

import numpy as np
import pytest

from tests.exact_privacy import (
    ORDERS,
    ChoosingNoise,
    PrivacyViolation,
    check,
    compare,
    discrete_gaussian_law,
    discrete_laplace_law,
    enumerate_transcripts,
    neighbours,
    product_law,
)
from understudy.errors import InputError

# --- mechanisms written out by hand -------------------------------------------------------------


def log_softmax(scores, scale):
    z = np.asarray(scores, dtype=float) / scale
    z = z - z.max()
    return z - np.log(np.exp(z).sum())


def randomised_response(epsilon):
    gamma = 0.5 * math.tanh(epsilon / 2)
    return lambda data: {y: math.log(0.5 + gamma if y == data[0] else 0.5 - gamma) for y in (0, 1)}


def counts_of(data, universe):
    return [sum(row == value for row in data) for value in universe]


def exponential_mechanism(scale, universe=(0, 1)):
    """Most frequent value: argmax of counts plus Gumbel noise of this scale."""
    return lambda data: dict(enumerate(log_softmax(counts_of(data, universe), scale)))


def top_two(scale):
    """The two highest of the scores that are the data, in order, by peeling."""

    def law(data):
        scores = np.array(data, dtype=float)
        out = {}
        for i, first in enumerate(log_softmax(scores, scale)):
            rest = np.delete(scores, i)
            names = [j for j in range(len(scores)) if j != i]
            for j, second in zip(names, log_softmax(rest, scale), strict=True):
                out[i, j] = first + second
        return out

    return law


def laplace_loses(gap, scale):
    """ln P(L1 - L2 > gap) for two Laplace variables of this scale: e^-d (1 + d/2)/2, d >= 0."""
    d = gap / scale
    return -d + math.log1p(d / 2) - math.log(2)


def laplace_noisy_max(scale):
    """Argmax of two scores, the first the larger, under Laplace noise; data holds the scores."""

    def law(data):
        ((first, second),) = data
        losing = laplace_loses(first - second, scale)
        return {0: math.log1p(-math.exp(losing)), 1: losing}

    return law


def noisy_count(scale, support=range(-30, 34)):
    return lambda data: discrete_laplace_law(sum(data), scale, support)


BITS = list(neighbours((0, 1), 3, "replace"))

# --- neighbours ---------------------------------------------------------------------------------


def test_replace_pairs_differ_in_exactly_one_row_and_none_is_missing():
    pairs = list(neighbours(range(4), 3, "replace"))
    assert len(pairs) == 4**3 * 3 * 3 // 2
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert all(sum(x != y for x, y in zip(a, b, strict=True)) == 1 for a, b in pairs)


def test_add_remove_pairs_cover_every_size():
    pairs = list(neighbours("xy", 2, "add-remove"))
    assert {(len(a), len(b)) for a, b in pairs} == {(0, 1), (1, 2), (2, 3)}
    assert len(set(pairs)) == len(pairs)
    for a, b in pairs:
        assert any((*b[:i], *b[i + 1 :]) == a for i in range(len(b)))
    larger = {b for _, b in pairs}
    assert len(larger) == 2 + 4 + 8


@pytest.mark.parametrize(
    ("universe", "n", "relation"),
    [((), 2, "replace"), ((0, 0), 2, "replace"), ((0, 1), -1, "replace"), ((0, 1), 2, "swap")],
)
def test_neighbours_refuses_nonsense(universe, n, relation):
    with pytest.raises(InputError):
        list(neighbours(universe, n, relation))


# --- divergences --------------------------------------------------------------------------------


def test_divergences_of_randomised_response_have_their_closed_forms():
    epsilon = 1.3
    rr = randomised_response(epsilon)
    found = compare(rr((0,)), rr((1,)))
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert found.max_log_ratio == pytest.approx(epsilon, abs=1e-12)
    assert found.bounded_range == pytest.approx(2 * epsilon, abs=1e-12)
    for e in (0.0, 0.4, 1.0, 1.3, 2.0):
        expected = max(0.0, p - math.exp(e) * (1 - p))
        assert found.delta(e) == pytest.approx(expected, abs=1e-12)
    for a in ORDERS:
        expected = math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        assert found.renyi(a) == pytest.approx((expected, expected), abs=1e-9)


def test_disjoint_supports_are_infinitely_far_apart():
    found = compare({"a": 0.0}, {"b": 0.0, "a": -math.inf})
    assert found.max_log_ratio == math.inf
    assert found.bounded_range == math.inf
    assert found.delta(50.0) == 1.0
    assert found.renyi(2.0) == (math.inf, math.inf)


def test_laws_that_do_not_sum_to_one_are_refused():
    with pytest.raises(InputError, match="sum to"):
        compare({"a": math.log(0.5)}, {"a": 0.0})
    with pytest.raises(InputError):
        compare({}, {"a": 0.0})
    with pytest.raises(InputError):
        compare({"a": math.nan}, {"a": 0.0})


def test_hockey_stick_matches_the_definition_on_random_laws():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p, q = rng.dirichlet(np.ones(6), size=2)
        found = compare(dict(enumerate(np.log(p))), dict(enumerate(np.log(q))))
        for e in (0.0, 0.3, 1.0):
            both = (np.maximum(p - math.exp(e) * q, 0), np.maximum(q - math.exp(e) * p, 0))
            assert found.delta(e) == pytest.approx(max(x.sum() for x in both), abs=1e-12)


# --- check: right mechanisms pass, with equality where it is known -------------------------------


def test_randomised_response_is_exactly_epsilon():
    pairs = list(neighbours((0, 1), 1, "replace"))
    report = check(randomised_response(1.0), pairs, pure=1.0, rho=math.tanh(0.5))
    assert report.pure == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(PrivacyViolation):
        check(randomised_response(1.0), pairs, pure=0.999)
    with pytest.raises(PrivacyViolation):
        check(randomised_response(1.0), pairs, rho=0.99 * math.tanh(0.5))


def test_randomised_response_is_unbiased_over_all_inputs():
    gamma, n = 0.5 * math.tanh(0.5), 3
    for data in np.ndindex(*(2,) * n):
        law = product_law(*(randomised_response(1.0)((bit,)) for bit in data))
        mean = sum(math.exp(lp) * (np.mean(y) - 0.5 + gamma) for y, lp in law.items())
        assert mean / (2 * gamma) == pytest.approx(np.mean(data), abs=1e-12)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_exponential_mechanism_keeps_all_three_claims(relation):
    eps0 = 0.9
    pairs = list(neighbours((0, 1), 3, relation))
    law = exponential_mechanism(2 / eps0)
    report = check(law, pairs, pure=eps0, bounded_range=eps0, rho=eps0**2 / 8)
    assert report.pairs == len(pairs)
    assert report.bounded_range == pytest.approx(eps0 if relation == "replace" else eps0 / 2)


def test_exponential_mechanism_with_half_its_noise_is_caught():
    eps0 = 0.9
    twin = exponential_mechanism(1 / eps0)
    for claim in ({"pure": eps0}, {"bounded_range": eps0}, {"rho": eps0**2 / 8}):
        with pytest.raises(PrivacyViolation):
            check(twin, BITS, **claim)


def test_top_two_costs_two_selections_and_not_one():
    eps0 = 0.7
    pairs = [((1, 1, *[0] * 12), (0, 0, *[1] * 12)), ((3, 1, 4), (2, 2, 4)), ((0, 0, 5), (1, 1, 4))]
    law = top_two(2 / eps0)
    report = check(law, pairs, pure=2 * eps0, rho=2 * eps0**2 / 8)
    assert report.pure > eps0
    with pytest.raises(PrivacyViolation):
        check(law, pairs, pure=eps0)
    with pytest.raises(PrivacyViolation):
        check(law, pairs, rho=eps0**2 / 8)


@pytest.mark.parametrize(("gap", "expected"), [(2, 1.59), (5, 1.75), (20, 1.91)])
def test_laplace_noisy_max_at_sensitivity_over_epsilon_is_nearly_two_epsilon(gap, expected):
    pair = (((gap + 1, 0),), ((gap + 2, -1),))  # the two scores move in opposite directions
    twin = laplace_noisy_max(scale=1.0)
    with pytest.raises(PrivacyViolation) as caught:
        check(twin, [pair], pure=1.0)
    assert "log-ratio" in str(caught.value)
    shifted = (((gap, 0),), ((gap + 1, -1),))
    assert check(twin, [shifted], pure=2.0).pure == pytest.approx(expected, abs=0.006)
    assert check(laplace_noisy_max(scale=2.0), [pair], pure=1.0).pure <= 1.0


def test_discrete_laplace_count_is_exact_and_half_noise_is_caught():
    epsilon = 0.5
    report = check(noisy_count(1 / epsilon), BITS, pure=epsilon, rho=epsilon * math.tanh(0.25))
    assert report.pure == pytest.approx(epsilon, abs=1e-12)
    assert report.rho > 0.99 * epsilon * math.tanh(epsilon / 2)
    with pytest.raises(PrivacyViolation):
        check(noisy_count(0.5 / epsilon), BITS, pure=epsilon)


def test_forgotten_charge_is_caught():
    """Two draws, one of them charged."""
    epsilon = 0.5

    def twice(data):
        support = range(-9, 13)
        one = discrete_laplace_law(sum(data), 1 / epsilon, support)
        return product_law(one, one)

    check(twice, BITS, pure=2 * epsilon)
    with pytest.raises(PrivacyViolation):
        check(twice, BITS, pure=epsilon)


def test_an_exact_side_output_is_caught():
    def leaky(data):
        return {(x, sum(data)): lp for x, lp in noisy_count(2.0)(data).items()}

    with pytest.raises(PrivacyViolation, match="inf"):
        check(leaky, BITS, pure=10.0)
    with pytest.raises(PrivacyViolation):
        check(leaky, BITS, epsilon_delta=(10.0, 0.5))


def test_epsilon_delta_of_a_discrete_gaussian():
    def law(data):
        return discrete_gaussian_law(sum(data), 2.0, range(-40, 44))

    found = compare(law((0, 0, 0)), law((0, 0, 1)))
    check(law, BITS, epsilon_delta=(1.0, found.delta(1.0)))
    with pytest.raises(PrivacyViolation, match="hockey-stick"):
        check(law, BITS, epsilon_delta=(1.0, 0.9 * found.delta(1.0)), slack=0.0)


def test_violation_names_pair_output_and_excess():
    pairs = list(neighbours((0, 1), 1, "replace"))
    with pytest.raises(PrivacyViolation) as caught:
        check(randomised_response(1.0), pairs, pure=0.75)
    message = str(caught.value)
    assert "(0,)" in message
    assert "(1,)" in message
    assert "by 0.25" in message
    assert "output 0" in message or "output 1" in message


def test_a_check_that_could_not_fail_is_refused():
    with pytest.raises(InputError, match="pairs"):
        check(randomised_response(1.0), [], pure=1.0)
    with pytest.raises(InputError, match="claims"):
        check(randomised_response(1.0), BITS)


# --- discrete laws ------------------------------------------------------------------------------


def test_lumped_laplace_tails_lose_nothing():
    narrow = [discrete_laplace_law(c, 1.7, range(0, 3)) for c in (0, 2)]
    wide = [discrete_laplace_law(c, 1.7, range(-300, 300)) for c in (0, 2)]
    a, b = compare(*narrow), compare(*wide)
    assert a.max_log_ratio == pytest.approx(b.max_log_ratio, abs=1e-12)
    for e in (0.0, 0.5, 1.0):
        assert a.delta(e) == pytest.approx(b.delta(e), abs=1e-12)
    for order in ORDERS:
        assert a.renyi(order) == pytest.approx(b.renyi(order), abs=1e-9)


def test_gaussian_tails_apart_overstate_and_lumped_understate():
    centres, wide = (0, 1), range(-60, 61)
    exact = compare(*(discrete_gaussian_law(c, 1.5, wide) for c in centres))
    apart = compare(*(discrete_gaussian_law(c, 1.5, range(-2, 4)) for c in centres))
    lumped = compare(
        *(discrete_gaussian_law(c, 1.5, range(-2, 4), tails="lumped") for c in centres)
    )
    for e in (0.2, 0.8, 1.2):
        assert lumped.delta(e) <= exact.delta(e) + 1e-15
        assert apart.delta(e) >= exact.delta(e)
    assert apart.renyi(2.0)[0] == math.inf


def test_discrete_gaussian_renyi_is_never_above_its_zcdp():
    sigma, shift = 1.25, 2
    span = range(-64 * shift - 80, 66 * shift + 80)
    laws = [discrete_gaussian_law(c, sigma, span, tails="lumped") for c in (0, shift)]
    found = compare(*laws)
    assert found.rho <= shift**2 / (2 * sigma**2) + 1e-9
    assert found.rho == pytest.approx(shift**2 / (2 * sigma**2), rel=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: discrete_laplace_law(9, 1.0, range(0, 3)),
        lambda: discrete_laplace_law(1, 0.0, range(0, 3)),
        lambda: discrete_laplace_law(1, math.nan, range(0, 3)),
        lambda: discrete_laplace_law(1, 1.0, range(0, 3, 2)),
        lambda: discrete_gaussian_law(1, -1.0, range(0, 3)),
        lambda: discrete_gaussian_law(1, 1.0, range(0)),
    ],
)
def test_discrete_laws_refuse_nonsense(bad):
    with pytest.raises(InputError):
        bad()


# --- transcripts --------------------------------------------------------------------------------


def test_transcripts_are_all_played_once_with_their_probability():
    runs = []

    def run(chooser):
        runs.append(None)
        first = chooser.choose(np.log([0.25, 0.75]))
        if first == 0:
            return chooser.transcript
        chooser.choose([math.log(0.5), -math.inf, math.log(0.5)])
        return chooser.transcript

    law = enumerate_transcripts(run)
    assert set(law) == {(0,), (1, 0), (1, 2)}
    assert len(runs) == 3
    assert [math.exp(law[key]) for key in ((0,), (1, 0), (1, 2))] == pytest.approx(
        [0.25, 0.375, 0.375]
    )


def test_transcripts_with_one_output_are_added_up():
    law = enumerate_transcripts(
        lambda chooser: sum(chooser.choose(np.log([0.5, 0.5])) for _ in range(3))
    )
    assert [math.exp(law[k]) for k in range(4)] == pytest.approx([1 / 8, 3 / 8, 3 / 8, 1 / 8])


def test_transcripts_of_a_run_without_choices():
    assert enumerate_transcripts(lambda chooser: "done") == {"done": 0.0}


def test_hidden_randomness_is_found():
    rng = np.random.default_rng(1)

    def run(chooser):
        chooser.choose(log_softmax(rng.normal(size=3), 1.0))
        chooser.choose(np.log([0.5, 0.5]))

    with pytest.raises(InputError, match="another law"):
        enumerate_transcripts(run)


def test_transcripts_refuse_laws_without_mass_and_endless_runs():
    with pytest.raises(InputError, match="sum to"):
        enumerate_transcripts(lambda chooser: chooser.choose(np.log([0.5, 0.4])))
    with pytest.raises(InputError, match="more than 8"):
        enumerate_transcripts(
            lambda chooser: [chooser.choose(np.log([0.5, 0.5])) for _ in range(4)] and None, limit=8
        )


def mwem_without_measurement(eps0, rounds, n):
    """MWEM, signed variant: universe {0, 1}, queries 1[x = 0], 1[x = 1]; transcripts."""

    def mechanism(data):
        exact = np.array(counts_of(data, (0, 1)), dtype=float)

        def run(chooser):
            eta = math.sqrt(8 * math.log(2) / rounds)
            log_p = np.log([0.5, 0.5])
            for _ in range(rounds):
                scores = exact - n * np.exp(log_p)
                q = chooser.choose(log_softmax(scores, 2 / eps0))
                log_p = log_p + eta * (np.arange(2) == q)
                log_p = log_p - np.logaddexp(*log_p)
            return chooser.transcript

        return enumerate_transcripts(run)

    return mechanism


def test_mwem_without_measurement_keeps_its_composed_claims():
    eps0, rounds = 0.8, 2
    pairs = list(neighbours((0, 1), 2, "replace"))
    mechanism = mwem_without_measurement(eps0, rounds, n=2)
    report = check(mechanism, pairs, pure=rounds * eps0, rho=rounds * eps0**2 / 8)
    assert report.pure > eps0
    with pytest.raises(PrivacyViolation):
        check(mechanism, pairs, pure=eps0)  # a forgotten round
    with pytest.raises(PrivacyViolation):
        check(mwem_without_measurement(2 * eps0, rounds, n=2), pairs, rho=rounds * eps0**2 / 8)


def test_choosing_noise_plays_every_outcome_of_a_selection():
    scores = np.array([2, 0, 1], dtype=np.int64)
    law = enumerate_transcripts(lambda chooser: ChoosingNoise(chooser).top_k(scores, 1.5, 2))
    assert law == pytest.approx(top_two(1.5)((2, 0, 1)), abs=1e-12)
    assert ChoosingNoise.private is False


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_choosing_noise_refuses_what_has_no_finite_law(kind):
    with pytest.raises(InputError):
        enumerate_transcripts(lambda c: getattr(ChoosingNoise(c), kind)(np.zeros(1, int), 1.0))
