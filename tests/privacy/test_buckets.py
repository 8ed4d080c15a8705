"""The bucketed exponential mechanism equals the dense one in law, and is paid for with its rounding."""

from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy import stats

from tests.privacy.privacy_fakes import FakeTables, LoggedCharges, LoggedNoise
from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_ROWS, SCORE_SENSITIVITY, UNIT, DataSupport, layout, pick
from understudy.privacy.cost import Laplace, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.noise import OpenDPNoise
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import (
    BernoulliRejection,
    Cell,
    PickedCells,
    PickedQueries,
    WorstErrorOfRows,
    rejection_scale,
)
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing import StillNoise
from understudy.testing.stand_ins import TinyCounts

SHAPE = (3, 2, 4)
CLIQUES = ((0, 1), (1, 2))


def rows_of(codes):
    """A table of codes as the gate's source."""
    return TinyCounts(SHAPE, zip(*(each.tolist() for each in codes), strict=True))


def random_rows(count, key):
    rng = np.random.default_rng(key)
    return [rng.integers(0, size, count) for size in SHAPE]


def dense_scores(real, records, n):
    """Every (marginal, cell, sign) and its score in rows, by enumeration."""
    scores = {}
    m = len(records[0])
    for j, clique in enumerate(CLIQUES):
        for cell in product(*(range(SHAPE[i]) for i in clique)):

            def inside(codes, clique=clique, cell=cell):
                return sum(
                    all(codes[i][r] == v for i, v in zip(clique, cell, strict=True))
                    for r in range(len(codes[0]))
                )

            score = inside(real) - n * inside(records) / m
            scores[j, cell, 1] = score
            scores[j, cell, -1] = -score
    return scores


def law(scores, scale):
    keys = list(scores)
    logits = np.array([scores[k] for k in keys]) / scale
    p = np.exp(logits - logits.max())
    return dict(zip(keys, p / p.sum(), strict=True))


@pytest.mark.parametrize("every", [True, False], ids=["all complements", "touched complements"])
@pytest.mark.parametrize("key", [1, 2])
def test_bucketed_equals_dense_in_law(key, every):
    real, records = random_rows(20, key), random_rows(5, key + 10)
    scale_rows, draws = 3.0, 6000
    event = Selection(scale_rows * UNIT, SCORE_SENSITIVITY, k=draws)
    gate = Gate(rows_of(real), LoggedCharges(pick=event), Relation.ADD_REMOVE, OpenDPNoise(), 20)
    picked = gate.ask("pick", PickedCells(CLIQUES, records, 20, every_complement=every))
    scores = dense_scores(real, records, 20)
    if not every:
        touched = {
            (j, tuple(int(records[i][r]) for i in clique))
            for j, clique in enumerate(CLIQUES)
            for r in range(len(records[0]))
        }
        scores = {k: v for k, v in scores.items() if k[2] == 1 or k[:2] in touched}
    expected = law(scores, scale_rows)
    seen = dict.fromkeys(expected, 0)
    for cell in picked:
        seen[cell.marginal, cell.index, cell.sign] += 1
    # Merge thin cells, as chi-square wants.
    order = sorted(expected, key=expected.get)
    groups, group = [], []
    for k in order:
        group.append(k)
        if draws * sum(expected[g] for g in group) >= 8:
            groups.append(group)
            group = []
    if group:
        groups[-1] += group
    f_obs = [sum(seen[k] for k in g) for g in groups]
    f_exp = [draws * sum(expected[k] for k in g) for g in groups]
    assert stats.chisquare(f_obs, f_exp).pvalue > 1e-5
    # The same check refuses half the noise.
    wrong = law(scores, scale_rows / 2)
    f_wrong = np.array([draws * sum(wrong[k] for k in g) for g in groups])
    assert stats.chisquare(f_obs, f_wrong * draws / f_wrong.sum()).pvalue < 1e-9


class Recording(OpenDPNoise):
    """Exposes the effective law that `pick` hands to the integer sampler."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def picks(self, scores, scale, draws):
        self.asked.append(np.array(scores))
        return super().picks(scores, scale, draws)


def effective_law(scores, sizes, scale):
    """log P(i) of `pick` exactly, from the integers it hands to the sampler."""
    effective = scores + np.rint(scale * np.log(sizes)).astype(np.int64)
    order, edges = layout(effective)
    noise = Recording()
    pick(noise, scores, sizes, scale, 1)
    groups = noise.asked[0].astype(float) / scale
    log_groups = groups - np.logaddexp.reduce(groups)
    out = np.empty(effective.size)
    for g in range(len(groups)):
        inside = order[edges[g] : edges[g + 1]]
        members = effective[inside].astype(float) / scale
        out[inside] = log_groups[g] + members - np.logaddexp.reduce(members)
    return out


@pytest.mark.parametrize("scale_rows", [0.4, 5.0, 300.0])
def test_rounding_moves_no_effective_score_by_more_than_one_unit(scale_rows):
    rng = np.random.default_rng(0)
    scale = scale_rows * UNIT
    for most in [*[200] * 20, 6_000]:
        number = int(rng.integers(most // 2, most)) if most > 1_000 else int(rng.integers(1, most))
        scores = rng.integers(-50 * UNIT, 50 * UNIT, number)
        sizes = np.floor(np.exp(rng.uniform(0, 25, number))) + 0.0
        exact = scores / scale + np.log(sizes)
        exact = exact - np.logaddexp.reduce(exact)
        gap = (effective_law(scores, sizes, scale) - exact) * scale
        # Effective scores are defined up to a common shift; their spread is what counts.
        assert gap.max() - gap.min() <= 2.0 + 1e-6


def test_exact_privacy_of_the_bucketed_mechanism():
    """The law over cells on all neighbours of a small table: within ε0, rounding included."""
    scale = 2.0 * UNIT
    records = random_rows(4, 9)
    sizes = [math.prod(SHAPE[i] for i in c) for c in CLIQUES]

    def cell_law(rows):
        occupied = DataSupport(sizes, _tables(rows))
        touched = occupied.touched(occupied.numbers(packed(records)))
        found = occupied.candidates(touched, 3)
        scores = np.concatenate([found.scores, -found.scores])
        many = np.concatenate([found.sizes, found.sizes])
        law = effective_law(scores, many, scale) - np.log(many)
        half = found.scores.size
        out = {}
        for number in range(sum(sizes)):
            # Which bucket holds this cell.
            at = np.searchsorted(found.touched, number)
            if at < found.touched.size and found.touched[at] == number:
                position = at
            else:
                count = int(occupied.at(np.array([number]))[0])
                position = found.touched.size + (
                    int(np.searchsorted(found.values, count)) if count else found.values.size
                )
            bucket = int(np.searchsorted(found.kept, position))
            out[number, 1], out[number, -1] = law[bucket], law[bucket + half]
        assert abs(sum(math.exp(v) for v in out.values()) - 1) < 1e-9
        return out

    epsilon = 2 * SCORE_SENSITIVITY / scale
    universe = list(product(*(range(s) for s in SHAPE)))
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(60):
        rows = [universe[i] for i in rng.integers(0, len(universe), 3)]
        one = cell_law(rows)
        for changed in (rows[1:], [*rows, universe[int(rng.integers(len(universe)))]]):
            other = cell_law(changed)
            ratios = [one[k] - other[k] for k in one]
            worst = max(worst, *(abs(r) for r in ratios))
            assert max(ratios) - min(ratios) <= epsilon + 1e-9  # bounded range
    assert 0.4 * epsilon < worst <= epsilon + 1e-9


def _tables(rows):
    columns = list(zip(*rows, strict=True))
    tables = []
    for clique in CLIQUES:
        packed = np.zeros(len(rows), np.int64)
        for column in clique:
            packed = packed * SHAPE[column] + np.array(columns[column], dtype=np.int64)
        tables.append(np.unique(packed, return_counts=True))
    return tables


def packed(records):
    columns = []
    for clique in CLIQUES:
        p = np.zeros(len(records[0]), np.int64)
        for column in clique:
            p = p * SHAPE[column] + records[column]
        columns.append(p)
    return np.stack(columns, 1)


def test_groups_are_a_partition_with_the_best_in_front():
    rng = np.random.default_rng(3)
    for number in (1, 24, 25, 999, 1_000, 1_001, 3_000, 3_001, 9_000):
        scores = rng.integers(-100, 100, number)
        order, edges = layout(scores)
        assert sorted(order.tolist()) == list(range(number))
        assert edges[0] == 0
        assert edges[-1] == number
        assert (np.diff(edges) > 0).all()
        best = scores[order[:1_000]]
        assert (np.diff(best) <= 0).all()
        assert best[-1] >= scores[order[1_000:]].max(initial=-100)


def test_records_added_one_by_one_touch_the_same_cells():
    rng = np.random.default_rng(4)
    sizes = [math.prod(SHAPE[i] for i in c) for c in CLIQUES]
    for key in range(20):
        occupied = DataSupport(sizes, _tables(list(zip(*random_rows(15, key), strict=True))))
        numbers = occupied.numbers(packed(random_rows(12, key + 50)))
        cuts = sorted(rng.integers(0, 13, 3).tolist())
        grown = None
        for begin, end in zip([0, *cuts], [*cuts, 12], strict=True):
            grown = occupied.touched(numbers[begin:end], grown)
        whole = occupied.touched(numbers)
        assert grown.records == whole.records == 12
        assert grown.empty == whole.empty
        for name in ("cells", "often", "counts", "left"):
            np.testing.assert_array_equal(getattr(grown, name), getattr(whole, name))


class Asked(StillNoise):
    """The scores that the sampler gets."""

    def last(self):
        return self.asked[-1][1].tolist()


@pytest.mark.parametrize("change", ["grown", "changed", "shorter", "other marginals"])
def test_a_gate_that_saw_other_records_asks_the_same(change):
    """What is kept between requests saves time and nothing else."""
    real, records = random_rows(20, 1), random_rows(8, 2)
    first = {
        "grown": [codes[:5] for codes in records],
        "changed": [np.concatenate([codes[:5], codes[:3]]) for codes in records],
        "shorter": [np.concatenate([codes, codes[:3]]) for codes in records],
        "other marginals": [codes[:5] for codes in records],
    }[change]
    before = CLIQUES[:1] if change == "other marginals" else CLIQUES
    event = Selection(3.0 * UNIT, SCORE_SENSITIVITY)
    used, fresh = Asked(), Asked()
    gate = Gate(rows_of(real), LoggedCharges(pick=event), Relation.ADD_REMOVE, used, 20)
    gate.ask("pick", PickedCells(before, first, 20))
    picked = gate.ask("pick", PickedCells(CLIQUES, records, 20))
    other = Gate(rows_of(real), LoggedCharges(pick=event), Relation.ADD_REMOVE, fresh, 20)
    assert other.ask("pick", PickedCells(CLIQUES, records, 20)) == picked
    assert used.last() == fresh.last()


def test_records_that_the_caller_changes_later_are_looked_at_again():
    real, records = random_rows(20, 1), random_rows(8, 2)
    event = Selection(3.0 * UNIT, SCORE_SENSITIVITY)
    noise = Asked()
    gate = Gate(rows_of(real), LoggedCharges(pick=event), Relation.ADD_REMOVE, noise, 20)
    gate.ask("pick", PickedCells(CLIQUES, records, 20))
    before = noise.last()
    for codes in records:
        codes[:] = 0
    gate.ask("pick", PickedCells(CLIQUES, records, 20))
    assert noise.last() != before


def worst_of(occupied, cells, n, first=0):
    counts, often, rest = occupied.compared(occupied.numbers(cells, first), first)
    return max(int(np.abs(len(cells) * counts - n * often).max()), len(cells) * rest)


def test_worst_error_of_rows_equals_the_dense_one():
    rng = np.random.default_rng(5)
    for key in range(20):
        real, records = random_rows(30, key), random_rows(int(rng.integers(1, 40)), key + 100)
        n = 30
        m = len(records[0])
        worst = max(round(abs(m * s)) for s in dense_scores(real, records, n).values())
        occupied = DataSupport(
            [math.prod(SHAPE[i] for i in c) for c in CLIQUES],
            _tables(list(zip(*real, strict=True))),
        )
        cells = packed(records)
        assert worst_of(occupied, cells, n) == worst
        parts = [worst_of(occupied, cells[:, [j]], n, j) for j in range(2)]
        assert max(parts) == worst


@pytest.mark.parametrize("held", [1, 40, 10**6])
def test_the_worst_error_of_rows_does_not_depend_on_how_much_is_held_at_once(held, monkeypatch):
    from understudy.privacy.questions import certificates as module

    monkeypatch.setattr(module, "_CHUNK_CELLS", held)
    real, records = random_rows(30, 1), random_rows(25, 2)
    charges = LoggedCharges(pick=Laplace(1.0, l1=100))
    gate = Gate(rows_of(real), charges, Relation.ADD_REMOVE, StillNoise(), 30)
    worst = max(abs(s) for s in dense_scores(real, records, 30).values())
    assert gate.ask("pick", WorstErrorOfRows(CLIQUES, records)) == math.ceil(100 * worst - 1e-9)


# --- very many rows -----------------------------------------------------------------------------


def exact_group_scores(scores, sizes, scale):
    """b·ln Σ sizes·exp(scores/b) of every group, to fifty digits."""
    effective = scores + np.rint(scale * np.log(sizes)).astype(np.int64)
    order, edges = layout(effective)
    with mpmath.workdps(50):
        b = mpmath.mpf(scale)
        return [
            b
            * mpmath.log(
                mpmath.fsum(mpmath.mpf(sizes[i]) * mpmath.exp(int(scores[i]) / b) for i in group)
            )
            for group in np.split(order, edges[1:-1])
        ]


@pytest.mark.parametrize("scale_rows", [1 / UNIT, 0.3, 41.0, 2.0**20, 2.0**31])
@pytest.mark.parametrize("rows", [MOST_ROWS, 2**40])
def test_rounding_is_paid_for_however_many_rows(scale_rows, rows):
    """`SCORE_SENSITIVITY` pays for 1.5 units: 1/2 for sizes, 1/2 for groups, 1/2 for float64."""
    rng = np.random.default_rng(3)
    scale, most = scale_rows * UNIT, UNIT * rows
    near = most - rng.integers(0, max(2, int(min(3 * scale, most))), 300)
    far = rng.integers(-most, most, 700, endpoint=True)
    half = np.concatenate([[most, -most, 0], near, far])
    scores = np.concatenate([half, -half])
    sizes = rng.choice([1.0, 2.0, 7.0, 1e6, 2.0**60], scores.size)
    noise = Asked()
    pick(noise, scores, sizes, scale, 1)
    given = noise.asked[0][1].tolist()
    expected = exact_group_scores(scores, sizes, scale)
    assert len(given) == len(expected) > 24
    assert max(abs(g - e) for g, e in zip(given, expected, strict=True)) <= 1.5


ONE_RECORD = [np.zeros(1, np.int64)]
SELECT = Selection(1.0 * UNIT, SCORE_SENSITIVITY)


@pytest.mark.parametrize("rows", [0, -1, MOST_ROWS + 1, 2**40])
def test_more_rows_than_rounding_is_proved_for_are_refused_before_the_charge(rows):
    log = []
    cells, toss = [Cell(0, (0,), 1)], Selection(rejection_scale(1.0, 1.0), SCORE_SENSITIVITY)
    for event, question in (
        (SELECT, PickedCells([(0,)], ONE_RECORD, rows)),
        (toss, BernoulliRejection([(0,)], cells, ONE_RECORD, rows, 1.0, 1.0)),
    ):
        charges = LoggedCharges(log, pick=event)
        gate = Gate(FakeTables([5, 3]), charges, Relation.ADD_REMOVE, LoggedNoise(log))
        with pytest.raises(PrivacyError, match="between 1 and 2\\^33"):
            gate.ask("pick", question)
    assert log == []


@pytest.mark.parametrize("count", [MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1, 2**40])
def test_counts_beyond_the_most_rows_are_cut_off(count):
    """A public number of rows may be wrong, and exact counts far larger; nothing is said of it."""
    noise, kept = LoggedNoise(), min(count, MOST_ROWS)
    counts, charges = FakeTables([7, count, count]), LoggedCharges(pick=SELECT)
    gate = Gate(counts, charges, Relation.ADD_REMOVE, noise, MOST_ROWS)
    gate.ask("pick", PickedCells([(0,)], ONE_RECORD, MOST_ROWS))
    # The cell of the record, both others in one bucket, and their complements.
    two = UNIT * kept + round(UNIT * math.log(2))
    four = [two, UNIT * (7 - MOST_ROWS), UNIT * (MOST_ROWS - 7), two - 2 * UNIT * kept]
    assert sorted(noise.values[0].tolist()) == sorted(four)
    noise, products = LoggedNoise(), ProductQueries((0,), (np.eye(3, dtype=np.uint8),))
    gate = Gate(counts, charges, Relation.ADD_REMOVE, noise)
    gate.ask("pick", PickedQueries((products,), (np.full(3, float(MOST_ROWS)),)))
    over = [UNIT * (min(c, MOST_ROWS) - MOST_ROWS) for c in (7, count, count)]
    assert sorted(noise.values[0].tolist()) == sorted([*over, *(-each for each in over)])


def test_a_row_moves_scores_that_are_cut_off_by_no_more_than_one():
    moved = []
    for count in range(MOST_ROWS - 2, MOST_ROWS + 4):
        noise = LoggedNoise()
        gate = Gate(FakeTables([count]), LoggedCharges(pick=SELECT), Relation.ADD_REMOVE, noise)
        gate.ask("pick", PickedCells([(0,)], ONE_RECORD, MOST_ROWS, every_complement=False))
        moved.append(noise.values[0])
    steps = np.abs(np.diff(np.array(moved), axis=0)).max(axis=1)
    assert steps.tolist() == [UNIT, UNIT, 0, 0, 0]


def test_marginals_far_beyond_memory():
    """10^15 cells: the pick is a cell of the domain, and costs no table."""

    class Wide:
        shape = (1000,) * 5
        unit = None

        def sparse(self, cliques):
            return Sensitive(((np.array([7, 10**14], dtype=np.int64), np.array([500, 3])),))

    event = Selection(1.0 * UNIT, SCORE_SENSITIVITY, k=20)
    gate = Gate(Wide(), LoggedCharges(pick=event), Relation.ADD_REMOVE, OpenDPNoise(), 503)
    records = [np.zeros(3, np.int64)] * 5
    picked = gate.ask("pick", PickedCells([(0, 1, 2, 3, 4)], records, 503))
    assert all(0 <= i < 1000 for cell in picked for i in cell.index)
    # The largest score: 500 rows in a cell without a record; or the complement of the records' cell.
    assert {(cell.index, cell.sign) for cell in picked} <= {((0, 0, 0, 0, 7), 1), ((0,) * 5, -1)}
