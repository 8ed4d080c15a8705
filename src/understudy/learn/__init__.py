"""Private learning: linear models of private rows, with the interface of scikit-learn.

* `PrivateLasso`, `PrivateLogisticRegression`: (ε, δ)-DP per row, by `frank-wolfe` or `sgd`

scikit-learn is an extra: pip install '.[learn]'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from understudy._lazy import lazily
from understudy.errors import require_extra

if TYPE_CHECKING:
    from understudy.learn.estimators import PrivateLasso, PrivateLogisticRegression

__all__ = ["PrivateLasso", "PrivateLogisticRegression"]

_load = lazily(__name__, dict.fromkeys(__all__, "estimators"))


def __getattr__(name: str) -> Any:
    if name in __all__:
        require_extra(name, "learn")
    return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
