"""Which columns are alike: lists that nest or overlap."""

from tests.draft.test_review import DRUGS, listed, ranged
from understudy.draft.alike import similar_lists
from understudy.draft.review import decisions
from understudy.schema import Schema


def names(groups):
    return [[column.name for column in group] for group in groups]


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
    assert len(decisions(Schema((*scales, *sizes, *flags, *DRUGS)))) == 4


def test_lists_that_only_share_a_code_stay_apart():
    codes = listed("occupation", *(str(i) for i in range(40)))
    sex = listed("sex", "1", "2", "3")
    assert [d.columns for d in decisions(Schema((codes, sex)))][:2] == [("occupation",), ("sex",)]
