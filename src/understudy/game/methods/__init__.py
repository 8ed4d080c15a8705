"""Named methods. Adding one is a file beside these and a line in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.aim import AIM
from understudy.game.methods.base import Design, Forecast, Method, Theorem
from understudy.game.methods.dpgan import DPGAN
from understudy.game.methods.dqrs import DQRS
from understudy.game.methods.dualquery import DualQuery
from understudy.game.methods.fem import FEM, SepFEM
from understudy.game.methods.frankwolfe import FrankWolfe
from understudy.game.methods.gaussian import GaussianMarginals
from understudy.game.methods.gem import GEM
from understudy.game.methods.hdmm import HDMM
from understudy.game.methods.independent import Independent
from understudy.game.methods.maxent import MaxEnt
from understudy.game.methods.mst import MST
from understudy.game.methods.mwem import MWEM
from understudy.game.methods.querygan import QueryGAN

__all__ = [
    "AIM",
    "DPGAN",
    "DQRS",
    "FEM",
    "GEM",
    "HDMM",
    "METHODS",
    "MST",
    "MWEM",
    "Design",
    "DualQuery",
    "Forecast",
    "FrankWolfe",
    "GaussianMarginals",
    "Independent",
    "MaxEnt",
    "Method",
    "QueryGAN",
    "SepFEM",
    "Theorem",
    "method",
]

METHODS: dict[str, Callable[..., Method]] = {
    "aim": AIM,
    "dpgan": DPGAN,
    "dqrs": DQRS,
    "dualquery": DualQuery,
    "fem": FEM,
    "frankwolfe": FrankWolfe,
    "gaussian": GaussianMarginals,
    "gem": GEM,
    "hdmm": HDMM,
    "independent": Independent,
    "maxent": MaxEnt,
    "mst": MST,
    "mwem": MWEM,
    "querygan": QueryGAN,
    "sepfem": SepFEM,
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
