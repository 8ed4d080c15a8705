"""Named methods. Adding one is a file beside these and a line in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.aim import AIMMethod
from understudy.game.methods.base import Design, Forecast, Method, Theorem
from understudy.game.methods.dpgan import DPGANMethod
from understudy.game.methods.dqrs import DQRSMethod
from understudy.game.methods.dualquery import DualQueryMethod
from understudy.game.methods.fem import FEMMethod, SepFEMMethod
from understudy.game.methods.frankwolfe import FrankWolfeMethod
from understudy.game.methods.gaussian import GaussianMethod
from understudy.game.methods.gem import GEMMethod
from understudy.game.methods.hdmm import HDMMMethod
from understudy.game.methods.independent import IndependentMethod
from understudy.game.methods.maxent import MaxEntMethod
from understudy.game.methods.mst import MSTMethod
from understudy.game.methods.mwem import MWEMMethod
from understudy.game.methods.querygan import QueryGANMethod

__all__ = [
    "METHODS",
    "AIMMethod",
    "DPGANMethod",
    "DQRSMethod",
    "Design",
    "DualQueryMethod",
    "FEMMethod",
    "Forecast",
    "FrankWolfeMethod",
    "GEMMethod",
    "GaussianMethod",
    "HDMMMethod",
    "IndependentMethod",
    "MSTMethod",
    "MWEMMethod",
    "MaxEntMethod",
    "Method",
    "QueryGANMethod",
    "SepFEMMethod",
    "Theorem",
    "method",
]

METHODS: dict[str, Callable[..., Method]] = {
    "aim": AIMMethod,
    "dpgan": DPGANMethod,
    "dqrs": DQRSMethod,
    "dualquery": DualQueryMethod,
    "fem": FEMMethod,
    "frankwolfe": FrankWolfeMethod,
    "gaussian": GaussianMethod,
    "gem": GEMMethod,
    "hdmm": HDMMMethod,
    "independent": IndependentMethod,
    "maxent": MaxEntMethod,
    "mst": MSTMethod,
    "mwem": MWEMMethod,
    "querygan": QueryGANMethod,
    "sepfem": SepFEMMethod,
}
_AUTO = "maxent"


def method(name: str, **parameters: Any) -> Method:
    """The method called `name`; `auto` is the default choice."""
    known = _AUTO if name == "auto" else name
    if known not in METHODS:
        raise InputError(f"method = {name!r} is not known; choose auto, {', '.join(METHODS)}")
    try:
        return METHODS[known](**parameters)
    except TypeError as error:
        raise InputError(f"method = {name}: {error}") from None
