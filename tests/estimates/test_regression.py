"""Regressions on weighted cells, against the textbook."""

import numpy as np
import pytest

from tests.estimates import tiny
from tests.estimates.test_frame import frame
from tests.estimates.test_means import NUMBER, W, check_influence
from understudy.estimates.frame import condition
from understudy.estimates.regression import Regression, Term
from understudy.estimates.statistic import Domain, Undefined

NAMES = ("(intercept)", "x", "a[q]", "a[r]")
TERMS = (Term(tiny.X), Term(tiny.A, 1), Term(tiny.A, 2))
DESIGN = np.stack([np.ones(30), NUMBER, tiny.ALL[0] == 1, tiny.ALL[0] == 2], axis=1).astype(float)
OUTCOME = condition("b", tiny.SCHEMA)


def test_linear():
    statistic = Regression(NAMES, Domain(), OUTCOME, TERMS, (), logistic=False)
    root = np.sqrt(W)[:, None]
    wanted = np.linalg.lstsq(DESIGN * root, tiny.ALL[1] * root[:, 0], rcond=None)[0]
    assert statistic.fit(frame(), W).values == pytest.approx(wanted)
    check_influence(statistic, frame(), W)
    assert (statistic.columns, statistic.numbers) == ((0, 1, 2), (2,))


def test_logistic_solves_its_equations():
    statistic = Regression(NAMES, Domain(), OUTCOME, TERMS, (), logistic=True)
    beta = statistic.fit(frame(), W).values
    mean = 1 / (1 + np.exp(-DESIGN @ beta))
    assert DESIGN.T @ (W * (tiny.ALL[1] - mean)) == pytest.approx(np.zeros(4), abs=1e-9)
    check_influence(statistic, frame(), W, near=1e-2)


def test_rows_without_a_value_do_not_count():
    statistic = Regression(NAMES[:2], Domain(), OUTCOME, TERMS[:1], ((tiny.A, 2),), logistic=False)
    some = W * (tiny.ALL[0] != 2)
    root = np.sqrt(some)[:, None]
    wanted = np.linalg.lstsq(DESIGN[:, :2] * root, tiny.ALL[1] * root[:, 0], rcond=None)[0]
    assert statistic.fit(frame(), W).values == pytest.approx(wanted)


def test_what_cannot_be_fitted_says_so():
    logistic = Regression(NAMES, Domain(), OUTCOME, TERMS, (), logistic=True)
    parted = W * ((tiny.ALL[2] > 2) == (tiny.ALL[1] == 1))
    with pytest.raises(Undefined, match="separate"):
        logistic.fit(frame(), parted / parted.sum())
    alone = W * (tiny.ALL[0] == 0)
    with pytest.raises(Undefined, match="depend on each other"):
        logistic.fit(frame(), alone / alone.sum())
    flat = W * (tiny.ALL[2] == 0)
    with pytest.raises(Undefined, match="one value"):
        logistic.fit(frame(), flat / flat.sum())


def test_rare_values_are_left_out():
    every = Regression(NAMES, Domain(), OUTCOME, TERMS, (), logistic=False)
    kept, gone = every.without({tiny.A: frozenset({2}), tiny.X: frozenset({0})})
    assert (kept.names, kept.terms, kept.missing) == (NAMES[:3], TERMS[:2], ((tiny.A, 2),))
    assert list(gone) == ["a[r]"]
    assert "too few have it" in gone["a[r]"].why
    assert not gone["a[r]"].base


def test_a_rare_base_gives_its_place_to_the_next_value():
    every = Regression(NAMES, Domain(), OUTCOME, TERMS, (), logistic=False)
    kept, gone = every.without({tiny.A: frozenset({0})})
    assert (kept.names, kept.terms, kept.missing) == (
        (*NAMES[:2], NAMES[3]),
        (TERMS[0], TERMS[2]),
        ((tiny.A, 0),),
    )
    assert gone["a[q]"].base
    # Fitted as if the rows with the base were not there.
    some = W * (tiny.ALL[0] != 0)
    root = np.sqrt(some)[:, None]
    design = DESIGN[:, [0, 1, 3]]
    wanted = np.linalg.lstsq(design * root, tiny.ALL[1] * root[:, 0], rcond=None)[0]
    assert kept.fit(frame(), W).values == pytest.approx(wanted)


@pytest.mark.parametrize("rare", [{0, 1}, {1, 2}, {0, 1, 2}])
def test_a_column_of_which_one_value_would_be_left_stays(rare: set[int]):
    every = Regression(NAMES, Domain(), OUTCOME, TERMS, (), logistic=False)
    kept, gone = every.without({tiny.A: frozenset(rare)})
    assert (kept.names, kept.terms, kept.missing, gone) == (NAMES, TERMS, (), {})
