"""A ShareFetch that waits for records.

An append, or records that become available, may wake hundreds of members. They look in the order in
which they began to wait, and each takes what it can: a fetch goes on only if those before it have
left something, so the work depends on the records, and not on the number of members.
"""

from collections.abc import Collection

from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches
from broker.server.share.led_share_partition import LedSharePartition, LedState


class ParkedShareFetch(ParkedFetch):
    """One waiting fetch of a member; `led` are the share-partitions that it may read."""

    __slots__ = ("_led",)

    def __init__(
        self,
        parked: ParkedFetches,
        led: Collection[LedSharePartition],
        min_bytes: int,
        *,
        is_read_committed: bool,
    ) -> None:
        super().__init__(
            parked,
            [*(each.partition for each in led), *led],
            min_bytes,
            is_read_committed=is_read_committed,
            is_patient=min_bytes > 1,
        )
        self._led = led

    def awake(self, *, is_final: bool) -> None:
        """Continue the handler if it has to answer, or if there is something to read."""
        if is_final or any(led.state is LedState.ENDED or led.has_records() for led in self._led):
            super().awake(is_final=is_final)
