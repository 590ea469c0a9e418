"""WriteTxnMarkers (key 27), versions 1-2: end transactions in the partitions led here.

Transaction coordinators send it to the leaders, and administrators for a hanging transaction. v2
adds the version of transactions, which is used to detect late markers (KIP-1228). Each marker is
answered when every in-sync replica has it, or after PATIENCE_MS: a coordinator has more markers for
this broker, and sends slow ones again. The markers of `__consumer_offsets` are written by the
group's shard, which commits or drops the pending offsets of the transaction.
"""

from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.coordinator.output import EndOfTransaction
from broker.log.append import AppendOrigin
from broker.log.producers.verification import TransactionAppend
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.records.control import EndMarker, build_end_marker
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.shards import AskedShard
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from broker.server.replication.parked_writes import ParkedWrites
from broker.server.replication.partitions import Leader, LedLogs, Partition
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

ALL_IN_SYNC_REPLICAS = -1
PATIENCE_MS = 2_000

TOLD_AS = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The error codes for a transaction coordinator, by those of a group's shard."""

Result = WritableTxnMarkerPartitionResult


class _Uncommitted(NamedTuple):
    """A marker that is answered when the high watermark has reached its end."""

    partition: Partition
    leader: Leader
    end_offset: int
    result: Result


class _Written(NamedTuple):
    """The results of one request so far."""

    uncommitted: list[_Uncommitted]
    asked: list[tuple[AskedShard, Result]]


class WriteTxnMarkers:
    """Appends the markers, partition by partition."""

    def __init__(
        self, config: BrokerConfig, led_logs: LedLogs, parked_produces: ParkedWrites, groups: Groups
    ) -> None:
        self._timeout_ms = min(PATIENCE_MS, config.transaction.commit_timeout_ms)
        self._partitions, self._clock = led_logs.partitions, led_logs.clock
        self._failures = led_logs.failures
        self._parked_produces = parked_produces
        self._groups = groups

    def handle(self, context: RequestContext, request: WriteTxnMarkersRequest) -> Steps[Answer]:
        """Write every marker once in each of its partitions."""
        written = _Written([], [])
        results: list[WritableTxnMarkerResult] = []
        for marker in request.markers:
            topics: list[WritableTxnMarkerTopicResult] = []
            for topic in marker.topics:
                partitions: list[Result] = []
                for index in dict.fromkeys(topic.partition_indexes):
                    result = Result(partition_index=index, error_code=ErrorCode.NONE)
                    self._write(context, marker, topic.name, result, written)
                    partitions.append(result)
                    yield None
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
            results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        for asked, result in written.asked:
            result.error_code = _told((yield asked))
        if written.uncommitted:
            yield self._committed(written.uncommitted)
        return WriteTxnMarkersResponse(markers=results)

    def _write(
        self,
        context: RequestContext,
        marker: WritableTxnMarker,
        topic: str,
        result: Result,
        written: _Written,
    ) -> None:
        try:
            if marker.producer_id < 0 or marker.producer_epoch < 0:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            if topic == CONSUMER_OFFSETS:
                end = _end_of(marker)
                asked = self._groups.end_transaction(context, result.partition_index, end)
                written.asked.append((asked, result))
            else:
                partition = self._partitions.get(topic, result.partition_index)
                self._append(partition, marker, result, written)
        except KafkaError as error:
            result.error_code = _told(error.code)
        except OSError as error:
            failure = self._failures.on_failure(topic, result.partition_index, error)
            result.error_code = failure.code

    def _append(
        self, partition: Partition, marker: WritableTxnMarker, result: Result, written: _Written
    ) -> None:
        leader = partition.leader
        assert leader is not None, partition.topic_partition
        leader.validate_append(ALL_IN_SYNC_REPLICAS)
        timestamp_ms = self._clock.timestamp_ms()
        batch = build_end_marker(
            marker.producer_id,
            marker.producer_epoch,
            EndMarker(marker.transaction_result, marker.coordinator_epoch),
            timestamp_ms,
        )
        info = self._partitions.append(
            partition,
            batch,
            timestamp_ms=timestamp_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction=TransactionAppend(transaction_version=marker.transaction_version),
        )
        written.uncommitted.append(_Uncommitted(partition, leader, info.last_offset + 1, result))

    def _committed(self, uncommitted: list[_Uncommitted]) -> Later:
        """Return a Later that is done when all in-sync replicas have them, or the time is over."""
        write = self._parked_produces.begin()
        for partition, leader, end_offset, result in uncommitted:
            if partition.leader is not leader:  # It changed during the appends to others.
                result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif partition.log.high_watermark < end_offset:
                write.wait_for(leader.waits, end_offset, result)
        return write.until_decided(self._timeout_ms)


def _end_of(marker: WritableTxnMarker) -> EndOfTransaction:
    return EndOfTransaction(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _told(code: ErrorCode) -> ErrorCode:
    return TOLD_AS.get(code, code)
