"""How many records the default method keeps: a public rule that bounds its memory."""

import pytest

from understudy.game.methods import MaxEntMethod
from understudy.players.data import Particles
from understudy.releases import prepare
from understudy.schema import Category, Schema


def test_eight_records_a_row_within_bounds():
    player = Particles(400_000)
    assert player.size(10, 45) == 20_000
    assert player.size(10_000, 45) == 80_000
    assert player.size(10**7, 45) == 400_000


@pytest.mark.parametrize("columns", [60, 100, 150, 200])
def test_wide_tables_get_fewer_records_not_more_memory(columns):
    pairs = columns * (columns - 1) // 2
    assert Particles(400_000).size(10**6, pairs) * pairs <= 1.2e9


def test_the_forecast_of_memory_stays_below_four_gigabytes():
    def memory(columns):
        schema = Schema(tuple(Category(f"c{i}", tuple(range(10))) for i in range(columns)))
        return prepare(schema, epsilon=1, method=MaxEntMethod()).forecast(10**5).memory_bytes

    few, many = memory(20), memory(100)
    assert few < many < 4e9
