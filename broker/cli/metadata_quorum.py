"""`millstream metadata-quorum`: describe the metadata quorum and change its voters.

The flags, the output and the exit statuses are those of kafka-metadata-quorum.
"""

import argparse
from collections.abc import Iterable

from broker.cli.admin_settings import read_properties
from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    add_sub_command,
    connection_of,
    tool,
    tool_parser,
)
from broker.cli.java_text import table_text
from broker.cli.quorum_voters import (
    ADD,
    add_controller,
    add_voter_commands,
    remove_controller,
)
from broker.log.checkpoints import encode_uuid
from broker.server.clock import SystemClock
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import Quorum, describe_cluster, describe_metadata_quorum
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
