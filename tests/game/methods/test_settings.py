"""Settings are held to their annotations, also where a method is made by hand."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from understudy.errors import InputError
from understudy.game.methods.base import POSITIVE, SHARE, between, least, one_of, whole
from understudy.game.methods.independent import IndependentMethod
from understudy.testing import tiny_design


@dataclass(frozen=True, slots=True)
class Many(IndependentMethod):
    rounds: Annotated[int | None, least(1, "; leave it out")] = None
    number: Annotated[int, whole(2, 1_000)] = 2
    rate: Annotated[float, POSITIVE] = 1.0
    part: Annotated[float, SHARE] = 1.0
    inside: Annotated[float, between(0, 1)] = 0.5
    kind: Annotated[str, one_of("a", "b")] = "a"
    free: bool = True
    name: str = "many"


def test_what_is_allowed_passes():
    Many().check(tiny_design((2, 3)))
    most = Many(rounds=1, number=1_000, rate=7, part=1, inside=0.1, kind="b", free=False)
    most.check(tiny_design((2, 3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds = 0 must be at least 1; leave it out"),
        ({"number": 1_001}, "number = 1001 must be a whole number from 2 to 1,000"),
        ({"number": 2.0}, "number = 2.0 must be a whole number"),
        ({"number": True}, "number = True must be a whole number"),
        ({"rate": float("inf")}, "rate = inf must be above 0"),
        ({"part": 0.0}, r"part = 0.0 must be in \(0, 1\]"),
        ({"inside": 1.0}, "inside = 1.0 must lie between 0 and 1"),
        ({"inside": float("nan")}, "inside = nan must lie between"),
        ({"kind": "c"}, "kind = 'c' is not one of a, b"),
        ({"free": 1}, "free = 1 must be true or false"),
    ],
)
def test_what_is_not_is_refused_by_name(settings, message):
    with pytest.raises(InputError, match=f"method = many: {message}"):
        Many(**settings).check(tiny_design((2, 3)))
