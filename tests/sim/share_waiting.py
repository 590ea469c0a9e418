"""Members of a simulated share group whose fetch waits, with the shell's own parked fetches.

Checked after every event: no fetch waits for a share-partition that has records for it. A record
that comes, or comes back, wakes somebody at once, and no fetch waits beyond its deadline.
"""

from collections.abc import Callable
from typing import Any, cast

from broker.server.handlers.share.share_fetch import ParkedShareFetch
from broker.server.replication.parked_fetches import ParkedFetches
from broker.server.share.led_share_partition import LedSharePartition, LedState
from tests.sim.scheduler import Scheduler
from tests.sim.share_loop import VirtualLoop

WAIT_MS = 500


class WaitingMembers:
    """The parked fetches of one node, and what each waits for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.parked = ParkedFetches(cast(Any, VirtualLoop(scheduler)))
        self._deadlines: dict[ParkedShareFetch, int] = {}
        self._awaited: dict[ParkedShareFetch, LedSharePartition] = {}

    def wait(self, led: LedSharePartition, fetch: Callable[[], int]) -> None:
        """Let a member wait for records of a share-partition; `fetch` acquires them."""
        parked = ParkedShareFetch(self.parked, [led], 1, is_read_committed=False)
        self.parked.park(parked, WAIT_MS)
        self._deadlines[parked] = self._scheduler.now_ms + WAIT_MS
        self._awaited[parked] = led

        def go_on() -> None:
            is_final: bool = parked.value
            if led.state is LedState.ENDED or fetch() or is_final:
                parked.end()
                del self._deadlines[parked], self._awaited[parked]
            else:
                parked.wait_on()
                parked.when_done(go_on)

        parked.when_done(go_on)

    def on_produced(self, number: int) -> None:
        """Wake those who wait for a partition, as an append does."""
        for parked, led in self._awaited.items():
            if led.key.partition == number:
                parked.missing_bytes = 0
                self.parked.wake((parked,))

    def check(self) -> None:
        """Assert that nobody waits without need; whatever was due has happened."""
        for parked, led in self._awaited.items():
            assert led.state is not LedState.ENDED, ("waits for what has ended", led.key)
            assert not led.has_records(), ("waits beside records", led.key, led.share)
            assert self._scheduler.now_ms <= self._deadlines[parked], "waits beyond its deadline"
