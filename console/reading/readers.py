"""Which groups have read the records that somebody follows, by their committed offsets."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from console.group_lags import Positions
from console.reading.following import FollowedRow


class Read(NamedTuple):
    """A group has read the records of a partition up to this one."""

    group: str
    topic: str
    partition: int
    offset: str


class Readers:
    """Owns what is told already, of the last record in each partition."""

    def __init__(self, positions: Callable[[], Awaitable[Mapping[str, Positions]]]) -> None:
        """`positions` asks where all groups are."""
        self._positions = positions
        self._last: dict[TopicPartition, int] = {}
        self._told: dict[tuple[str, TopicPartition], int] = {}

    def add(self, rows: Iterable[FollowedRow]) -> None:
        """Note records that were found."""
        for topic, row in rows:
            partition = TopicPartition(topic, row.partition)
            self._last[partition] = max(row.offset, self._last.get(partition, row.offset))

    async def look(self) -> list[Read]:
        """Return what groups have read since the last look; nothing while Kafka does not answer."""
        if not self._last:
            return []
        try:
            positions = await self._positions()
        except (KafkaError, ConnectionFailed):
            return []
        found = []
        for group_id, places in sorted(positions.items()):
            for partition, last in self._last.items():
                at = places.get(partition)
                key = group_id, partition
                if at is not None and at.committed > last != self._told.get(key):
                    self._told[key] = last
                    found.append(Read(group_id, *partition, str(last)))
        return found
