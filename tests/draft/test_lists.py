from understudy.draft.lists import items, lists, word_set


def test_words_items_and_lists_may_stand_on_several_lines():
    assert word_set("  no nr\n  no ") == {"no", "nr"}
    assert items("\n  very\n  good, good, n/a\n") == ("very good", "good", "n/a")
    assert items("%b %d, %Y; %Y", between=";") == ("%b %d, %Y", "%Y")
    assert lists("\n no, yes; n,\n y\n") == (("no", "yes"), ("n", "y"))
