import numpy as np
import pytest
from bench.oracle import full
from scipy import stats

from tests.thorough import some
from understudy.oracles import History, Law, LazyNoise
from understudy.oracles.atoms import Atoms

from .instances import brute_force

ROWS = 4000


@pytest.mark.parametrize("law", Law)
@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_a_maximum_has_the_law_of_a_maximum(law, count):
    rng = np.random.default_rng([count, len(law)])
    lazy = law.draw_maxima(np.array([count]), ROWS, rng)[:, 0]
    full = law.draw((ROWS, count), rng).max(axis=1)
    assert stats.ks_2samp(lazy, full).pvalue > 1e-4
    more = law.draw((ROWS, count + 1 + count // 5), rng).max(axis=1)
    assert stats.ks_2samp(lazy, more).pvalue < 1e-3  # the test can fail


@pytest.mark.parametrize("law", some(Law, 2))
def test_lazy_noise_chooses_records_by_the_same_law(law):
    history = (
        History.empty((2, 6))
        .add((0, 1), (1, 2), 1.0)
        .add((1,), (4,), -0.5)
        .add((0, 1), (0, 5), 0.7)
    )
    noise = LazyNoise(law, (0.6, 0.4), ROWS)
    rng = np.random.default_rng(5)
    whole = brute_force(history, full(noise, history.shape, rng))
    atoms = Atoms.of_history(history)
    drawn = noise.fold(atoms, rng)
    lazy = drawn.unfold(brute_force(atoms.terms, drawn.values))
    assert atoms.terms.shape == (2, 4)
    tables = [np.bincount(rows @ [6, 1], minlength=12) for rows in (whole, lazy)]
    assert stats.chi2_contingency(np.array(tables)).pvalue > 1e-4
    wrong = brute_force(history, full(LazyNoise(law, (0.3, 0.8), ROWS), history.shape, rng))
    table = np.array([tables[0], np.bincount(wrong @ [6, 1], minlength=12)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue < 1e-4


def test_no_noise_is_zero_and_chooses_uniformly_in_an_atom():
    atoms = Atoms.of_history(History.empty((5,)).add((0,), (3,), -1.0))
    drawn = LazyNoise(Law.GUMBEL, 0.0, ROWS).fold(atoms, np.random.default_rng(0))
    assert not drawn.values.any()
    chosen = drawn.unfold(np.full((ROWS, 1), 1))[:, 0]
    assert stats.chisquare(np.bincount(chosen)[[0, 1, 2, 4]]).pvalue > 1e-4
