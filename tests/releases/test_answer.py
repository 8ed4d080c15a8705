"""Answers: the certified interval holds the truth, for questions that cut cells too."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

import understudy as us
from understudy.releases.answer import Answer

QUESTIONS = [
    "age >= 65 and sex = 'F'",
    "sex = 'M'",
    "age < 30",
    "age between 33 and 57 and smoker",
    "visits in (1, 2) or visits = 4",
    "not (smoker) and age > 41",
    "smoker is null",
    "visits >= 0",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_interval_holds_the_truth(made, table, question):
    answer = made.answer(question)
    assert answer.certified
    connection = duckdb.connect()
    connection.register("people", table)
    query = f"SELECT count(*) FILTER ({question}) / count(*) FROM people"
    (truth,) = connection.execute(query).fetchone()
    assert answer.low - 1e-9 <= truth <= answer.high + 1e-9
    assert answer.low <= answer.estimate <= answer.high


def test_the_interval_is_the_smaller_of_cells_and_variation(made):
    """One cell: at most U to each side; many cells: the total variation takes over."""
    one = made.answer("sex = 'F' and visits = 2")
    assert one.high - one.estimate <= made.certificate.bound + 1e-9
    many = made.answer("visits >= 1 and age >= 10")
    assert many.high - many.estimate <= max(made.certificate.variations) + 1e-9


def test_of_how_many_cells_a_bound_is_the_sum(made):
    """A share of one column comes from a table of two, unless the workload has the column itself."""
    pairs = replace(made, certificate=replace(made.certificate, variations=None))
    assert pairs.answer("sex = 'F' and visits = 2").cells == 1
    single = pairs.answer("sex = 'F'")
    assert single.cells > 1
    assert single.high == min(1.0, single.estimate + single.cells * made.certificate.bound)
    assert made.answer("visits >= 1 and age >= 10").cells == 0  # a total variation


def test_three_columns_are_not_covered_by_pairs(made):
    answer = made.answer("age > 50 and sex = 'F' and visits = 0")
    assert not answer.certified
    assert "not certified" in str(answer)
    assert 0 <= answer.estimate <= 1


def test_cut_cells_widen_the_interval(made):
    whole, cut = made.answer("age < 50"), made.answer("age < 55")
    assert cut.high - cut.low > whole.high - whole.low


def test_a_question_about_an_unknown_column_is_refused(made):
    with pytest.raises(us.errors.WorkloadError, match="agge"):
        made.answer("agge > 3")


def test_an_interval_of_every_share_says_nothing():
    anything = Answer("sex = 'F'", 0.5, 0.0, 1.0, 0.95, ("sex",))
    assert (
        str(anything)
        == "50.00 % (certified between 0.00 % and 100.00 %, 95 % confidence, which says nothing here)"
    )
    assert "says nothing" not in str(replace(anything, high=0.9))
