"""`millstream leader-election`: elect leaders, with the flags of kafka-leader-election."""

import argparse
from collections.abc import Mapping

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    connection_of,
    is_given,
    tool,
    tool_parser,
)
from broker.cli.json_files import election_partitions, read_json
from broker.model import TopicPartition
from common.kafka.admin.client import AdminClient
from common.kafka.admin.reassignments import ElectionType, elect_leaders
from common.kafka.errors import ErrorCode, KafkaError

TIMEOUT_MS = 30_000
SUBJECTS = ("topic", "all-topic-partitions", "path-to-json-file")


@tool()
def main(arguments: list[str]) -> int:
    """Elect leaders; return 1 if the election of a partition failed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    election, partitions = _wanted(options)
    options.command_config = options.command_config or getattr(options, "admin.config")
    settings = connection_of(options, default_timeout_ms=TIMEOUT_MS)
    with AdminClient(settings) as client:
        _elect(client, election, partitions)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "leader-election",
        "Elect leaders of partitions: the preferred replica, or one that is not in sync.",
    )
    add_connection(parser, has_controllers=False)
    parser.add_argument(
        "--admin.config", dest="admin.config", metavar="FILE", help="deprecated: --command-config"
    )
    parser.add_argument(
        "--election-type", metavar="PREFERRED|UNCLEAN", help="which replicas may be elected"
    )
    parser.add_argument("--topic", help="the topic of one partition")
    parser.add_argument("--partition", type=int, help="its number")
    parser.add_argument(
        "--all-topic-partitions", action="store_true", help="every partition that can be elected"
    )
    parser.add_argument(
        "--path-to-json-file",
        metavar="FILE",
        help='the partitions: {"partitions": [{"topic": "foo", "partition": 1}]}',
    )
    return parser


def _wanted(options: argparse.Namespace) -> tuple[ElectionType, set[TopicPartition] | None]:
    """Return the election type and the partitions; None stands for all partitions."""
    missing = [
        flag for flag in ("bootstrap-server", "election-type") if not is_given(options, flag)
    ]
    if missing:
        raise ToolFailed(f"Missing required option(s): {', '.join(missing)}")
    try:
        election = ElectionType[options.election_type.upper()]
    except KeyError:
        raise ToolFailed(
            f"Cannot parse argument '{options.election_type}' of option election-type"
        ) from None
    if sum(is_given(options, flag) for flag in SUBJECTS) != 1:
        raise ToolFailed(
            f"One and only one of the following options is required: {', '.join(SUBJECTS)}"
        )
    if options.topic is not None and options.partition is None:
        raise ToolFailed("Missing required option(s): partition")
    if options.topic is None and options.partition is not None:
        raise ToolFailed("Option partition is only allowed if topic is used")
    if options.path_to_json_file:
        return election, election_partitions(read_json(options.path_to_json_file))
    if options.topic is not None:
        return election, {TopicPartition(options.topic, options.partition)}
    return election, None


def _elect(
    client: AdminClient, election: ElectionType, partitions: set[TopicPartition] | None
) -> None:
    try:
        outcomes = elect_leaders(client, election, partitions)
    except KafkaError as error:
        if error.code == ErrorCode.REQUEST_TIMED_OUT:
            print("Timeout waiting for election results")
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            print("Not authorized to perform leader election")
        raise
    for line in outcome_lines(election, outcomes):
        print(line)
    failed = sum(is_failure(error) for error in outcomes.values())
    if failed:
        raise ToolFailed(f"{failed} replica(s) could not be elected")


def is_failure(error: KafkaError | None) -> bool:
    """Return True for a failed election; an election that is not needed is no failure."""
    return error is not None and error.code != ErrorCode.ELECTION_NOT_NEEDED


def outcome_lines(
    election: ElectionType, outcomes: Mapping[TopicPartition, KafkaError | None]
) -> list[str]:
    """Return the lines about all partitions: elected, already elected, failed."""
    done = ", ".join(str(key) for key in sorted(outcomes) if outcomes[key] is None)
    valid = ", ".join(
        str(key) for key in sorted(outcomes) if outcomes[key] and not is_failure(outcomes[key])
    )
    lines = []
    if done:
        lines.append(
            f"Successfully completed leader election ({election.name}) for partitions {done}"
        )
    if valid:
        lines.append(f"Valid replica already elected for partitions {valid}")
    for key, error in sorted(outcomes.items()):
        if error is not None and is_failure(error):
            lines.append(
                f"Error completing leader election ({election.name}) for partition: {key}: "
                f"{error.code.name}: {error}"
            )
    return lines
