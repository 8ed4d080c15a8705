"""The queries room: marginals, workloads and predicates, and their exact evaluation on codes."""

from understudy.constraints.predicate import Predicate
from understudy.queries.classes import Family, Query, separator
from understudy.queries.evaluate import MAX_CELLS, cells, count, counts
from understudy.queries.workload import Workload, WorkloadLike, marginals, parse, resolve

__all__ = [
    "MAX_CELLS",
    "Family",
    "Predicate",
    "Query",
    "Workload",
    "WorkloadLike",
    "cells",
    "count",
    "counts",
    "marginals",
    "parse",
    "resolve",
    "separator",
]
