"""A group coordinator shard in virtual time: the DSL of the coordinator's tests.

A `Scenario` replaces the shell. It passes requests to the shard, writes records into a list that
represents the partition, collects replies by token, and moves the clock. `member =
scenario.member()` is a client that stores the values of its answers. No code here makes decisions
about groups.
"""

import random
import struct
from dataclasses import dataclass, field

from broker.coordinator.classic_group.classic_group import ClassicGroup
from broker.coordinator.group.describe import listed_group
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.output import Instant, Output, ShardContext
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest
from common.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from common.kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from common.kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.lib.logs import last_of

GROUP = "orders"
START_TIMESTAMP_MS = 1_700_000_000_000
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 60_000
TEST_CONFIG = GroupConfig(group_initial_rebalance_delay_ms=3_000)


def subscription(*topics: str, version: int = 1) -> bytes:
    """A ConsumerProtocolSubscription, with the tail that version 1 adds."""
    names = [topic.encode() for topic in topics]
    body = b"".join(struct.pack(">h", len(name)) + name for name in names)
    tail = struct.pack(">i", -1) + struct.pack(">i", 0)
    return struct.pack(">hi", version, len(topics)) + body + tail


def protocols(*names: str, metadata: bytes = subscription("t")) -> list[JoinGroupRequestProtocol]:
    """Protocols with these names in this order of preference."""
    return [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]


@dataclass
class Scenario:
    """A shard, its partition's records, and every reply by its token."""

    config: GroupConfig = TEST_CONFIG
    seed: int = 7
    now_ms: int = 1_000
    log: list = field(default_factory=list)
    replies: dict = field(default_factory=dict)
    token_count: int = 0
    shard: GroupShard = None
    client_count: int = 0

    def __post_init__(self):
        if self.shard is None:
            self.random = random.Random(self.seed)
            self.shard = GroupShard(self.config, self.random)

    @property
    def now(self) -> Instant:
        return Instant(self.now_ms, START_TIMESTAMP_MS + self.now_ms)

    @property
    def groups(self):
        return self.shard.state.of(ClassicGroup)

    @property
    def group(self):
        return self.groups.get(GROUP)

    def take(self, output: Output) -> Output:
        """Act as the shell: append the records, deliver the replies."""
        for batch in output.batches(self.config.max_batch_bytes):
            self.log.extend(batch)
        for token, response in output.replies:
            assert token not in self.replies, f"{token} answered twice"
            self.replies[token] = response
        for group in self.groups.values():
            group.check()
        return output

    def call(self, handler, context, *arguments) -> int:
        """Pass a request to the shard; return its token."""
        self.token_count += 1
        token = self.token_count
        self.take(handler(token, context, *arguments, self.now))
        return token

    def ask(self, handler, context, *arguments):
        """Pass a request to the shard that must be answered at once."""
        return self.replies.pop(self.call(handler, context, *arguments))

    def list_groups(self, states=(), types=()):
        self.token_count += 1
        token = self.token_count
        context = ShardContext(5)
        self.take(self.shard.list_groups(token, context, list(states), list(types)))
        return [listed_group(found) for found in self.replies.pop(token)]

    def advance(self, duration_ms: int) -> None:
        """Advance the time, with a stop at every deadline."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.shard.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.take(self.shard.on_deadline(self.now))
        self.now_ms = end_ms

    def reload(self) -> None:
        """Kill the coordinator and start another one from the records."""
        self.shard = self.reloaded_shard()
        self.take(last_of(self.shard.loaded(self.now)))

    def reloaded_shard(self) -> GroupShard:
        shard = GroupShard(self.config, self.random)
        for key, value in self.log:
            shard.replay(key, value)
        return shard

    def client(self, **options) -> "Client":
        self.client_count += 1
        return Client(self, f"client{self.client_count}", **options)

    def stable_group(self, member_count: int = 2, **options) -> list["Client"]:
        """Members that joined together, all with an assignment."""
        clients = [self.client(**options) for _ in range(member_count)]
        for client in clients:
            client.join()
        self.advance(self.config.group_initial_rebalance_delay_ms * 2)
        self.sync_all(clients)
        assert all(client.generation_id == self.group.generation_id for client in clients)
        return clients

    def sync_all(self, clients) -> None:
        """Collect the join answers and let everyone sync, the leader last."""
        for client in clients:
            client.joined()
        for client in sorted(clients, key=lambda each: each.is_leader):
            client.sync()
        for client in clients:
            client.synced()

    def commit(self, offsets: dict, *, version=9, group_id=GROUP, **fields):
        """Commit {(topic, partition): offset}; return the error codes in the same shape."""
        request = OffsetCommitRequest(
            group_id=group_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata="",
                        )
                    ],
                )
                for (topic, partition), offset in offsets.items()
            ],
            **fields,
        )
        response = self.ask(self.shard.commit_offsets, ShardContext(version), request)
        return {
            (topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for topic in response.topics
            for partition in topic.partitions
        }

    def fetch(self, topics: dict | None, *, version=9, group_id=GROUP) -> dict:
        """Fetch {topic: [partitions]} (None: everything); return {(topic, partition): offset}."""
        wanted = None
        if topics is not None:
            wanted = [
                OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
        request = OffsetFetchRequestGroup(group_id=group_id, topics=wanted)
        response = self.ask(self.shard.fetch_offsets, ShardContext(version), request)
        assert response.error_code == 0
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in response.topics
            for partition in topic.partitions
        }


@dataclass
class Client:
    """A group member: its requests, and its view of the group."""

    scenario: Scenario
    client_id: str
    instance_id: str | None = None
    version: int = 5
    protocols: list = field(default_factory=lambda: protocols("range"))
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS
    protocol_type: str = "consumer"
    group_id: str = GROUP
    member_id: str = ""
    generation_id: int = -1
    leader: str = ""
    members: list = field(default_factory=list)
    protocol_name: str = "range"
    assignment: bytes | None = None
    join_token: int | None = None
    sync_token: int | None = None

    @property
    def is_leader(self) -> bool:
        return self.member_id != "" and self.leader == self.member_id

    def _context(self, version: int) -> ShardContext:
        return ShardContext(version, self.client_id, "/127.0.0.1")

    def send_join(self, **changes) -> int:
        """Send one JoinGroup and return its token."""
        fields = {
            "group_id": self.group_id,
            "session_timeout_ms": self.session_timeout_ms,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": self.protocol_type,
            "protocols": self.protocols,
        }
        request = JoinGroupRequest(**{**fields, **changes})
        shard = self.scenario.shard
        self.join_token = self.scenario.call(shard.join_group, self._context(self.version), request)
        return self.join_token

    def join(self) -> None:
        """Join like a client: if the answer assigns an id, join again with it."""
        self.send_join()
        response = self.scenario.replies.get(self.join_token)
        if response is not None and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            del self.scenario.replies[self.join_token]
            self.send_join()

    @property
    def is_waiting_to_join(self) -> bool:
        return self.join_token is not None and self.join_token not in self.scenario.replies

    def join_answer(self):
        """The answer of the last JoinGroup, which must exist."""
        response = self.scenario.replies.pop(self.join_token)
        self.join_token = None
        return response

    def join_error(self) -> ErrorCode:
        return ErrorCode(self.join_answer().error_code)

    def joined(self):
        """Store the values of a successful join."""
        response = self.join_answer()
        assert response.error_code == 0, ErrorCode(response.error_code)
        self.member_id, self.generation_id = response.member_id, response.generation_id
        self.leader, self.members = response.leader, response.members
        self.protocol_name = response.protocol_name
        return response

    def send_sync(self, assignments: dict | None = None, version: int = 5, **changes) -> int:
        if assignments is None:
            assignments = {}
            if self.is_leader:
                assignments = {each.member_id: self.share_of(each) for each in self.members}
        fields = {
            "group_id": self.group_id,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol_name,
            "assignments": [
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        }
        request = SyncGroupRequest(**{**fields, **changes})
        shard = self.scenario.shard
        self.sync_token = self.scenario.call(shard.sync_group, self._context(version), request)
        return self.sync_token

    def share_of(self, member) -> bytes:
        return f"{member.member_id}@{self.generation_id}".encode()

    sync = send_sync

    def sync_answer(self):
        response = self.scenario.replies.pop(self.sync_token)
        self.sync_token = None
        return response

    def sync_error(self) -> ErrorCode:
        return ErrorCode(self.sync_answer().error_code)

    @property
    def is_waiting_to_sync(self) -> bool:
        return self.sync_token is not None and self.sync_token not in self.scenario.replies

    def synced(self) -> bytes:
        response = self.sync_answer()
        assert response.error_code == 0, ErrorCode(response.error_code)
        self.assignment = response.assignment
        return self.assignment

    def heartbeat(self, **changes) -> ErrorCode:
        fields = {
            "group_id": self.group_id,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }
        request = HeartbeatRequest(**{**fields, **changes})
        response = self.scenario.ask(self.scenario.shard.heartbeat, self._context(4), request)
        return ErrorCode(response.error_code)

    def leave(self, version: int = 5) -> ErrorCode:
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        else:
            identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
            request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        response = self.scenario.ask(
            self.scenario.shard.leave_group, self._context(version), request
        )
        if version < 3:
            return ErrorCode(response.error_code)
        assert response.error_code == 0
        return ErrorCode(response.members[0].error_code)

    def commit(self, offset: int, topic: str = "t", partition: int = 0, **fields) -> ErrorCode:
        codes = self.scenario.commit(
            {(topic, partition): offset},
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            **fields,
        )
        return codes[topic, partition]
