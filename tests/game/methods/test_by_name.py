"""Methods by name, and the types of their settings."""

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.game.methods import METHODS, method, settings
from understudy.game.methods.fem import FEMMethod

WRONG = {
    "a text": ("maxent", {"quanta": "x"}, "quanta = 'x' must be a whole number"),
    "a share of a pair": ("maxent", {"pairs": 2.5}, "pairs = 2.5 must be a whole number or null"),
    "a number as text": ("mwem", {"rounds": "3"}, "rounds = '3' must be a whole number or null"),
    "truth": ("hdmm", {"levels": True}, "levels = True must be a whole number"),
    "a number for truth": ("fem", {"published": 1}, "published = 1 must be true or false"),
    "a number for a name": ("fem", {"law": 1}, "law = 1 must be a text"),
    "none": ("gem", {"width": None}, "width = None must be a whole number"),
    "no such setting": ("gem", {"widht": 3}, "there is no setting 'widht'; it has: rounds, picks"),
    "its name": ("gem", {"name": "x"}, "there is no setting 'name'"),
    "no such method": ("magic", {}, "'magic' is not known; choose auto, aim"),
}


@pytest.mark.parametrize(("name", "given", "words"), WRONG.values(), ids=WRONG)
def test_what_a_method_does_not_take(name, given, words):
    with pytest.raises(InputError) as told:
        method(name, **given)
    assert words in str(told.value)


def test_numbers_of_any_kind():
    made = method("fem", rounds=np.int64(7), step=np.float32(0.5), keep=1)
    assert isinstance(made, FEMMethod)
    assert (made.rounds, made.step, made.keep) == (7, 0.5, 1.0)
    assert [type(v) for v in (made.rounds, made.step, made.keep)] == [int, float, float]


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_has_a_type_that_its_default_is_of(name):
    made = METHODS[name]()
    given = {setting: getattr(made, setting) for setting in settings(METHODS[name])}
    assert method(name, **given) == made
