"""Groups, ours beside Apache Kafka's: joins of many members, joins of many groups, commits.

`python -m bench groups [--rounds 3]`. One node each, a new one for every round, ours and theirs in
turn. The clients are one asyncio process with a minimal implementation of the protocol: members of
the classic protocol send a heartbeat every 100 ms, those of the consumer protocol at the interval
that the broker answers.
"""

import argparse
import asyncio
import os
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

from bench.broker.side_by_side import create_topic
from bench.lib.first_record import wait_for_first_record
from bench.lib.results import Results
from bench.lib.servers import ApacheKafka, Millstream, Server, find_kafka
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
)
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from common.kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from common.kafka.protocol.structs import encode_struct
from common.process.tasks import spawn

TOPIC = "wide"
PARTITIONS = 1_000
MEMBERS = 100
GROUPS = 1_000
CONNECTIONS = 50
HEARTBEAT_SECONDS = 0.1
COMMIT_SECONDS = 4.0
COMMITTERS = 16
PATIENCE_SECONDS = 120.0
RETRY_SECONDS = 0.05
RETRIABLE = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

T = TypeVar("T")


class Connection:
    """One connection with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    @classmethod
    async def open(cls, server: Server) -> Self:
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 22))

    async def ask(self, key: ApiKey, version: int, request: Message, kind: type[T]) -> T:
        """Send a request, and wait for its answer."""
        self._correlation_id += 1
        self._writer.write(encode_request(key, version, self._correlation_id, "bench", request))
        _, response = decode_response(key, version, await self.frame())
        assert isinstance(response, kind), response
        return response

    async def frame(self) -> bytes:
        """Return the next frame."""
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)

    def send(self, data: bytes) -> None:
        """Send an encoded request."""
        self._writer.write(data)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class ClassicMember:
    """A member of the classic protocol; as the leader it assigns equal shares."""

    def __init__(self, group: str, member_count: int) -> None:
        self.group = group
        self.member_count = member_count
        self.member_id = ""
        self.generation_id = -1
        self.is_complete = False
        said = ConsumerProtocolSubscription(topics=[TOPIC])
        self.protocol = JoinGroupRequestProtocol(
            name="range", metadata=b"\0\1" + encode_struct(said, 1)
        )

    async def join(self, connection: Connection) -> None:
        """Join and sync until both succeed."""
        while True:
            joined = await connection.ask(
                ApiKey.JOIN_GROUP,
                7,
                JoinGroupRequest(
                    group_id=self.group,
                    session_timeout_ms=45_000,
                    rebalance_timeout_ms=60_000,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocols=[self.protocol],
                ),
                JoinGroupResponse,
            )
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
            elif joined.error_code == ErrorCode.NONE:
                self.member_id, self.generation_id = joined.member_id, joined.generation_id
                if await self._sync(connection, joined):
                    return
            elif joined.error_code in RETRIABLE:
                await asyncio.sleep(RETRY_SECONDS)

    async def _sync(self, connection: Connection, joined: JoinGroupResponse) -> bool:
        synced = await connection.ask(
            ApiKey.SYNC_GROUP,
            3,
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation_id,
                member_id=self.member_id,
                assignments=shares([each.member_id for each in joined.members]),
            ),
            SyncGroupResponse,
        )
        equal_bytes = 4 * PARTITIONS // self.member_count + 64
        self.is_complete = 0 < len(synced.assignment) <= equal_bytes
        return synced.error_code == ErrorCode.NONE

    async def stay(self, connection: Connection) -> None:
        """Send heartbeats, and rejoin after a rebalance."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            request = HeartbeatRequest(
                group_id=self.group, generation_id=self.generation_id, member_id=self.member_id
            )
            beat = await connection.ask(ApiKey.HEARTBEAT, 3, request, HeartbeatResponse)
            if beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                await self.join(connection)

    def state(self) -> tuple[int, bool]:
        """Return the generation, and True if the assignment is an equal share."""
        return self.generation_id, self.is_complete


def shares(member_ids: list[str]) -> list[SyncGroupRequestAssignment]:
    """Return an equal share for each member."""
    return [
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=encode_assignment(
                ConsumerProtocolAssignment(
                    assigned_partitions=[
                        TopicPartition(
                            topic=TOPIC,
                            partitions=list(range(position, PARTITIONS, len(member_ids))),
                        )
                    ]
                ),
                1,
            ),
        )
        for position, member_id in enumerate(member_ids)
    ]


class ConsumerMember:
    """A member of the consumer protocol (KIP-848)."""

    def __init__(self, group: str, number: int, member_count: int) -> None:
        self.group = group
        self.member_id = f"{group}-{number:04}"
        self.member_count = member_count
        self.member_epoch = 0
        self.interval_ms = 0
        self.owned: list[TopicPartitions] = []

    async def join(self, connection: Connection) -> None:
        """Send the first heartbeat."""
        if not await self._beat(connection):
            await asyncio.sleep(RETRY_SECONDS)
            await self.join(connection)

    async def _beat(self, connection: Connection) -> bool:
        response = await connection.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=self.member_epoch,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=self.owned,
            ),
            ConsumerGroupHeartbeatResponse,
        )
        if response.error_code:
            assert response.error_code in RETRIABLE, ErrorCode(response.error_code)
            return False
        self.member_epoch, self.interval_ms = response.member_epoch, response.heartbeat_interval_ms
        if response.assignment is not None:
            had, self.owned = self.owned, response.assignment.topic_partitions
            if count(had) > count(self.owned):
                # The member has revoked the partitions, and confirms it.
                return await self._beat(connection)
        return True

    async def stay(self, connection: Connection) -> None:
        """Send heartbeats at the interval from the broker."""
        while True:
            await asyncio.sleep(self.interval_ms / 1000)
            await self._beat(connection)

    def state(self) -> tuple[int, bool]:
        """Return the epoch, and True if the assignment is an equal share."""
        return self.member_epoch, count(self.owned) == PARTITIONS // self.member_count


def count(partitions: list[TopicPartitions]) -> int:
    """Return the count of partitions."""
    return sum(len(topic.partitions) for topic in partitions)


Member = ClassicMember | ConsumerMember


async def many_members(server: Server, members: list[Member]) -> float:
    """Return the time until all members are in one generation with equal shares."""
    connections = [await Connection.open(server) for _ in members]
    await find_coordinator(connections[0], members[0].group)
    started = time.perf_counter()

    async def live(member: Member, connection: Connection) -> None:
        await member.join(connection)
        await member.stay(connection)

    tasks = [spawn(live(*each)) for each in zip(members, connections, strict=True)]
    try:
        while len({member.state() for member in members}) > 1 or not members[0].state()[1]:
            assert time.perf_counter() - started < PATIENCE_SECONDS, "the group does not settle"
            for task in tasks:
                assert not task.done(), task.exception()
            await asyncio.sleep(0.01)
        return time.perf_counter() - started
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in connections:
            connection.close()


async def find_coordinator(connection: Connection, group: str) -> None:
    """Have `__consumer_offsets` created, and wait until the coordinator serves the group."""
    while True:
        request = FindCoordinatorRequest(coordinator_keys=[group])
        response = await connection.ask(
            ApiKey.FIND_COORDINATOR, 4, request, FindCoordinatorResponse
        )
        if response.coordinators[0].error_code == ErrorCode.NONE:
            return
        await asyncio.sleep(RETRY_SECONDS)


async def many_groups(server: Server, make: Callable[[int], Member]) -> float:
    """Return the joins a second of groups with one member."""
    connections = [await Connection.open(server) for _ in range(CONNECTIONS)]
    members = [make(number) for number in range(GROUPS)]
    await find_coordinator(connections[0], members[0].group)

    async def join_some(connection: Connection, some: list[Member]) -> None:
        for member in some:
            await member.join(connection)

    started = time.perf_counter()
    await asyncio.gather(
        *(join_some(each, members[n::CONNECTIONS]) for n, each in enumerate(connections))
    )
    seconds = time.perf_counter() - started
    for connection in connections:
        connection.close()
    return GROUPS / seconds


async def commits(server: Server, prefix: str) -> float:
    """Return the commits of one partition a second, one request at a time."""
    done = 0
    connections = [await Connection.open(server) for _ in range(COMMITTERS)]
    for number, connection in enumerate(connections):
        await find_coordinator(connection, f"{prefix}-{number}")
        answer = await connection.ask(
            ApiKey.OFFSET_COMMIT, 8, commit_request(f"{prefix}-{number}"), OffsetCommitResponse
        )
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, answer
    deadline = time.perf_counter() + COMMIT_SECONDS

    async def go_on(number: int, connection: Connection) -> None:
        nonlocal done
        request = commit_request(f"{prefix}-{number}")
        data = encode_request(ApiKey.OFFSET_COMMIT, 8, 1, "bench", request)
        while time.perf_counter() < deadline:
            connection.send(data)
            await connection.frame()
            done += 1

    await asyncio.gather(*(go_on(*each) for each in enumerate(connections)))
    for connection in connections:
        connection.close()
    return done / COMMIT_SECONDS


def commit_request(group: str) -> OffsetCommitRequest:
    """Return a commit of one offset, as of a consumer with `assign`."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return OffsetCommitRequest(group_id=group, topics=[topic])


def measure(server: Server, results: Results) -> None:
    """Measure every cell once."""
    wait_for_first_record(server.port, 60)
    create_topic(server, TOPIC, PARTITIONS)

    def add(cell: str, work: Awaitable[float], *, lower_is_better: bool = False) -> None:
        async def run() -> float:
            return await work

        before = server.cpu_seconds()
        value = asyncio.run(run())
        results.add(cell, server.name, value, lower_is_better=lower_is_better)
        used = server.cpu_seconds() - before
        print(f"  {server.name} {cell}: {value:.3g}, CPU {used:.1f} s", flush=True)

    classic: list[Member] = [ClassicMember("classic", MEMBERS) for _ in range(MEMBERS)]
    consumer: list[Member] = [ConsumerMember("consumer", n, MEMBERS) for n in range(MEMBERS)]
    shape = f"{MEMBERS} members, {PARTITIONS:,} partitions"
    add(f"{shape}, classic: s", many_members(server, classic), lower_is_better=True)
    add(f"{shape}, consumer: s", many_members(server, consumer), lower_is_better=True)
    add(
        f"{GROUPS:,} groups join, classic: groups/s",
        many_groups(server, lambda n: ClassicMember(f"classic-{n}", 1)),
    )
    add(
        f"{GROUPS:,} groups join, consumer: groups/s",
        many_groups(server, lambda n: ConsumerMember(f"consumer-{n}", n, 1)),
    )
    add("commits of one offset: commits/s", commits(server, "commits"))


def main(arguments: list[str]) -> int:
    """Measure in turn, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench groups")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    libraries = find_kafka()
    results = Results()
    print(f"processors: {os.cpu_count()}")
    for round_number in range(options.rounds):
        print(f"round {round_number + 1}", flush=True)
        with Millstream() as server:
            measure(server, results)
        if libraries is not None:
            with ApacheKafka(libraries) as server:
                measure(server, results)
    print("\n".join(results.rows()))
    return 0
