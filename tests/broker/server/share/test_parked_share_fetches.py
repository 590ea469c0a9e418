"""Of the ShareFetches that wait, those go on for which there is something, the oldest first."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from broker.server.handlers.share.share_fetch import ParkedShareFetch
from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches
from broker.server.share.led_share_partition import LedState
from tests.sim.scheduler import Scheduler
from tests.sim.share_loop import VirtualLoop

MEMBERS = 100


@dataclass
class FakeSharePartition:
    """So many records, of which a member takes one at a time."""

    record_count: int = 0
    state: LedState = LedState.ACTIVE
    parked: dict[ParkedFetch, None] = field(default_factory=dict)
    partition: Any = field(default_factory=lambda: SimpleNamespace(parked={}))

    def has_records(self) -> bool:
        return self.record_count > 0


class Waiting:
    """Members that wait for one share-partition; each notes what it got when it goes on."""

    def __init__(self, member_count: int) -> None:
        self.scheduler = Scheduler(0)
        self.parked = ParkedFetches(cast(Any, VirtualLoop(self.scheduler)))
        self.led = FakeSharePartition()
        self.went_on: list[int] = []
        for number in range(member_count):
            self.wait(number)

    def wait(self, number: int) -> None:
        fetch = ParkedShareFetch(self.parked, cast(Any, [self.led]), 1, is_read_committed=False)
        fetch.missing_bytes = 0
        self.parked.park(fetch, 60_000)

        def go_on() -> None:
            self.went_on.append(number)
            if self.led.record_count:
                self.led.record_count -= 1
                fetch.end()

        fetch.when_done(go_on)

    def wake_all(self) -> None:
        self.parked.wake(self.led.partition.parked)
        self.scheduler.run_until(self.scheduler.now_ms + 1)


def test_as_many_go_on_as_there_are_records_and_in_the_order_of_their_arrival() -> None:
    waiting = Waiting(MEMBERS)
    waiting.led.record_count = 3
    waiting.wake_all()
    assert waiting.went_on == [0, 1, 2]
    waiting.wait(MEMBERS)
    waiting.led.record_count = 2
    waiting.wake_all()
    assert waiting.went_on == [0, 1, 2, 3, 4], "who has waited longer comes first"
    waiting.wake_all()
    assert len(waiting.went_on) == 5, "without records nobody goes on"


def test_all_go_on_when_the_share_partition_has_ended() -> None:
    waiting = Waiting(MEMBERS)
    waiting.led.state = LedState.ENDED
    waiting.wake_all()
    assert waiting.went_on == list(range(MEMBERS))


def test_a_member_goes_on_at_its_deadline() -> None:
    waiting = Waiting(2)
    waiting.scheduler.run_until(60_000)
    assert waiting.went_on == [0, 1]
    assert len(waiting.parked) == 0
