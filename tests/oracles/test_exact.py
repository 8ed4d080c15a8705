import sys
import types

import numpy as np
import pytest
from bench.oracle import Given
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.errors import InputError, WorkError
from understudy.oracles import Annealed, History, Law, LazyNoise, objective
from understudy.oracles.exact import Exact

from .instances import brute_force, histories, random_history, solve


@given(st.booleans().flatmap(lambda general: histories(general=general)), st.integers(0, 2**32))
@settings(max_examples=examples(15, 40), deadline=None)
def test_cp_sat_is_optimal_and_proves_it(history, seed):
    pytest.importorskip("ortools")
    rng = np.random.default_rng(seed)
    noise = rng.laplace(0, 0.4, (2, sum(history.shape)))
    records, late = Exact().best(history, Given.of(noise), rng=rng)
    best = objective(history, noise, brute_force(history, noise))
    assert not late
    tolerance = Exact().grid * (history.terms + len(history.shape))
    np.testing.assert_allclose(objective(history, noise, records), best, atol=tolerance + 1e-9)
    assert (records < np.asarray(history.shape)).all()


def test_three_attributes_of_three_values():
    pytest.importorskip("ortools")
    rng = np.random.default_rng(1)
    for _ in range(10):
        history = random_history(rng, (3, 3, 3), 15)
        noise = rng.exponential(0.5, (2, 9))
        best = objective(history, noise, brute_force(history, noise))
        found = solve(Exact(), history, noise, rng=rng)
        np.testing.assert_allclose(objective(history, noise, found), best, atol=1e-4)


def test_it_takes_lazy_noise_and_is_at_least_as_good_as_the_annealed_oracle():
    pytest.importorskip("ortools")
    shape, rng = (9, 16, 7, 15, 6), np.random.default_rng(2)
    history = random_history(rng, shape, 60)
    records = solve(Exact(), history, LazyNoise(Law.EXPONENTIAL, 1.0, 2), rng=rng)
    assert records.shape == (2, 5)
    noise = rng.exponential(1.0, (5, sum(shape)))
    warm = solve(Annealed(), history, noise, rng=rng)
    found = objective(history, noise, solve(Exact(), history, noise, warm=warm, rng=rng))
    assert (found >= objective(history, noise, warm) - 1e-4).all()


def test_out_of_time_it_returns_the_best_it_has():
    pytest.importorskip("ortools")
    shape, rng = (10,) * 12, np.random.default_rng(3)
    history = random_history(rng, shape, 300)
    noise = rng.exponential(1.0, (2, sum(shape)))
    warm = solve(Annealed(), history, noise, rng=rng)
    records, late = Exact(seconds=1e-4).best(history, Given.of(noise), warm=warm, rng=rng)
    assert late
    values = objective(history, noise, records)
    assert (values >= objective(history, noise, warm) - 1e-9).all()


def test_a_grid_too_fine_for_integers_is_refused():
    pytest.importorskip("ortools")
    history = History.empty((2,)).add((0,), (0,), 1e12)
    with pytest.raises(InputError, match="too fine"):
        solve(Exact(), history, np.zeros((1, 2)), rng=np.random.default_rng(0))


def test_without_the_extra_it_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    with pytest.raises(WorkError, match=r"\.\[exact\]"):
        solve(Exact(), History.empty((2,)), np.zeros((1, 2)), rng=np.random.default_rng(0))


def test_it_does_not_load_beside_highspy(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", types.ModuleType("highspy"))
    with pytest.raises(WorkError, match="highspy"):
        solve(Exact(), History.empty((2,)), np.zeros((1, 2)), rng=np.random.default_rng(0))
