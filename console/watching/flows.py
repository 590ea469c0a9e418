"""What flows through a cluster: the lag of groups, and the records that are written a second.

The rate is the difference between two looks at the ends of the logs, so it is known of any Kafka.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from common.kafka.admin import leaders
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from common.process.clock import now_seconds
from console.cluster import Cluster
from console.group_lags import lag_of
from console.reading.ages import group_ages_ms

Leaders = Mapping[TopicPartition, int]
"""The leader of each partition, -1 without one."""

_MAX_AGED_PARTITIONS: Final = 30
_MAX_MEASURED_PARTITIONS: Final = 2_000
"""The ends of more are not asked for every other second: then no rate is shown."""


@dataclass(frozen=True)
class Flow:
    """What flows at one time."""

    lags: Mapping[str, int] = field(default_factory=dict)
    """By group, how many records it has not read; without those that could not be asked for."""
    ages_ms: Mapping[str, int] = field(default_factory=dict)
    """By group, the age of the oldest record that it has not read."""
    written: Mapping[int, int] = field(default_factory=dict)
    """By broker, how many records a second are written to the partitions that it leads."""


class FlowMeter:
    """Owns the last look at the ends of the logs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ends: Mapping[TopicPartition, int] = {}
        self._at = 0.0

    async def look(self, leaders_of: Leaders) -> Flow:
        """Return what flows. Raise KafkaError, ConnectionFailed."""
        positions = await self._cluster.positions()
        return Flow(
            {group_id: lag_of(each) for group_id, each in positions.items()},
            await group_ages_ms(self._cluster.client, positions, _MAX_AGED_PARTITIONS),
            await self._written({each: at for each, at in leaders_of.items() if at >= 0}),
        )

    async def _written(self, led: Leaders) -> dict[int, int]:
        if len(led) > _MAX_MEASURED_PARTITIONS:
            return {}
        found = await self._cluster.admin.run(leaders.list_offsets, list(led), leaders.LATEST)
        ends = {each: at.offset for each, at in found.items() if not isinstance(at, KafkaError)}
        now = now_seconds()
        seconds, before = now - self._at, self._ends
        self._ends, self._at = ends, now
        return rates(before, ends, led, seconds)


def rates(
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    led: Leaders,
    seconds: float,
) -> dict[int, int]:
    """Return the records a second by leader; those that nobody saw before are left out."""
    if not before:
        return {}
    written: dict[int, int] = defaultdict(int)
    for each, leader in led.items():
        # A log that was cut has a smaller end.
        written[leader] += max(0, after.get(each, 0) - before.get(each, after.get(each, 0)))
    return {leader: round(count / seconds) for leader, count in written.items()}
