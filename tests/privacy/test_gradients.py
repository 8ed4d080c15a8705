"""Clipped gradients of private rows: exact sums and sensitivities, the right noise, charges first."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools import verify_release as stranger
from understudy.errors import BudgetExhausted, PrivacyError
from understudy.privacy import accounting, planning
from understudy.privacy import noise as noise_module
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Plan, SampledGroups, Selection, event_from_json
from understudy.privacy.gate import Gate
from understudy.privacy.noise import GRAIN, OpenDPNoise, SeededNoise, rounded
from understudy.privacy.questions import BestModels, NetworkGradient
from understudy.privacy.questions.best_models import Models, jensen_shannon_step
from understudy.privacy.questions.gradient import UNIT, Groups, clipped_sums
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts

WORDS = 2.0**32


def on_words(rate):
    return round(rate * WORDS) / WORDS


class Given:
    """A network whose factors are looked up by the row's number, in its first column."""

    def __init__(self, inputs, deltas, slots=4):
        self.inputs, self.deltas, self.slots = inputs, deltas, slots
        self.layers = tuple((a.shape[1], d.shape[1]) for a, d in zip(inputs, deltas, strict=True))
        self.seen = []

    def factors(self, rows):
        assert len(rows) == self.slots
        self.seen.append(rows[:, 0].copy())
        numbers = rows[:, 0]
        pairs = zip(self.inputs, self.deltas, strict=True)
        return [(a[numbers], d[numbers]) for a, d in pairs]


def network(rng, rows, layers, scale=1.0, slots=4):
    inputs = [rng.normal(size=(rows, i)) for i, _ in layers]
    deltas = [scale * rng.normal(size=(rows, o)) for _, o in layers]
    return Given(inputs, deltas, slots)


def members(rng, layers, groups):
    return tuple(rng.integers(groups, size=(i + 1, o)) for i, o in layers)


def naive(net, numbers, groups):
    """A loop over rows with their gradients held whole."""
    flat = groups.flat(net.layers)
    total = np.zeros(flat.size)
    for number in numbers:
        parts = []
        for a, d in zip(net.inputs, net.deltas, strict=True):
            wide = np.append(a[number], 1.0)
            parts.append(np.outer(wide, d[number]).reshape(-1))
        gradient = np.concatenate(parts)
        for j, threshold in enumerate(groups.thresholds):
            part = np.where(flat == j, gradient, 0.0)
            norm = np.linalg.norm(part)
            total += part * min(1.0, threshold / norm) if norm > 0 else part
    return total


def in_units(sums, groups, layers):
    """Sums as real numbers."""
    return sums * np.array(groups.thresholds)[groups.flat(layers)] / UNIT


shapes = st.lists(st.integers(1, 7), min_size=2, max_size=4)


@given(
    sizes=shapes,
    rows=st.integers(1, 9),
    groups=st.integers(1, 4),
    scale=st.sampled_from([0.01, 1.0, 100.0]),
    key=st.integers(0, 2**20),
)
@settings(max_examples=60, deadline=None)
def test_sums_are_those_of_a_loop_over_rows(sizes, rows, groups, scale, key):
    rng = np.random.default_rng(key)
    layers = list(pairwise(sizes))
    net = network(rng, rows, layers, scale)
    limits = tuple(rng.uniform(0.1, 3.0, groups))
    clip = Groups(limits, members(rng, layers, groups) if groups > 1 else None)
    matrix = np.arange(rows)[:, None]
    sums, below = clipped_sums(net, matrix, clip)
    wanted = naive(net, range(rows), clip)
    # Factors are rounded to the grid: 2^−12 of inputs is the coarsest.
    assert in_units(sums, clip, layers) == pytest.approx(wanted, abs=rows * max(limits) * 1e-3)
    assert np.abs(below).max() <= rows
    assert ((below - rows) % 2 == 0).all()


def test_on_the_grid_they_are_equal_to_five_digits():
    """Inputs that the grid holds exactly: what remains is the rounding of δ, towards zero."""
    rng = np.random.default_rng(3)
    layers = [(5, 4), (4, 1)]
    net = network(rng, 30, layers)
    net.inputs = [np.round(a * 64) / 64 for a in net.inputs]
    clip = Groups((0.7,))
    sums, _ = clipped_sums(net, np.arange(30)[:, None], clip)
    wanted = naive(net, range(30), clip)
    assert in_units(sums, clip, layers) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("groups", [1, 3])
def test_one_huge_row_contributes_its_threshold_and_no_more(groups):
    rng = np.random.default_rng(0)
    layers = [(6, 5), (5, 2)]
    net = network(rng, 1, layers, scale=1e9)
    limits = (0.5, 2.0, 7.0)[:groups]
    clip = Groups(limits, members(rng, layers, groups) if groups > 1 else None)
    sums, below = clipped_sums(net, np.zeros((1, 1), int), clip)
    flat = clip.flat(layers)
    for j in range(groups):
        norm = math.sqrt(sum(int(v) ** 2 for v in sums[flat == j]))
        assert UNIT * (1 - 1e-5) < norm <= UNIT
    assert (below == -1).all()


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("nonsense", [np.nan, np.inf, -np.inf, 1e300, 1e100, 1e30, 1e-300])
def test_whatever_a_network_returns_a_row_stays_within_its_norm(nonsense, groups):
    rng = np.random.default_rng(1)
    layers = [(3, 3), (3, 1)]
    clip = Groups((1.0,) * groups, members(rng, layers, groups) if groups > 1 else None)
    flat = clip.flat(layers)
    for where in ("inputs", "deltas"):
        net = network(rng, 2, layers)
        for part in getattr(net, where):
            part[0, 0] = nonsense
        with np.errstate(all="ignore"):
            both, _ = clipped_sums(net, np.array([[0], [1]]), clip)
            one, _ = clipped_sums(net, np.array([[1]]), clip)
        for j in range(groups):
            assert math.sqrt(sum(int(v) ** 2 for v in (both - one)[flat == j])) <= UNIT


@pytest.mark.parametrize("groups", [1, 2])
def test_a_row_that_is_no_number_changes_no_other_row(groups):
    """What overflows is brought in bounds row by row: neighbours of such a row stay as they were."""
    layers = [(1, 2)]
    deltas = np.array([[2.0**70, 2.0**60]] * 4 + [[np.nan, 1.0]])
    net = Given([np.zeros((5, 1))], [deltas], slots=8)
    parts = (np.arange(4).reshape(2, 2) % groups,) if groups > 1 else None
    clip = Groups((1.0,) * groups, parts)
    without, _ = clipped_sums(net, np.arange(4)[:, None], clip)
    both, _ = clipped_sums(net, np.arange(5)[:, None], clip)
    moved, flat = both - without, clip.flat(layers)
    for j in range(groups):
        assert math.sqrt(sum(int(v) ** 2 for v in moved[flat == j])) <= UNIT


def on_the_edge(rng, width):
    """Whole numbers whose squares sum to what float64 cannot tell from a row's largest norm."""
    values = rng.normal(size=width)
    values[-6:] = 0
    wanted = UNIT * (1 - 1e-6)
    found = [int(v) for v in np.rint(values * (1 - 1e-7) * wanted / np.linalg.norm(values))]
    rest = int(wanted**2) - sum(v * v for v in found)
    for k in range(width - 6, width):
        found[k] = math.isqrt(rest)
        rest -= found[k] ** 2
    return found


@pytest.mark.parametrize("width", [37, 64, 200])
def test_the_norm_of_a_row_does_not_depend_on_its_company(width):
    """Inputs are large and the norm is at its limit: one more bit decides if a row counts at all."""
    rng = np.random.default_rng(width)
    rows = 40
    inputs = np.array([on_the_edge(rng, width) for _ in range(rows)]) / 2**12
    net = Given([inputs], [np.tile([2.0**40, 0.0], (rows, 1))], slots=64)
    clip = Groups((1.0, 1.0), (np.repeat([[0, 0], [1, 1]], [width, 1], axis=0),))
    whole, _ = clipped_sums(net, np.arange(rows)[:, None], clip)
    alone = [clipped_sums(net, np.array([[i]]), clip)[0] for i in range(rows)]
    assert (whole == np.sum(alone, axis=0)).all()


@given(key=st.integers(0, 2**20), groups=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_row_moves_every_group_by_one_unit_at_most_in_any_company(key, groups):
    """Sums are whole numbers and do not depend on order or on chunks: the sensitivity is exact."""
    rng = np.random.default_rng(key)
    layers = [(4, 3), (3, 2)]
    rows = int(rng.integers(2, 12))
    net = network(rng, rows, layers, scale=float(rng.choice([0.1, 1.0, 50.0])))
    clip = Groups(
        tuple(rng.uniform(0.2, 2.0, groups)), members(rng, layers, groups) if groups > 1 else None
    )
    order = rng.permutation(rows)[:, None]
    whole, _ = clipped_sums(net, order, clip)
    other, _ = clipped_sums(Given(net.inputs, net.deltas, slots=7), np.sort(order, axis=0), clip)
    assert (whole == other).all()
    without, _ = clipped_sums(net, order[1:], clip)
    alone, _ = clipped_sums(net, order[:1], clip)
    assert (whole - without == alone).all()
    flat = clip.flat(layers)
    for j in range(groups):
        assert sum(int(v) ** 2 for v in alone[flat == j]) <= UNIT**2


def test_groups_are_checked():
    for threshold in (0.0, -1.0, math.inf, math.nan, 1e-200):
        with pytest.raises(PrivacyError, match="above 0"):
            Groups((threshold,))
    with pytest.raises(PrivacyError, match="as many groups"):
        Groups((1.0, 2.0))
    with pytest.raises(PrivacyError, match="below 2"):
        Groups((1.0, 2.0), (np.full((3, 1), 2),)).flat([(2, 1)])
    with pytest.raises(PrivacyError, match="shapes"):
        Groups((1.0, 2.0), (np.zeros((2, 1), int),)).flat([(2, 1)])


# --- noise --------------------------------------------------------------------------------------


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
    monkeypatch.setattr(noise_module, "RAND_bytes", lambda count: next(served))
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


def test_groups_together_are_one_gaussian_mechanism():
    """At the worst shift the log-likelihood ratio has variance Σ c²/τ² = 1/m², not 1/m_j²."""
    rng = np.random.default_rng(7)
    multipliers = (4.0, 2.0, 5.0)
    event = SampledGroups(multipliers, 3)
    draws = rng.normal(size=(200_000, 3)) * multipliers
    ratio = (draws @ (1 / np.square(multipliers))) - np.sum(0.5 / np.square(multipliers))
    assert ratio.var() == pytest.approx(1 / event.multiplier**2, rel=0.03)
    assert ratio.var() > 2 * max(1 / m**2 for m in multipliers) / 2


# --- cost ---------------------------------------------------------------------------------------


def cost(multipliers, rate, steps, delta, sides=1, coordinates=1):
    event = SampledGroups(multipliers, coordinates, on_words(rate), sides)
    return accounting.epsilon(Plan((Charge("g", event, steps),)), delta).epsilon


def test_the_published_values():
    """q = 0.01, σ = 4, 10⁴ steps, δ = 1e-5: 0.947; five groups at σ·c_j: 2.50, at √5·σ·c_j: 0.947."""
    assert cost((4.0,), 0.01, 10_000, 1e-5) == pytest.approx(0.947, abs=1e-3)
    assert cost((4.0,) * 5, 0.01, 10_000, 1e-5) == pytest.approx(2.50, abs=5e-3)
    assert cost((4.0 * math.sqrt(5),) * 5, 0.01, 10_000, 1e-5) == pytest.approx(0.947, abs=1e-3)
    # Clipping a batch instead of rows has sensitivity 2C, so half the multiplier.
    assert cost((2.0,), 0.01, 10_000, 1e-5) == pytest.approx(2.16, abs=5e-3)


def test_renyi_divergences_agree_from_above():
    """The same by Rényi divergences of the library: 1.035, and 2.72 with five groups."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    for sigma, expected in ((4.0, 1.035), (4.0 / math.sqrt(5), 2.72)):
        accountant = RdpAccountant()
        step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(sigma))
        accountant.compose(step, 10_000)
        found = accountant.get_epsilon(1e-5)
        assert found == pytest.approx(expected, abs=6e-3)
        assert cost((sigma,), 0.01, 10_000, 1e-5) < found


@pytest.mark.slow
def test_more_steps_more_rows_less_noise_cost_more():
    base = cost((2.0,), 0.02, 300, 1e-6)
    assert cost((2.0,), 0.02, 400, 1e-6) > base
    assert cost((2.0,), 0.03, 300, 1e-6) > base
    assert cost((1.8,), 0.02, 300, 1e-6) > base
    assert cost((2.0,), 0.02, 300, 1e-6, sides=2) > base
    assert cost((2.0, 9.0), 0.02, 300, 1e-6) > base


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", [1, 10**5, 10**9])
@pytest.mark.parametrize("multiplier", [0.5, 30.0, 2.0**20])
@pytest.mark.parametrize("group", [1, 4])
def test_where_rho_adds_up_it_covers_the_noise_as_drawn(coordinates, multiplier, group):
    """D_α of laws within e^±η of the exact ones is at most ρα + η(2α − 1)/(α − 1): for all α."""
    event = SampledGroups((multiplier,), coordinates)
    exact, eta = group**2 / (2 * multiplier**2), noise_module.LAW * coordinates
    beyond = np.sort(np.append(np.geomspace(1e-12, 1e12, 4001), math.sqrt(eta / exact)))  # α − 1
    alpha = 1 + beyond
    drawn = exact * alpha + eta * (2 + 1 / beyond)
    # Divergences grow with α, so each is bounded by those beyond it.
    least = np.minimum.accumulate(drawn[::-1])[::-1]
    charged = float(accounting.rho(event, group))
    assert (least <= charged * alpha * (1 + 1e-9)).all()
    assert charged <= (math.sqrt(exact) + math.sqrt(eta)) ** 2 + 1.001 * eta + 1e-9 * exact
    assert accounting.total_rho([event], group) == accounting.rho(event, group) > exact


def test_what_the_noise_lacks_of_exactness_is_charged():
    few, many = (cost((2.0,), 0.02, 100, 1e-6, coordinates=d) for d in (1, 10**8))
    assert many - few == pytest.approx(2 * 100 * 10**8 * 2.0**-38, rel=0.05)


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps", "delta", "sides"),
    [
        (4.0, 0.01, 10_000, 1e-5, 1),
        (0.82, 0.021, 1000, 1e-9, 1),
        pytest.param(0.6, 0.021, 1000, 1e-9, 1, marks=pytest.mark.slow),
        pytest.param(3.9, 0.021, 1000, 1e-9, 2, marks=pytest.mark.slow),
        pytest.param(1.2, 0.1, 30, 1e-9, 1, marks=pytest.mark.slow),
        (0.7, 1.0, 3, 1e-9, 1),
    ],
)
def test_two_accountants_that_share_nothing_agree(multiplier, rate, steps, delta, sides):
    event = SampledGroups((multiplier,), 7, on_words(rate), sides)
    plan = Plan((Charge("g", event, steps),))
    ours = accounting.epsilon(plan, delta).epsilon
    theirs = stranger.epsilon(plan.to_json(), delta)
    assert theirs * (1 - 1e-4) <= ours <= theirs * 1.002


def test_events_are_written_and_read():
    event = SampledGroups((1.5, 2.5), 10, 0.25, 2)
    assert event_from_json(event.to_json()) == event
    joint = event.multiplier
    assert joint == pytest.approx(1 / math.sqrt(1 / 1.5**2 + 1 / 2.5**2))
    for wrong in (
        {"multipliers": ()}, {"multipliers": (0.0,)}, {"multipliers": (math.inf,)},
        {"coordinates": 0}, {"rate": 0.1}, {"rate": 0.0}, {"sides": 3},
    ):  # fmt: skip
        with pytest.raises(PrivacyError):
            SampledGroups(**{"multipliers": (1.0,), "coordinates": 1, "rate": 0.5, **wrong})


@pytest.mark.slow
def test_calibration_ends_on_the_private_side():
    def build(rho):
        rate, steps = on_words(0.02), 200
        multiplier = 1 / math.sqrt(math.log1p(2 * float(rho) / (steps * rate**2)))
        return Plan((Charge("g", SampledGroups((multiplier,), 1000, rate), steps),))

    spent = accounting.epsilon(planning.calibrate(build, Budget.of(2, "1e-7")), 1e-7).epsilon
    assert 0.99 * 2 < spent <= 2


# --- through the gate ---------------------------------------------------------------------------


def gate_of(rows, charges, noise=None, relation=Relation.ADD_REMOVE, shape=(9, 3)):
    return Gate(TinyCounts(shape, rows), charges, relation, noise or StillNoise(), 8)


def tiny(slots=4):
    rng = np.random.default_rng(5)
    return network(rng, 9, [(3, 2), (2, 1)], slots=slots)


# Numbered from 1: what is padded to a whole chunk is row 0, which nobody is.
ROWS = [(i, i % 3) for i in range(1, 9)]


def planned(event, times=1, relation=Relation.ADD_REMOVE):
    return StrictCharges(Plan((Charge("step", event, times),)), relation)


def test_a_gradient_is_the_sum_over_the_sample_in_steps_of_the_noise():
    charges = planned(SampledGroups((2.0,), 11))
    net = tiny()
    values, within = gate_of(ROWS, charges).ask("step", NetworkGradient(net, Groups((0.5,))))
    exact, _ = clipped_sums(net, np.array(ROWS), Groups((0.5,)))
    assert (values == np.rint(exact / (2.0 * UNIT / GRAIN))).all()
    assert within.size == 0
    assert len(charges.charged) == 1


def test_thresholds_are_watched_in_the_same_draw():
    charges = planned(SampledGroups((2.0, 3.0), 12))
    net = tiny()
    _, below = clipped_sums(net, np.array(ROWS), Groups((1.5,)))
    _, within = gate_of(ROWS, charges).ask("step", NetworkGradient(net, Groups((1.5,)), watch=True))
    assert within.tolist() == [round(float(below[0]) * GRAIN / 3.0)]
    assert len(charges.charged) == 1


@pytest.mark.parametrize(
    "event",
    [
        SampledGroups((2.0,), 10),
        SampledGroups((2.0, 2.0), 11),
        Selection(3.0),
    ],
)
def test_what_the_plan_does_not_cover_is_neither_charged_nor_drawn(event):
    charges = planned(event)
    with pytest.raises(PrivacyError, match="does not cover"):
        gate_of(ROWS, charges).ask("step", NetworkGradient(tiny(), Groups((0.5,))))
    assert charges.charged == []
    replaced = planned(SampledGroups((2.0,), 11, 1.0, 1), relation=Relation.REPLACE)
    with pytest.raises(PrivacyError, match="does not cover"):
        gate_of(ROWS, replaced, relation=Relation.REPLACE).ask(
            "step", NetworkGradient(tiny(), Groups((0.5,)))
        )
    assert replaced.charged == []


def test_training_cannot_pass_what_was_planned():
    charges = planned(SampledGroups((2.0,), 11), times=3)
    asked = gate_of(ROWS, charges)
    for _ in range(3):
        asked.ask("step", NetworkGradient(tiny(), Groups((0.5,))))
    with pytest.raises(BudgetExhausted):
        asked.ask("step", NetworkGradient(tiny(), Groups((0.5,))))


def test_an_empty_sample_is_noise_and_is_charged():
    charges = planned(SampledGroups((2.0,), 11, on_words(1e-9)))
    values, _ = gate_of(ROWS, charges, SeededNoise(1)).ask(
        "step", NetworkGradient(tiny(), Groups((0.5,)))
    )
    assert len(charges.charged) == 1
    assert np.abs(values).max() > 0


def test_samples_are_poisson():
    """Every row by itself: sizes vary as they should, and no row is special."""
    charges = planned(SampledGroups((2.0,), 11, on_words(0.25)), times=1000)
    asked, net = gate_of(ROWS, charges, SeededNoise(2)), tiny(slots=8)
    for _ in range(1000):
        asked.ask("step", NetworkGradient(net, Groups((0.5,))))
    taken = np.array([np.bincount(seen, minlength=9)[1:] for seen in net.seen])
    assert taken.max() == 1
    # An empty sample asks the network nothing.
    assert taken.sum(axis=0) / 1000 == pytest.approx(np.full(8, 0.25), abs=0.06)
    sizes = np.append(taken.sum(axis=1), np.zeros(1000 - len(taken)))
    assert np.var(sizes) == pytest.approx(8 * 0.25 * 0.75, rel=0.25)


def test_no_message_carries_a_value_of_a_row():
    class Leaky(Given):
        def factors(self, rows):
            raise ValueError(f"row {rows.tolist()}")

    net = tiny()
    leaky = Leaky(net.inputs, net.deltas)
    charges = planned(SampledGroups((2.0,), 11))
    with pytest.raises(PrivacyError, match="could not be drawn") as caught:
        gate_of(ROWS, charges).ask("step", NetworkGradient(leaky, Groups((0.5,))))
    assert "row" not in str(caught.value)
    assert caught.value.__context__ is None or "row" not in str(caught.value.__context__)
    assert len(charges.charged) == 1  # the charge stands


# --- choosing among models ----------------------------------------------------------------------


def choosing(event, **other):
    return StrictCharges(Plan((Charge("choice", event), *other.values())))


def test_held_out_rows_never_train_and_trained_rows_never_judge():
    event = Selection(1.0, Models.SENSITIVITY)
    plan = Plan((Charge("step", SampledGroups((2.0,), 11), 50), Charge("choice", event)))
    asked = gate_of(ROWS, StrictCharges(plan), SeededNoise(3))
    net, judged = tiny(slots=8), []
    for _ in range(50):
        asked.ask("step", NetworkGradient(net, Groups((0.5,)), held_out=0.5))
    trained = {int(v) for seen in net.seen for v in seen}
    models = Models((lambda rows: judged.extend(rows[:, 0].tolist()) or 0.0,))
    asked.ask("choice", BestModels(models, 8, held_out=0.5))
    assert judged
    assert not trained & set(judged)
    assert (trained - {0}) | set(judged) == set(range(1, 9))


def test_planted_models_are_found_and_the_charge_is_there():
    event = Selection.within(8, sensitivity=Models.SENSITIVITY, k=2)
    charges = choosing(event)
    models = Models(tuple(lambda rows, s=s: float(s) for s in (0, 90, 10, 100, 5)))
    asked = gate_of(ROWS, charges, SeededNoise(0))
    assert asked.ask("choice", BestModels(models, 8)) == (3, 1)
    assert charges.charged == [("choice", event)]


def test_planted_tables_are_found_by_divergence():
    rows = [(i % 4, i % 3) for i in range(8)] * 500
    event = Selection.within(8, sensitivity=Models.SENSITIVITY, k=1)
    right = np.bincount([r[1] for r in rows], minlength=3) / len(rows)
    wrong = np.array([0.9, 0.05, 0.05])
    models = Models(cliques=((1,),), tables=((wrong,), (right,), (wrong[::-1],)))
    asked = Gate(
        TinyCounts((4, 3), rows), choosing(event), Relation.ADD_REMOVE, SeededNoise(0), len(rows)
    )
    assert asked.ask("choice", BestModels(models, len(rows))) == (1,)


@pytest.mark.parametrize("relation", list(Relation))
def test_scores_of_divergence_move_by_no_more_than_is_charged(relation):
    """All tables of up to four rows over three values, all neighbours, several models."""
    from understudy.privacy.questions.best_models import divergence_scores

    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.full(3, 0.3)) for _ in range(40)] + [np.array([1.0, 0, 0])]
    models = Models(cliques=((0,),), tables=tuple((t,) for t in tables))
    worst = 0

    def scores(rows):
        exact = np.bincount(np.array(rows, int), minlength=3).astype(np.int64)
        return divergence_scores(models, [exact], 4, relation)

    for rows in combinations_with_replacement(range(3), 4):
        for value in range(3):
            other = (*rows[1:], value) if relation is Relation.REPLACE else rows[1:]
            worst = max(worst, int(np.abs(scores(rows) - scores(other)).max()))
    assert 100 < worst <= Models.SENSITIVITY


@pytest.mark.parametrize("share", [1e6, -0.1, math.nan, math.inf])
def test_tables_that_are_no_shares_are_refused(share):
    """Against them a row would move the divergence by more: for 1e6 by 974 units; 257 are paid."""
    with pytest.raises(PrivacyError, match="shares from 0 to 1"):
        Models(cliques=((0,),), tables=((np.array([share, 0.0]),),))


def test_the_step_of_the_divergence_is_the_published_one():
    n = 1000
    assert jensen_shannon_step(n, Relation.REPLACE) == pytest.approx(
        (math.log(n) + 1 + 1 / n) / (2 * n)
    )
    assert jensen_shannon_step(n, Relation.ADD_REMOVE) < jensen_shannon_step(n, Relation.REPLACE)


def test_a_choice_that_is_not_covered_is_refused():
    for event in (Selection(1.0), Selection(1.0, Models.SENSITIVITY, 9)):
        charges = choosing(event)
        with pytest.raises(PrivacyError, match="does not cover"):
            gate_of(ROWS, charges).ask("choice", BestModels(Models((len, len)), 8))
        assert charges.charged == []
    with pytest.raises(PrivacyError, match="sensitivity"):
        Models((len,), sensitivity=0.0)
    with pytest.raises(PrivacyError, match="table"):
        Models()
