"""Real `Quorum` objects in one event loop: real sockets on loopback, real folders."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import uvloop

from broker.config.broker_config import BrokerConfig
from broker.log.local_log import LogPlace
from broker.log.log_start import OpenHints
from broker.log.recovery import open_partition_log
from broker.log.storage import DelayedDeletion, RealStorage
from broker.metadata.controller import Decision, Moment, refuse
from broker.metadata.image import MetadataImage
from broker.raft.config import NEVER_MS
from broker.server.clock import SystemClock
from broker.server.quorum.controller.controller_rules import ControllerRules
from broker.server.quorum.quorum import MetadataDisk, Quorum
from broker.server.quorum.raft.partition_raft_log import METADATA_PARTITION, metadata_log_config
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.records.metadata import TopicRecord
from common.kafka.protocol.wire import ZERO_UUID
from millstream.processes import cluster_layout

CLUSTER_ID = "quorum-test-cluster-id"
PATIENCE_S = 60


class TopicNames:
    """A controller with a single rule: two topics cannot have the same name."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self.deadline_ms = NEVER_MS
        self.lost: list[int] = []

    def activate(self, moment: Moment) -> list[Message]:
        return []

    def handle(self, request: Message, api_version: int, moment: Moment) -> Decision:
        if isinstance(request, BrokerHeartbeatRequest):
            return Decision(BrokerHeartbeatResponse())
        assert isinstance(request, CreateTopicsRequest)
        name = request.topics[0].name
        if name in self._image.topics.by_name:
            error = KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, name)
            return Decision(refuse(request, api_version, error), [])
        topic_id = moment.next_offset.to_bytes(16, "big")
        return Decision(
            CreateTopicsResponse(topics=[CreatableTopicResult(name=name, topic_id=topic_id)]),
            [TopicRecord(name=name, topic_id=topic_id)],
        )

    def tick(self, moment: Moment) -> list[Message]:
        return []

    def next_deadline_ms(self) -> int:
        return self.deadline_ms

    def lose_broker(self, broker_id: int, moment: Moment) -> list[Message]:
        self.lost.append(broker_id)
        return []

    def expire_tokens(self, moment: Moment) -> list[Message]:
        return []


TOPIC_NAMES = ControllerRules(TopicNames, refuse)


def free_ports(count: int) -> list[int]:
    """Return unused ports that the system does not give to outgoing connections."""
    return list(islice(cluster_layout.free_ports(), count))


def open_quorum(
    folder: Path,
    settings: dict[str, str],
    rules: ControllerRules | None = TOPIC_NAMES,
    directory_id: bytes = ZERO_UUID,
) -> Quorum:
    """Return a node's quorum for its folder, which may contain an earlier log."""
    config = BrokerConfig.from_settings(settings)
    storage, directory = RealStorage(), f"{folder}/{METADATA_PARTITION}"
    storage.make_directory(directory)
    place = LogPlace(storage, DelayedDeletion(storage))
    clock = SystemClock()
    hints = OpenHints(timestamp_ms=clock.timestamp_ms())
    log_config = metadata_log_config(config.quorum.segment_bytes)
    log = open_partition_log(METADATA_PARTITION, directory, log_config, place, hints)
    return Quorum(
        config,
        MetadataDisk(log, directory, storage, CLUSTER_ID, directory_id),
        clock=clock,
        random_source=Random(config.node_id),
        loop=asyncio.get_running_loop(),
        rules=rules,
    )


class Nodes:
    """Some nodes of one cluster by id: combined voters, from 1, and separate brokers."""

    def __init__(self, folder: Path, count: int, **settings: str) -> None:
        self.folder = folder
        self.ports = dict(enumerate(free_ports(count), 1))
        self._settings = settings
        self.running: dict[int, Quorum] = {}

    @property
    def voters(self) -> str:
        return ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in self.ports.items())

    def settings_of(self, node_id: int) -> dict[str, str]:
        if node_id not in self.ports:
            return {
                "process.roles": "broker",
                "node.id": str(node_id),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "controller.quorum.voters": self.voters,
                **self._settings,
            }
        controller = f"CONTROLLER://127.0.0.1:{self.ports[node_id]}"
        return {
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:0,{controller}",
            "controller.quorum.voters": self.voters,
            **self._settings,
        }

    def start(self, node_id: int, rules: ControllerRules | None = TOPIC_NAMES) -> Quorum:
        quorum = open_quorum(self.folder / str(node_id), self.settings_of(node_id), rules)
        quorum.start()
        self.running[node_id] = quorum
        return quorum

    def start_all(self) -> None:
        for node_id in self.ports:
            self.start(node_id)

    def kill(self, node_id: int) -> None:
        """End a node like SIGKILL: its sockets close without a message."""
        self.running.pop(node_id)._close()

    def kill_all(self) -> None:
        for node_id in list(self.running):
            self.kill(node_id)

    def follower(self) -> Quorum:
        """Return a node that does not lead."""
        return next(q for q in self.running.values() if q is not self.leader())

    def leader(self) -> Quorum | None:
        serving = [quorum for quorum in self.running.values() if quorum.is_serving]
        return max(serving, key=lambda quorum: quorum.node.leader_epoch, default=None)

    async def find_leader(self) -> Quorum:
        """Wait for a leader on which all running nodes agree."""
        await until(self._agree)
        leader = self.leader()
        assert leader is not None
        return leader

    def _agree(self) -> bool:
        leader = self.leader()
        return leader is not None and all(
            (quorum.leader_id, quorum.node.leader_epoch)
            == (leader.node_id, leader.node.leader_epoch)
            for quorum in self.running.values()
        )


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is true; a failure names it."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, condition
        await asyncio.sleep(0.005)


async def ask(
    quorum: Quorum, request: Message, api_version: int, timeout_ms: int = PATIENCE_S * 1000
) -> Any:
    """Send a request to the active controller through a node's channel."""
    answered = asyncio.get_running_loop().create_future()
    quorum.channel.ask(request, api_version, answered.set_result, timeout_ms=timeout_ms)
    return await answered


async def create_topic(quorum: Quorum, name: str) -> int:
    """Create a topic with one partition; return the error code."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    response = await ask(quorum, CreateTopicsRequest(topics=[topic]), 7)
    return int(response.topics[0].error_code)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run one scenario on an event loop like the broker's."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())  # type: ignore[arg-type]
