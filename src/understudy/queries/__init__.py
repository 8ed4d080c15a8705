"""The queries room: marginals, workloads and predicates, and their exact evaluation on codes."""

from understudy.queries.evaluate import (
    MAX_CELLS,
    Clique,
    Counter,
    SparseCounter,
    cells,
    count,
    counts,
)
from understudy.queries.predicate import Predicate
from understudy.queries.workload import (
    Marginal,
    MarginalsSpec,
    Workload,
    WorkloadLike,
    marginals,
    parse,
    resolve,
)

__all__ = [
    "MAX_CELLS",
    "Clique",
    "Counter",
    "Marginal",
    "MarginalsSpec",
    "Predicate",
    "SparseCounter",
    "Workload",
    "WorkloadLike",
    "cells",
    "count",
    "counts",
    "marginals",
    "parse",
    "resolve",
]
