"""Transactions, and the coordinators of transactions and groups."""

from typing import Any

from broker.server.authorization.access import (
    CLUSTER,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    Access,
    refusal_of,
)
from broker.server.authorization.verdicts import (
    Narrowed,
    OnEach,
    Refused,
    Verdict,
    divide,
    with_code,
)
from common.kafka.acls import AclOperation, ResourceType
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from common.kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from common.kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from common.kafka.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from common.kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
FIRST_VERSION_BETWEEN_BROKERS = 4  # of AddPartitionsToTxn
FIRST_VERSION_WITH_KEYS = 4  # of FindCoordinator
COORDINATOR_KINDS: dict[int, ResourceType] = {0: GROUP, 1: TRANSACTIONAL_ID}


def _may_write(access: Access, transactional_id: str) -> bool:
    return access.may(AclOperation.WRITE, TRANSACTIONAL_ID, transactional_id)


def _id_denied(response: type[Message], transactional_id: str) -> Refused:
    return with_code(response, refusal_of(TRANSACTIONAL_ID, transactional_id))


def check_find_coordinator(
    access: Access, request: FindCoordinatorRequest, api_version: int
) -> Verdict:
    """DESCRIBE on each group or transactional id; CLUSTER_ACTION for other kinds of keys."""
    kind = COORDINATOR_KINDS.get(request.key_type, CLUSTER)

    def may(key: str) -> bool:
        if kind is CLUSTER:
            return access.may(AclOperation.CLUSTER_ACTION, CLUSTER)
        return access.may(AclOperation.DESCRIBE, kind, key)

    def code_of(key: str) -> ErrorCode:
        return CLUSTER_DENIED if kind is CLUSTER else refusal_of(kind, key)

    if api_version < FIRST_VERSION_WITH_KEYS:
        if may(request.key):
            return None
        refusal = FindCoordinatorResponse(
            error_code=code_of(request.key), node_id=-1, host="", port=-1
        )
        return Refused(refusal)
    allowed, denied = divide(request.coordinator_keys, may)
    if not denied:
        return None
    refusals = [
        Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code_of(key))
        for key in denied
    ]
    if not allowed:
        return Refused(FindCoordinatorResponse(coordinators=refusals))
    request.coordinator_keys = allowed
    return Narrowed(lambda answer: answer.coordinators.extend(refusals))


def check_init_producer_id(
    access: Access, request: InitProducerIdRequest, api_version: int
) -> Verdict:
    """WRITE on the transactional id; without one IDEMPOTENT_WRITE, or WRITE on some topic."""
    if request.transactional_id is not None:
        if _may_write(access, request.transactional_id):
            return None
        return _id_denied(InitProducerIdResponse, request.transactional_id)
    if access.may_on_any(AclOperation.WRITE, TOPIC) or access.may(
        AclOperation.IDEMPOTENT_WRITE, CLUSTER
    ):
        return None
    return with_code(InitProducerIdResponse, CLUSTER_DENIED)


def check_add_partitions_to_txn(
    access: Access, request: AddPartitionsToTxnRequest, api_version: int
) -> Verdict:
    """WRITE on the transactional id and on each topic; between brokers CLUSTER_ACTION."""
    if api_version >= FIRST_VERSION_BETWEEN_BROKERS:
        if access.may(AclOperation.CLUSTER_ACTION, CLUSTER):
            return None
        return with_code(AddPartitionsToTxnResponse, CLUSTER_DENIED)
    topics = request.v3_and_below_topics
    transactional_id = request.v3_and_below_transactional_id
    if not _may_write(access, transactional_id):
        code = refusal_of(TRANSACTIONAL_ID, transactional_id)
        return _not_added(topics, {topic.name: code for topic in topics})
    denied = {
        topic.name: refusal_of(TOPIC, topic.name)
        for topic in topics
        if not access.may(AclOperation.WRITE, TOPIC, topic.name)
    }
    return _not_added(topics, denied) if denied else None


def _not_added(topics: list[AddPartitionsToTxnTopic], denied: dict[str, ErrorCode]) -> Refused:
    """Add nothing: a transaction gets all of its partitions or none."""
    return Refused(
        AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index,
                            partition_error_code=denied.get(
                                topic.name, ErrorCode.OPERATION_NOT_ATTEMPTED
                            ),
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in topics
            ]
        )
    )


def check_add_offsets_to_txn(
    access: Access, request: AddOffsetsToTxnRequest, api_version: int
) -> Verdict:
    """WRITE on the transactional id, READ on the group."""
    if not _may_write(access, request.transactional_id):
        return _id_denied(AddOffsetsToTxnResponse, request.transactional_id)
    if not access.may(AclOperation.READ, GROUP, request.group_id):
        return with_code(AddOffsetsToTxnResponse, refusal_of(GROUP, request.group_id))
    return None


def check_end_txn(access: Access, request: EndTxnRequest, api_version: int) -> Verdict:
    """WRITE on the transactional id."""
    if _may_write(access, request.transactional_id):
        return None
    return _id_denied(EndTxnResponse, request.transactional_id)


def check_txn_offset_commit(
    access: Access, request: TxnOffsetCommitRequest, api_version: int
) -> Verdict:
    """WRITE on the transactional id, READ on the group and on each topic."""
    code = None
    if not _may_write(access, request.transactional_id):
        code = refusal_of(TRANSACTIONAL_ID, request.transactional_id)
    elif not access.may(AclOperation.READ, GROUP, request.group_id):
        code = refusal_of(GROUP, request.group_id)
    if code is not None:
        return Refused(
            TxnOffsetCommitResponse(topics=[_offset_refused(t, code) for t in request.topics])
        )
    return _commit_topics(access, request, api_version)


def _offset_refused(topic: Any, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


_commit_topics = OnEach(
    entries="topics",
    operation=AclOperation.READ,
    kind=TOPIC,
    response=TxnOffsetCommitResponse,
    answers="topics",
    refuse=lambda topic: _offset_refused(topic, refusal_of(TOPIC, topic.name)),
)


def check_write_txn_markers(
    access: Access, request: WriteTxnMarkersRequest, api_version: int
) -> Verdict:
    """CLUSTER_ACTION, or ALTER for a tool that ends a hanging transaction (KIP-664)."""
    if access.can_see(AclOperation.ALTER, CLUSTER) or access.may(
        AclOperation.CLUSTER_ACTION, CLUSTER
    ):
        return None
    return Refused(
        WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=CLUSTER_DENIED
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )
    )


_describe_transactions = OnEach(
    entries="transactional_ids",
    operation=AclOperation.DESCRIBE,
    kind=TRANSACTIONAL_ID,
    response=DescribeTransactionsResponse,
    answers="transaction_states",
    name_of=str,
    refuse=lambda name: TransactionState(
        transactional_id=name, error_code=refusal_of(TRANSACTIONAL_ID, name)
    ),
)


def check_describe_transactions(
    access: Access, request: DescribeTransactionsRequest, api_version: int
) -> Verdict:
    """DESCRIBE on each transactional id; topics that may not be described are left out."""
    verdict = _describe_transactions(access, request, api_version)
    if isinstance(verdict, Refused):
        return verdict
    first = verdict

    def complete(answer: DescribeTransactionsResponse) -> None:
        for state in answer.transaction_states:
            state.topics = [
                topic
                for topic in state.topics
                if access.can_see(AclOperation.DESCRIBE, TOPIC, topic.topic)
            ]
        if isinstance(first, Narrowed):
            first.complete(answer)

    return Narrowed(complete)


def check_list_transactions(
    access: Access, request: ListTransactionsRequest, api_version: int
) -> Verdict:
    """List the transactional ids that may be described."""

    def complete(answer: ListTransactionsResponse) -> None:
        answer.transaction_states = [
            state
            for state in answer.transaction_states
            if access.can_see(AclOperation.DESCRIBE, TRANSACTIONAL_ID, state.transactional_id)
        ]

    return Narrowed(complete)
