"""Transcripts of requests to a group coordinator and their answers.

A transcript has blocks. A block begins with a command; the indented lines under it are the answer.
The answers in the repository were recorded from Apache Kafka 4.3.1, so a run against Millstream's
shard compares whole responses, field by field, through both codecs.

    join a v=5                       a client by name; later commands use its id and generation
    sync a assign=a:A,b:B            from the answers, unless the command has others
    answer a                         the answer to a parked request of the client
    commit v=9 offset=5 topic=t      without a client: the request of a simple consumer

A client's id is the first letter of its name: `a2` is the process that replaces `a`. The UUIDs of
member ids are replaced by their order of appearance: `a-<1>`. Fields with default values are
omitted, and so are values that depend on the machine (throttle time, client host) or on the order
of a Java hash map.
"""

import re
import socket
import struct
from dataclasses import dataclass, field

from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.output import ShardContext
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from common.kafka.protocol.message import default_value
from common.kafka.protocol.messages import delete_groups as delete_messages
from common.kafka.protocol.messages import describe_groups as describe_messages
from common.kafka.protocol.messages import heartbeat as heartbeat_messages
from common.kafka.protocol.messages import join_group as join_messages
from common.kafka.protocol.messages import leave_group as leave_messages
from common.kafka.protocol.messages import list_groups as list_messages
from common.kafka.protocol.messages import offset_commit as commit_messages
from common.kafka.protocol.messages import offset_delete as offset_delete_messages
from common.kafka.protocol.messages import offset_fetch as fetch_messages
from common.kafka.protocol.messages import sync_group as sync_messages
from tests.lib.group_scenario import Scenario, subscription

UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HIDDEN = {"throttle_time_ms", "client_host", "authorized_operations"}
PATIENCE_SECONDS = 2.0
SUBSCRIPTIONS = {subscription(*topics): topics for topics in [("t",), ("u",), ("t", "u")]}


class ShardPeer:
    """Millstream's shard in this process, with virtual time and the real codecs."""

    suffix = ""

    def __init__(self):
        self.scenario = Scenario(GroupConfig(group_initial_rebalance_delay_ms=0))
        self.headers = {}

    def send(self, key, version, message, client_id) -> int:
        frame = encode_request(key, version, 1, client_id, message)
        header, request = decode_request(frame[4:])
        context = ShardContext(version, client_id, "/127.0.0.1")
        token = self._ask(key, context, request)
        self.headers[token] = header
        return token

    def _ask(self, key, context, request) -> int:
        scenario, shard = self.scenario, self.scenario.shard
        handlers = {
            ApiKey.JOIN_GROUP: shard.join_group,
            ApiKey.SYNC_GROUP: shard.sync_group,
            ApiKey.HEARTBEAT: shard.heartbeat,
            ApiKey.LEAVE_GROUP: shard.leave_group,
            ApiKey.OFFSET_COMMIT: shard.commit_offsets,
            ApiKey.OFFSET_DELETE: shard.delete_offsets,
        }
        if key in handlers:
            return scenario.call(handlers[key], context, request)
        # The server splits these requests by group, and merges the answers.
        if key is ApiKey.OFFSET_FETCH:
            parts = [scenario.ask(shard.fetch_offsets, context, each) for each in request.groups]
            response = fetch_messages.OffsetFetchResponse(groups=parts)
        elif key is ApiKey.DESCRIBE_GROUPS:
            parts = [scenario.ask(shard.describe_group, context, each) for each in request.groups]
            response = describe_messages.DescribeGroupsResponse(groups=parts)
        elif key is ApiKey.DELETE_GROUPS:
            names = request.groups_names
            parts = [scenario.ask(shard.delete_group, context, each) for each in names]
            response = delete_messages.DeleteGroupsResponse(results=parts)
        else:
            groups = scenario.list_groups(request.states_filter, request.types_filter)
            response = list_messages.ListGroupsResponse(groups=groups)
        scenario.token_count += 1
        scenario.replies[scenario.token_count] = response
        return scenario.token_count

    def wait(self, token):
        """Return the answer, or None while the request is parked."""
        self.scenario.advance(1)
        response = self.scenario.replies.pop(token, None)
        if response is None:
            return None
        header = self.headers[token]
        frame = b"".join(bytes(part) for part in encode_response(header, response))
        return decode_response(header.api_key, header.api_version, frame[4:])[1]


class BrokerPeer:
    """A running broker, Millstream or Apache Kafka, with a connection for each request."""

    def __init__(self, bootstrap: str, suffix: str):
        host, _, port = bootstrap.rpartition(":")
        self.address, self.suffix = (host, int(port)), suffix
        self.requests = []

    def send(self, key, version, message, client_id) -> int:
        connection = socket.create_connection(self.address)
        connection.sendall(encode_request(key, version, 1, client_id, message))
        self.requests.append((connection, key, version))
        return len(self.requests) - 1

    def wait(self, token):
        connection, key, version = self.requests[token]
        connection.settimeout(PATIENCE_SECONDS)
        try:
            size = self._read(connection, 4)
        except TimeoutError:
            return None
        frame = self._read(connection, struct.unpack(">i", size)[0])
        connection.close()
        return decode_response(key, version, frame)[1]

    def close(self) -> None:
        for connection, _, _ in self.requests:
            connection.close()

    def _read(self, connection, count: int) -> bytes:
        data = b""
        while len(data) < count:
            chunk = connection.recv(count - len(data))
            assert chunk, "the broker closed the connection"
            data += chunk
        return data


@dataclass
class Speaker:
    """The values that a client of a transcript stores."""

    name: str
    member: str = ""
    generation: int = -1
    instance: str | None = None
    token: int | None = None


@dataclass
class Player:
    """Runs one transcript against one peer."""

    peer: object
    speakers: dict = field(default_factory=dict)
    uuids: dict = field(default_factory=dict)

    def play(self, text: str) -> str:
        """Return the transcript with this peer's answers."""
        lines = []
        for line in text.splitlines():
            if line.startswith("  "):
                continue
            lines.append(line)
            if line and not line.startswith("#"):
                lines += [f"  {each}" for each in self.run(line)]
        return "\n".join(lines) + "\n"

    def run(self, command: str) -> list[str]:
        verb, *words = command.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        speaker = None
        if names:
            speaker = self.speakers.setdefault(names[0], Speaker(names[0]))
        if verb == "answer":
            return self.answer(speaker, speaker.token)
        key, message, version = getattr(self, f"make_{verb}")(speaker, options)
        token = self.peer.send(key, version, message, speaker.name[0] if speaker else "admin")
        if speaker is not None and verb in ("join", "sync"):
            speaker.token = token
            speaker.instance = options.get("instance", speaker.instance)
        return self.answer(speaker, token)

    def answer(self, speaker, token) -> list[str]:
        response = self.peer.wait(token)
        if response is None:
            return ["(parked)"]
        if speaker is not None and isinstance(response, join_messages.JoinGroupResponse):
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                speaker.member = response.member_id
            if response.error_code == ErrorCode.NONE:
                speaker.generation = response.generation_id
        return self.show(response)

    # Answers as text.

    def show(self, response) -> list[str]:
        if isinstance(response, list_messages.ListGroupsResponse):
            response.groups = [
                each for each in response.groups if each.group_id.endswith(self.peer.suffix)
            ]
        lines = [line for line in self._fields(response) if line]
        return [self._anonymous(line) for line in lines] or ["ok"]

    def _fields(self, value) -> list[str]:
        """One line of scalars, then a line (or more) for each element of each list."""
        scalars, nested = [], []
        for name, declared in value.__fields__.items():
            item = getattr(value, name)
            if name in HIDDEN or item == default_value(declared):
                continue
            if isinstance(item, list):
                elements = sorted(self._fields(element) for element in item)
                nested += [f"  {line}" for element in elements for line in element]
            else:
                scalars.append(f"{name}={self._scalar(name, item)}")
        return [" ".join(scalars), *nested]

    def _scalar(self, name: str, item) -> str:
        if name == "error_code":
            return ErrorCode(item).name
        if isinstance(item, bytes):
            topics = SUBSCRIPTIONS.get(item)
            return item.decode("latin-1") if topics is None else f"subscription({','.join(topics)})"
        return str(item)

    def _anonymous(self, line: str) -> str:
        def number(match) -> str:
            return f"-<{self.uuids.setdefault(match[0], len(self.uuids) + 1)}>"

        line = UUID.sub(number, line)
        return line.replace(self.peer.suffix, "") if self.peer.suffix else line

    # Requests.

    def group_id(self, options) -> str:
        group_id = options.get("group", "g")
        return group_id and group_id + self.peer.suffix

    def member_id(self, speaker, options) -> str:
        name = options.get("member")
        if name in self.speakers:
            return self.speakers[name].member
        if name is not None:
            return name
        return speaker.member if speaker else ""

    def instance_id(self, speaker, options, version: int, first_version: int):
        if version < first_version:
            return None
        instance = options.get("instance", speaker.instance if speaker else None)
        return None if instance == "none" else instance

    def identity(self, speaker, options, version: int, first_version: int) -> dict:
        generation = speaker.generation if speaker else -1
        return {
            "group_id": self.group_id(options),
            "generation_id": int(options.get("generation", generation)),
            "member_id": self.member_id(speaker, options),
            "group_instance_id": self.instance_id(speaker, options, version, first_version),
        }

    def make_join(self, speaker, options):
        version = int(options.get("v", 5))
        topics = options.get("topics", "t").split(",")
        names = [name for name in options.get("protocols", "range").split(",") if name]
        fields = {
            "group_id": self.group_id(options),
            "session_timeout_ms": int(options.get("session", 30_000)),
            "member_id": self.member_id(speaker, options),
            "group_instance_id": self.instance_id(speaker, options, version, 5),
            "protocol_type": options.get("type", "consumer"),
            "protocols": [
                join_messages.JoinGroupRequestProtocol(name=name, metadata=subscription(*topics))
                for name in names
            ],
        }
        if version >= 1:
            fields["rebalance_timeout_ms"] = 60_000
        return ApiKey.JOIN_GROUP, join_messages.JoinGroupRequest(**fields), version

    def make_sync(self, speaker, options):
        version = int(options.get("v", 3))
        pairs = [pair.split(":") for pair in options.get("assign", "").split(",") if pair]
        fields = self.identity(speaker, options, version, 3)
        fields["assignments"] = [
            sync_messages.SyncGroupRequestAssignment(
                member_id=self.speakers[name].member, assignment=share.encode()
            )
            for name, share in pairs
        ]
        if version >= 5:
            fields["protocol_type"] = options.get("type")
            fields["protocol_name"] = options.get("protocol")
        return ApiKey.SYNC_GROUP, sync_messages.SyncGroupRequest(**fields), version

    def make_heartbeat(self, speaker, options):
        version = int(options.get("v", 3))
        fields = self.identity(speaker, options, version, 3)
        return ApiKey.HEARTBEAT, heartbeat_messages.HeartbeatRequest(**fields), version

    def make_leave(self, speaker, options):
        version = int(options.get("v", 3))
        group_id, member_id = self.group_id(options), self.member_id(speaker, options)
        if version < 3:
            request = leave_messages.LeaveGroupRequest(group_id=group_id, member_id=member_id)
        else:
            instance_id = self.instance_id(speaker, options, version, 3)
            identity = leave_messages.MemberIdentity(
                member_id=member_id, group_instance_id=instance_id
            )
            request = leave_messages.LeaveGroupRequest(group_id=group_id, members=[identity])
        return ApiKey.LEAVE_GROUP, request, version

    def make_commit(self, speaker, options):
        version = int(options.get("v", 9))
        fields = self.identity(speaker, options, version, 7)
        fields["generation_id_or_member_epoch"] = fields.pop("generation_id")
        partition = commit_messages.OffsetCommitRequestPartition(
            partition_index=int(options.get("partition", 0)),
            committed_offset=int(options.get("offset", 5)),
            committed_metadata="m" * int(options.get("metadata", 0)),
        )
        topic = commit_messages.OffsetCommitRequestTopic(
            name=options.get("topic", "t"), partitions=[partition]
        )
        request = commit_messages.OffsetCommitRequest(topics=[topic], **fields)
        return ApiKey.OFFSET_COMMIT, request, version

    def make_fetch(self, speaker, options):
        topics = None
        if "topics" in options:
            topics = [
                fetch_messages.OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1])
                for name in options["topics"].split(",")
            ]
        group = fetch_messages.OffsetFetchRequestGroup(
            group_id=self.group_id(options), topics=topics
        )
        request = fetch_messages.OffsetFetchRequest(groups=[group])
        return ApiKey.OFFSET_FETCH, request, int(options.get("v", 9))

    def make_describe(self, speaker, options):
        request = describe_messages.DescribeGroupsRequest(groups=[self.group_id(options)])
        return ApiKey.DESCRIBE_GROUPS, request, int(options.get("v", 6))

    def make_list(self, speaker, options):
        request = list_messages.ListGroupsRequest(
            states_filter=[state for state in options.get("states", "").split(",") if state],
            types_filter=[each for each in options.get("types", "").split(",") if each],
        )
        return ApiKey.LIST_GROUPS, request, int(options.get("v", 5))

    def make_delete(self, speaker, options):
        request = delete_messages.DeleteGroupsRequest(groups_names=[self.group_id(options)])
        return ApiKey.DELETE_GROUPS, request, int(options.get("v", 2))

    def make_forget(self, speaker, options):
        partition = offset_delete_messages.OffsetDeleteRequestPartition(partition_index=0)
        request = offset_delete_messages.OffsetDeleteRequest(
            group_id=self.group_id(options),
            topics=[
                offset_delete_messages.OffsetDeleteRequestTopic(name=name, partitions=[partition])
                for name in options.get("topics", "t").split(",")
            ],
        )
        return ApiKey.OFFSET_DELETE, request, 0
