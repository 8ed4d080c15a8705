"""Product-form queries are 0/1 functions of a row: counts by brute force, and what is refused."""

import numpy as np
import pytest

from tests.privacy.questions.test_selections import CLASSES, EYE, PAIRS, SHAPE, brute
from understudy.errors import PrivacyError
from understudy.privacy.products import ProductQueries
from understudy.privacy.relation import Relation
from understudy.testing.stand_ins import table_of


@pytest.mark.parametrize("each", CLASSES, ids=lambda c: f"{c.rule}-{c.clique}")
@pytest.mark.parametrize("relation", list(Relation))
def test_every_count_is_right_and_moves_by_at_most_one(each, relation):
    moved = 0
    for one, other in PAIRS[relation]:
        counts = [each.answers(table_of(rows, SHAPE, each.clique)) for rows in (one, other)]
        for found, rows in zip(counts, (one, other), strict=True):
            assert (found.reshape(-1) == brute(each, rows)).all()
        moved = max(moved, np.abs(counts[0] - counts[1]).max())
    assert moved == 1


@pytest.mark.parametrize(
    ("clique", "literals"),
    [
        ((), ()),
        ((0,), ()),
        ((0,), ([[0, 1], [2, 0]],)),
        ((0,), ([[0, -1]],)),
        ((0,), ([[0.0, 1.0]],)),
        ((0,), ([0, 1],)),
        ((0,), (np.zeros((0, 2), np.int64),)),
        ((1, 0), (EYE[1], EYE[0])),
        ((0, 0), (EYE[0], EYE[0])),
        ((-1,), (EYE[0],)),
    ],
)
def test_literals_must_be_zero_or_one(clique, literals):
    with pytest.raises(PrivacyError):
        ProductQueries(clique, tuple(np.asarray(matrix) for matrix in literals))


def test_matrices_are_copied_and_cannot_be_written_to():
    given = np.eye(2, dtype=np.int64)
    each = ProductQueries((0,), (given,))
    given[0, 0] = 100
    assert each.literals[0].max() == 1
    with pytest.raises(ValueError, match="read-only"):
        each.literals[0][0, 0] = 100
    assert each.literals[0].max() == 1
