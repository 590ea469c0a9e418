"""The first controllers of a new quorum, written `id@host:port:directory,...` (KIP-853).

Every node of the cluster is given the same text, with `millstream storage format
--initial-controllers` or in the environment variable `INITIAL_CONTROLLERS`. A new node is formatted
with it, so that the first voters are in the metadata log. A folder from before has its voters in
the log already, or belongs to a quorum with `kraft.version` 0. Such a log names no voters: they are
those of `controller.quorum.voters`, and without this setting those of the text.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.listeners import NON_ROUTABLE, parse_address
from broker.config.sources import invalid
from broker.log.checkpoints import decode_uuid
from broker.log.meta_properties import read_meta_properties, require_owner
from broker.log.storage import RealStorage
from broker.metadata.features import FEATURES_AT_FORMAT
from broker.raft.voter_set import (
    KRAFT_VERSIONS,
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
    voters_record,
)
from broker.server.clock import SystemClock, random_uuid
from broker.server.quorum.formatting import FormatPlan, directories_of, examine, format_directory
from broker.server.quorum.voters import DEFAULT_LISTENER_NAME, check_formatted
from broker.server.storage.cluster_id import find_cluster_id
from common.kafka.protocol.records.quorum import VotersRecord

OPTION = "--initial-controllers"
MAX_NODE_ID = 2**31 - 1
RESERVED_IDS = 100
"""The first directory ids have a meaning in Kafka: unassigned, lost, migrating (KIP-858)."""


class InitialController(NamedTuple):
    """One of the first voters, with the address at which other nodes reach it."""

    node_id: int
    host: str
    port: int
    directory_id: bytes


def read_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """Read the controllers, ascending by id; raise KafkaError(INVALID_CONFIG)."""
    found = sorted(_controller(item.strip()) for item in text.split(",") if item.strip())
    if not found or len({each.node_id for each in found}) < len(found):
        raise invalid(f"{OPTION}: {text}: names no controller, or one twice")
    return tuple(found)


def _controller(text: str) -> InitialController:
    id_text, at, rest = text.partition("@")
    address, colon, directory = rest.rpartition(":")
    if not at or not colon or not id_text.isdecimal():
        raise invalid(f"{OPTION}: {text}: expected id@host:port:directory")
    if int(id_text) > MAX_NODE_ID:
        raise invalid(f"{OPTION}: {text}: the node id is too large")
    host, port = parse_address(OPTION, text, address)
    if host in NON_ROUTABLE or not port:
        raise invalid(f"{OPTION}: {text}: must name a host and a port that others can reach")
    try:
        directory_id = decode_uuid(directory)
    except ValueError as error:
        raise invalid(f"{OPTION}: {text}: {error}") from error
    if int.from_bytes(directory_id, "big") < RESERVED_IDS:
        raise invalid(f"{OPTION}: {text}: the directory id is reserved, so no directory has it")
    return InitialController(int(id_text), host, port, directory_id)


def directory_id_of(controllers: tuple[InitialController, ...], node_id: int) -> bytes | None:
    """Return the directory id that the text gives to a node; None if it is not named."""
    named = (each.directory_id for each in controllers if each.node_id == node_id)
    return next(named, None)


def first_voters(controllers: tuple[InitialController, ...], config: BrokerConfig) -> VotersRecord:
    """Return the record with which a metadata log begins."""
    name = _listener_name(config)
    return voters_record(
        VoterSet(
            tuple(
                VoterNode(
                    ReplicaKey(each.node_id, each.directory_id),
                    (Endpoint(name, each.host, each.port),),
                    KRAFT_VERSIONS,
                )
                for each in controllers
            )
        )
    )


def static_voters(controllers: tuple[InitialController, ...], config: BrokerConfig) -> VoterSet:
    """Return the voters for a log that names none. Their directories are unknown to it."""
    name = _listener_name(config)
    return VoterSet(
        tuple(
            VoterNode(ReplicaKey(each.node_id), (Endpoint(name, each.host, each.port),))
            for each in controllers
        )
    )


def _listener_name(config: BrokerConfig) -> str:
    listeners = config.controller_listeners
    return listeners[0].name if listeners else DEFAULT_LISTENER_NAME


def format_if_new(
    config: BrokerConfig, environment: Mapping[str, str]
) -> tuple[InitialController, ...]:
    """Return INITIAL_CONTROLLERS of the environment; format the node with them if it is new.

    Raise KafkaError(INVALID_CONFIG), OSError, or InconsistentLogDirectory, also for a node that has
    to be formatted by its user first, or whose directories are of another cluster or node.
    """
    text, cluster_id = environment.get("INITIAL_CONTROLLERS"), environment.get("CLUSTER_ID")
    controllers = read_initial_controllers(text) if text else ()
    if controllers and cluster_id:
        format_new_node(config, cluster_id, controllers)
    storage = RealStorage()
    check_formatted(config, storage)
    owner = {
        "cluster.id": find_cluster_id(storage, config, cluster_id),
        "node.id": str(config.node_id),
    }
    for directory in config.log_dirs:
        with suppress(OSError):  # A broker does without a broken disk.
            require_owner(directory, read_meta_properties(storage, directory), owner)
    return controllers


def format_new_node(
    config: BrokerConfig, cluster_id: str, controllers: tuple[InitialController, ...]
) -> None:
    """Format a node of a new cluster before its first start, as `--initial-controllers` does.

    A node with any formatted directory is left alone. Raise KafkaError(INVALID_CONFIG) for a new
    node with `controller.quorum.voters`, InconsistentLogDirectory, OSError.
    """
    storage = RealStorage()
    if examine(storage, config).formatted:
        return
    if config.voters:
        raise invalid(
            "controller.quorum.voters and INITIAL_CONTROLLERS exclude each other on a new node: "
            "remove controller.quorum.voters, and set controller.quorum.bootstrap.servers"
        )
    plan = FormatPlan(
        cluster_id=cluster_id,
        features=dict(FEATURES_AT_FORMAT),
        metadata_directory_id=directory_id_of(controllers, config.node_id) or random_uuid().bytes,
        voters=first_voters(controllers, config),
    )
    # The metadata directory last: what decides who votes is there once all else is.
    for path in sorted(directories_of(config), key=lambda path: path == config.metadata_log_dir):
        format_directory(
            storage,
            path,
            config,
            plan,
            new_uuid=lambda: random_uuid().bytes,
            timestamp_ms=SystemClock().timestamp_ms(),
        )
