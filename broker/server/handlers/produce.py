"""Produce (key 0), versions 3-13: append record batches to partitions.

v7 allows zstd. v8 adds error messages per partition. v9 is flexible. v13 names topics by id
(KIP-516). Versions 0-2 are advertised (clients infer from them which codecs they may use) and
refused. The batches are never decoded: header, CRC and record lengths are checked, offsets and
epoch are written into the header, the bytes are appended.
"""

import logging
from functools import partial

from broker.errors import ErrorCode, InvalidRecordsError, KafkaError
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from broker.records.header import TRANSACTIONAL_FLAG
from broker.server.clock import Clock
from broker.server.metrics import Metrics
from broker.server.network.dispatch import NO_RESPONSE, Answer, AnswerWalk, RequestContext
from broker.server.network.walks import each
from broker.server.replication.partitions import Partitions
from broker.server.storage.failures import StorageFailures

log = logging.getLogger("millrace.produce")

FIRST_SERVED_VERSION = 3
FIRST_VERSION_WITH_TOPIC_IDS = 13
ALL_IN_SYNC_REPLICAS = -1
ATTRIBUTES_LOW_BYTE = 22

REFUSED_BEFORE_VALIDATION = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
}
"""The refusals that do not tell the log start offset, as in Kafka."""


class Produce:
    """Appends batches, partition by partition."""

    def __init__(
        self, partitions: Partitions, clock: Clock, metrics: Metrics, failures: StorageFailures
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._metrics = metrics
        self._failures = failures

    def handle(self, context: RequestContext, request: ProduceRequest) -> Answer | AnswerWalk:
        """Append every partition's batch and answer each with its base offset or its error."""
        topics = request.topic_data
        if len(topics) != 1 or len(topics[0].partition_data) != 1:
            return self._append_all(context, request)
        # Most requests by far: there is nothing to walk through.
        topic = topics[0]
        try:
            _validate_request(context, request)
            name = self._name_of(context, topic)
        except KafkaError as error:
            response = _refused_topic(topic, error)
        else:
            response = _answered_topic(
                topic, [self._append(name, topic.partition_data[0], request.acks)]
            )
        return _answer(context, request, [response])

    def _append_all(self, context: RequestContext, request: ProduceRequest) -> AnswerWalk:
        topics = _without_repeated(request.topic_data)
        try:
            _validate_request(context, request)
        except KafkaError as error:
            return _answer(context, request, [_refused_topic(topic, error) for topic in topics])
        responses: list[TopicProduceResponse] = []
        for topic in topics:
            try:
                name = self._name_of(context, topic)
            except KafkaError as error:
                responses.append(_refused_topic(topic, error))
                continue
            append = partial(self._append, name, acks=request.acks)
            answers = yield from each(topic.partition_data, append, per_step=1)
            responses.append(_answered_topic(topic, answers))
        return _answer(context, request, responses)

    def _name_of(self, context: RequestContext, topic: TopicProduceData) -> str:
        """Return the topic's name; raises UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION."""
        name = topic.name
        if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            name = self._partitions.name_of(topic.topic_id)
        if name in INTERNAL_TOPICS:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"The topic {name} is written by the broker only",
            )
        return name

    def _append(
        self, topic: str, produced: PartitionProduceData, acks: int
    ) -> PartitionProduceResponse:
        try:
            partition = self._partitions.get(topic, produced.index)
            if acks == ALL_IN_SYNC_REPLICAS and partition.log.config.min_insync_replicas > 1:
                raise KafkaError(
                    ErrorCode.NOT_ENOUGH_REPLICAS,
                    "The size of the current ISR is 1, fewer than min.insync.replicas of "
                    f"{partition.log.config.min_insync_replicas}",
                )
            if produced.records is None:
                raise KafkaError(ErrorCode.INVALID_RECORD, "The request has no record batch")
            info = self._partitions.append(
                partition, produced.records, timestamp_ms=self._clock.timestamp_ms()
            )
        except KafkaError as error:
            refused = _refused(produced.index, error)
            if error.code not in REFUSED_BEFORE_VALIDATION:
                log_of = self._partitions.get(topic, produced.index).log
                refused.log_start_offset = log_of.log_start_offset
            return refused
        except OSError as error:
            return _refused(produced.index, self._failures.on_failure(topic, produced.index, error))
        metrics = self._metrics
        metrics.produced_bytes += len(produced.records)
        metrics.produced_records += info.last_offset - info.base_offset + 1
        return PartitionProduceResponse(
            index=produced.index,
            base_offset=info.base_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )


def _answer(
    context: RequestContext, request: ProduceRequest, responses: list[TopicProduceResponse]
) -> Answer:
    if request.acks != 0:
        return ProduceResponse(responses=responses)
    if any(partition.error_code for topic in responses for partition in topic.partition_responses):
        # The client wants no answer, so closing is the only way to tell it (as Kafka does).
        log.info("closed: a produce with acks=0 failed client=%s", context.connection.peer.host)
        context.connection.close()
    return NO_RESPONSE


def _without_repeated(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Keep what is said last of a partition, as Kafka does."""
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        of_topic = merged.setdefault((topic.name, topic.topic_id), {})
        of_topic.update((partition.index, partition) for partition in topic.partition_data)
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(of_topic.values()))
        for (name, topic_id), of_topic in merged.items()
    ]


def _answered_topic(
    topic: TopicProduceData, answers: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
    )


def _refused_topic(topic: TopicProduceData, error: KafkaError) -> TopicProduceResponse:
    return _answered_topic(
        topic, [_refused(partition.index, error) for partition in topic.partition_data]
    )


def _validate_request(context: RequestContext, request: ProduceRequest) -> None:
    if context.api_version < FIRST_SERVED_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Message formats v0 and v1 are gone")
    if request.acks not in {0, 1, ALL_IN_SYNC_REPLICAS}:
        raise KafkaError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}: must be -1, 0 or 1"
        )
    if request.transactional_id is not None:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "Transactions are not supported by this broker yet"
        )
    if any(
        partition.records is not None and _is_transactional(partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
    ):
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "Transactional records need a transactional id",
        )


def _is_transactional(batch: memoryview | bytes) -> bool:
    """Judge by the batch itself, not by what the request says of it (CVE-2018-17196)."""
    return len(batch) > ATTRIBUTES_LOW_BYTE and bool(
        batch[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG
    )


def _refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    faulty = error.records if isinstance(error, InvalidRecordsError) else []
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=message)
            for place, message in faulty
        ],
        error_message=error.message,
    )
