import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.oracles import _kernel, objective
from understudy.oracles.atoms import Atoms

from .instances import histories


@given(histories(general=True), st.integers(0, 2**32))
@settings(max_examples=examples(30, 120), deadline=None)
def test_what_the_search_adds_up_on_its_way_is_what_its_records_are_worth(history, seed):
    rng = np.random.default_rng(seed)
    atoms = Atoms.of_history(history)
    noise = rng.laplace(0, 0.5, (5, atoms.positions))
    warm = np.empty((0, len(history.shape)), np.int64)
    schedule = _kernel.Schedule(3, 20, 8, 2.0, np.uint64(seed))
    codes, worths = _kernel.search(_kernel.problem(atoms), noise, warm, 0, schedule)
    np.testing.assert_allclose(worths, objective(atoms.terms, noise, codes), atol=1e-9)
