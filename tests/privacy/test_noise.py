"""Noise has exactly the law that is charged for: the right scale passes, 2/3 and 3/2 of it fail."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from tests.thorough import slow
from understudy.errors import PrivacyError, UnderstudyError
from understudy.privacy import noise as noise_module
from understudy.privacy.noise import GRAIN, OpenDPNoise, rounded
from understudy.privacy.questions.gradient import UNIT
from understudy.testing import SeededNoise

SOURCES = [
    pytest.param(OpenDPNoise, id="opendp"),
    pytest.param(lambda: SeededNoise(7), id="seeded"),
]
WRONG = [2 / 3, 3 / 2]
DRAWS = 20_000
REFUSED = (UnderstudyError, TypeError, ValueError)

pytestmark = pytest.mark.real_noise

# A right sampler fails a statistic below with this chance, or with that of 6.2 deviations: 6e-10, and
# 2e-9 for squares of Laplace noise, whose law is skewed. A wrong one passes with less; one selection at
# 3/2 of its scale, with 4e-9. Of the real source there are fewer than 60: below 1e-7 together.
SIGNIFICANCE = 1e-9
DEVIATIONS = 6.2


def laplace_pmf(z, scale):
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(z)


def gaussian_pmf(z, sigma):
    reach = np.arange(-math.ceil(40 * sigma) - 1, math.ceil(40 * sigma) + 2)
    mass = np.exp(-(reach.astype(float) ** 2) / (2 * sigma**2)).sum()
    return np.exp(-(np.asarray(z, dtype=float) ** 2) / (2 * sigma**2)) / mass


def fits(draws, pmf):
    """Whether integer draws follow a pmf, by chi-square over the integers and two lumped tails."""
    z = np.asarray(draws)
    reach = 0
    while len(z) * pmf(np.array([reach + 1]))[0] >= 12:
        reach += 1
    inner = np.arange(-reach, reach + 1)
    p = pmf(inner)
    tail = max(0.0, (1 - p.sum()) / 2)
    expected = len(z) * np.concatenate([[tail], p, [tail]])
    seen = np.array([np.sum(z < -reach), *(np.sum(z == i) for i in inner), np.sum(z > reach)])
    keep = expected > 5
    if not keep.all():  # tails too thin to be cells of their own join the thinnest cell
        thin_expected, thin_seen = expected[~keep].sum(), seen[~keep].sum()
        expected, seen = expected[keep], seen[keep]
        least = int(np.argmin(expected))
        expected[least] += thin_expected
        seen[least] += thin_seen
    statistic = ((seen - expected) ** 2 / expected).sum()
    return bool(stats.chi2.sf(statistic, len(expected) - 1) > SIGNIFICANCE)


def spread(draws, mean_square, fourth):
    """z-score of the mean square against the claimed one; needs the claimed fourth moment."""
    z = np.asarray(draws, dtype=float)
    sd = math.sqrt((fourth - mean_square**2) / len(z))
    return ((z**2).mean() - mean_square) / sd


def moments(pmf, reach):
    z = np.arange(-reach, reach + 1, dtype=float)
    p = pmf(z)
    return float((p * z**2).sum()), float((p * z**4).sum())


KINDS = {
    "laplace": (lambda noise, v, s: noise.laplace(v, s), laplace_pmf),
    "gaussian": (lambda noise, v, s: noise.gaussian(v, s), gaussian_pmf),
}


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [slow(0.6), 1.0, slow(4.5)])
def test_right_scale_passes_and_wrong_scales_fail(make, kind, scale):
    draw, pmf = KINDS[kind]
    zeros = np.zeros(DRAWS, dtype=np.int64)
    square, fourth = moments(lambda z: pmf(z, scale), 400)
    right = draw(make(), zeros, scale)
    assert fits(right, lambda z: pmf(z, scale))
    assert abs(spread(right, square, fourth)) < DEVIATIONS
    for factor in WRONG:
        wrong = draw(make(), zeros, factor * scale)
        assert not fits(wrong, lambda z: pmf(z, scale))
        assert abs(spread(wrong, square, fourth)) > 8


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_large_scales(make, kind):
    """Far beyond any lattice effect: the continuous law, by Kolmogorov-Smirnov."""
    draw, _ = KINDS[kind]
    scale = 12_345.5
    law = stats.laplace if kind == "laplace" else stats.norm
    zeros = np.zeros(8_000, dtype=np.int64)

    def p_value(draws):
        jitter = np.random.default_rng(0).uniform(-0.5, 0.5, len(draws))
        return stats.kstest((draws + jitter) / scale, law.cdf).pvalue

    assert p_value(draw(make(), zeros, scale)) > SIGNIFICANCE
    for factor in WRONG:
        assert p_value(draw(make(), zeros, factor * scale)) < SIGNIFICANCE


@pytest.mark.parametrize("make", SOURCES)
def test_laplace_pmf_ratio_is_the_charged_one(make):
    """P(z)/P(z+1) = e^{1/scale} at every z >= 0: the ratio of neighbours, seen in the draws."""

    def z_score(draws, scale):
        counts = Counter(np.abs(draws).tolist())
        up = sum(counts[z + 1] for z in range(1, 6))
        down = sum(counts[z] for z in range(1, 6))
        # Merged over z this estimates e^{-1/scale}; multinomial variance by the delta method.
        ratio = up / down
        shared = sum(counts[z] for z in range(2, 6))
        variance = ratio**2 * (1 / up + 1 / down - 2 * shared / (up * down))
        return (ratio - math.exp(-1 / scale)) / math.sqrt(variance)

    zeros = np.zeros(DRAWS, dtype=np.int64)
    assert abs(z_score(make().laplace(zeros, 2.0), 2.0)) < DEVIATIONS
    for factor in WRONG:
        assert abs(z_score(make().laplace(zeros, factor * 2.0), 2.0)) > 8


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_added_to_the_integers_given(make, kind):
    draw, pmf = KINDS[kind]
    offset = 10**15
    values = offset + np.arange(6_000, dtype=np.int64)
    out = draw(make(), values, 1.5)
    assert out.dtype == np.int64
    assert out.shape == values.shape
    assert fits(out - values, lambda z: pmf(z, 1.5))
    assert np.array_equal(values, offset + np.arange(6_000)), "the input was written to"


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_are_independent(make, kind):
    draw, _ = KINDS[kind]
    z = draw(make(), np.zeros(DRAWS, dtype=np.int64), 3.0).astype(float)
    for lag in (1, 2):
        correlation = np.corrcoef(z[:-lag], z[lag:])[0, 1]
        assert abs(correlation) < DEVIATIONS / math.sqrt(DRAWS)


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_value_and_none(make, kind):
    draw, _ = KINDS[kind]
    assert draw(make(), np.array([5], dtype=np.int64), 1.0).shape == (1,)
    assert draw(make(), np.array([], dtype=np.int64), 1.0).shape == (0,)


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("scale", [0, 0.0, -1.0, math.nan, math.inf, None])
def test_no_scale_switches_the_noise_off(make, scale):
    values = np.array([1, 2], dtype=np.int64)
    with pytest.raises(REFUSED):
        make().laplace(values, scale)
    with pytest.raises(REFUSED):
        make().gaussian(values, scale)
    with pytest.raises(REFUSED):
        make().top_k(values, scale, 1)


@pytest.mark.parametrize("make", SOURCES)
def test_floats_are_refused(make):
    """Counts go into the mechanism as integers; a float statistic has no exact law."""
    values = np.array([0.5, 1.5])
    for draw in (make().laplace, make().gaussian):
        with pytest.raises(REFUSED):
            draw(values, 1.0)
    with pytest.raises(REFUSED):
        make().top_k(values, 1.0, 1)


# --- randomness ---------------------------------------------------------------------------------


def test_only_the_secure_source_is_private():
    assert OpenDPNoise().private is True
    assert SeededNoise(0).private is False


def everything(noise):
    zeros = np.zeros(50, dtype=np.int64)
    return (
        noise.laplace(zeros, 5.0).tolist(),
        noise.gaussian(zeros, 5.0).tolist(),
        noise.top_k(zeros, 5.0, 10),
    )


def test_seeded_noise_repeats_itself_and_only_itself():
    assert everything(SeededNoise(3)) == everything(SeededNoise(3))
    first, other = everything(SeededNoise(3)), everything(SeededNoise(4))
    assert all(a != b for a, b in zip(first, other, strict=True))
    noise = SeededNoise(3)
    assert everything(noise) != everything(noise)


def test_secure_noise_never_repeats_and_ignores_global_seeds():
    np.random.seed(0)  # noqa: NPY002
    first = everything(OpenDPNoise())
    np.random.seed(0)  # noqa: NPY002
    assert all(a != b for a, b in zip(first, everything(OpenDPNoise()), strict=True))
    with pytest.raises(TypeError):
        OpenDPNoise(1)


# --- selection ----------------------------------------------------------------------------------


def selection_law(scores, scale, k):
    """The law of the k largest, in order, under Gumbel noise: peeling of softmax."""
    weights = np.exp((np.asarray(scores) - max(scores)) / scale)
    law = {(): 1.0}
    for _ in range(k):
        law = {
            (*done, i): p * weights[i] / (weights.sum() - weights[list(done)].sum())
            for done, p in law.items()
            for i in range(len(weights))
            if i not in done
        }
    return law


def chosen(make, scores, scale, k, times):
    noise = make()
    values = np.array(scores, dtype=np.int64)
    return Counter(noise.top_k(values, scale, k) for _ in range(times))


def follows(counts, law):
    times = sum(counts.values())
    assert set(counts) <= set(law)
    expected = np.array([times * p for p in law.values()])
    seen = np.array([counts[key] for key in law])
    statistic = ((seen - expected) ** 2 / expected).sum()
    return bool(stats.chi2.sf(statistic, len(law) - 1) > SIGNIFICANCE)


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("unit", [1, 10**9])
def test_top_one_follows_its_law_and_no_other(make, unit):
    scores, scale = [0, 2 * unit, 3 * unit, 5 * unit], 2.0 * unit
    law = selection_law(scores, scale, 1)
    assert follows(chosen(make, scores, scale, 1, 2_000), law)
    for factor in WRONG if unit == 1 else ():
        assert not follows(chosen(make, scores, factor * scale, 1, 2_000), law)


@pytest.mark.parametrize("make", SOURCES)
def test_top_two_follows_its_law_in_order(make):
    scores, scale = [0, 2, 3, 5], 2.0
    law = selection_law(scores, scale, 2)
    counts = chosen(make, scores, scale, 2, 2_000)
    assert follows(counts, law)
    assert not follows(Counter({(b, a): c for (a, b), c in counts.items()}), law)
    for factor in WRONG:
        assert not follows(chosen(make, scores, factor * scale, 2, 2_000), law)


@pytest.mark.parametrize("make", SOURCES)
def test_top_one_is_not_argmin_and_negative_scores_are_fine(make):
    scores = [-500, -100, -400]
    assert set(chosen(make, scores, 1.0, 1, 50)) == {(1,)}
    assert set(chosen(make, scores, 1.0, 3, 50)) == {(1, 2, 0)}


@pytest.mark.parametrize("make", SOURCES)
def test_ties_are_broken_by_noise_alone(make):
    law = selection_law([4] * 5, 3.0, 1)
    assert follows(chosen(make, [4] * 5, 3.0, 1, 2_000), law)


@pytest.mark.parametrize("make", SOURCES)
def test_all_candidates_may_be_asked_for_but_no_more(make):
    assert sorted(make().top_k(np.arange(4, dtype=np.int64), 1.0, 4)) == [0, 1, 2, 3]
    picked = make().top_k(np.arange(4, dtype=np.int64), 1.0, 2)
    assert isinstance(picked, tuple)
    assert all(type(i) is int for i in picked)
    for k in (5, 0, -1):
        with pytest.raises(REFUSED):
            make().top_k(np.arange(4, dtype=np.int64), 1.0, k)


# --- many picks ---------------------------------------------------------------------------------


def drawn_in_pairs(make, scores, scale, times):
    """Consecutive picks of one call, two by two."""
    drawn = make().picks(np.array(scores, dtype=np.int64), scale, 2 * times)
    assert len(drawn) == 2 * times
    assert all(type(i) is int for i in drawn)
    return Counter(zip(drawn[::2], drawn[1::2], strict=True))


@pytest.mark.parametrize("make", SOURCES)
def test_many_picks_are_independent_and_each_follows_the_law_of_one(make):
    """With replacement, unlike the top two: the law of a pair is a product."""
    scores, scale, times = [0, 2, 3, 5], 2.0, 2_000
    one = {i: p for (i,), p in selection_law(scores, scale, 1).items()}
    law = {(i, j): one[i] * one[j] for i in one for j in one}
    assert follows(drawn_in_pairs(make, scores, scale, times), law)
    for factor in WRONG:
        assert not follows(drawn_in_pairs(make, scores, factor * scale, times), law)


@pytest.mark.parametrize("make", SOURCES)
def test_many_picks_of_nothing_are_refused(make):
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(REFUSED):
        make().picks(none, 1.0, 3)


@pytest.mark.parametrize("draws", [0, -2])
def test_the_secure_source_makes_at_least_one_pick(draws):
    with pytest.raises(REFUSED, match=str(draws)):
        OpenDPNoise().picks(np.arange(3, dtype=np.int64), 1.0, draws)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_many_picks_need_a_scale(scale):
    with pytest.raises(REFUSED):
        OpenDPNoise().picks(np.arange(3, dtype=np.int64), scale, 2)


# Six deviations, 2e-9 by chance, in seven statistics of the real source; the fourth moment deviates by
# √(96/size) and is given nine times that.
@pytest.mark.real_noise
@pytest.mark.parametrize("source", [OpenDPNoise(), SeededNoise(4)], ids=["real", "seeded"])
def test_rounded_noise_has_the_right_scale_and_no_other(source):
    """Both ways: the right deviation passes, two thirds and three halves of it fail."""
    size, sigma = 200_000, 1.7 * UNIT
    values = np.zeros(size, np.int64)
    z = rounded(source, values, sigma) / GRAIN
    # The variance of a rounded normal is 1 + 1/(12·64); its estimate deviates by √(2/size) = 0.0032.
    off = (z.var() - 1 - 1 / (12 * GRAIN**2)) / math.sqrt(2 / size)
    assert abs(off) < 6
    assert abs(z.mean()) * math.sqrt(size) < 6
    assert abs((z**4).mean() - 3) < 0.2
    for wrong in (2 / 3, 3 / 2):
        assert abs(z.var() * wrong**2 - 1) > 0.4


@pytest.mark.real_noise
def test_rounded_noise_is_centred_on_the_values_and_independent():
    size = 100_000
    shift = np.full(size, 3 * UNIT, np.int64)
    z = rounded(OpenDPNoise(), shift, float(UNIT)) / GRAIN
    assert abs(z.mean() - 3) * math.sqrt(size) < 6
    again = rounded(OpenDPNoise(), shift, float(UNIT)) / GRAIN
    assert abs(np.corrcoef(z, again)[0, 1]) * math.sqrt(size) < 6
    # Pairs come of one radius and angle; they are independent all the same.
    one, other = z[::2] - 3, z[1::2] - 3
    assert abs(np.corrcoef(one, other)[0, 1]) * math.sqrt(one.size) < 6
    assert abs(np.corrcoef(one**2, other**2)[0, 1]) * math.sqrt(one.size) < 6


def test_normals_are_those_of_the_formula_to_the_last_bits(monkeypatch):
    """|s' − s| ≤ 2^−50·(1 + s) and |c' − c| ≤ 2^−51, also at the ends: what `LAW` rests on."""
    rng = np.random.default_rng(11)
    pairs = noise_module._PAIRS
    words = rng.integers(2**64, size=(2, pairs), dtype=np.uint64)
    words[0, :200] = rng.integers(2**53, size=200, dtype=np.uint64)
    words[0, 200:203] = (0, 1, 2**64 - 1)
    spokes = np.arange(4096, dtype=np.uint64) << np.uint64(52)
    words[1, : 2 * 4096 : 2] = spokes
    words[1, 1 : 2 * 4096 : 2] = spokes - np.uint64(1)
    small = (words[0] >> np.uint64(1)) < 2**52
    more = rng.integers(2**64, size=int(small.sum()), dtype=np.uint64)
    served = iter((words.tobytes(), more.tobytes()))
    monkeypatch.setattr(noise_module, "_random", lambda count: next(served))
    found = noise_module._normals(2 * pairs)
    extended = np.longdouble
    radii = (words[0] >> np.uint64(1)).astype(extended) + extended(0.5)
    radii[small] += (more.astype(extended) + extended(0.5)) / extended(2) ** 64 - extended(0.5)
    squares = -2 * np.log(radii / extended(2) ** 63)
    turns = 2 * np.arccos(extended(-1)) * (words[1].astype(extended) / extended(2) ** 64)
    one, other = found[::2].astype(extended), found[1::2].astype(extended)
    drawn = one**2 + other**2
    assert squares.max() > 80
    assert (np.abs(drawn - squares) <= 2.0**-50 * (1 + squares)).all()
    there = drawn > 0
    lengths = np.sqrt(drawn[there])
    for values, exact in ((one, np.cos(turns)), (other, np.sin(turns))):
        assert np.abs(values[there] / lengths - exact[there]).max() <= 2.0**-51


def test_a_scale_that_would_switch_noise_off_is_refused():
    for scale in (0.0, -1.0, math.inf, math.nan, 2.0**60):
        with pytest.raises(PrivacyError):
            rounded(OpenDPNoise(), np.zeros(3, np.int64), scale)
    with pytest.raises(PrivacyError, match="int64"):
        rounded(OpenDPNoise(), np.zeros(3), 1.0)
