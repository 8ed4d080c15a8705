"""What is no distribution is said to be none, and fingerprints tell every bit apart."""

from dataclasses import dataclass

import numpy as np
import pytest

from understudy.models import Decomposable, Measured
from understudy.testing import ContractBroken
from understudy.testing.distributions import (
    fingerprint,
    require_answer,
    require_distribution,
    require_model,
    require_rows,
)

SHAPE = (2, 3)


@dataclass
class View:
    """Marginals of a table, one of them changed."""

    table: np.ndarray
    odd: tuple[int, ...] = ()
    change: object = None

    def marginal(self, clique):
        found = self.table.sum(axis=tuple({0, 1} - set(clique)))
        return self.change(found) if clique == self.odd else found


TABLE = np.array([[0.1, 0.2, 0.0], [0.3, 0.3, 0.1]])


def test_a_distribution_is_one():
    require_distribution(View(TABLE), SHAPE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p[:1], "has shape"),
        (lambda p: p.astype(np.float32), "holds float32"),
        (lambda p: p * np.nan, "is not finite"),
        (lambda p: p - 2 * p.max(), "share below 0"),
        (lambda p: 2 * p, "not 1"),
        (lambda p: p[::-1], "one distribution has one marginal"),
    ],
)
def test_what_is_no_distribution_is_named(change, said):
    with pytest.raises(ContractBroken, match=said):
        require_distribution(View(TABLE, (0,), change), SHAPE)


def test_a_model_keeps_its_promises_and_has_its_shape():
    model = Decomposable.independent([np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5])])
    require_model(model, SHAPE)
    with pytest.raises(ContractBroken, match="the model has shape"):
        require_model(model, (3, 2))


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([np.zeros(2, np.uint8)], "a list of 2 arrays"),
        ([np.zeros(2, np.uint8), np.zeros(3, np.uint8)], "has shape"),
        ([np.zeros(2, np.uint8), np.zeros(2, np.int64)], "unsigned integers"),
        ([np.zeros(2, np.uint8), np.full(2, 3, np.uint8)], "outside 0..2"),
    ],
)
def test_rows_are_legal_codes(codes, said):
    require_rows([np.array([0, 1], np.uint8), np.array([2, 0], np.uint8)], SHAPE, 2)
    with pytest.raises(ContractBroken, match=said):
        require_rows(codes, SHAPE, 2)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Measured((0,), np.zeros(3, np.int64), 1.0), "table of shape"),
        (Measured((2,), np.zeros(3, np.int64), 1.0), "increasing positions"),
        ("a table", "answered with a str"),
    ],
)
def test_answers_that_are_none(answer, said):
    require_answer(Measured((0,), np.zeros(2, np.int64), 1.0), SHAPE)
    with pytest.raises(ContractBroken, match=said):
        require_answer(answer, SHAPE)


def test_fingerprints_are_equal_where_every_bit_is():
    one = Measured((0,), np.array([1, 2]), 0.1)
    assert fingerprint([one]) == fingerprint((Measured((0,), np.array([1, 2]), 0.1),))
    assert fingerprint(one) != fingerprint(Measured((0,), np.array([1, 2]), np.nextafter(0.1, 1)))
    assert fingerprint(np.array([0.0])) != fingerprint(np.array([-0.0]))
    assert fingerprint(np.zeros(1, np.int32)) != fingerprint(np.zeros(1, np.int64))
