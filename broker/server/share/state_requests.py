"""ReadShareGroupState and WriteShareGroupState: questions about many share-partitions in one."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from broker.coordinator.share_state.state import SharePartitionKey
from broker.share.in_flight import RecordState
from broker.share.share_partition import StateBatch
from broker.share.stored_state import StateWrite, StoredState
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import read_share_group_state as reading
from common.kafka.protocol.messages import write_share_group_state as writing

READ_VERSION, WRITE_VERSION = 0, 1
PARTITIONS_PER_REQUEST = 1_000
BATCHES_PER_REQUEST = 5_000


class Refusal:
    """A code of the coordinator, or of the network, and its message."""

    __slots__ = ("code", "message")

    def __init__(self, code: int, message: str | None = None) -> None:
        self.code = code
        self.message = message


_RESPONSES = writing.WriteShareGroupStateResponse, reading.ReadShareGroupStateResponse

NO_ANSWER = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The share coordinator does not answer.")
Result = StoredState | Refusal | None
"""The result of a read, a refusal, or None for a write that is done."""


class StateQuestion:
    """One question about one share-partition."""

    __slots__ = ("deadline_ms", "on_result", "pause_ms", "share_partition", "wanted")

    def __init__(
        self,
        share_partition: SharePartitionKey,
        wanted: int | StateWrite,
        on_result: Callable[[Result], None],
        deadline_ms: int,
    ) -> None:
        self.share_partition = share_partition
        self.wanted = wanted
        """The leader epoch of a read, or what is written."""
        self.on_result = on_result
        self.deadline_ms = deadline_ms
        self.pause_ms = 0

    @property
    def key(self) -> tuple[bytes, int]:
        """The topic id and the partition."""
        return self.share_partition.topic_id, self.share_partition.partition

    @property
    def size(self) -> int:
        """The number of state batches that it carries."""
        return len(self.wanted.batches) if isinstance(self.wanted, StateWrite) else 0


def request_of(questions: list[StateQuestion]) -> tuple[Message, int]:
    """Return the request that asks the questions, all of one group and kind, and its version."""
    group_id = questions[0].share_partition.group_id
    if isinstance(questions[0].wanted, StateWrite):
        return (
            writing.WriteShareGroupStateRequest(
                group_id=group_id,
                topics=_by_topic(questions, writing.WriteStateData, _write_of),
            ),
            WRITE_VERSION,
        )
    return (
        reading.ReadShareGroupStateRequest(
            group_id=group_id, topics=_by_topic(questions, reading.ReadStateData, _read_of)
        ),
        READ_VERSION,
    )


class _TopicClass(Protocol):
    def __call__(self, *, topic_id: bytes) -> Any: ...


def _by_topic(
    questions: Iterable[StateQuestion],
    topic_class: _TopicClass,
    make: Callable[[StateQuestion], Any],
) -> list[Any]:
    topics: dict[bytes, Any] = {}
    for question in questions:
        topic_id = question.share_partition.topic_id
        if topic_id not in topics:
            topics[topic_id] = topic_class(topic_id=topic_id)
        topics[topic_id].partitions.append(make(question))
    return list(topics.values())


def _read_of(question: StateQuestion) -> reading.PartitionData:
    assert isinstance(question.wanted, int), question.wanted
    return reading.PartitionData(
        partition=question.share_partition.partition, leader_epoch=question.wanted
    )


def _write_of(question: StateQuestion) -> writing.PartitionData:
    wanted = question.wanted
    assert isinstance(wanted, StateWrite), wanted
    return writing.PartitionData(
        partition=question.share_partition.partition,
        state_epoch=wanted.state_epoch,
        leader_epoch=wanted.leader_epoch,
        start_offset=wanted.start_offset,
        delivery_complete_count=wanted.delivery_complete_count,
        state_batches=[
            writing.StateBatch(
                first_offset=start,
                last_offset=end - 1,
                delivery_state=state,
                delivery_count=count,
            )
            for start, end, state, count in wanted.batches
        ],
    )


def results_of(answer: Message | None) -> dict[tuple[bytes, int], Result]:
    """Return the result for each share-partition that an answer names."""
    results: dict[tuple[bytes, int], Result] = {}
    if isinstance(
        answer, writing.WriteShareGroupStateResponse | reading.ReadShareGroupStateResponse
    ):
        for topic in answer.results:
            for each in topic.partitions:
                results[topic.topic_id, each.partition] = _result_of(each)
    return results


def _result_of(
    each: writing.PartitionResult | reading.PartitionResult,
) -> Result:
    if each.error_code:
        return Refusal(each.error_code, each.error_message)
    if isinstance(each, writing.PartitionResult):
        return None
    try:
        batches = [
            StateBatch(
                batch.first_offset,
                batch.last_offset + 1,
                RecordState(batch.delivery_state),
                batch.delivery_count,
            )
            for batch in each.state_batches
        ]
    except ValueError as error:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    return StoredState(each.state_epoch, each.start_offset, batches)
