"""The age of the next record of a partition: a lag in time. A bounded number is asked for."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from common.kafka.client.cluster import KafkaClient
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from common.process.clock import timestamp_ms
from console.group_lags import Positions
from console.reading.partitions import ReadLimits, TopicPartitions
from console.records.batches import ReadRange, records_of

MAX_PARTITIONS: Final = 200
"""So many are asked, those with the largest lag first; the others have no age."""
_LIMITS: Final = ReadLimits(max_bytes=4 << 20, partition_bytes=32 << 10, wait_ms=0)
_MAX_ROUNDS: Final = 20
_AT_ONCE: Final = 8
_END: Final = 1 << 62


async def group_ages_ms(
    client: KafkaClient, groups: Mapping[str, Positions], most: int = MAX_PARTITIONS
) -> dict[str, int]:
    """Return the age of the oldest record that waits for each group that is behind."""
    behind = sorted(
        (
            (-at.lag, group_id, partition, at.committed)
            for group_id, positions in groups.items()
            for partition, at in positions.items()
            if at.lag
        ),
    )[:most]
    # Groups may stand at different places of one partition: each place is asked for once.
    rounds: list[dict[TopicPartition, int]] = []
    for _, _, partition, committed in behind:
        if not any(each.get(partition) == committed for each in rounds):
            free = next((each for each in rounds if partition not in each), None)
            if free is None:
                rounds.append(free := {})
            free[partition] = committed
    ages: dict[tuple[TopicPartition, int], int] = {}
    for positions in rounds:
        for partition, age in (await ages_ms(client, positions)).items():
            ages[partition, positions[partition]] = age
    found: dict[str, int] = {}
    for _, group_id, partition, committed in behind:
        if (partition, committed) in ages:
            found[group_id] = max(found.get(group_id, 0), ages[partition, committed])
    return found


async def ages_ms(
    client: KafkaClient, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return how old the record at or behind each position is, where that can be read."""
    by_topic: dict[str, dict[int, int]] = defaultdict(dict)
    for partition, offset in list(positions.items())[:MAX_PARTITIONS]:
        by_topic[partition.topic][partition.partition] = offset
    turns = asyncio.Semaphore(_AT_ONCE)

    async def of_topic(topic: str) -> dict[TopicPartition, int]:
        async with turns:
            try:
                times = await _times(TopicPartitions(client, topic), by_topic[topic])
            except (KafkaError, ConnectionFailed):
                return {}  # The lag in records is shown without an age.
        now_ms = timestamp_ms()
        return {TopicPartition(topic, each): max(0, now_ms - at) for each, at in times.items()}

    found: dict[TopicPartition, int] = {}
    for each in await asyncio.gather(*map(of_topic, by_topic)):
        found |= each
    return found


async def _times(partitions: TopicPartitions, positions: Mapping[int, int]) -> dict[int, int]:
    """Return the time of the first record from each position on, where there is one."""
    await partitions.open()
    left = dict(positions)
    times: dict[int, int] = {}
    for _ in range(_MAX_ROUNDS):
        # A batch that is larger than the limit is returned only as the first of an answer.
        answered = [each for each in await partitions.fetch(left, _LIMITS, all_states=False)
                    if each.records]  # fmt: skip
        for answer in answered:
            at = left.pop(answer.partition)
            wanted = ReadRange(answer.partition, at, _END, answer.last_stable_offset, max_records=1)
            records = records_of(answer.records, wanted).records
            if records and records[0].timestamp_ms >= 0:
                times[answer.partition] = records[0].timestamp_ms
        if not left or not answered:
            break
    return times
