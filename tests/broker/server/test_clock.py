"""The clock that a test moves: both times go forward together, and due timers are called in order.

Timers are far away, so that only a move can make them due.
"""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from broker.server.clock import MAX_AHEAD_MS, MovableClock, SteadyClock, SystemClock

HOUR_MS = 3_600_000
NewLoop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])


class Moved:
    """A clock, and what was called."""

    def __init__(self) -> None:
        self.clock = MovableClock()
        self.called: list[str] = []

    def later(self, hours: float, name: str) -> "asyncio.TimerHandle":
        return self.clock.call_later(hours * HOUR_MS, self.called.append, name)  # type: ignore[return-value]

    async def advance(self, hours: float) -> list[str]:
        self.called.clear()
        self.clock.advance(int(hours * HOUR_MS))
        await asyncio.sleep(0)
        return self.called


@LOOPS
def test_a_move_makes_timers_due_in_the_order_of_their_times(new_loop: NewLoop) -> None:
    async def run() -> None:
        moved = Moved()
        for hours, name in ((3, "c"), (1, "a"), (2, "b"), (1, "a again"), (9, "never")):
            moved.later(hours, name)
        assert await moved.advance(0.5) == []
        assert await moved.advance(0.5) == ["a", "a again"]
        assert await moved.advance(4) == ["b", "c"]
        assert await moved.advance(0) == []

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


@LOOPS
def test_a_timer_that_an_earlier_one_cancels_is_not_called(new_loop: NewLoop) -> None:
    async def run() -> None:
        moved = Moved()
        later = moved.later(2, "cancelled by the first")
        moved.clock.call_later(HOUR_MS, later.cancel)
        moved.later(1, "cancelled before").cancel()
        assert await moved.advance(5) == []

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


@LOOPS
def test_what_is_due_is_called_before_what_the_loop_has_to_do(new_loop: NewLoop) -> None:
    async def run() -> None:
        moved = Moved()
        moved.later(1, "due")
        asyncio.get_running_loop().call_soon(moved.called.append, "a request that has arrived")
        assert await moved.advance(2) == ["due", "a request that has arrived"]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


@LOOPS
def test_a_timer_that_fails_is_reported_and_the_next_one_is_called(new_loop: NewLoop) -> None:
    async def run() -> None:
        moved = Moved()
        reported: list[BaseException] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["exception"])
        )
        moved.clock.call_later(HOUR_MS, [].remove, "nothing")
        moved.later(2, "the next")
        assert await moved.advance(3) == ["the next"]
        assert [type(each) for each in reported] == [ValueError]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


@LOOPS
def test_a_timer_without_a_move_is_called_by_the_loop_and_only_once(new_loop: NewLoop) -> None:
    async def run() -> None:
        moved, done = Moved(), asyncio.Event()
        moved.clock.call_later(1, done.set)
        moved.later(0, "now")
        await done.wait()
        assert moved.called == ["now"]
        assert await moved.advance(1) == []

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def test_both_times_move_and_of_nodes_only_the_timestamps() -> None:
    async def run() -> None:
        real, clock = SystemClock(), MovableClock()
        steady = SteadyClock(clock)
        moves: list[int] = []
        clock.on_moved = lambda: moves.append(clock.ahead_ms)
        clock.advance(HOUR_MS)
        assert moves == [HOUR_MS]
        for moved, other in (
            (clock.now_ms, real.now_ms),
            (clock.timestamp_ms, real.timestamp_ms),
            (steady.timestamp_ms, real.timestamp_ms),
        ):
            before = other()
            assert before + HOUR_MS <= moved() <= other() + HOUR_MS
        before = real.now_ms()
        assert before <= steady.now_ms() <= real.now_ms()

    asyncio.run(run())


@pytest.mark.parametrize("ms", [-1, MAX_AHEAD_MS + 1])
def test_time_goes_neither_back_nor_beyond_what_timestamps_can_hold(ms: int) -> None:
    clock = MovableClock()
    with pytest.raises(ValueError, match="cannot be moved"):
        clock.advance(ms)
    assert clock.ahead_ms == 0
