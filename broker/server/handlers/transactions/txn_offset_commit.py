"""TxnOffsetCommit (key 28), versions 0-5: commit a group's offsets in a producer's transaction.

v3 checks that the committer is a member (KIP-447). v4 may answer TRANSACTION_ABORTABLE, v5 adds
the group's partition of `__consumer_offsets` to the transaction by itself; in earlier versions the
producer does so with AddOffsetsToTxn. In both cases the transaction coordinator is asked before the
first commit of a transaction (KIP-890). Partitions that do not exist are answered here. Very many
partitions are committed in parts (`parts`).
"""

from collections.abc import Callable

from broker.records.header import NO_SEQUENCE
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import joined, parts_of
from broker.server.coordinators.shards import AskedShard
from broker.server.coordinators.transaction_verifier import (
    Producer,
    TransactionVerifier,
    VerificationMode,
    require_guard,
)
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_LOADING = 2
FIRST_VERSION_WITH_ABORTABLE = 4
FIRST_VERSION_THAT_ADDS = 5

TOLD_AS = {
    # Older producers do not retry after the first code; after the second they ask the same broker.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The error codes for a producer, by those of the group's log or of the coordinator's answer."""


class TxnOffsetCommit:
    """Commits offsets through the groups' shards, after the coordinator has verified them."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        groups: Groups,
        verifier: TransactionVerifier,
        clock: Clock,
    ) -> None:
        self._metadata = metadata
        self._groups = groups
        self._verifier = verifier
        self._clock = clock

    def handle(self, context: RequestContext, request: TxnOffsetCommitRequest) -> Steps[Answer]:
        """Commit existing partitions, and refuse the others."""
        known: list[TxnOffsetCommitRequestTopic] = []
        refused: list[TxnOffsetCommitResponseTopic] = []
        for topic in request.topics:
            missing = self._take_out_unknown(topic)
            if missing.partitions:
                refused.append(_refused(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            if topic.partitions:
                known.append(topic)
            yield None
        answers = [refused]
        if known:
            answers += yield from self._commit(context, request, known)
        return TxnOffsetCommitResponse(topics=joined(answers, lambda topic: topic.name))

    def _take_out_unknown(self, topic: TxnOffsetCommitRequestTopic) -> TxnOffsetCommitRequestTopic:
        """Leave in `topic` the partitions that exist, and return the others."""
        image = self._metadata.image.topics.by_name.get(topic.name)
        existing = {} if image is None else image.partitions
        missing = [part for part in topic.partitions if part.partition_index not in existing]
        if missing:
            topic.partitions = [x for x in topic.partitions if x.partition_index in existing]
        return TxnOffsetCommitRequestTopic(name=topic.name, partitions=missing)

    def _commit(
        self,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        known: list[TxnOffsetCommitRequestTopic],
    ) -> Steps[list[list[TxnOffsetCommitResponseTopic]]]:
        told = _words_for(context.api_version)
        try:
            guard = yield from self._verified(context, request)
        except KafkaError as error:
            code = told(error.code)
            return [[_refused(topic, code) for topic in known]]
        questions: list[AskedShard] = []
        answers: list[list[TxnOffsetCommitResponseTopic]] = []
        for number, topics in enumerate(parts_of(known, _partitions, _cut)):
            if number:
                yield None
            try:
                part = _part(request, topics)
                questions.append(self._groups.commit_in_transaction(context, part, guard))
            except KafkaError as error:
                answers.append([_refused(topic, told(error.code)) for topic in topics])
        for question in questions:
            response: TxnOffsetCommitResponse = yield question
            answers.append(response.topics)
        return answers

    def _verified(self, context: RequestContext, request: TxnOffsetCommitRequest) -> Steps[int]:
        """Return the guard to append with; raises KafkaError."""
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        if request.producer_id < 0:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if request.producer_epoch < 0:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        place = self._groups.place_of(request.group_id)
        producer = Producer(request.transactional_id, request.producer_id, request.producer_epoch)
        verified = yield from self._verifier.verify(
            producer,
            {place: NO_SEQUENCE},
            _wish_of(context.api_version),
            self._clock.timestamp_ms(),
        )
        return require_guard(verified.get(place))


def _wish_of(api_version: int) -> VerificationMode:
    if api_version >= FIRST_VERSION_THAT_ADDS:
        return VerificationMode.ADD
    is_known = api_version >= FIRST_VERSION_WITH_ABORTABLE
    return VerificationMode.VERIFY_OR_ABORT if is_known else VerificationMode.VERIFY


def _words_for(api_version: int) -> Callable[[ErrorCode], ErrorCode]:
    def told(code: ErrorCode) -> ErrorCode:
        code = TOLD_AS.get(code, code)
        is_loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if is_loading and api_version < FIRST_VERSION_WITH_LOADING:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return code

    return told


def _partitions(topic: TxnOffsetCommitRequestTopic) -> list[TxnOffsetCommitRequestPartition]:
    return topic.partitions


def _cut(topic: TxnOffsetCommitRequestTopic, some: slice) -> TxnOffsetCommitRequestTopic:
    return TxnOffsetCommitRequestTopic(name=topic.name, partitions=topic.partitions[some])


def _part(
    request: TxnOffsetCommitRequest, topics: list[TxnOffsetCommitRequestTopic]
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )


def _refused(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions
        ],
    )
