"""The controller listener as another node or an admin client sees it."""

import asyncio
import socket
from pathlib import Path
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.raft.config import METADATA_TOPIC
from broker.server.network.client_connection import ClientConnection, client_settings
from broker.server.quorum.quorum import Quorum
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from common.kafka.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from common.kafka.protocol.messages.metadata import MetadataRequest
from common.kafka.protocol.messages.vote import VoteRequest
from common.kafka.protocol.records.metadata import BrokerEndpoint, RegisterBrokerRecord
from tests.lib.quorum_nodes import (
    CLUSTER_ID,
    PATIENCE_S,
    Nodes,
    TopicNames,
    create_topic,
    free_ports,
    open_quorum,
    run,
    until,
)

QUORUM = DescribeQuorumRequest(
    topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])]
)


def connect(quorum: Quorum) -> ClientConnection:
    loop = asyncio.get_running_loop()
    address = ("127.0.0.1", quorum.controller_ports["CONTROLLER"])
    return ClientConnection(
        loop, address, client_settings(quorum.config, quorum.config.security.to_brokers)
    )


async def ask_over(connection: ClientConnection, request: Message, version: int) -> Any:
    answered: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
    connection.ask(request, version, PATIENCE_S * 1000, answered.set_result)
    return await answered


async def ask_once(quorum: Quorum, request: Message, version: int) -> Any:
    connection = connect(quorum)
    try:
        return await ask_over(connection, request, version)
    finally:
        connection.close()


def test_what_a_controller_answers(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        nodes.start_all()
        leader = await nodes.find_leader()
        follower = nodes.follower()
        await check_versions(follower)
        await check_cluster(follower, leader.node_id)
        await check_quorum_of_leader(nodes, leader)
        elsewhere = await ask_once(follower, QUORUM, 2)
        partition = elsewhere.topics[0].partitions[0]
        assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert partition.leader_id == leader.node_id
        assert [node.node_id for node in elsewhere.nodes] == [1, 2, 3]
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="a")])
        refused = await ask_once(follower, topics, 7)
        assert refused.topics[0].error_code == ErrorCode.NOT_CONTROLLER
        created = await ask_once(leader, topics, 7)
        assert created.topics[0].error_code == ErrorCode.NONE
        stranger = await ask_once(leader, VoteRequest(cluster_id="another"), 2)
        assert stranger.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        assert await ask_once(leader, MetadataRequest(), 12) is None
        nodes.kill_all()

    run(scenario)


async def check_versions(quorum: Quorum) -> None:
    versions = await ask_once(quorum, ApiVersionsRequest(), 3)
    keys = {entry.api_key for entry in versions.api_keys}
    assert {ApiKey.VOTE, ApiKey.FETCH, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_QUORUM} <= keys
    assert ApiKey.PRODUCE not in keys
    assert "metadata.version" in {feature.name for feature in versions.supported_features}


async def check_cluster(quorum: Quorum, leader_id: int) -> None:
    cluster = await ask_once(quorum, DescribeClusterRequest(endpoint_type=2), 1)
    assert (cluster.cluster_id, cluster.controller_id) == (CLUSTER_ID, leader_id)
    assert [broker.broker_id for broker in cluster.brokers] == [1, 2, 3]
    wrong = await ask_once(quorum, DescribeClusterRequest(endpoint_type=1), 1)
    assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


async def check_quorum_of_leader(nodes: Nodes, leader: Quorum) -> None:
    described = await ask_once(leader, QUORUM, 2)
    partition = described.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.NONE
    assert (partition.leader_id, partition.leader_epoch) == (
        leader.node_id,
        leader.node.leader_epoch,
    )
    assert [voter.replica_id for voter in partition.current_voters] == [1, 2, 3]
    assert all(voter.last_fetch_timestamp > 0 for voter in partition.current_voters)
    assert [(node.node_id, node.listeners[0].port) for node in described.nodes] == list(
        nodes.ports.items()
    )


def test_a_broker_whose_port_refuses_is_lost_and_one_that_listens_is_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 1)
        quorum = nodes.start(1)
        (dead_port,) = free_ports(1)
        listening = socket.create_server(("127.0.0.1", 0))
        ports = {7: dead_port, 8: int(listening.getsockname()[1])}
        for broker_id, port in ports.items():
            quorum.image.replay(registration(broker_id, port))
        controller = quorum._leadership._active._controller
        assert isinstance(controller, TopicNames)
        connections = {broker_id: connect(quorum) for broker_id in ports}
        for broker_id, connection in connections.items():
            answer = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=1)
            connection.ask(answer, 1, PATIENCE_S * 1000, lambda response: None)
        probe = quorum._leadership._probe
        await until(lambda: sorted(probe._heard_on) == [7, 8])
        connections[8].close()
        await until(lambda: 8 not in probe._heard_on and 8 not in probe._probes)
        connections[7].close()
        await until(lambda: controller.lost == [7])
        listening.close()
        nodes.kill_all()

    run(scenario)


def registration(broker_id: int, port: int) -> RegisterBrokerRecord:
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=port)
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=bytes(16),
        broker_epoch=1,
        end_points=[endpoint],
        fenced=False,
    )


def test_bootstrap_servers_tell_who_votes(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Nodes(tmp_path, 3)
        (dead_port,) = free_ports(1)
        config = BrokerConfig.from_settings(
            {
                "process.roles": "broker",
                "node.id": "9",
                "log.dir": str(tmp_path / "9"),
                "controller.quorum.bootstrap.servers": (
                    f"127.0.0.1:{dead_port},127.0.0.1:{nodes.ports[2]}"
                ),
            }
        )
        broker = open_quorum(tmp_path / "9", dict(config.given))
        broker.start()
        assert broker.node.voters.ids == ()
        nodes.start_all()
        leader = await nodes.find_leader()
        await until(lambda: broker.leader_id == leader.node_id)
        assert await create_topic(broker, "a") == ErrorCode.NONE
        await until(lambda: "a" in broker.image.topics.by_name)
        broker._close()
        nodes.kill_all()

    run(scenario)
