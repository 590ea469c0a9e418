"""Produce (key 0), versions 3-13: append record batches to partitions.

v7 allows zstd. v8 adds error messages per partition. v9 is flexible. v13 names topics by id
(KIP-516). Versions 0-2 are advertised (clients infer from them which codecs they may use) and
refused. The batches are never decoded: header, CRC and record lengths are checked, offsets and
epoch are written into the header, the bytes are appended.

Nearly every request has one batch outside of a transaction, and is answered at once or when its
replicas have it. Any other is a generator: in a transaction the first batch of each partition waits
for the answer of the transaction coordinator (`transactional_batches`), and a batch that unpacks to
many bytes waits for its turn (`large_batches`); the connection is held meanwhile, so that the order
of requests is kept.

All batches of a request together may unpack to UNPACKED_PER_REQUEST_BYTE times the largest request;
further batches are refused as too large, so that the client sends fewer at once.
"""

import logging
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.log.append import AppendOrigin
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.model import TopicPartition
from broker.records.compression import limit_for
from broker.records.errors import TooMuchAtOnce
from broker.records.validation import UnpackBudget
from broker.server.cluster.cluster_view import endpoints_of, find_leader
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.request_entries import merged
from broker.server.coordinators.transaction_verifier import TransactionVerifier
from broker.server.handlers.produce.transactional_batches import (
    UNGUARDED,
    BatchOfPartition,
    Guarded,
    is_transactional,
    verify_batches,
)
from broker.server.metrics import Metrics
from broker.server.network.dispatch import NO_RESPONSE, Answer, RequestContext
from broker.server.network.later import Steps, each
from broker.server.replication.parked_writes import ParkedWrites
from broker.server.replication.partitions import LedLogs, Partition
from broker.server.storage.large_batches import LargeBatches
from common.kafka.errors import ErrorCode, InvalidRecordsError, KafkaError
from common.kafka.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

log = logging.getLogger("millstream.produce")

FIRST_SERVED_VERSION = 3
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_LEADERS = 10
ALL_IN_SYNC_REPLICAS = -1
ACKS = (ALL_IN_SYNC_REPLICAS, 1, 0)
UNPACKED_PER_REQUEST_BYTE = 10
"""A multiple of the largest accepted request: a gigabyte with its default of 100 MiB."""

_CLIENT, _CHECKED = AppendOrigin.CLIENT, AppendOrigin.CHECKED_CLIENT
"""Kept here because each access to a member of an enum is a call."""

REFUSED_BEFORE_VALIDATION = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
}
"""The refusals that leave out the log start offset, as in Kafka."""


class _Uncommitted(NamedTuple):
    """An append that is answered when the high watermark has reached its end."""

    partition: Partition
    end_offset: int
    response: PartitionProduceResponse


class Produce:
    """Appends batches, partition by partition."""

    def __init__(
        self,
        config: BrokerConfig,
        led_logs: LedLogs,
        parked_produces: ParkedWrites,
        metadata: ClusterMetadata,
        metrics: Metrics,
        verifier: TransactionVerifier,
    ) -> None:
        self._verifier = verifier
        self._max_request_bytes = config.max_frame_bytes
        self._large_batches = LargeBatches()
        self._partitions, self._clock = led_logs.partitions, led_logs.clock
        self._failures = led_logs.failures
        self._parked_produces = parked_produces
        self._metadata = metadata
        self._traffic = metrics.traffic

    def handle(self, context: RequestContext, request: ProduceRequest) -> Answer | Steps[Answer]:
        """Append every partition's batch and answer each with its base offset or its error."""
        topics = request.topic_data
        if len(topics) != 1 or len(topics[0].partition_data) != 1:
            return self._append_all(context, request)
        topic, data = topics[0], topics[0].partition_data[0]
        if (
            request.transactional_id is not None
            or data.records is None
            or is_transactional(data.records)
            or request.acks not in ACKS
            or context.api_version < FIRST_SERVED_VERSION
        ):
            return self._append_all(context, request)
        uncommitted: list[_Uncommitted] = []
        try:
            name = self._name_of(context, topic)
            answered = self._append(name, data, request.acks, uncommitted)
        except (KafkaError, TooMuchAtOnce):
            return self._append_all(context, request)
        responses = [
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=[answered]
            )
        ]
        if not request.acks:
            return _unanswered(context, responses)
        if uncommitted or answered.error_code:
            return self._finish(context, request, responses, uncommitted)
        return ProduceResponse(responses=responses)

    # --- every other request ---

    def _append_all(self, context: RequestContext, request: ProduceRequest) -> Steps[Answer]:
        topics = _without_repeated(request.topic_data)
        uncommitted: list[_Uncommitted] = []
        try:
            _validate_request(context, request)
            guarded = yield from self._verified(context, request, topics)
        except KafkaError as error:
            responses = yield from each(topics, partial(_refused_topic, error))
        else:
            budget = UnpackBudget(UNPACKED_PER_REQUEST_BYTE * self._max_request_bytes)
            batches = _Batches(request.acks, guarded, uncommitted, budget)
            responses = []
            for topic in topics:
                responses.append((yield from self._append_to_topic(context, topic, batches)))
                yield None
        return (yield from self._finish(context, request, responses, uncommitted))

    def _verified(
        self, context: RequestContext, request: ProduceRequest, topics: list[TopicProduceData]
    ) -> Steps[Guarded]:
        """Verify the batches that begin a transaction; raises KafkaError."""
        if request.transactional_id is None:
            return UNGUARDED
        return (
            yield from verify_batches(
                self._verifier,
                request.transactional_id,
                self._led_here(context, topics),
                api_version=context.api_version,
                timestamp_ms=self._clock.timestamp_ms(),
            )
        )

    def _led_here(
        self, context: RequestContext, topics: list[TopicProduceData]
    ) -> Iterator[BatchOfPartition]:
        """Yield each batch with its partition, or with None if the partition is not here."""
        for topic in topics:
            try:
                name = self._name_of(context, topic)
            except KafkaError:
                name = None  # The topic is answered with its refusal, without an append.
            for data in topic.partition_data:
                is_here = name and self._partitions.find(name, data.index) is not None
                yield TopicPartition(name, data.index) if name and is_here else None, data.records

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

    def _append_to_topic(
        self, context: RequestContext, topic: TopicProduceData, batches: "_Batches"
    ) -> Steps[TopicProduceResponse]:
        try:
            name = self._name_of(context, topic)
        except KafkaError as error:
            return _refused_topic(error, topic)
        answers = []
        for data in topic.partition_data:
            answers.append((yield from self._append_one(name, data, batches)))
            if len(topic.partition_data) > 1:
                yield None
        return TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=answers
        )

    def _append_one(
        self, topic: str, data: PartitionProduceData, batches: "_Batches"
    ) -> Steps[PartitionProduceResponse]:
        """Append one batch of many, or one that is large."""
        place = TopicPartition(topic, data.index)
        refusal = batches.guarded.refusals.get(place)
        if refusal is None and batches.budget.is_spent:
            refusal = KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, "The batches of this request unpack to too much"
            )
        if refusal is not None:
            return _refused(data.index, refusal)
        try:
            return self._append(topic, data, batches.acks, batches.uncommitted, batches)
        except TooMuchAtOnce:
            assert data.records is not None, "nothing is not too much"
        log_of = self._partitions.get(topic, data.index).log
        stamp = self._clock.timestamp_ms()
        try:
            accepted = yield from self._large_batches.accept(log_of, data.records, stamp)
        except KafkaError as error:
            batches.budget.spend(limit_for(len(data.records)))  # The most it may unpack to.
            return self._refuse(topic, data, error)
        batches.budget.spend(accepted.unpacked_bytes)
        checked = PartitionProduceData(index=data.index, records=memoryview(accepted.records))
        return self._append(topic, checked, batches.acks, batches.uncommitted, batches, _CHECKED)

    # --- one batch ---

    def _append(
        self,
        topic: str,
        data: PartitionProduceData,
        acks: int,
        uncommitted: list[_Uncommitted],
        batches: "_Batches | None" = None,
        origin: AppendOrigin = _CLIENT,
    ) -> PartitionProduceResponse:
        """Append one batch, alone or of many, and return its answer; raises TooMuchAtOnce."""
        is_for_all = acks == ALL_IN_SYNC_REPLICAS
        try:
            partition = self._partitions.get(topic, data.index)
            if is_for_all:
                assert partition.leader is not None, topic
                partition.leader.validate_append(ALL_IN_SYNC_REPLICAS)
            if data.records is None:
                raise KafkaError(ErrorCode.INVALID_RECORD, "The request has no record batch")
            info = self._partitions.append(
                partition,
                data.records,
                timestamp_ms=self._clock.timestamp_ms(),
                origin=origin,
                transaction=NO_TRANSACTION if batches is None else batches.of(topic, data.index),
                budget=None if batches is None else batches.budget,
            )
        except KafkaError as error:
            return self._refuse(topic, data, error)
        except OSError as error:
            self._traffic.note_failed_produce(topic)
            return _refused(data.index, self._failures.on_failure(topic, data.index, error))
        traffic = self._traffic[topic]
        traffic.produces += 1
        traffic.bytes_in += len(data.records)
        traffic.records_in += info.last_offset - info.base_offset + 1
        response = PartitionProduceResponse(
            index=data.index,
            base_offset=info.base_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )
        if is_for_all and partition.log.high_watermark <= info.last_offset:
            uncommitted.append(_Uncommitted(partition, info.last_offset + 1, response))
        return response

    def _refuse(
        self, topic: str, data: PartitionProduceData, error: KafkaError
    ) -> PartitionProduceResponse:
        self._traffic.note_failed_produce(topic)
        answer = _refused(data.index, error)
        if error.code not in REFUSED_BEFORE_VALIDATION:
            log_of = self._partitions.get(topic, data.index).log
            answer.log_start_offset = log_of.log_start_offset
        return answer

    # --- the answer ---

    def _finish(
        self,
        context: RequestContext,
        request: ProduceRequest,
        responses: list[TopicProduceResponse],
        uncommitted: list[_Uncommitted],
    ) -> Steps[Answer]:
        """Answer when every in-sync replica has what was appended, or time is over."""
        if request.acks == 0:
            return _unanswered(context, responses)
        if uncommitted:
            write = self._parked_produces.begin()
            for partition, end_offset, answered in uncommitted:
                if partition.leader is None:  # It was lost during the appends to others.
                    answered.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif partition.log.high_watermark < end_offset:
                    write.wait_for(partition.leader.waits, end_offset, answered)
            yield write.until_decided(request.timeout_ms)
        response = ProduceResponse(responses=responses)
        if context.api_version >= FIRST_VERSION_WITH_LEADERS:
            self._tell_leaders(context, response)
        return response

    def _tell_leaders(self, context: RequestContext, response: ProduceResponse) -> None:
        """Add the leaders of partitions that this broker does not lead (KIP-951)."""
        leaders: set[int] = set()
        for topic in response.responses:
            for answered in topic.partition_responses:
                if answered.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    self._tell_leader(topic, answered, leaders)
        if leaders:
            listener_name = context.connection.peer.listener_name
            response.node_endpoints = [
                NodeEndpoint(**address._asdict())
                for address in endpoints_of(self._metadata, leaders, listener_name)
            ]

    def _tell_leader(
        self, topic: TopicProduceResponse, answered: PartitionProduceResponse, leaders: set[int]
    ) -> None:
        by_id = self._metadata.image.topics.by_id.get(topic.topic_id)
        name = topic.name if by_id is None else by_id.name
        found = find_leader(self._metadata, name, answered.index)
        if found is not None:
            answered.current_leader = LeaderIdAndEpoch(**found._asdict())
            leaders.add(found.leader_id)


class _Batches:
    """The data that all batches of one request share."""

    __slots__ = ("acks", "budget", "guarded", "uncommitted")

    def __init__(
        self,
        acks: int,
        guarded: Guarded,
        uncommitted: list[_Uncommitted],
        budget: UnpackBudget,
    ) -> None:
        self.acks = acks
        self.guarded = guarded
        self.uncommitted = uncommitted
        self.budget = budget

    def of(self, topic: str, index: int) -> TransactionAppend:
        """Return the transaction of the append to a partition."""
        return self.guarded.appends.get(TopicPartition(topic, index), NO_TRANSACTION)


def _validate_request(context: RequestContext, request: ProduceRequest) -> None:
    if context.api_version < FIRST_SERVED_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Message formats v0 and v1 are gone")
    if request.acks not in ACKS:
        raise KafkaError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}: must be -1, 0 or 1"
        )
    if request.transactional_id is None and any(
        data.records is not None and is_transactional(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
    ):
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "Transactional records need a transactional id",
        )


def _without_repeated(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Keep the last entry of each partition, as Kafka does."""
    kept = merged(topics, lambda topic: (topic.name, topic.topic_id), _merge)
    for topic in kept:
        if len(topic.partition_data) > 1:
            topic.partition_data = merged(topic.partition_data, lambda data: data.index, _replace)
    return kept


def _merge(first: TopicProduceData, other: TopicProduceData) -> None:
    first.partition_data += other.partition_data


def _replace(first: PartitionProduceData, other: PartitionProduceData) -> None:
    first.records = other.records


def _refused_topic(error: KafkaError, topic: TopicProduceData) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[_refused(data.index, error) for data in topic.partition_data],
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


def _unanswered(context: RequestContext, responses: list[TopicProduceResponse]) -> Answer:
    """Close the connection after a failure: the client wants no answer (as Kafka does)."""
    if any(answered.error_code for topic in responses for answered in topic.partition_responses):
        log.info("closed: a produce with acks=0 failed client=%s", context.connection.peer.host)
        context.connection.close()
    return NO_RESPONSE
