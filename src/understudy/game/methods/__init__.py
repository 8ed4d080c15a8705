"""Named methods, each loaded when it is asked for. CONTRIBUTING.md says how to add one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from understudy._lazy import lazily
from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast, Method, Theorem

if TYPE_CHECKING:
    from understudy.game.methods.aim import AIMMethod
    from understudy.game.methods.dpgan import DPGANMethod
    from understudy.game.methods.dqrs import DQRSMethod
    from understudy.game.methods.dualquery import DualQueryMethod
    from understudy.game.methods.fem import FEMMethod, SepFEMMethod
    from understudy.game.methods.frankwolfe import FrankWolfeMethod
    from understudy.game.methods.gaussian import GaussianMethod
    from understudy.game.methods.gem import GEMMethod
    from understudy.game.methods.graph import GraphMethod
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
    "GraphMethod",
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


class _ByName(Mapping[str, Callable[..., Method]]):
    """Methods by name; classes are kept by their names alone until one is asked for."""

    def __init__(self, classes: Mapping[str, str]) -> None:
        self.classes = classes

    def __getitem__(self, name: str) -> Callable[..., Method]:
        return __getattr__(self.classes[name])

    def __contains__(self, name: object) -> bool:
        return name in self.classes

    def __iter__(self) -> Iterator[str]:
        return iter(self.classes)

    def __len__(self) -> int:
        return len(self.classes)


METHODS = _ByName(
    {
        "aim": "AIMMethod",
        "dpgan": "DPGANMethod",
        "dqrs": "DQRSMethod",
        "dualquery": "DualQueryMethod",
        "fem": "FEMMethod",
        "frankwolfe": "FrankWolfeMethod",
        "gaussian": "GaussianMethod",
        "gem": "GEMMethod",
        "hdmm": "HDMMMethod",
        "independent": "IndependentMethod",
        "maxent": "MaxEntMethod",
        "mst": "MSTMethod",
        "mwem": "MWEMMethod",
        "querygan": "QueryGANMethod",
        "sepfem": "SepFEMMethod",
    }
)
__getattr__ = lazily(
    __name__,
    {
        **{made: name for name, made in METHODS.classes.items()},
        "GraphMethod": "graph",
        "SepFEMMethod": "fem",
    },
)
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
