"""`millstream topics`: create, delete, describe or change topics, as kafka-topics."""

import argparse
import re
import sys
from collections.abc import Iterable

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    check_not_with,
    check_required,
    connection_of,
    is_given,
    tool_parser,
)
from broker.log.checkpoints import decode_uuid, encode_uuid
from broker.model import TopicPartition
from common.kafka.admin import configs
from common.kafka.admin import topics as admin
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType
from common.kafka.admin.reassignments import Reassignment, list_reassignments
from common.kafka.admin.topic_requests import Assignment
from common.kafka.admin.topics import PartitionDescription, TopicDescription
from common.kafka.errors import ErrorCode, KafkaError

ACTIONS = ("list", "describe", "create", "alter", "delete")
REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
ALLOWED_WITH = {
    "config": {"alter", "create"},
    "partitions": {"alter", "create"},
    "replication-factor": {"create"},
    "replica-assignment": {"alter", "create"},
    "topics-with-overrides": {"describe"},
    "if-exists": {"alter", "delete", "describe"},
    "if-not-exists": {"create"},
    "exclude-internal": {"list", "describe"},
    **{report: {"describe"} for report in REPORTS},
}
MAX_REPLICATION_FACTOR = 32767
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)


def main(arguments: list[str]) -> int:
    """Run one action on topics; return 1 if it is refused."""
    parser = _parser()
    options = parser.parse_args(arguments)
    action = _checked_action(parser, options)
    try:
        with AdminClient(connection_of(options)) as client:
            ACTION_FUNCTIONS[action](client, options)
    except (KafkaError, ToolFailed) as error:
        print(f"Error while executing topic command : {error}")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("topics", "Create, delete, describe, or change a topic.")
    add_connection(parser, has_controllers=False)
    for flag, text in (
        ("list", "list all topics"),
        ("describe", "show the details of topics"),
        ("create", "create a topic"),
        ("alter", "change the number of partitions (settings: millstream configs)"),
        ("delete", "delete topics"),
        ("exclude-internal", "leave out internal topics when listing or describing"),
        ("if-exists", "with --alter, --delete, --describe: do nothing when there is no such topic"),
        ("if-not-exists", "with --create: no error when the topic exists"),
        ("topics-with-overrides", "with --describe: only topics with settings of their own"),
        ("unavailable-partitions", "with --describe: only partitions without a live leader"),
        ("under-replicated-partitions", "with --describe: only partitions that lack replicas"),
        ("under-min-isr-partitions", "with --describe: only those with fewer in sync than needed"),
        ("at-min-isr-partitions", "with --describe: only those with just enough in sync"),
    ):
        parser.add_argument(f"--{flag}", action="store_true", help=text)
    parser.add_argument("--topic", help="the topic; except for --create a regular expression too")
    parser.add_argument("--topic-id", help="with --describe: the topic by its id")
    parser.add_argument("--partitions", type=int, metavar="COUNT", help="how many partitions")
    parser.add_argument(
        "--replication-factor", type=int, metavar="COUNT", help="how many replicas of each"
    )
    parser.add_argument(
        "--replica-assignment",
        metavar="ID:ID,ID:ID,...",
        help="the brokers of each partition, partitions separated by commas, replicas by colons",
    )
    parser.add_argument(
        "--config",
        action="append",
        metavar="NAME=VALUE",
        help="with --create: a setting of the topic; may be given more than once",
    )
    parser.add_argument("--delete-config", metavar="NAME", help="no longer supported: ignored")
    parser.add_argument(
        "--partition-size-limit-per-response",
        type=int,
        metavar="COUNT",
        help="how many partitions one answer of the cluster may hold",
    )
    return parser


def _checked_action(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Return the only action; end the tool with an error for an invalid combination."""
    given = [action for action in ACTIONS if is_given(options, action)]
    if len(given) != 1:
        parser.error(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    action = given[0]
    if options.delete_config:
        print(
            "delete-config option is no longer supported and deprecated since version 4.0. "
            "The config will be fully removed in future releases.",
            file=sys.stderr,
        )
    if not options.bootstrap_server:
        parser.error("--bootstrap-server must be specified")
    _check_action(parser, options, action)
    for flag, allowed in ALLOWED_WITH.items():
        check_not_with(parser, options, flag, [action] if action not in allowed else [])
    for report in REPORTS:
        others = [other for other in REPORTS if other != report]
        check_not_with(parser, options, report, [*others, "topics-with-overrides"])
    return action


def _check_action(
    parser: argparse.ArgumentParser, options: argparse.Namespace, action: str
) -> None:
    """Raise an error for the missing or incompatible arguments of one action."""
    if action == "describe" and options.if_exists and not (options.topic or options.topic_id):
        parser.error("--topic or --topic-id is required to describe a topic")
    if action not in {"list", "describe"}:
        check_required(parser, options, ["topic"])
    if action == "alter":
        if options.config:
            parser.error(
                'Option combination "[[config], [bootstrap-server]]" can\'t be used with option '
                '"[alter]" (To alter topic configurations, the kafka-configs tool can be used.)'
            )
        check_required(parser, options, ["partitions"])
    if action == "create":
        check_not_with(parser, options, "replica-assignment", ["partitions", "replication-factor"])


# Actions.


def _list(client: AdminClient, options: argparse.Namespace) -> None:
    print("\n".join(topic.name for topic in _selected(client, options)))


def _create(client: AdminClient, options: argparse.Namespace) -> None:
    settings = parse_topic_configs(options.config or [])
    assignment = parse_assignment(options.replica_assignment or "")
    if "." in options.topic or "_" in options.topic:
        print(COLLISION_WARNING)
    replication_factor = options.replication_factor
    if replication_factor is not None and not 1 <= replication_factor <= MAX_REPLICATION_FACTOR:
        raise ToolFailed(
            f"The replication factor must be between 1 and {MAX_REPLICATION_FACTOR} inclusive"
        )
    if options.partitions is not None and options.partitions < 1:
        raise ToolFailed("The partitions must be greater than 0")
    try:
        admin.create_topic(
            client,
            options.topic,
            partition_count=options.partitions or -1,
            replication_factor=replication_factor or -1,
            assignment=assignment,
            configs=settings,
        )
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists:
            return
        raise
    print(f"Created topic {options.topic}.")


def _alter(client: AdminClient, options: argparse.Namespace) -> None:
    assignment = parse_assignment(options.replica_assignment or "")
    topics = _required(client, options)
    counts = {topic.name: options.partitions for topic in topics}
    new = {topic.name: assignment[len(topic.partitions) :] for topic in topics if assignment}
    if counts:
        admin.create_partitions(client, counts, new)


def _delete(client: AdminClient, options: argparse.Namespace) -> None:
    admin.delete_topics(client, [topic.name for topic in _required(client, options)])


def _describe(client: AdminClient, options: argparse.Namespace) -> None:
    limit = options.partition_size_limit_per_response or admin.DEFAULT_PARTITION_LIMIT
    topic_id = _parsed_id(options.topic_id) if options.topic_id else None
    if topic_id is None or not any(topic_id):
        names = [topic.name for topic in _required(client, options)]
        topics = admin.describe_topics(client, names, limit)
    else:
        found = admin.describe_topic_id(client, topic_id)
        if found is None and not options.if_exists:
            raise ToolFailed(f"TopicId '{options.topic_id}' does not exist as expected")
        topics = [found] if found else []
    if not topics:
        return
    resources = [Resource(ResourceType.TOPIC, topic.name) for topic in topics]
    settings = configs.describe_all(client, resources)
    live = set(client.nodes().nodes)
    moves = _moves(client, topics)
    for topic, resource in zip(topics, resources, strict=True):
        _print_topic(options, topic, settings[resource], moves, live)


ACTION_FUNCTIONS = {
    "list": _list,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
    "describe": _describe,
}


def _selected(client: AdminClient, options: argparse.Namespace) -> list[TopicDescription]:
    topics = admin.list_topics(client)
    if options.exclude_internal:
        topics = [topic for topic in topics if topic.name not in admin.INTERNAL_TOPICS]
    if options.topic is None:
        return topics
    matches = topic_pattern(options.topic).fullmatch
    return [topic for topic in topics if matches(topic.name)]


def _required(client: AdminClient, options: argparse.Namespace) -> list[TopicDescription]:
    """Return the topics of the arguments; raise an error if a named topic is missing."""
    topics = _selected(client, options)
    if options.topic and not topics and not options.if_exists:
        raise ToolFailed(f"Topic '{options.topic}' does not exist as expected")
    return topics


def _moves(
    client: AdminClient, topics: Iterable[TopicDescription]
) -> dict[TopicPartition, Reassignment]:
    partitions = [
        TopicPartition(topic.name, partition.partition)
        for topic in topics
        for partition in topic.partitions
    ]
    try:
        return list_reassignments(client, partitions)
    except KafkaError as error:
        # A user may lack the right to list reassignments, and an old cluster has no such request.
        if error.code in {
            ErrorCode.UNSUPPORTED_VERSION,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        }:
            return {}
        raise


# Arguments.


def _parsed_id(text: str) -> bytes:
    try:
        return decode_uuid(text)
    except ValueError as error:
        raise ToolFailed(f"{text!r} is not a topic id: {error}") from None


def parse_assignment(text: str) -> Assignment:
    """Parse `1:2,2:3`, the replicas of each partition; refuse empty lists and duplicates."""
    assignment: Assignment = []
    for index, part in enumerate(filter(None, text.split(","))):
        try:
            replicas = [int(broker_id) for broker_id in part.split(":")]
        except ValueError:
            raise ToolFailed(f"{part!r} is not a list of broker ids") from None
        twice = [replica for replica in dict.fromkeys(replicas) if replicas.count(replica) > 1]
        if twice:
            listed = ",".join(map(str, twice))
            raise ToolFailed(f"Partition replica lists may not contain duplicate entries: {listed}")
        assignment.append(replicas)
        if len(replicas) != len(assignment[0]):
            raise ToolFailed(f"Partition {index} has different replication factor: {replicas}")
    return assignment


def parse_topic_configs(texts: Iterable[str]) -> dict[str, str]:
    """Parse `name=value` of `--config`."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()) or "=" in value:
            raise ToolFailed(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                'format "key=val".'
            )
        settings[name.strip()] = value.strip()
    return settings


def topic_pattern(text: str) -> re.Pattern[str]:
    """Return the regular expression of `--topic`, in which commas separate alternatives."""
    expression = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(expression)
    except re.error as error:
        raise ToolFailed(f"{text} is an invalid regex: {error}") from None


# Output.


def _print_topic(
    options: argparse.Namespace,
    topic: TopicDescription,
    settings: list[configs.ConfigEntry],
    moves: dict[TopicPartition, Reassignment],
    live: set[int],
) -> None:
    own = [entry for entry in settings if entry.source != configs.ConfigSource.DEFAULT_CONFIG]
    is_report = any(is_given(options, report) for report in REPORTS)
    if not is_report and (own or not options.topics_with_overrides):
        first = topic.partitions[0]
        move = moves.get(TopicPartition(topic.name, first.partition))
        print(topic_text(topic, replication_factor(first, move), own))
    if options.topics_with_overrides:
        return
    min_isr = next(
        (int(entry.value or 1) for entry in settings if entry.name == "min.insync.replicas"), 1
    )
    for partition in topic.partitions:
        move = moves.get(TopicPartition(topic.name, partition.partition))
        if not is_report or is_reported(options, partition, move, min_isr, live):
            print(partition_text(topic.name, partition, move))


def is_reported(
    options: argparse.Namespace,
    partition: PartitionDescription,
    move: Reassignment | None,
    min_isr: int,
    live: set[int],
) -> bool:
    """Return True if the requested report has this partition; `live` are broker ids."""
    has_leader = partition.leader_id != admin.NO_LEADER
    in_sync = len(partition.isr)
    if options.under_replicated_partitions:
        return replication_factor(partition, move) > in_sync
    if options.unavailable_partitions:
        return partition.leader_id not in live
    if options.under_min_isr_partitions:
        return not has_leader or in_sync < min_isr
    return in_sync == min_isr


def replication_factor(partition: PartitionDescription, move: Reassignment | None) -> int:
    """Return the replication factor, without the replicas that a reassignment adds."""
    if move and set(partition.replicas) & {*move.adding, *move.removing}:
        return len(move.replicas) - len(move.adding)
    return len(partition.replicas)


def topic_text(
    topic: TopicDescription, factor: int, settings: Iterable[configs.ConfigEntry]
) -> str:
    """Return the line about a topic."""
    parts = [f"Topic: {topic.name}"]
    if any(topic.topic_id):
        parts.append(f"TopicId: {encode_uuid(topic.topic_id)}")
    parts += [f"PartitionCount: {len(topic.partitions)}", f"ReplicationFactor: {factor}"]
    parts.append("Configs: " + ",".join(f"{entry.name}={entry.value}" for entry in settings))
    return "\t".join(parts)


def partition_text(topic: str, partition: PartitionDescription, move: Reassignment | None) -> str:
    """Return the line about one of its partitions."""
    leader = "none" if partition.leader_id == admin.NO_LEADER else partition.leader_id
    parts = [
        f"\tTopic: {topic}",
        f"Partition: {partition.partition}",
        f"Leader: {leader}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.isr)}",
    ]
    if move:
        parts.append(f"Adding Replicas: {_ids(move.adding)}")
        parts.append(f"Removing Replicas: {_ids(move.removing)}")
    parts.append(f"Elr: {'N/A' if partition.elr is None else _ids(partition.elr)}")
    last = partition.last_known_elr
    parts.append(f"LastKnownElr: {'N/A' if last is None else _ids(last)}")
    return "\t".join(parts)


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))
