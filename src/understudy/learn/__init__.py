"""Private learning: linear models of private rows, with the interface of scikit-learn.

* `PrivateLasso`, `PrivateLogisticRegression`: (ε, δ)-DP per row, by `frank-wolfe` or `sgd`
* `NonPrivateLasso`, `NonPrivateLogisticRegression`: the same models without privacy, for comparison

scikit-learn is an extra: pip install 'understudy[learn]'.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.learn.estimators import PrivateLasso, PrivateLogisticRegression
    from understudy.learn.twins import NonPrivateLasso, NonPrivateLogisticRegression

__all__ = [
    "NonPrivateLasso",
    "NonPrivateLogisticRegression",
    "PrivateLasso",
    "PrivateLogisticRegression",
]

_HOME = {
    "NonPrivateLasso": "understudy.learn.twins",
    "NonPrivateLogisticRegression": "understudy.learn.twins",
    "PrivateLasso": "understudy.learn.estimators",
    "PrivateLogisticRegression": "understudy.learn.estimators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'understudy.learn' has no attribute {name!r}")
    require_sklearn(name)
    return getattr(import_module(_HOME[name]), name)


def require_sklearn(what: str) -> None:
    """Raise `InputError`, naming the remedy, where scikit-learn is missing."""
    try:
        import_module("sklearn")
    except ImportError:
        raise InputError(
            f"{what} needs scikit-learn, which is not installed: pip install 'understudy[learn]'"
        ) from None


def __dir__() -> list[str]:
    return sorted(__all__)
