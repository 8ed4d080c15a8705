"""Named methods, each loaded when it is asked for. CONTRIBUTING.md says how to add one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.base import (
    NO_SETTING,
    Design,
    Forecast,
    Method,
    Theorem,
    settings,
    typed,
)

__all__ = ["METHODS", "Design", "Forecast", "Method", "Theorem", "method", "settings", "typed"]


class _ByName(Mapping[str, Callable[..., Method]]):
    """Methods by name; each is loaded from its file, `file.class`, when it is asked for."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> Callable[..., Method]:
        file, made = self._homes[name].split(".")
        return getattr(import_module(f"{__name__}.{file}"), made)

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __repr__(self) -> str:
        return f"<Methods: {', '.join(self._homes)}>"


METHODS = _ByName(
    {
        "aim": "aim.AIMMethod",
        "dpgan": "dpgan.DPGANMethod",
        "dqrs": "dqrs.DQRSMethod",
        "dualquery": "dualquery.DualQueryMethod",
        "fem": "fem.FEMMethod",
        "frankwolfe": "frankwolfe.FrankWolfeMethod",
        "gaussian": "gaussian.GaussianMethod",
        "gem": "gem.GEMMethod",
        "hdmm": "hdmm.HDMMMethod",
        "independent": "independent.IndependentMethod",
        "maxent": "maxent.MaxEntMethod",
        "mst": "mst.MSTMethod",
        "mwem": "mwem.MWEMMethod",
        "querygan": "querygan.QueryGANMethod",
        "sepfem": "fem.SepFEMMethod",
    }
)
_AUTO = "maxent"


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
