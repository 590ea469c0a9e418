"""Large texts take turns, so that the event loop looks for requests between any two of them."""

import asyncio

from schemas.registry.turns import Turns

LARGE, SMALL = 1 << 20, 100


def iterations_of(sizes: list[int]) -> list[int]:
    """Return in which iteration of the event loop each piece of work was done."""

    async def run() -> list[int]:
        turns, iteration, done = Turns(), 0, []

        async def work(size: int) -> None:
            async with turns.turn(size):
                done.append(iteration)

        working = [asyncio.ensure_future(work(size)) for size in sizes]
        while not all(each.done() for each in working):
            iteration += 1
            await asyncio.sleep(0)
        return done

    return asyncio.run(run())


def test_each_large_text_has_an_iteration_of_the_loop_for_itself() -> None:
    done = iterations_of([LARGE] * 20)
    assert len(set(done)) == 20
    assert done == sorted(done)


def test_small_texts_do_not_wait() -> None:
    assert len(set(iterations_of([SMALL] * 20))) == 1
