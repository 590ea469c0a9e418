"""Finds the voters for a node without configured ones (`controller.quorum.voters` is empty).

A controller is formatted with the voters: they are in the newest snapshot of its metadata log
(KIP-853). A controller that has neither voters nor such a snapshot cannot start: it would wait for
itself. Any other node asks `controller.quorum.bootstrap.servers`, one after the other, repeatedly,
before it starts: DescribeQuorum v2 names the endpoints of the voters. A node with the controller
role and no bootstrap servers is the only voter.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from broker.config.broker_config import BrokerConfig, Voter
from broker.log.storage import Storage
from broker.protocol.api_keys import API_VERSION_RANGES, ApiKey
from broker.protocol.message import Message
from broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from broker.protocol.records.quorum import VotersRecord
from broker.raft.config import METADATA_PARTITION as PARTITION_NUMBER
from broker.raft.config import METADATA_TOPIC
from broker.records.errors import CorruptBatch
from broker.server.network.client_connection import ClientConnection, client_settings
from broker.server.quorum.metadata_log import METADATA_PARTITION
from broker.server.quorum.raft.snapshot_files import SnapshotFiles, file_name
from broker.server.quorum.raft.snapshot_format import snapshot_voters

log = logging.getLogger("millrace.quorum.voters")

MAX_FIRST_BATCH_BYTES = 1024 * 1024
PAUSE_MS = 500


def stored_voters(storage: Storage, directory: str) -> VotersRecord | None:
    """Read the voters from the newest snapshot in a metadata log's directory, if it has any."""
    if storage.status(directory) is None:
        return None
    snapshots = SnapshotFiles(storage, directory)
    if not snapshots.ids:
        return None
    newest = snapshots.ids[-1]
    try:
        return snapshot_voters(snapshots.read(newest, 0, MAX_FIRST_BATCH_BYTES))
    except CorruptBatch as error:
        path = f"{directory}/{file_name(newest)}"
        raise OSError(f"{path} cannot be read: {error}; restore it from a backup") from error


def voters_of(record: VotersRecord) -> tuple[Voter, ...]:
    """Return the voters with the first endpoint of each, ascending."""
    return _sorted(
        Voter(voter.voter_id, voter.endpoints[0].host, voter.endpoints[0].port)
        for voter in record.voters
        if voter.endpoints
    )


async def with_voters(
    config: BrokerConfig, storage: Storage, loop: asyncio.AbstractEventLoop
) -> BrokerConfig:
    """Return the configuration with the voters; wait until a bootstrap server answers.

    Raises OSError for a controller that was not formatted.
    """
    if config.voters:
        return config
    record = stored_voters(storage, f"{config.metadata_log_dir}/{METADATA_PARTITION}")
    if record is not None:
        return replace(config, voters=voters_of(record))
    if not config.bootstrap_servers:
        return config
    if config.is_controller:
        raise OSError(
            f"{config.metadata_log_dir} is not formatted, and a controller with "
            "controller.quorum.bootstrap.servers learns from there who votes. Format it with "
            "'millrace storage format --standalone' for the first controller, or with "
            "'--initial-controllers' for several"
        )
    voters = await _ask_until_known(config, loop)
    log.info("the quorum's voters are known voters=%s", [voter.node_id for voter in voters])
    return replace(config, voters=voters)


async def _ask_until_known(
    config: BrokerConfig, loop: asyncio.AbstractEventLoop
) -> tuple[Voter, ...]:
    while True:
        for host, port in config.bootstrap_servers:
            voters = await _ask(config, loop, (host, port))
            if voters:
                return voters
        log.info(
            "no bootstrap server knows the quorum yet, asking again servers=%s",
            ",".join(f"{host}:{port}" for host, port in config.bootstrap_servers),
        )
        await asyncio.sleep(PAUSE_MS / 1000)


async def _ask(
    config: BrokerConfig, loop: asyncio.AbstractEventLoop, address: tuple[str, int]
) -> tuple[Voter, ...]:
    """Ask one node for the voters; return an empty list if it does not answer or know."""
    answered: asyncio.Future[Message | None] = loop.create_future()
    topic = TopicData(
        topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=PARTITION_NUMBER)]
    )
    settings = client_settings(config, config.security.to_controllers)
    connection = ClientConnection(loop, address, settings)
    version = API_VERSION_RANGES[ApiKey.DESCRIBE_QUORUM].max
    request = DescribeQuorumRequest(topics=[topic])
    try:
        connection.ask(request, version, config.quorum.request_timeout_ms, answered.set_result)
        answer = await answered
    finally:
        connection.close()
    if not isinstance(answer, DescribeQuorumResponse):
        return ()
    return _sorted(
        Voter(node.node_id, node.listeners[0].host, node.listeners[0].port)
        for node in answer.nodes
        if node.listeners
    )


def _sorted(voters: Iterable[Voter]) -> tuple[Voter, ...]:
    return tuple(sorted(voters))
