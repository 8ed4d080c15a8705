"""Named methods, each loaded when it is asked for. CONTRIBUTING.md says how to add one."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from understudy._lazy import lazily
from understudy.errors import InputError
from understudy.game.methods.base import NO_SETTING, Design, Forecast, Method, Theorem

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
    "settings",
    "typed",
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
_NO_SETTINGS = ("name", "public")


_KINDS: dict[Any, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def method(name: str, /, **parameters: Any) -> Method:
    """The method called `name`; `auto` is the default choice.

    Raises:
        InputError: There is none, or it has no such setting, or none of that type.
    """
    known = _AUTO if name == "auto" else name
    if known not in METHODS:
        raise InputError(f"method = {name!r} is not known; choose auto, {', '.join(METHODS)}")
    maker, chosen = METHODS[known], {}
    allowed = settings(maker)
    for setting, value in parameters.items():
        if setting == "public":
            raise InputError(f"method = {known}: {NO_SETTING}")
        if setting not in allowed:
            listed = ", ".join(allowed) or "none"
            raise InputError(f"method = {known}: there is no setting {setting!r}; it has: {listed}")
        chosen[setting] = typed(f"method = {known}: {setting} = {value!r}", value, allowed[setting])
    return maker(**chosen)


def settings(maker: Any) -> dict[str, tuple[Any, ...]]:
    """The settings of a method and the types that each may have. Public rows are none."""
    hints = typing.get_type_hints(maker)
    return {f.name: _members(hints[f.name]) for f in fields(maker) if f.name not in _NO_SETTINGS}


def _members(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def typed(what: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """The value as one of the types; NumPy's numbers become Python's, and whole ones may be floats."""
    if Any in allowed or type(value) in allowed:
        return value
    if isinstance(value, Integral) and not isinstance(value, bool) and int in allowed:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool) and float in allowed:
        return float(value)
    kinds = " or ".join(_KINDS.get(kind, str(kind)) for kind in allowed)
    raise InputError(f"{what} must be {kinds}")
