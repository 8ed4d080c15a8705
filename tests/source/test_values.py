"""Who holds which value, on every engine."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from tests.source.engines import ENGINES, OPEN
from understudy.columns.unmodelled import Level
from understudy.errors import SourceError
from understudy.privacy.sensitive import reveal
from understudy.schema import Schema
from understudy.source import read
from understudy.source.values import Holders


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", ["", 'unit = "who"\nmax_rows = 2'])
def test_values_and_their_holders_are_counted_where_the_rows_are(engine, unit):
    rng = np.random.default_rng(5)
    towns = [None, "", " ", "?", " - ", "Bern", "bern", " Bern", "Z\u00fcrich", "'; --"]
    people = [None, "", "ann", " ann", "bo", "?", "cy"]
    table = pa.table(
        {
            "who": pa.array([people[i] for i in rng.integers(0, 7, 150)], pa.string()),
            "town": pa.array([towns[i] for i in rng.integers(0, 10, 150)], pa.string()),
        }
    )
    schema = Schema.loads(OPEN.replace("UNIT", unit))
    found, expected = (
        reveal(Holders(source, schema).holders("town")) for source in (engine(table), read(table))
    )
    assert list(found[0]) == list(expected[0])
    assert found[1].tolist() == expected[1].tolist()
    assert len(found[0]) == (4 if unit else 5)
    level = Level(2, ((0, ("Bern", "OTHER")), (4, ("bern",))))
    found, expected = (
        reveal(Holders(source, schema).at(level).holders("town"))
        for source in (engine(table), read(table))
    )
    assert list(found[0]) == list(expected[0]) == [" B", "';", "Z\u00fc"]
    assert found[1].tolist() == expected[1].tolist()
    odd = pa.table({"who": [1.5], "town": [date(2024, 1, 1)]})
    with pytest.raises(SourceError, match=r"'town' has type .* whole numbers"):
        Holders(engine(odd), schema)
