"""Requests to the leaders of partitions: offsets by time, ends of logs, deletion of records.

Every leader gets one request for all its partitions. A partition whose leader has moved, or without
a leader, is retried until the client's timeout; then the error is the outcome of the partition, as
every other error is at once.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from common.kafka.admin.client import AdminClient, error_of
from common.kafka.admin.topics import topic_leaders
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from common.kafka.topics import TopicPartition

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
FIRST_VERSIONS = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""By negative timestamp, the first version of ListOffsets that supports it."""
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
UNKNOWN_OFFSET = -1
CONSUMER_REPLICA_ID = -1
NOT_THERE = -2
"""The leader id of a partition that does not exist, beside `NO_LEADER`."""

LEADER_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)

Outcome = TypeVar("Outcome")
Outcomes = dict[TopicPartition, Outcome | KafkaError]


class ListedOffset(NamedTuple):
    """A leader's answer for a time; UNKNOWN_OFFSET if no record is at or after it."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def ask_leaders(
    client: AdminClient,
    partitions: Collection[TopicPartition],
    ask: Callable[[int, Sequence[TopicPartition]], Outcomes[Outcome]],
) -> Outcomes[Outcome]:
    """Return the outcome of each partition; `ask` sends one leader its partitions."""
    outcomes: Outcomes[Outcome] = {}

    def left() -> list[TopicPartition]:
        return [partition for partition in partitions if partition not in outcomes]

    def attempt() -> None:
        moved = None
        for leader_id, led in _by_leader(client, left()).items():
            answered = _unled(leader_id, led) if leader_id < 0 else ask(leader_id, led)
            for partition, outcome in answered.items():
                if isinstance(outcome, KafkaError) and outcome.code in LEADER_MOVED:
                    moved = outcome
                else:
                    outcomes[partition] = outcome
        if moved is not None:
            raise moved

    try:
        client.retry("the leaders of partitions", attempt, LEADER_MOVED)
    except KafkaError as error:
        if error.code not in {*LEADER_MOVED, ErrorCode.REQUEST_TIMED_OUT}:
            raise
        outcomes.update(dict.fromkeys(left(), error))
    return outcomes


def _by_leader(
    client: AdminClient, partitions: Collection[TopicPartition]
) -> dict[int, list[TopicPartition]]:
    leaders = topic_leaders(client, {one.topic for one in partitions})
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        found[leaders.get(partition, NOT_THERE)].append(partition)
    return dict(sorted(found.items()))


def _unled(
    leader_id: int, partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, KafkaError]:
    is_there = leader_id != NOT_THERE
    code = ErrorCode.LEADER_NOT_AVAILABLE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return dict.fromkeys(partitions, error_of(code))


def by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, as in most requests."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        found[topic].append(partition)
    return found


def list_offsets(
    client: AdminClient,
    partitions: Collection[TopicPartition],
    timestamp: int,
    *,
    isolation_level: int = READ_UNCOMMITTED,
) -> Outcomes[ListedOffset]:
    """Return each partition's offset at a time, or at one of the negative timestamps above.

    With READ_COMMITTED the latest offset is the last stable one.
    """
    at = dict.fromkeys(partitions, timestamp)
    return list_offsets_at(client, at, isolation_level=isolation_level)


def list_offsets_at(
    client: AdminClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = READ_UNCOMMITTED,
) -> Outcomes[ListedOffset]:
    """Return the same for a timestamp of each partition."""

    def ask(leader_id: int, led: Sequence[TopicPartition]) -> Outcomes[ListedOffset]:
        needed = max({timestamps[one] for one in led}, key=lambda one: FIRST_VERSIONS.get(one, 0))
        if not client.supports_once(ApiKey.LIST_OFFSETS, FIRST_VERSIONS.get(needed, 0), leader_id):
            error = KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"broker {leader_id} knows no timestamp {needed}"
            )
            return dict.fromkeys(led, error)
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=isolation_level,
            timeout_ms=client.settings.request_timeout_ms,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=number,
                            timestamp=timestamps[TopicPartition(name, number)],
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(led).items()
            ],
        )
        return {
            TopicPartition(topic.name, one.partition_index): error_of(one.error_code)
            if one.error_code
            else ListedOffset(one.offset, one.timestamp, one.leader_epoch)
            for topic in client.ask_once(request, ListOffsetsResponse, leader_id).topics
            for one in topic.partitions
        }

    return ask_leaders(client, timestamps, ask)


def log_end_offsets(client: AdminClient, partitions: Collection[TopicPartition]) -> Outcomes[int]:
    """Return where the logs of the leaders end, at or above the high watermarks.

    A client may neither list nor fetch more than the high watermark from Apache Kafka, but it may
    ask for the end of the newest leader epoch (KIP-320), which is that of the log.
    """
    listed = list_offsets(client, partitions, LATEST)
    newest = {partition: one for partition, one in listed.items() if isinstance(one, ListedOffset)}

    def ask(leader_id: int, led: Sequence[TopicPartition]) -> Outcomes[int]:
        request = OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        OffsetForLeaderPartition(
                            partition=number,
                            leader_epoch=newest[TopicPartition(name, number)].leader_epoch,
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(led).items()
            ],
        )
        return {
            (place := TopicPartition(topic.topic, one.partition)): error_of(one.error_code)
            if one.error_code
            else max(one.end_offset, newest[place].offset)
            for topic in client.ask_once(request, OffsetForLeaderEpochResponse, leader_id).topics
            for one in topic.partitions
        }

    failed = {partition: one for partition, one in listed.items() if isinstance(one, KafkaError)}
    return {**failed, **ask_leaders(client, newest, ask)}


def delete_records(
    client: AdminClient, before_offsets: Mapping[TopicPartition, int]
) -> Outcomes[int]:
    """Delete the records before an offset of each partition; return the new log start offsets."""

    def ask(leader_id: int, led: Sequence[TopicPartition]) -> Outcomes[int]:
        request = DeleteRecordsRequest(
            timeout_ms=client.settings.request_timeout_ms,
            topics=[
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=number,
                            offset=before_offsets[TopicPartition(name, number)],
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(led).items()
            ],
        )
        return {
            TopicPartition(topic.name, one.partition_index): error_of(one.error_code)
            if one.error_code
            else one.low_watermark
            for topic in client.ask_once(request, DeleteRecordsResponse, leader_id).topics
            for one in topic.partitions
        }

    return ask_leaders(client, before_offsets, ask)


def successes(
    outcomes: Mapping[TopicPartition, Outcome | KafkaError],
) -> dict[TopicPartition, Outcome]:
    """Return the values of all outcomes; raise the error of any."""
    found = {}
    for partition, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            raise KafkaError(outcome.code, f"{partition}: {outcome}")
        found[partition] = outcome
    return found
