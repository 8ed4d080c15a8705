"""Columns as codes and numbers, whatever they arrive as."""

import numpy as np
import pyarrow as pa

from understudy.draft.seen import looked_at, sampled
from understudy.schema import Schema

TEXT = """
[understudy]
version = 1
null_values = ["?"]
[[column]]
name = "id"
type = "identifier"
[[column]]
name = "n"
type = "integer"
lower = 0
upper = 9
nullable = true
[[column]]
name = "day"
type = "date"
lower = 1970-01-01
upper = 1970-12-31
bins = 12
[[column]]
name = "word"
type = "category"
values = ["a", "it's"]
"""


def test_texts_and_types_alike():
    schema = Schema.loads(TEXT)
    typed = pa.table(
        {
            "id": ["x", "y", "z"],
            "n": [3, None, 7],
            "day": pa.array([1, 2, 1], pa.int32()).cast(pa.date32()),
            "word": ["a", "it's", "a"],
        }
    )
    texts = pa.table(
        {
            "id": ["x", "y", "z"],
            "n": ["3", " ? ", "7"],
            "day": ["1970-01-02", "1970-01-03", "1970-01-02"],
            "word": ["a", "it's", "a"],
        }
    )
    for table in (typed, texts):
        n, day, word = looked_at(table, schema)
        assert [n.name, day.name, word.name] == ["n", "day", "word"]
        assert n.numbers[[0, 2]].tolist() == [3, 7]
        assert np.isnan(n.numbers[1])
        assert n.null.tolist() == [False, True, False]
        assert n.counts.tolist() == [1, 1, 1]
        assert day.numbers.tolist() == [1, 2, 1]
        assert (n.unit, day.unit, word.unit) == ("number", "date", None)
        assert word.literal(word.texts[word.codes[1]]) == "'it''s'"
        values, rows = n.ranked
        assert (values.tolist(), rows.tolist()) == ([3, 7], [0, 2])


def test_a_sample_is_spread():
    assert sampled(5).tolist() == [0, 1, 2, 3, 4]
    rows = sampled(1_000_000)
    assert (rows[0], rows[-1]) == (0, 999_999)
    assert len(rows) == len(set(rows.tolist())) == 2000
