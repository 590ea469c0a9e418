"""Produce (key 0), versions 3-13: append record batches to partitions.

v7 allows zstd. v8 adds error messages per partition. v9 is flexible. v13 names topics by id
(KIP-516). Versions 0-2 are advertised (clients infer from them which codecs they may use) and
refused. The batches are never decoded: header, CRC and record lengths are checked, offsets and
epoch are written into the header, the bytes are appended.

In a transaction the first batch of each partition waits for the transaction coordinator's word
(`transactional_batches`), and with it the connection: the order of requests is kept.

What all batches of a request together may unpack to is UNPACKED_PER_REQUEST_BYTE times the largest
request; those beyond are refused as too large, so that the client sends fewer at once.
"""

import logging
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.errors import ErrorCode, KafkaError
from broker.log.append import AppendOrigin
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.model import TopicPartition
from broker.protocol.message import Message
from broker.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from broker.records.compression import limit_for
from broker.records.errors import TooMuchAtOnce
from broker.server.cluster.current_leaders import endpoints_of, find_leader
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.transaction_verifier import TransactionVerifier
from broker.server.handlers.large_batches import LargeBatches
from broker.server.handlers.produce_answers import (
    answered_topic,
    refused,
    refused_topic,
    without_repeated,
)
from broker.server.handlers.transactional_batches import (
    UNGUARDED,
    Placed,
    belongs_to_open_transaction,
    is_transactional,
    verify_batches,
)
from broker.server.metrics import Metrics
from broker.server.network.dispatch import NO_RESPONSE, Answer, AnswerWalk, Deferred, RequestContext
from broker.server.network.letting_go import let_go
from broker.server.network.walks import (
    ITEMS_PER_STEP,
    Steps,
    any_of_arrays,
    each_in_steps,
)
from broker.server.replication.led_logs import LedLogs
from broker.server.replication.parked_writes import ParkedWrite, ParkedWrites
from broker.server.replication.partitions import Partition

log = logging.getLogger("millrace.produce")

FIRST_SERVED_VERSION = 3
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_LEADERS = 10
ALL_IN_SYNC_REPLICAS = -1
UNPACKED_PER_REQUEST_BYTE = 10
"""Of the largest request that is taken; with its default, 100 MiB, that is a gigabyte."""

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
        self,
        config: BrokerConfig,
        led_logs: LedLogs,
        parked_produces: ParkedWrites,
        metadata: ClusterMetadata,
        metrics: Metrics,
        verifier: TransactionVerifier,
    ) -> None:
        self._verifier = verifier
        self._max_unpacked_bytes = UNPACKED_PER_REQUEST_BYTE * config.max_frame_bytes
        self._large_batches = LargeBatches()
        self._partitions, self._clock = led_logs.partitions, led_logs.clock
        self._failures = led_logs.failures
        self._parked_produces = parked_produces
        self._metadata = metadata
        self._metrics = metrics

    def handle(self, context: RequestContext, request: ProduceRequest) -> Answer | AnswerWalk:
        """Append every partition's batch and answer each with its base offset or its error."""
        topics = request.topic_data
        if len(topics) != 1 or len(topics[0].partition_data) != 1:
            return self._append_all(context, request)
        # Most requests by far: there is nothing to walk through.
        topic, data = topics[0], topics[0].partition_data[0]
        try:
            _validate_request(context, request)
            if request.transactional_id is None and _is_transactional(data):
                raise _without_id()
            name = self._name_of(context, topic)
        except KafkaError as error:
            response = answered_topic(topic, [refused(data.index, error)])
            return _answer(context, request, [response])
        if request.transactional_id is not None:
            found = self._partitions.find(name, data.index)
            if found is not None and not belongs_to_open_transaction(found.log, data.records):
                return self._append_all(context, request)
        produced = Produced(request.acks)
        try:
            answered = self._append(name, data, produced)
        except TooMuchAtOnce:
            return self._append_all(context, request)
        return self._answer(context, request, [answered_topic(topic, [answered])], produced)

    def _append_all(self, context: RequestContext, request: ProduceRequest) -> AnswerWalk:
        lacks_id = request.transactional_id is None and (
            yield from any_of_arrays(request.topic_data, _batches, _is_transactional)
        )
        topics = yield from without_repeated(request.topic_data)
        produced = Produced(request.acks)
        produced.is_long = len(topics) > ITEMS_PER_STEP or any(
            len(topic.partition_data) > ITEMS_PER_STEP for topic in topics
        )
        try:
            _validate_request(context, request)
            if lacks_id:
                raise _without_id()
            if request.transactional_id is not None:
                produced.guarded = yield from verify_batches(
                    self._verifier,
                    request.transactional_id,
                    (
                        self._led_here(context, topic, data)
                        for topic in topics
                        for data in _batches(topic)
                    ),
                    api_version=context.api_version,
                    timestamp_ms=self._clock.timestamp_ms(),
                )
        except KafkaError as error:
            refusal = error
            responses = yield from each_in_steps(
                topics, lambda topic: refused_topic(topic, refusal)
            )
        else:
            responses = yield from each_in_steps(
                topics, lambda topic: self._append_to_topic(context, topic, produced)
            )
        if request.acks == 0:
            has_failed = yield from any_of_arrays(responses, _answers, _is_refused)
            yield from let_go(ProduceResponse(responses=responses))
            return _unanswered(context, has_failed=has_failed)
        answer = self._answer(context, request, responses, produced)
        return answer if isinstance(answer, Message | Deferred) else (yield from answer)

    def _append_to_topic(
        self, context: RequestContext, topic: TopicProduceData, produced: "Produced"
    ) -> Steps[TopicProduceResponse]:
        try:
            name = self._name_of(context, topic)
        except KafkaError as error:
            return (yield from refused_topic(topic, error))
        answers = []
        for data in topic.partition_data:
            answers.append((yield from self._append_in_steps(name, data, produced)))
            yield
        return answered_topic(topic, answers)

    def _led_here(
        self, context: RequestContext, topic: TopicProduceData, data: PartitionProduceData
    ) -> Placed:
        """Give a batch with its partition, if it may be appended to."""
        try:
            name = self._name_of(context, topic)
        except KafkaError:
            return None, None  # It is answered with its refusal, and appended nowhere.
        is_here = self._partitions.find(name, data.index) is not None
        return TopicPartition(name, data.index) if is_here else None, data.records

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

    def _append_in_steps(
        self, topic: str, data: PartitionProduceData, produced: "Produced"
    ) -> Steps[PartitionProduceResponse]:
        """Append one of many batches, or one that is large."""
        refusal = produced.guarded.refusals.get(TopicPartition(topic, data.index))
        if refusal is not None:
            return refused(data.index, refusal)
        try:
            if produced.unpacked_bytes > self._max_unpacked_bytes:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE, "The batches of this request unpack to too much"
                )
            log = self._partitions.get(topic, data.index).log
        except KafkaError as error:
            return self._refuse(topic, data, error, produced)
        before = log.place.validator.unpacked_bytes
        try:
            return self._append(topic, data, produced)
        except TooMuchAtOnce:
            pass
        finally:
            produced.unpacked_bytes += log.place.validator.unpacked_bytes - before
        assert data.records is not None, "nothing is not too much"
        stamp = self._clock.timestamp_ms()
        try:
            accepted = yield from self._large_batches.accept(log, data.records, stamp)
        except KafkaError as error:
            produced.unpacked_bytes += limit_for(len(data.records))  # At most.
            return self._refuse(topic, data, error, produced)
        produced.unpacked_bytes += accepted.unpacked_bytes
        checked = PartitionProduceData(index=data.index, records=memoryview(accepted.records))
        return self._append(topic, checked, produced, AppendOrigin.CHECKED_CLIENT)

    def _append(
        self,
        topic: str,
        data: PartitionProduceData,
        produced: "Produced",
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> PartitionProduceResponse:
        is_for_all = produced.acks == ALL_IN_SYNC_REPLICAS
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
                transaction=produced.transaction_of(topic, data.index),
            )
        except KafkaError as error:
            return self._refuse(topic, data, error, produced)
        except OSError as error:
            return refused(data.index, self._failures.on_failure(topic, data.index, error))
        metrics = self._metrics
        metrics.produced_bytes += len(data.records)
        metrics.produced_records += info.last_offset - info.base_offset + 1
        response = PartitionProduceResponse(
            index=data.index,
            base_offset=info.base_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )
        if is_for_all and partition.log.high_watermark <= info.last_offset:
            produced.uncommitted.append(_Uncommitted(partition, info.last_offset + 1, response))
        return response

    def _refuse(
        self, topic: str, data: PartitionProduceData, error: KafkaError, produced: "Produced"
    ) -> PartitionProduceResponse:
        answer = refused(data.index, error)
        produced.is_misdirected |= error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        if error.code not in REFUSED_BEFORE_VALIDATION:
            log_of = self._partitions.get(topic, data.index).log
            answer.log_start_offset = log_of.log_start_offset
        return answer

    def _answer(
        self,
        context: RequestContext,
        request: ProduceRequest,
        responses: list[TopicProduceResponse],
        produced: "Produced",
    ) -> Answer | AnswerWalk:
        if produced.uncommitted:
            return self._park(context, request, responses, produced)
        if produced.is_misdirected and produced.acks:
            return self._told_leaders(context, responses, produced)
        return _answer(context, request, responses)

    def _park(
        self,
        context: RequestContext,
        request: ProduceRequest,
        responses: list[TopicProduceResponse],
        produced: "Produced",
    ) -> Answer | AnswerWalk:
        """Answer when every in-sync replica has what was appended, or time is over."""

        def answer() -> None:
            self._parked_produces.forget(context.connection, parked)
            context.reply(self._told_leaders(context, responses, produced))

        parked: ParkedWrite[PartitionProduceResponse] = ParkedWrite(answer)
        for partition, end_offset, answered in produced.uncommitted:
            if partition.leader is None:  # It is gone since, while others were appended to.
                _refuse_appended(answered, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.log.high_watermark < end_offset:
                parked.wait_for(partition.leader.waits, end_offset, answered, _refuse_appended)
        if parked.is_done:
            return self._told_leaders(context, responses, produced)
        self._parked_produces.park(context.connection, parked, request.timeout_ms)
        return context.defer()

    def _told_leaders(
        self,
        context: RequestContext,
        responses: list[TopicProduceResponse],
        produced: "Produced",
    ) -> ProduceResponse | AnswerWalk:
        """Say who leads what this broker does not (KIP-951)."""
        if context.api_version < FIRST_VERSION_WITH_LEADERS:
            return ProduceResponse(responses=responses)
        if produced.is_long:
            return self._telling_leaders(context, responses)
        leaders: set[int] = set()
        for topic in responses:
            for answered in topic.partition_responses:
                if answered.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    self._tell_leader(topic, answered, leaders)
        if leaders:
            return self._with_addresses(context, responses, leaders)
        return ProduceResponse(responses=responses)

    def _telling_leaders(
        self, context: RequestContext, responses: list[TopicProduceResponse]
    ) -> AnswerWalk:
        """Do it step by step."""
        leaders: set[int] = set()
        count = 0
        for topic in responses:
            for answered in topic.partition_responses:
                if answered.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    self._tell_leader(topic, answered, leaders)
                count += 1
                if not count % ITEMS_PER_STEP:
                    yield
        return self._with_addresses(context, responses, leaders)

    def _tell_leader(
        self, topic: TopicProduceResponse, answered: PartitionProduceResponse, leaders: set[int]
    ) -> None:
        by_id = self._metadata.image.topics.by_id.get(topic.topic_id)
        name = topic.name if by_id is None else by_id.name
        found = find_leader(self._metadata, name, answered.index)
        if found is not None:
            answered.current_leader = LeaderIdAndEpoch(**found._asdict())
            leaders.add(found.leader_id)

    def _with_addresses(
        self, context: RequestContext, responses: list[TopicProduceResponse], leaders: set[int]
    ) -> ProduceResponse:
        addresses = endpoints_of(self._metadata, leaders, context.connection.peer.listener_name)
        return ProduceResponse(
            responses=responses,
            node_endpoints=[NodeEndpoint(**address._asdict()) for address in addresses],
        )


class _Uncommitted(NamedTuple):
    """What was appended, and is answered when the high watermark is there."""

    partition: Partition
    end_offset: int
    response: PartitionProduceResponse


class Produced:
    """What one request has come to so far."""

    __slots__ = (
        "acks",
        "guarded",
        "is_long",
        "is_misdirected",
        "uncommitted",
        "unpacked_bytes",
    )

    def __init__(self, acks: int) -> None:
        self.acks = acks
        self.guarded = UNGUARDED
        self.uncommitted: list[_Uncommitted] = []
        self.unpacked_bytes = 0
        self.is_long = False
        """Whether the answer is worth steps."""
        self.is_misdirected = False
        """Whether it asked for something that another broker leads."""

    def transaction_of(self, topic: str, index: int) -> TransactionAppend:
        """Return what an append to a partition brings."""
        if self.guarded is UNGUARDED:
            return NO_TRANSACTION
        return self.guarded.appends.get(TopicPartition(topic, index), NO_TRANSACTION)


def _refuse_appended(response: PartitionProduceResponse, error_code: ErrorCode) -> None:
    """Say that what was appended may be lost."""
    response.error_code = error_code


def _answer(
    context: RequestContext, request: ProduceRequest, responses: list[TopicProduceResponse]
) -> Answer:
    if request.acks != 0:
        return ProduceResponse(responses=responses)
    has_failed = any(_is_refused(answer) for topic in responses for answer in _answers(topic))
    return _unanswered(context, has_failed=has_failed)


def _unanswered(context: RequestContext, *, has_failed: bool) -> Answer:
    """The client wants no answer, so closing is the only way to tell it (as Kafka does)."""
    if has_failed:
        log.info("closed: a produce with acks=0 failed client=%s", context.connection.peer.host)
        context.connection.close()
    return NO_RESPONSE


def _answers(topic: TopicProduceResponse) -> list[PartitionProduceResponse]:
    return topic.partition_responses


def _is_refused(answer: PartitionProduceResponse) -> bool:
    return bool(answer.error_code)


def _batches(topic: TopicProduceData) -> list[PartitionProduceData]:
    return topic.partition_data


def _is_transactional(data: PartitionProduceData) -> bool:
    return data.records is not None and is_transactional(data.records)


def _validate_request(context: RequestContext, request: ProduceRequest) -> None:
    if context.api_version < FIRST_SERVED_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Message formats v0 and v1 are gone")
    if request.acks not in {0, 1, ALL_IN_SYNC_REPLICAS}:
        raise KafkaError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}: must be -1, 0 or 1"
        )


def _without_id() -> KafkaError:
    return KafkaError(
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional records need a transactional id",
    )
