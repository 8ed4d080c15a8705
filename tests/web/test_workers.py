"""Whose file is read next."""

import asyncio

import pytest

from understudy.web.errors import Busy
from understudy.web.workers import Turns


def served(turns, arrivals):
    """The order in which arrivals are served, and the most at once."""
    order, now, most = [], 0, 0

    async def come(who):
        nonlocal now, most
        async with turns.turn(who):
            now += 1
            most = max(most, now)
            order.append(who)
            await asyncio.sleep(0)
            now -= 1

    async def all_of_them():
        await asyncio.gather(*map(come, arrivals))

    asyncio.run(all_of_them())
    assert now == 0
    return order, most


def test_a_person_with_one_file_does_not_wait_for_fifty_of_another():
    order, most = served(Turns(2), ["eve"] * 50 + ["ana", "ben"] + ["eve"] * 5)
    assert most == 2
    assert sorted(order) == ["ana", "ben"] + ["eve"] * 55
    assert order.index("ana") <= 4
    assert order.index("ben") <= 5


def test_one_person_is_served_in_order():
    turns, order = Turns(1), []

    async def come(number):
        async with turns.turn("ana"):
            order.append(number)

    async def all_of_them():
        await asyncio.gather(*map(come, range(20)))

    asyncio.run(all_of_them())
    assert order == list(range(20))


def test_what_waits_is_bounded_for_each_person():
    async def many():
        turns = Turns(1, waiting=3)
        async with turns.turn("eve"):
            waiting = [asyncio.create_task(turns.turn("eve").__aenter__()) for _ in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(Busy, match="3 of your files are waiting"):
                await turns.turn("eve").__aenter__()
            other = asyncio.create_task(turns.turn("ana").__aenter__())
            await asyncio.sleep(0)
            assert not other.done()
            for task in (*waiting, other):
                task.cancel()
            await asyncio.gather(*waiting, other, return_exceptions=True)
        async with asyncio.timeout(60), turns.turn("eve"):
            pass

    asyncio.run(many())


def test_a_turn_that_nobody_takes_goes_to_the_next():
    async def called_and_gone():
        turns, order = Turns(1), []

        async def come(who):
            async with turns.turn(who):
                order.append(who)

        async with turns.turn("first"):
            gone, stays = asyncio.create_task(come("gone")), asyncio.create_task(come("stays"))
            await asyncio.sleep(0)
        gone.cancel()  # it has been called by now, and has not noticed
        async with asyncio.timeout(60):
            await stays
            async with turns.turn("last"):
                return order

    assert asyncio.run(called_and_gone()) == ["stays"]
