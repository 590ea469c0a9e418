"""`millstream metadata-quorum`: describe the metadata quorum and change its voters.

The flags, the output and the exit statuses are those of kafka-metadata-quorum.

`add-controller` and `remove-controller` change the voters (KIP-853). `add-controller` runs on the
node that is added: the node's own configuration file says who it is, and its formatted directory
which replica. Errors and output are those of Apache Kafka's tool.
"""

import argparse
from collections.abc import Iterable, Mapping

from broker.cli.admin_settings import read_properties
from broker.cli.arguments import (
    SubCommands,
    ToolFailed,
    ToolParser,
    add_connection,
    add_sub_command,
    connection_of,
    tool,
    tool_parser,
)
from broker.cli.java_text import table_text
from broker.config.listeners import Endpoint, parse_endpoint
from broker.log.checkpoints import META_PROPERTIES, decode_uuid, encode_uuid
from broker.log.meta_properties import InconsistentLogDirectory, read_meta_properties
from broker.log.storage import RealStorage
from broker.server.clock import SystemClock
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import (
    Quorum,
    add_raft_voter,
    describe_cluster,
    describe_metadata_quorum,
    remove_raft_voter,
)
from common.kafka.protocol.messages.add_raft_voter import Listener
from common.kafka.protocol.messages.describe_quorum import ReplicaState

COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


@tool()
def main(arguments: list[str]) -> int:
    """Run one sub-command; return 1 if it is refused."""
    options = _parser().parse_args(arguments)
    print(_run(options))
    return 0


def _run(options: argparse.Namespace) -> str:
    if options.command == "describe":
        return _describe(options)
    file = options.command_config
    if options.command == ADD and not file:
        raise ToolFailed(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    with AdminClient(connection_of(options)) as client:
        if options.command == ADD:
            return add_controller(client, read_properties(file), dry_run=options.dry_run)
        return remove_controller(client, options)


def _describe(options: argparse.Namespace) -> str:
    """Return the description of the quorum. Raise ToolFailed or KafkaError."""
    if options.status and options.replication:
        raise ToolFailed(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not (options.status or options.replication):
        raise ToolFailed(
            "One of --status or --replication must be specified with describe sub-command"
        )
    if options.status and options.human_readable:
        raise ToolFailed("The option --human-readable is only supported along with --replication")
    with AdminClient(connection_of(options)) as client:
        if options.replication:
            now_ms = SystemClock().timestamp_ms() if options.human_readable else None
            return replication_text(describe_metadata_quorum(client), now_ms)
        cluster_id = describe_cluster(client).cluster_id
        return status_text(cluster_id, describe_metadata_quorum(client))


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "metadata-quorum", "Describe the metadata quorum of a cluster, or change its voters."
    )
    add_connection(parser, is_required=True)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    describe = add_sub_command(
        commands, "metadata-quorum", "describe", "describe the metadata quorum"
    )
    describe.add_argument("--status", action="store_true", help="a short summary")
    describe.add_argument(
        "--replication", action="store_true", help="how far each voter and observer is"
    )
    describe.add_argument(
        "--human-readable", action="store_true", help="with --replication: ages, not timestamps"
    )
    add_voter_commands(commands)
    return parser


def status_text(cluster_id: str, quorum: Quorum) -> str:
    """Return the summary: the leader, and the lag of the slowest voter."""
    leader = _leader(quorum)
    slowest = min(quorum.voters, key=lambda voter: voter.log_end_offset)
    if slowest is leader:
        lag_ms = 0
    elif min(leader.last_caught_up_timestamp, slowest.last_caught_up_timestamp) < 0:
        lag_ms = -1
    else:
        lag_ms = leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp
    fields = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": replicas_text(quorum, quorum.voters),
        "CurrentObservers": replicas_text(quorum, quorum.observers),
    }
    return "\n".join(f"{name + ':':<24}{value}" for name, value in fields.items())


def replicas_text(quorum: Quorum, replicas: Iterable[ReplicaState]) -> str:
    """Return a list of replicas, each with its directory and its endpoints."""
    texts = []
    for replica in replicas:
        directory_id = replica.replica_directory_id
        directory = f'"{encode_uuid(directory_id)}"' if any(directory_id) else "null"
        text = f'"id": {replica.replica_id}, "directoryId": {directory}'
        endpoints = quorum.endpoints.get(replica.replica_id)
        if endpoints:
            text += ', "endpoints": [' + ", ".join(f'"{one}"' for one in endpoints) + "]"
        texts.append(f"{{{text}}}")
    return f"[{', '.join(texts)}]"


def replication_text(quorum: Quorum, now_ms: int | None) -> str:
    """Return the table of all replicas, the leader first; with ages if `now_ms` is given."""
    leader = _leader(quorum)
    followers = [voter for voter in quorum.voters if voter is not leader]
    rows = [
        (
            str(replica.replica_id),
            encode_uuid(replica.replica_directory_id),
            str(replica.log_end_offset),
            str(leader.log_end_offset - replica.log_end_offset),
            _time_text(replica.last_fetch_timestamp, now_ms),
            _time_text(replica.last_caught_up_timestamp, now_ms),
            status,
        )
        for status, replicas in (
            ("Leader", [leader]),
            ("Follower", followers),
            ("Observer", quorum.observers),
        )
        for replica in replicas
    ]
    return table_text(COLUMNS, rows)


def _leader(quorum: Quorum) -> ReplicaState:
    for voter in quorum.voters:
        if voter.replica_id == quorum.leader_id:
            return voter
    raise ToolFailed(f"the leader {quorum.leader_id} is not among the voters")


def _time_text(timestamp_ms: int, now_ms: int | None) -> str:
    if timestamp_ms < 0 or now_ms is None:
        return str(timestamp_ms)
    # Kafka's tool refuses a time in the future, which a difference of clocks causes.
    return f"{max(0, now_ms - timestamp_ms)} ms ago"


ADD, REMOVE = "add-controller", "remove-controller"
_IS_IT_ONE = "Is this a valid controller configuration file?"


def add_voter_commands(commands: "SubCommands[ToolParser]") -> None:
    """Add both sub-commands to the tool's parser."""
    add = add_sub_command(
        commands, "metadata-quorum", ADD, "add a controller to the voters of the quorum"
    )
    remove = add_sub_command(
        commands, "metadata-quorum", REMOVE, "remove a controller from the voters of the quorum"
    )
    remove.add_argument(
        "-i", "--controller-id", type=int, required=True, help="the id of the controller"
    )
    remove.add_argument(
        "-d",
        "--controller-directory-id",
        required=True,
        help="the directory id of the controller, as describe prints it",
    )
    for parser in (add, remove):
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would be done, and do not do it"
        )


def added_controller(properties: Mapping[str, str]) -> tuple[int, bytes, list[Endpoint]]:
    """Return the id, the directory id and the endpoints of the controller of a configuration.

    Raise ToolFailed if it is none of a controller, or its directory is not formatted.
    """
    node_id = _controller_id(properties)
    directory_id = _directory_id(_metadata_directory(properties))
    return node_id, directory_id, _endpoints(properties)


def _controller_id(properties: Mapping[str, str]) -> int:
    if "node.id" not in properties:
        raise ToolFailed(f"node.id not found in configuration file. {_IS_IT_ONE}")
    try:
        node_id = int(properties["node.id"])
    except ValueError:
        raise ToolFailed(f'For input string: "{properties["node.id"]}"') from None
    if node_id < 0:
        raise ToolFailed(f"node.id was negative in configuration file. {_IS_IT_ONE}")
    if "controller" not in properties.get("process.roles", ""):
        raise ToolFailed(
            f"process.roles did not contain 'controller' in configuration file. {_IS_IT_ONE}"
        )
    return node_id


def _metadata_directory(properties: Mapping[str, str]) -> str:
    directories = properties.get("log.dirs") or properties.get("log.dir", "")
    found = properties.get("metadata.log.dir") or directories.split(",")[0].strip()
    if not found:
        raise ToolFailed(f"Neither metadata.log.dir nor log.dirs were found. {_IS_IT_ONE}")
    return found


def _directory_id(directory: str) -> bytes:
    try:
        known = read_meta_properties(RealStorage(), directory)
    except (InconsistentLogDirectory, OSError) as error:
        raise ToolFailed(str(error)) from error
    if not known:
        raise ToolFailed(f"Unable to read {META_PROPERTIES} from {directory}")
    if "directory.id" not in known:
        raise ToolFailed(f"No directory id found in {directory}")
    return decode_uuid(known["directory.id"])


def _endpoints(properties: Mapping[str, str]) -> list[Endpoint]:
    listeners: dict[str, Endpoint] = {}
    for setting in ("listeners", "advertised.listeners"):
        for text in _items(properties.get(setting, "")):
            endpoint = parse_endpoint(setting, text)
            listeners[endpoint.name] = endpoint
    names = [name.upper() for name in _items(properties.get("controller.listener.names", ""))]
    if not names:
        raise ToolFailed(f"controller.listener.names was not found. {_IS_IT_ONE}")
    for name in names:
        if name not in listeners:
            raise ToolFailed(
                f"Cannot find information about controller listener name: {name.lower()}"
            )
    found = [listeners[name] for name in names]
    return [each._replace(host=each.host or "localhost") for each in found]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def add_controller(client: AdminClient, properties: Mapping[str, str], *, dry_run: bool) -> str:
    """Add the controller of a configuration to the voters; return the output.

    Raise ToolFailed or KafkaError.
    """
    node_id, directory_id, endpoints = added_controller(properties)
    if not dry_run:
        listeners = [Listener(name=name, host=host, port=port) for name, host, port in endpoints]
        add_raft_voter(client, node_id, directory_id, listeners)
    addresses = ", ".join(_endpoint_text(endpoint) for endpoint in endpoints)
    done = "DRY RUN of adding" if dry_run else "Added"
    return (
        f"{done} controller {node_id} with directory id {encode_uuid(directory_id)} and "
        f"endpoints: {addresses}"
    )


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.name}://{host}:{endpoint.port}"


def remove_controller(client: AdminClient, options: argparse.Namespace) -> str:
    """Remove a controller from the voters; return the output. Raise ToolFailed or KafkaError."""
    if options.controller_id < 0:
        raise ToolFailed(f"Invalid negative --controller-id: {options.controller_id}")
    try:
        directory_id = decode_uuid(options.controller_directory_id)
    except ValueError as error:
        raise ToolFailed(f"Failed to parse --controller-directory-id: {error}") from error
    if not options.dry_run:
        remove_raft_voter(client, options.controller_id, directory_id)
    # Apache Kafka's tool prints two spaces after these words.
    done = "DRY RUN of removing " if options.dry_run else "Removed "
    return (
        f"{done} KRaft controller {options.controller_id} with directory id "
        f"{encode_uuid(directory_id)}"
    )
