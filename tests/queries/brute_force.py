"""Queries one by one, and what they say of records: the definition, to compare with."""

import itertools

import numpy as np

from understudy.privacy.products import Rule
from understudy.queries.classes import KINDS


def queries(family, shape):
    """Every query, in the order of `Family.products`."""
    literals = KINDS[family.kind].literals
    numbers = [range(len(literals(shape[i]))) for i in family.clique]
    if KINDS[family.kind].rule is Rule.LEAST:
        numbers.append(range(len(family.clique)))
    return [family.query(index, shape) for index in itertools.product(*numbers)]


def holds(query, codes):
    """Which records satisfy a query; one code array per column."""
    number = np.zeros(np.shape(codes[0]), np.int64)
    for each in query.conditions:
        inside = (codes[each.column] >= each.low) & (codes[each.column] <= each.high)
        number += inside != each.negated
    if query.rule is Rule.ODD:
        return number % 2 == 1
    if query.rule is Rule.LEAST:
        return number >= query.least
    return number == len(query.conditions) if query.rule is Rule.ALL else number > 0
