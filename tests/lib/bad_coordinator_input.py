"""Invalid requests to the coordinators of groups and transactions, each with its error.

`BAD` has the requests by name. `Setting` prepares a broker, Millstream's or Apache Kafka's, and
sends them: the broker has a transactional id with an old epoch, an open transaction, and groups
with a present and a former member.
"""

from collections.abc import Callable
from typing import NamedTuple

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from common.kafka.protocol.messages.join_group import JoinGroupRequestProtocol
from tests.lib.coordinator_requests import (
    CLASSIC,
    KNOWN,
    MODERN,
    NOBODY,
    OPEN,
    TIMEOUT_MS,
    TOO_LONG,
    TOPIC,
    Asks,
)
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until


class Setting(Asks):
    """The state of the broker before the invalid requests."""

    def __init__(self, connection: RawConnection) -> None:
        super().__init__(connection)
        for key_type in (0, 1):
            until(lambda key_type=key_type: self._is_served(key_type))
        self.old = self.producer_of(KNOWN)
        self.new = self.producer_of(KNOWN)
        self.producer_of(OPEN)
        self.open = self.producer_of(OPEN)
        assert self.add_partitions(OPEN, self.open, TOPIC) == 0
        assert self.add_offsets(OPEN, self.open, CLASSIC) == 0
        self.member_id, self.generation = self._join_classic()
        self.modern_id = self._join_modern()

    def _is_served(self, key_type: int) -> bool:
        if not self.has_coordinators(key_type, [KNOWN, OPEN, CLASSIC, MODERN, NOBODY]):
            return False
        # The coordinator may be found before it has loaded its state.
        if key_type == 1:
            return not self.ask(
                ApiKey.INIT_PRODUCER_ID,
                4,
                InitProducerIdRequest(transactional_id=KNOWN, transaction_timeout_ms=TIMEOUT_MS),
            ).error_code
        answer = self.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id=CLASSIC, member_id="?"))
        return answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def _join_classic(self) -> tuple[str, int]:
        member_id = self.join(CLASSIC).member_id
        joined = self.join(CLASSIC, member_id)
        assert joined.error_code == 0
        assert self.sync(CLASSIC, member_id, joined.generation_id) == 0
        return member_id, joined.generation_id

    def _join_modern(self) -> str:
        member_id = "a-member-that-is-there"
        assert self.modern_join(member_id=member_id) == 0
        return member_id


class Bad(NamedTuple):
    """An invalid request, and the error of its answer."""

    code: ErrorCode
    ask: Callable[[Setting], int]


BAD: dict[str, Bad] = {
    # Unknown transactional ids, and those of other producers.
    "EndTxn of an id nobody has": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.end(NOBODY, (1, 0), 4, True)
    ),
    "EndTxn of another's id": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.end(OPEN, on.new, 4, True)
    ),
    "AddPartitionsToTxn of an id nobody has": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.add_partitions(NOBODY, (1, 0), TOPIC)
    ),
    "AddPartitionsToTxn of another's id": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.add_partitions(OPEN, on.new, TOPIC)
    ),
    "AddOffsetsToTxn of another's id": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.add_offsets(OPEN, on.new, CLASSIC)
    ),
    "InitProducerId, another's producer id": Bad(
        ErrorCode.PRODUCER_FENCED,
        lambda on: on.init(OPEN, producer_id=on.new[0], producer_epoch=0).error_code,
    ),
    # Old epochs, and epochs that never existed.
    "EndTxn, old epoch": Bad(ErrorCode.PRODUCER_FENCED, lambda on: on.end(KNOWN, on.old, 4, True)),
    "EndTxn v1, old epoch": Bad(
        ErrorCode.INVALID_PRODUCER_EPOCH, lambda on: on.end(KNOWN, on.old, 1, True)
    ),
    "EndTxn v5, old epoch": Bad(
        ErrorCode.PRODUCER_FENCED, lambda on: on.end(KNOWN, on.old, 5, True)
    ),
    "EndTxn, an epoch to come": Bad(
        ErrorCode.PRODUCER_FENCED, lambda on: on.end(KNOWN, (on.new[0], on.new[1] + 9), 4, False)
    ),
    "AddPartitionsToTxn, old epoch": Bad(
        ErrorCode.PRODUCER_FENCED, lambda on: on.add_partitions(KNOWN, on.old, TOPIC)
    ),
    "AddPartitionsToTxn v1, old epoch": Bad(
        ErrorCode.INVALID_PRODUCER_EPOCH, lambda on: on.add_partitions(KNOWN, on.old, TOPIC, 1)
    ),
    "AddOffsetsToTxn, old epoch": Bad(
        ErrorCode.PRODUCER_FENCED, lambda on: on.add_offsets(KNOWN, on.old, CLASSIC)
    ),
    "InitProducerId, old epoch": Bad(
        ErrorCode.PRODUCER_FENCED,
        lambda on: on.init(KNOWN, producer_id=on.old[0], producer_epoch=on.old[1]).error_code,
    ),
    "Produce v11, old epoch": Bad(
        ErrorCode.INVALID_PRODUCER_EPOCH, lambda on: on.produce(KNOWN, on.old, 11)
    ),
    # No transaction, or another one.
    "EndTxn commits without begin": Bad(
        ErrorCode.INVALID_TXN_STATE, lambda on: on.end(KNOWN, on.new, 4, True)
    ),
    "EndTxn aborts without begin": Bad(
        ErrorCode.INVALID_TXN_STATE, lambda on: on.end(KNOWN, on.new, 4, False)
    ),
    "EndTxn v5 commits without begin": Bad(
        ErrorCode.INVALID_TXN_STATE, lambda on: on.end(KNOWN, on.new, 5, True)
    ),
    "Produce v9 to what was not added": Bad(
        ErrorCode.INVALID_TXN_STATE, lambda on: on.produce(OPEN, on.open, 9)
    ),
    "Produce v11 to what was not added": Bad(
        ErrorCode.TRANSACTION_ABORTABLE, lambda on: on.produce(OPEN, on.open, 11)
    ),
    "Produce v11, another's id": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.produce(NOBODY, on.open, 11)
    ),
    "AddPartitionsToTxn, no such topic": Bad(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda on: on.add_partitions(OPEN, on.open, "none")
    ),
    "InitProducerId, too long": Bad(
        ErrorCode.INVALID_TRANSACTION_TIMEOUT, lambda on: on.init(NOBODY, 1000000000).error_code
    ),
    "InitProducerId, no time": Bad(
        ErrorCode.INVALID_TRANSACTION_TIMEOUT, lambda on: on.init(NOBODY, 0).error_code
    ),
    "InitProducerId, empty id": Bad(ErrorCode.INVALID_REQUEST, lambda on: on.init("").error_code),
    "InitProducerId, half a producer": Bad(
        ErrorCode.INVALID_REQUEST, lambda on: on.init(NOBODY, producer_id=7).error_code
    ),
    # Offsets in a transaction.
    "TxnOffsetCommit of a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID,
        lambda on: on.txn_commit(on.open, member_id=NOBODY, generation_id=on.generation),
    ),
    "TxnOffsetCommit, old generation": Bad(
        ErrorCode.ILLEGAL_GENERATION,
        lambda on: on.txn_commit(on.open, member_id=on.member_id, generation_id=on.generation - 1),
    ),
    "TxnOffsetCommit, unknown static member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID,
        lambda on: on.txn_commit(
            on.open, member_id=on.member_id, generation_id=on.generation, group_instance_id="nobody"
        ),
    ),
    "TxnOffsetCommit, metadata over the limit": Bad(
        ErrorCode.OFFSET_METADATA_TOO_LARGE, lambda on: on.txn_commit(on.open, metadata=TOO_LONG)
    ),
    "TxnOffsetCommit, group not added": Bad(
        ErrorCode.TRANSACTION_ABORTABLE, lambda on: on.txn_commit(on.new, name=KNOWN)
    ),
    "TxnOffsetCommit, old epoch": Bad(
        ErrorCode.INVALID_PRODUCER_EPOCH, lambda on: on.txn_commit((on.open[0], on.open[1] - 1))
    ),
    "TxnOffsetCommit v5, old epoch": Bad(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        lambda on: on.txn_commit((on.open[0], on.open[1] - 1), version=5),
    ),
    "TxnOffsetCommit v5, no epoch": Bad(
        ErrorCode.INVALID_PRODUCER_EPOCH, lambda on: on.txn_commit((on.open[0], -1), version=5)
    ),
    "TxnOffsetCommit, no epoch": Bad(
        ErrorCode.INVALID_PRODUCER_EPOCH, lambda on: on.txn_commit((on.open[0], -1))
    ),
    "TxnOffsetCommit, no producer": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.txn_commit((-1, -1))
    ),
    "TxnOffsetCommit v5, no producer": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.txn_commit((-1, -1), version=5)
    ),
    "TxnOffsetCommit v5, another's id": Bad(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, lambda on: on.txn_commit(on.new, version=5)
    ),
    "TxnOffsetCommit v5 of a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID,
        lambda on: on.txn_commit(on.open, version=5, member_id=NOBODY, generation_id=on.generation),
    ),
    # Groups.
    "OffsetCommit of a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.commit(CLASSIC, on.generation, NOBODY)
    ),
    "OffsetCommit, old generation": Bad(
        ErrorCode.ILLEGAL_GENERATION, lambda on: on.commit(CLASSIC, on.generation - 1, on.member_id)
    ),
    "OffsetCommit of nobody in a live group": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.commit(CLASSIC, -1, "")
    ),
    "OffsetCommit to a group nobody has": Bad(
        ErrorCode.GROUP_ID_NOT_FOUND, lambda on: on.commit(NOBODY, 3, "member")
    ),
    "OffsetCommit, metadata over the limit": Bad(
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        lambda on: on.commit(CLASSIC, on.generation, on.member_id, TOO_LONG),
    ),
    "OffsetCommit, no such topic": Bad(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        lambda on: on.commit(CLASSIC, on.generation, on.member_id, topic="none"),
    ),
    "OffsetCommit of a modern member, old epoch": Bad(
        ErrorCode.STALE_MEMBER_EPOCH, lambda on: on.commit(MODERN, 0, on.modern_id)
    ),
    "OffsetCommit of a dead modern member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.commit(MODERN, 1, NOBODY)
    ),
    "OffsetCommit, empty group": Bad(
        ErrorCode.GROUP_ID_NOT_FOUND, lambda on: on.commit("", 1, "member")
    ),
    "JoinGroup as a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.join(CLASSIC, NOBODY).error_code
    ),
    "JoinGroup, empty group": Bad(ErrorCode.INVALID_GROUP_ID, lambda on: on.join("").error_code),
    "JoinGroup, session too short": Bad(
        ErrorCode.INVALID_SESSION_TIMEOUT,
        lambda on: on.join(CLASSIC, session_timeout_ms=1).error_code,
    ),
    "JoinGroup, session too long": Bad(
        ErrorCode.INVALID_SESSION_TIMEOUT,
        lambda on: on.join(CLASSIC, session_timeout_ms=2**31 - 1).error_code,
    ),
    "JoinGroup, another protocol": Bad(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        lambda on: (
            on.join(
                CLASSIC, protocols=[JoinGroupRequestProtocol(name="other", metadata=b"")]
            ).error_code
        ),
    ),
    "JoinGroup, no protocol": Bad(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        lambda on: on.join("new-group", protocols=[]).error_code,
    ),
    "SyncGroup of a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.sync(CLASSIC, NOBODY, on.generation)
    ),
    "SyncGroup, old generation": Bad(
        ErrorCode.ILLEGAL_GENERATION, lambda on: on.sync(CLASSIC, on.member_id, on.generation - 1)
    ),
    "Heartbeat of a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.heartbeat(NOBODY, on.generation)
    ),
    "Heartbeat, old generation": Bad(
        ErrorCode.ILLEGAL_GENERATION, lambda on: on.heartbeat(on.member_id, on.generation - 1)
    ),
    "LeaveGroup of a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.leave(CLASSIC, NOBODY)
    ),
    "LeaveGroup, no such group": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.leave(NOBODY, "member")
    ),
    # Groups of the consumer protocol.
    "ConsumerGroupHeartbeat, empty group": Bad(
        ErrorCode.INVALID_REQUEST, lambda on: on.modern_join(group="")
    ),
    "ConsumerGroupHeartbeat of a dead member": Bad(
        ErrorCode.UNKNOWN_MEMBER_ID, lambda on: on.modern(NOBODY, 1).error_code
    ),
    "ConsumerGroupHeartbeat, an epoch to come": Bad(
        ErrorCode.FENCED_MEMBER_EPOCH, lambda on: on.modern(on.modern_id, 99).error_code
    ),
    "ConsumerGroupHeartbeat, no subscription": Bad(
        ErrorCode.INVALID_REQUEST, lambda on: on.modern_join(subscribed_topic_names=None)
    ),
    "ConsumerGroupHeartbeat, no time": Bad(
        ErrorCode.INVALID_REQUEST, lambda on: on.modern_join(rebalance_timeout_ms=-1)
    ),
    "ConsumerGroupHeartbeat joins with partitions": Bad(
        ErrorCode.INVALID_REQUEST, lambda on: on.modern_join(topic_partitions=None)
    ),
    "ConsumerGroupHeartbeat, wrong pattern": Bad(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        lambda on: on.modern_join(subscribed_topic_names=None, subscribed_topic_regex="a("),
    ),
    "ConsumerGroupHeartbeat, no such assignor": Bad(
        ErrorCode.UNSUPPORTED_ASSIGNOR, lambda on: on.modern_join(server_assignor="greedy")
    ),
    "ConsumerGroupHeartbeat, epoch below -2": Bad(
        ErrorCode.INVALID_REQUEST, lambda on: on.modern(on.modern_id, -3).error_code
    ),
    "ConsumerGroupHeartbeat to a classic group": Bad(
        ErrorCode.GROUP_ID_NOT_FOUND, lambda on: on.modern("m", 5, CLASSIC).error_code
    ),
    "JoinGroup, another protocol, to a modern group": Bad(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        lambda on: on.join(MODERN, "m", protocol_type="connect").error_code,
    ),
}
