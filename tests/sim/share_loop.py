"""An event loop and a clock on virtual time, for parts of the shell that a simulation runs."""

from collections.abc import Callable
from typing import Any

from tests.sim.scheduler import Scheduler

EPOCH_MS = 1_700_000_000_000


class VirtualTimer:
    """A call that may be cancelled."""

    def __init__(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._call = call
        self._arguments = arguments
        self._is_cancelled = False

    def cancel(self) -> None:
        self._is_cancelled = True

    def run(self) -> None:
        if not self._is_cancelled:
            self._call(*self._arguments)


class VirtualLoop:
    """The methods of an event loop that have to do with time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def call_later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> Any:
        timer = VirtualTimer(call, arguments)
        self._scheduler.after(round(seconds * 1000), timer.run)
        return timer

    def call_soon(self, call: Callable[..., None], *arguments: Any) -> Any:
        return self.call_later(0, call, *arguments)


class VirtualClock:
    """The clock of the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def now_ms(self) -> int:
        return self._scheduler.now_ms

    def timestamp_ms(self) -> int:
        return EPOCH_MS + self._scheduler.now_ms

    def call_later(self, delay_ms: float, call: Callable[..., None], *arguments: Any) -> Any:
        return VirtualLoop(self._scheduler).call_later(delay_ms / 1000, call, *arguments)
