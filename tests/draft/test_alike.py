"""Which columns are alike: lists that nest or overlap, bounds by their names."""

from datetime import date

from tests.draft.test_review import DRUGS, listed, ranged
from understudy.draft.alike import similar_lists, similar_ranges
from understudy.draft.review import decisions
from understudy.schema import Date, Schema


def names(groups):
    return [[column.name for column in group] for group in groups]


def test_bounds_are_alike_by_the_ends_of_their_names_or_by_themselves():
    columns = [
        ranged("num_beds", 0, 6),
        ranged("age", 0, 99),
        ranged("admission_id", 1, 8),
        ranged("num_tests", 0, 80),
        ranged("q1", 1, 5),
        ranged("sourceId", 1, 25),
        ranged("Q2", 1, 4),
        ranged("0", 7, 9),
        ranged("1", 7, 9),
        Date("num_day", date(2020, 1, 1), date(2020, 3, 1)),
    ]
    assert names(similar_ranges(columns)) == [
        ["num_beds", "num_tests"], ["age"], ["admission_id", "sourceId"], ["q1", "Q2"], ["0", "1"],
        ["num_day"],
    ]  # fmt: skip


def test_long_lists_are_alike_where_they_share_half():
    codes = [str(i) for i in range(300)]
    first, second, third = (listed(f"from {at}", *codes[at : at + 200]) for at in (0, 50, 100))
    assert names(similar_lists([first, second, third])) == [["from 0", "from 50", "from 100"]]
    far = listed("far", *codes[140:300])
    assert names(similar_lists([first, far])) == [["from 0"], ["far"]]


def test_wide_tables_have_few_decisions():
    scales = [ranged(f"q{i}", 1, 5) for i in range(60)]
    sizes = [ranged(f"size_{i}", 0, 100 + i) for i in range(20)]
    flags = [listed(f"flag {i}", f"a{i}", f"b{i}") for i in range(40)]
    assert len(decisions(Schema((*scales, *sizes, *flags, *DRUGS)))) == 5


def test_lists_that_only_share_a_code_stay_apart():
    codes = listed("occupation", *(str(i) for i in range(40)))
    sex = listed("sex", "1", "2", "3")
    assert [d.columns for d in decisions(Schema((codes, sex)))][:2] == [("occupation",), ("sex",)]
