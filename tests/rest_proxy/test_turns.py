"""Long pieces of work take turns: the event loop looks for requests between any two of them."""

import asyncio

from rest_proxy.web.turns import Turns

WORKERS, PIECES = 20, 5


def test_in_an_iteration_of_the_loop_one_of_many_goes_on() -> None:
    async def run() -> dict[int, list[int]]:
        line, iteration = asyncio.Lock(), 0
        worked: dict[int, list[int]] = {}

        async def work(number: int) -> None:
            clock = iter(range(1_000))
            turns = Turns(lambda: next(clock), line)
            for _ in range(PIECES):
                await turns.yield_if_long()
                worked.setdefault(iteration, []).append(number)

        working = [asyncio.ensure_future(work(number)) for number in range(WORKERS)]
        while not all(each.done() for each in working):
            iteration += 1
            await asyncio.sleep(0)
        return worked

    worked = asyncio.run(run())
    assert {len(each) for each in worked.values()} == {1}
    order = [each[0] for each in worked.values()]
    assert order == list(range(WORKERS)) * PIECES


def test_short_work_does_not_wait() -> None:
    async def run() -> int:
        turns = Turns(lambda: 0.0, line := asyncio.Lock())
        async with line:
            await turns.yield_if_long()
        return 1

    assert asyncio.run(asyncio.wait_for(run(), 1)) == 1
