"""Clipped gradients of private rows: exact sums and sensitivities, the right noise, charges first."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from tools import verify_release as stranger
from understudy.errors import BudgetExhausted, PrivacyError
from understudy.privacy import accounting, planning
from understudy.privacy import noise as noise_module
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Plan, SampledGroups, Selection, event_from_json
from understudy.privacy.gate import Gate
from understudy.privacy.noise import GRAIN
from understudy.privacy.questions import NetworkGradient
from understudy.privacy.questions.gradient import UNIT, Groups, clipped_sums
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts

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
    return sums * np.array(groups.scales)[groups.flat(layers)] / UNIT


def some_shares(rng, groups):
    """Shares whose squares add up to 1."""
    drawn = rng.uniform(0.05, 1.0, groups)
    return tuple(drawn / np.linalg.norm(drawn))


shapes = st.lists(st.integers(1, 7), min_size=2, max_size=4)


@given(
    sizes=shapes,
    rows=st.integers(1, 9),
    groups=st.integers(1, 4),
    scale=st.sampled_from([0.01, 1.0, 100.0]),
    key=st.integers(0, 2**20),
)
@settings(max_examples=examples(15, 60), deadline=None)
def test_sums_are_those_of_a_loop_over_rows(sizes, rows, groups, scale, key):
    rng = np.random.default_rng(key)
    layers = list(pairwise(sizes))
    net = network(rng, rows, layers, scale)
    limits = tuple(rng.uniform(0.1, 3.0, groups))
    clip = Groups(
        limits, members(rng, layers, groups) if groups > 1 else None, some_shares(rng, groups)
    )
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
    shares = some_shares(rng, groups)
    clip = Groups(limits, members(rng, layers, groups) if groups > 1 else None, shares)
    sums, below = clipped_sums(net, np.zeros((1, 1), int), clip)
    flat = clip.flat(layers)
    for j in range(groups):
        norm = math.sqrt(sum(int(v) ** 2 for v in sums[flat == j]))
        assert shares[j] * UNIT * (1 - 1e-5) < norm <= shares[j] * UNIT
    assert sum(int(v) ** 2 for v in sums) <= UNIT**2
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
            norm = math.sqrt(sum(int(v) ** 2 for v in (both - one)[flat == j]))
            assert norm <= UNIT * clip.shares[j]


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
        assert math.sqrt(sum(int(v) ** 2 for v in moved[flat == j])) <= UNIT * clip.shares[j]


def on_the_edge(rng, width):
    """Whole numbers whose squares sum to what float64 cannot tell from a row's largest norm."""
    values = rng.normal(size=width)
    values[-6:] = 0
    wanted = UNIT * math.sqrt(0.5) * (1 - 1e-6)
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
@settings(max_examples=examples(15, 40), deadline=None)
def test_a_row_moves_all_groups_together_by_one_unit_at_most_in_any_company(key, groups):
    """Sums are whole numbers and do not depend on order or on chunks: the sensitivity is exact."""
    rng = np.random.default_rng(key)
    layers = [(4, 3), (3, 2)]
    rows = int(rng.integers(2, 12))
    net = network(rng, rows, layers, scale=float(rng.choice([0.1, 1.0, 50.0])))
    clip = Groups(
        tuple(rng.uniform(0.2, 2.0, groups)),
        members(rng, layers, groups) if groups > 1 else None,
        some_shares(rng, groups),
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
        assert sum(int(v) ** 2 for v in alone[flat == j]) <= (clip.shares[j] * UNIT) ** 2
    assert sum(int(v) ** 2 for v in alone) <= UNIT**2


def test_groups_are_checked():
    for threshold in (0.0, -1.0, math.inf, math.nan, 1e-200):
        with pytest.raises(PrivacyError, match="above 0"):
            Groups((threshold,))
    with pytest.raises(PrivacyError, match="as many groups"):
        Groups((1.0, 2.0))
    two = (np.array([[0], [1], [1]]),)
    for shares in ((0.8, 0.8), (1.0,), (0.5, 0.0), (0.5, -0.5), (math.nan, 0.5), (1.0, 1e-4)):
        with pytest.raises(PrivacyError, match="shares"):
            Groups((1.0, 2.0), two, shares)
    with pytest.raises(PrivacyError, match="too small"):
        Groups((1.0, 2.0), two, (0.5, 1e-200))
    assert Groups((1.0, 2.0), two, (0.6, 0.8)).scales == pytest.approx((1 / 0.6, 2.5))
    with pytest.raises(PrivacyError, match="below 2"):
        Groups((1.0, 2.0), (np.full((3, 1), 2),)).flat([(2, 1)])
    with pytest.raises(PrivacyError, match="shapes"):
        Groups((1.0, 2.0), (np.zeros((2, 1), int),)).flat([(2, 1)])


def test_what_was_checked_of_groups_is_what_rows_are_clipped_to():
    class Changing:
        """Every weight in the first group, and when asked again in the second."""

        times = 0

        def __array__(self, dtype=None, copy=None):
            self.times += 1
            return np.full((3, 1), 1 - self.times % 2)

    shares, thresholds, names = [0.6, 0.8], np.array([1.0, 2.0]), np.array([[0], [1], [1]])
    clip = Groups(thresholds, (names,), shares)
    shares[0], thresholds[0], names[0, 0] = 100.0, 1e-30, 1
    assert (clip.shares, clip.thresholds) == ((0.6, 0.8), (1.0, 2.0))
    assert clip.flat([(2, 1)]).tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        clip.members[0][0, 0] = 1
    net = Given([np.ones((1, 2))], [np.full((1, 1), 1e9)])
    sums, _ = clipped_sums(net, np.zeros((1, 1), int), Groups((1.0, 1.0), (Changing(),)))
    assert sum(int(v) ** 2 for v in sums) <= UNIT**2


@given(groups=st.integers(1, 2**40))
@settings(max_examples=examples(75, 300), deadline=None)
def test_all_watched_bits_together_move_by_one_unit_at_most(groups):
    assert math.isqrt(UNIT**2 // groups) ** 2 * groups <= UNIT**2


# --- noise --------------------------------------------------------------------------------------


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


def test_groups_share_one_multiplier_and_so_do_their_bits():
    """Noise on a weight is m·c_j/s_j; of two watched groups a row moves √2 counts in all."""
    net = tiny()
    rng = np.random.default_rng(1)
    clip = Groups((1.5, 0.4), members(rng, net.layers, 2), (0.6, 0.8))
    question = NetworkGradient(net, clip, watch=True)
    charges = planned(SampledGroups((2.0, 3.0), 13))
    values, within = gate_of(ROWS, charges).ask("step", question)
    exact, below = clipped_sums(net, np.array(ROWS), clip)
    assert (values == np.rint(exact / (2.0 * UNIT / GRAIN))).all()
    assert within == pytest.approx(below * GRAIN / (3.0 * math.sqrt(2)), abs=0.5)
    for alone in (np.array([row]) for row in ROWS):
        counts = question.exact(Looked(alone), SampledGroups((2.0, 3.0), 13)).sums[-2:]
        assert sum(int(c) ** 2 for c in counts) <= UNIT**2
    with pytest.raises(PrivacyError, match="does not cover"):
        gate_of(ROWS, planned(SampledGroups((2.0, 2.0, 3.0, 3.0), 13))).ask("step", question)


class Looked:
    """Opened rows, all of which are in every sample."""

    def __init__(self, rows):
        self.rows = rows

    def records(self, held_out, inside):
        return self.rows

    def sample(self, rows, rate):
        return np.arange(rows)


@pytest.mark.parametrize(
    "event", [SampledGroups((2.0,), 10), SampledGroups((2.0, 2.0), 11), Selection(3.0)]
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
