"""Methods as objects: fit, sample, save, load, get_params."""

from __future__ import annotations

import pytest

import understudy as us
from understudy.errors import InputError


def test_a_synthesizer_keeps_the_usual_habits(tmp_path, table, schema):
    maker = us.Independent(epsilon=2.0, workload="marginals:1")
    assert maker.get_params()["epsilon"] == 2.0
    with pytest.raises(InputError, match="not fitted"):
        maker.sample(3)
    with pytest.raises(InputError, match="colour"):
        us.MST(colour="red")
    assert us.MWEM(rounds=3).get_params()["rounds"] == 3
    maker.fit(table, schema, key=1)
    assert maker.sample(11).num_rows == 11
    maker.save(tmp_path / "m")
    assert us.Independent.load(tmp_path / "m").sample(5, key=3).num_rows == 5
