"""The AlterPartition requests of one broker: changes of many partitions, one request at a time.

All waiting changes go into the next request, and a change is sent until it is answered. The
controller may handle two copies of a change: if it refuses one copy while an earlier copy was never
answered, the earlier copy may still arrive and be accepted, for as long as a request can be under
way. Until then the broker ignores the refusal and sends the change again, and the change continues
to count for the high watermark.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from broker.replication.isr import ChangeOutcome, IsrChange, outcome_of
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionResult,
    TopicData,
)

RETRY_BACKOFF_MS = 50
REQUEST_LIFETIME_MS = 30_000
"""How long an abandoned request may still arrive: longer than any connection keeps it."""
NOT_NEEDED = -1

T = TypeVar("T")  # the leader that an answer is for

PartitionKey = tuple[bytes, int]  # topic id, partition


@dataclass(slots=True)
class _Waiting(Generic[T]):
    leader: T
    change: IsrChange
    unanswered_at_ms: int | None = None
    """When a copy was last sent that will never be answered."""


class IsrChanges(Generic[T]):
    """Invariant: at most one request is in flight, and one change waits for each partition."""

    __slots__ = ("_in_flight", "_lifetime_ms", "_retry_at_ms", "_sent_at_ms", "_waiting")

    def __init__(self, request_lifetime_ms: int = REQUEST_LIFETIME_MS) -> None:
        self._waiting: dict[PartitionKey, _Waiting[T]] = {}
        self._in_flight: dict[PartitionKey, _Waiting[T]] | None = None
        self._sent_at_ms = 0
        self._retry_at_ms = 0
        self._lifetime_ms = request_lifetime_ms

    def submit(self, key: PartitionKey, leader: T, change: IsrChange) -> None:
        """Send a change with the next request; it replaces the partition's waiting change.

        The replaced change was made from an outdated state, so the controller would refuse it.
        """
        before = self._waiting.get(key)
        if before is not None and before.change is change:
            return
        self._waiting[key] = _Waiting(leader, change)

    def next_request(
        self, broker_id: int, broker_epoch: int, now_ms: int
    ) -> AlterPartitionRequest | None:
        """Return the request to send; None while no change waits or a request is in flight."""
        if self._in_flight is not None or not self._waiting or now_ms < self._retry_at_ms:
            return None
        self._in_flight = dict(self._waiting)
        self._sent_at_ms = now_ms
        topics: dict[bytes, TopicData] = {}
        for (topic_id, partition), waiting in self._in_flight.items():
            topic = topics.setdefault(topic_id, TopicData(topic_id=topic_id))
            topic.partitions.append(_partition_data(partition, waiting.change))
        return AlterPartitionRequest(
            broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values())
        )

    def next_deadline_ms(self) -> int:
        """Return when to call `next_request`; NOT_NEEDED if no time is to be waited for."""
        if self._in_flight is not None or not self._waiting:
            return NOT_NEEDED
        return self._retry_at_ms

    def handle_no_answer(self, now_ms: int) -> None:
        """Abandon the request, after a lost connection or a timeout; its changes are sent again."""
        in_flight, self._in_flight = self._in_flight, None
        for waiting in (in_flight or {}).values():
            waiting.unanswered_at_ms = self._sent_at_ms
        self._retry_at_ms = now_ms + RETRY_BACKOFF_MS

    def handle_response(
        self, response: AlterPartitionResponse, now_ms: int
    ) -> list[tuple[T, IsrChange, PartitionResult]]:
        """Return the answers to pass to `PartitionLeader.handle_isr_answer`, with their leaders.

        If the response refuses the whole request, return nothing and send the changes again.
        """
        in_flight, self._in_flight = self._in_flight, None
        if in_flight is None:
            return []
        if response.error_code != ErrorCode.NONE:
            self._retry_at_ms = now_ms + RETRY_BACKOFF_MS
            return []
        answers = []
        for topic in response.topics:
            for result in topic.partitions:
                key = (topic.topic_id, result.partition_index)
                waiting = in_flight.get(key)
                if waiting is None or self._must_ask_again(waiting, result, now_ms):
                    continue
                if self._waiting.get(key) is waiting:
                    del self._waiting[key]
                answers.append((waiting.leader, waiting.change, result))
        return answers

    def _must_ask_again(self, waiting: _Waiting[T], result: PartitionResult, now_ms: int) -> bool:
        outcome = outcome_of(result.error_code)
        is_doubtful = (
            outcome is ChangeOutcome.REFUSED
            and waiting.unanswered_at_ms is not None
            and now_ms < waiting.unanswered_at_ms + self._lifetime_ms
        )
        if is_doubtful or outcome is ChangeOutcome.RETRY:
            self._retry_at_ms = now_ms + RETRY_BACKOFF_MS
            return True
        return False

    def forget(self, key: PartitionKey) -> None:
        """Drop a partition's change: this broker does not lead it, or the partition is deleted."""
        self._waiting.pop(key, None)


def _partition_data(partition: int, change: IsrChange) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        leader_epoch=change.leader_epoch,
        partition_epoch=change.partition_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=broker_id, broker_epoch=epoch) for broker_id, epoch in change.isr
        ],
    )
