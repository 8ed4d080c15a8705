import numpy as np
from hypothesis import given, settings

from tests.thorough import examples
from understudy.oracles import History
from understudy.oracles.atoms import Atoms

from .instances import histories, universe


@given(histories(general=True))
@settings(max_examples=examples(20, 100), deadline=None)
def test_codes_of_one_atom_are_worth_the_same(history):
    atoms = Atoms.of_history(history)
    records = universe(history.shape)
    np.testing.assert_allclose(
        atoms.terms.evaluate(atoms.fold(records)) + history.constant, history.evaluate(records)
    )
    assert atoms.sizes.sum() == sum(history.shape)
    assert (atoms.sizes > 0).all()
    assert sorted(atoms.members) == list(range(sum(history.shape)))


def test_unmentioned_codes_are_one_atom():
    atoms = Atoms.of_history(History.empty((100, 5)).add((0,), (7,)).add((0,), (50,)))
    assert atoms.terms.shape == (3, 1)
    assert atoms.sizes.tolist() == [1, 1, 98, 5]
