"""The queries room: marginals, workloads and predicates, and their exact evaluation on codes."""

from understudy.constraints.predicate import Predicate
from understudy.queries.classes import MAX_QUERIES, Condition, Family, Query, separator
from understudy.queries.evaluate import (
    MAX_CELLS,
    Clique,
    Counter,
    SparseCounter,
    cells,
    count,
    counts,
    sizes,
)
from understudy.queries.workload import (
    Every,
    Named,
    Spec,
    Together,
    Workload,
    WorkloadLike,
    marginals,
    parse,
    resolve,
)

__all__ = [
    "MAX_CELLS",
    "MAX_QUERIES",
    "Clique",
    "Condition",
    "Counter",
    "Every",
    "Family",
    "Named",
    "Predicate",
    "Query",
    "SparseCounter",
    "Spec",
    "Together",
    "Workload",
    "WorkloadLike",
    "cells",
    "count",
    "counts",
    "marginals",
    "parse",
    "resolve",
    "separator",
    "sizes",
]
