"""Attacks on memberships, and audits that can refute a claimed ε; none can prove one."""

from typing import TYPE_CHECKING

from understudy._lazy import lazily

if TYPE_CHECKING:
    from understudy.audit.bounds import (
        credible_lower_bound,
        gaussian_lower_bound,
        largest_many_runs_bound,
        largest_one_run_bound,
        many_runs_lower_bound,
        one_run_lower_bound,
    )

__all__ = [
    "credible_lower_bound",
    "gaussian_lower_bound",
    "largest_many_runs_bound",
    "largest_one_run_bound",
    "many_runs_lower_bound",
    "one_run_lower_bound",
]

__getattr__ = lazily(__name__, dict.fromkeys(__all__, "bounds"))
