"""The one place that reads a clock or makes a random source.

Everything else takes `now_ms` (monotonic), `timestamp_ms` (wall time) or a `random.Random` as an
argument, so that the simulator can supply its own.
"""

import random
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio

Random = random.Random


class Timer(Protocol):
    """A call that is yet to come."""

    def cancel(self) -> None:
        """Do not call; nothing happens if the call has been made."""
        ...


class Clock(Protocol):
    """The current time on two clocks, one for deadlines and one for timestamps, and its timers.

    `call_later` is for what a client's time-outs and stored times depend on: a test can move it
    (`MovableClock`). What waits for a socket or another node is a timer of the loop.
    """

    def now_ms(self) -> int:
        """Monotonic milliseconds, for deadlines."""
        ...

    def timestamp_ms(self) -> int:
        """Wall-clock milliseconds since 1970 UTC, for timestamps that are stored."""
        ...

    def call_later(self, delay_ms: float, callback: Callable[..., None], *arguments: Any) -> Timer:
        """Call from the running loop after a delay on the monotonic clock."""
        ...


class SystemClock:
    """The real clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return time.monotonic_ns() // 1_000_000

    def timestamp_ms(self) -> int:
        """Wall-clock milliseconds since 1970 UTC."""
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: float, callback: Callable[..., None], *arguments: Any) -> Timer:
        """Set a timer of the running loop."""
        return _running_loop().call_later(delay_ms / 1000, callback, *arguments)


def _running_loop() -> "asyncio.AbstractEventLoop":
    # Imported here: a short tool reads the clock, and has no loop.
    import asyncio

    return asyncio.get_running_loop()


MAX_AHEAD_MS = 100 * 366 * 24 * 3_600_000
"""A hundred years: no timestamp of a record or of a token overflows."""


class MovableClock(SystemClock):
    """The clock of a broker under test: it runs like the real one, and can be moved forward.

    Invariant: `_timers` has every timer whose call is yet to come, in the order of their making.
    """

    __slots__ = ("_timers", "ahead_ms", "on_moved")

    def __init__(self) -> None:
        self.ahead_ms = 0
        """How far it is ahead of the real clock."""
        self.on_moved: Callable[[], None] = lambda: None
        """Called after each move, for work that is due by timestamps alone."""
        self._timers: dict[_MovableTimer, None] = {}

    def now_ms(self) -> int:
        """Monotonic milliseconds, moved."""
        return time.monotonic_ns() // 1_000_000 + self.ahead_ms

    def timestamp_ms(self) -> int:
        """Wall-clock milliseconds since 1970 UTC, moved."""
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def call_later(self, delay_ms: float, callback: Callable[..., None], *arguments: Any) -> Timer:
        """Set a timer that a move makes due."""
        timer = _MovableTimer(self._timers, self.now_ms() + delay_ms, callback, arguments)
        timer.set(delay_ms)
        return timer

    def advance(self, ms: int) -> None:
        """Move both times forward, and call what is due, in order.

        Nothing comes between: a request that has arrived would prolong what is to expire.
        Raises ValueError for a time that is negative, or more than a hundred years in all.
        """
        if not 0 <= ms <= MAX_AHEAD_MS - self.ahead_ms:
            raise ValueError(f"the clock cannot be moved by {ms} ms")
        self.ahead_ms += ms
        now_ms = self.now_ms()
        for timer in sorted(self._timers, key=lambda each: each.due_ms):
            if timer.due_ms > now_ms:
                timer.set(timer.due_ms - now_ms)
            elif timer in self._timers:  # Else an earlier one has cancelled it.
                timer.call()
        self.on_moved()

    def begin(self, ahead_ms: int) -> None:
        """Begin anew, so far ahead of the real clock: no timer from before is called."""
        for timer in list(self._timers):
            timer.cancel()
        self.ahead_ms = ahead_ms


class _MovableTimer:
    """A timer of a `MovableClock`."""

    __slots__ = ("_arguments", "_callback", "_handle", "_timers", "due_ms")

    def __init__(
        self,
        timers: "dict[_MovableTimer, None]",
        due_ms: float,
        callback: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> None:
        self._timers = timers
        self.due_ms = due_ms
        self._callback = callback
        self._arguments = arguments
        self._handle: asyncio.Handle | None = None
        timers[self] = None

    def set(self, delay_ms: float) -> None:
        """Be due after this real time, and not at the time before."""
        if self._handle is not None:
            self._handle.cancel()
        loop = _running_loop()
        # The loop calls in the order of these calls; of timers with one time it knows no order.
        self._handle = (
            loop.call_soon(self._call)
            if delay_ms <= 0
            else loop.call_later(delay_ms / 1000, self._call)
        )

    def call(self) -> None:
        """Call it, and not by the loop; a failure goes where the loop would report it."""
        self.cancel()
        try:
            self._callback(*self._arguments)
        except Exception as error:  # noqa: BLE001 - the loop has the same edge
            context = {"message": f"a timer failed: {self._callback}", "exception": error}
            _running_loop().call_exception_handler(context)

    def _call(self) -> None:
        self._timers.pop(self, None)
        self._callback(*self._arguments)

    def cancel(self) -> None:
        """Do not call."""
        self._timers.pop(self, None)
        if self._handle is not None:
            self._handle.cancel()


class SteadyClock(SystemClock):
    """The clock of what nodes do among themselves while a test moves the time of their clients.

    Its timestamps are moved, but no deadline is: heartbeats, elections and replication go on, as
    they would have gone on in the time that is skipped.
    """

    __slots__ = ("_moved",)

    def __init__(self, moved: Clock) -> None:
        self._moved = moved

    def timestamp_ms(self) -> int:
        """Wall-clock milliseconds since 1970 UTC, moved."""
        return self._moved.timestamp_ms()


monotonic_seconds = time.monotonic
"""Measures durations: it is finer than `Clock`, and is never used for a deadline."""

_SCHEDULED = Path("/proc/thread-self/schedstat")


def busy_seconds() -> float:
    """Return how long the calling thread has used a processor, or waited until it got one.

    So a thread that others keep from the processor is not idle. Where the system does not tell how
    long it waited (Linux does: proc(5)), only what it has used counts.
    """
    try:
        used_ns, waited_ns, _ = map(int, _SCHEDULED.read_text().split())
    except (OSError, ValueError):
        return time.thread_time()
    return (used_ns + waited_ns) / 1e9


def system_random() -> Random:
    """Return the operating system's random source: what it gave does not tell what it gives next.

    Ids that clients see come from it, and so do secrets.
    """
    return random.SystemRandom()


def seeded_random(seed: int) -> Random:
    """Return a random source that gives the same numbers for the same seed."""
    return random.Random(seed)


def random_uuid() -> uuid.UUID:
    """Return a fresh random UUID, never one of Kafka's reserved ones (their text starts with -)."""
    while True:
        candidate = uuid.uuid4()
        if candidate.int >> 122 != 0b111110:  # base64url would start with "-"
            return candidate
