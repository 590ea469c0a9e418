"""`millstream reassign-partitions`: move partitions, as kafka-reassign-partitions."""

import argparse
from collections.abc import Iterable, Mapping

from broker.cli.arguments import (
    ToolFailed,
    add_connection,
    check_required,
    connection_of,
    is_given,
    tool_parser,
)
from broker.cli.json_files import (
    Assignments,
    assignment_text,
    assignments,
    read_json,
    topics_to_move,
)
from broker.cli.reassignment_plan import (
    BROKER_THROTTLES,
    FOLLOWER_THROTTLE,
    LEADER_THROTTLE,
    Placement,
    check_proposal,
    moves_of,
    moving_brokers,
    propose,
    topic_throttles,
)
from broker.cli.replica_moves import cancel_moves, start_moves, verify_moves
from broker.model import TopicPartition
from broker.server.clock import system_random
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.log_directories import Replica, replica_places
from common.kafka.admin.reassignments import (
    Reassignment,
    alter_reassignments,
    list_reassignments,
)
from common.kafka.admin.topics import describe_topics, list_topics
from common.kafka.errors import KafkaError

ALLOWED = {
    "generate": {"topics-to-move-json-file", "broker-list", "disable-rack-aware"},
    "execute": {
        "reassignment-json-file",
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    },
    "verify": {"reassignment-json-file", "preserve-throttles"},
    "cancel": {"reassignment-json-file", "preserve-throttles", "timeout"},
    "list": set[str](),
}
REQUIRED = {
    "generate": ["topics-to-move-json-file", "broker-list"],
    "execute": ["reassignment-json-file"],
    "verify": ["reassignment-json-file"],
    "cancel": ["reassignment-json-file"],
    "list": [],
}
CONTROLLER_ACTIONS = {"cancel", "list"}
EXISTING_MESSAGE = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
VERIFY_MESSAGE = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)
DEFAULT_MOVE_TIMEOUT_MS = 10_000


def main(arguments: list[str]) -> int:
    """Run one action; return 1 if it is refused. Errors are printed to standard output."""
    parser = _parser()
    options = parser.parse_args(arguments)
    action = _checked_action(parser, options)
    try:
        with AdminClient(connection_of(options)) as client:
            ACTION_FUNCTIONS[action](client, options)
    except ToolFailed as error:
        print(error)
        return 1
    except KafkaError as error:
        print(f"Error: {error}")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("reassign-partitions", "Move partitions between brokers.")
    add_connection(parser)
    for flag, text in (
        ("generate", "propose an assignment; it is not executed"),
        ("execute", "start the moves of a file"),
        ("verify", "tell whether the moves of a file are done; then remove throttles"),
        ("cancel", "cancel the moves of a file"),
        ("list", "list the moves under way"),
        ("additional", "with --execute: although others are under way"),
        ("disable-rack-aware", "with --generate: whatever the racks"),
        ("preserve-throttles", "leave throttles as they are"),
        (
            "disallow-replication-factor-change",
            "with --execute: refuse to change how many there are",
        ),
    ):
        parser.add_argument(f"--{flag}", action="store_true", help=text)
    parser.add_argument(
        "--topics-to-move-json-file",
        metavar="FILE",
        help='with --generate: {"topics": [{"topic": "foo"}], "version": 1}',
    )
    parser.add_argument("--broker-list", metavar="ID,ID,...", help="with --generate: where to")
    parser.add_argument(
        "--reassignment-json-file",
        metavar="FILE",
        help='{"partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2], '
        '"log_dirs": ["any", "/path"]}], "version": 1}',
    )
    parser.add_argument("--throttle", type=int, metavar="BYTES", help="bytes/s between brokers")
    parser.add_argument(
        "--replica-alter-log-dirs-throttle", type=int, metavar="BYTES", help="bytes/s in a broker"
    )
    parser.add_argument(
        "--timeout",
        type=int,
        metavar="MS",
        help=f"how long moves between directories may take to begin ({DEFAULT_MOVE_TIMEOUT_MS})",
    )
    return parser


def _checked_action(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    given = [action for action in ALLOWED if is_given(options, action)]
    if len(given) != 1:
        listed = ", ".join(f"--{action}" for action in ALLOWED)
        parser.error(f"Command must include exactly one action: {listed}")
    action = given[0]
    if not (options.bootstrap_server or options.bootstrap_controller):
        parser.error("Please specify either --bootstrap-server or --bootstrap-controller")
    check_required(parser, options, REQUIRED[action])
    if options.bootstrap_controller and action not in CONTROLLER_ACTIONS:
        parser.error(f'Option "[bootstrap-controller]" can\'t be used with action "[{action}]"')
    every = set[str]().union(*ALLOWED.values())
    for flag in sorted(every - ALLOWED[action]):
        if is_given(options, flag):
            parser.error(f'Option "[{flag}]" can\'t be used with action "[{action}]"')
    return action


# Actions.


def _generate(client: AdminClient, options: argparse.Namespace) -> None:
    try:
        brokers = [int(one) for one in options.broker_list.split(",")]
    except ValueError:
        raise ToolFailed(f"{options.broker_list!r} is not a list of broker ids") from None
    twice = sorted({one for one in brokers if brokers.count(one) > 1})
    if twice:
        raise ToolFailed(f"Error: Broker list contains duplicate entries: {twice}")
    topics = topics_to_move(read_json(options.topics_to_move_json_file))
    current = _placement(client, topics)
    racks = {
        node.node_id: None if options.disable_rack_aware else node.rack
        for node in client.nodes().nodes.values()
        if node.node_id in brokers
    }
    if len({rack is None for rack in racks.values()}) > 1:
        raise ToolFailed(
            "Error: Not all brokers have rack information. Add --disable-rack-aware in command "
            "line to make replica assignment without rack information."
        )
    if not racks:
        raise ToolFailed("Error: none of these brokers is alive")
    chance = system_random()
    proposed = propose(current, racks, chance.randrange(len(racks)), chance.randrange(len(racks)))
    print(f"Current partition replica assignment\n{_current_text(client, current)}\n")
    print(f"Proposed partition reassignment configuration\n{assignment_text(proposed)}")


def _execute(client: AdminClient, options: argparse.Namespace) -> None:
    proposal = assignments(read_json(options.reassignment_json_file))
    proposed = check_proposal(proposal)
    under_way = list_reassignments(client)
    if under_way and not options.additional:
        raise ToolFailed(EXISTING_MESSAGE)
    live = client.nodes().nodes
    for broker_id in sorted({one for replicas in proposed.values() for one in replicas}):
        if broker_id not in live:
            raise ToolFailed(f"Error: Unknown broker id {broker_id}")
    current = _placement_of(client, proposed)
    print(
        f"Current partition replica assignment\n\n{_current_text(client, current)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    _throttle(client, options, proposal, under_way, current)
    refused = alter_reassignments(
        client,
        dict(proposed),
        may_change_replication_factor=not options.disallow_replication_factor_change,
    )
    if refused:
        raise ToolFailed(f"Error reassigning partition(s):\n{refusals_text(refused)}")
    plural = "" if len(proposed) == 1 else "s"
    listed = ",".join(map(str, sorted(proposed)))
    print(f"Successfully started partition reassignment{plural} for {listed}")
    timeout_ms = DEFAULT_MOVE_TIMEOUT_MS if options.timeout is None else options.timeout
    start_moves(client, proposal.log_directories, timeout_ms)


def _verify(client: AdminClient, options: argparse.Namespace) -> None:
    proposal = assignments(read_json(options.reassignment_json_file))
    under_way = list_reassignments(client)
    print(states_text(proposal, under_way, _existing_placement(client, proposal)))
    lines, all_moved = verify_moves(client, proposal.log_directories)
    print("\n".join(lines))
    if not under_way and all_moved and not options.preserve_throttles:
        _clear_throttles(client, proposal)


def _cancel(client: AdminClient, options: argparse.Namespace) -> None:
    proposal = assignments(read_json(options.reassignment_json_file))
    active = list_reassignments(client, proposal.replicas())
    moving = sorted(key for key, move in active.items() if not move.adding or move.removing)
    if moving:
        plural = "" if len(moving) == 1 else "s"
        refused = alter_reassignments(client, dict.fromkeys(moving))
        if refused:
            raise ToolFailed(
                f"Error cancelling partition reassignment{plural} for:\n{refusals_text(refused)}"
            )
        listed = ",".join(map(str, moving))
        print(f"Successfully cancelled partition reassignment{plural} for: {listed}")
    else:
        print("None of the specified partition reassignments are active.")
    timeout_ms = DEFAULT_MOVE_TIMEOUT_MS if options.timeout is None else options.timeout
    cancel_moves(client, proposal.log_directories, timeout_ms)
    if not options.preserve_throttles:
        _clear_throttles(client, proposal)


def _list(client: AdminClient, options: argparse.Namespace) -> None:
    print(under_way_text(list_reassignments(client)))


ACTION_FUNCTIONS = {
    "generate": _generate,
    "execute": _execute,
    "verify": _verify,
    "cancel": _cancel,
    "list": _list,
}


# The current state.


def _placement(client: AdminClient, topics: Iterable[str]) -> Placement:
    return {
        TopicPartition(topic.name, partition.partition): partition.replicas
        for topic in describe_topics(client, topics)
        for partition in topic.partitions
    }


def _placement_of(client: AdminClient, partitions: Iterable[TopicPartition]) -> Placement:
    wanted = set(partitions)
    found = _placement(client, {partition.topic for partition in wanted})
    missing = sorted(wanted - found.keys())
    if missing:
        listed = ", ".join(map(str, missing))
        raise ToolFailed(f"Error: Unable to find partition: {listed}")
    return {partition: found[partition] for partition in sorted(wanted)}


def _existing_placement(client: AdminClient, proposal: Assignments) -> Placement:
    """Return the replicas of those partitions that exist."""
    existing = {topic.name for topic in list_topics(client)}
    return _placement(client, {key.topic for key, _ in proposal.listed} & existing)


def _current_text(client: AdminClient, current: Placement) -> str:
    """Return the current assignment with the log directories as text."""
    replicas = [Replica(one, *partition) for partition in current for one in current[partition]]
    return assignment_text(current, replica_places(client, replicas))


# Throttles.


def _throttle(
    client: AdminClient,
    options: argparse.Namespace,
    proposal: Assignments,
    under_way: Mapping[TopicPartition, Reassignment],
    current: Placement,
) -> None:
    between, within = options.throttle, options.replica_alter_log_dirs_throttle
    if between is None and within is None:
        return
    print(VERIFY_MESSAGE)
    if between is not None:
        moves = moves_of(under_way, proposal.replicas(), current)
        topics = topic_throttles(moves)
        alter(client, {Resource(ResourceType.TOPIC, name): topics[name] for name in topics})
        _set_on_brokers(client, moving_brokers(moves), dict.fromkeys(BROKER_THROTTLES[:2], between))
        print(f"The inter-broker throttle limit was set to {between} B/s")
    if within is not None:
        brokers = sorted({replica.broker_id for replica in proposal.log_directories})
        _set_on_brokers(client, brokers, {BROKER_THROTTLES[2]: within})
        print(f"The replica-alter-dir throttle limit was set to {within} B/s")


def _clear_throttles(client: AdminClient, proposal: Assignments) -> None:
    brokers = sorted(
        {*client.nodes().nodes, *(one for _, replicas in proposal.listed for one in replicas)}
    )
    plural = "" if len(brokers) == 1 else "s"
    print(f"Clearing broker-level throttles on broker{plural} {','.join(map(str, brokers))}")
    live = client.nodes().nodes
    _set_on_brokers(
        client, [one for one in brokers if one in live], dict.fromkeys(BROKER_THROTTLES)
    )
    topics = sorted({partition.topic for partition, _ in proposal.listed})
    plural = "" if len(topics) == 1 else "s"
    print(f"Clearing topic-level throttles on topic{plural} {','.join(topics)}")
    deletions = dict.fromkeys((LEADER_THROTTLE, FOLLOWER_THROTTLE))
    alter(client, {Resource(ResourceType.TOPIC, topic): deletions for topic in topics})


def _set_on_brokers(
    client: AdminClient, brokers: Iterable[int], values: Mapping[str, int | None]
) -> None:
    settings = {name: None if value is None else str(value) for name, value in values.items()}
    alter(client, {Resource(ResourceType.BROKER, str(one)): settings for one in brokers})


# Output.


def refusals_text(refused: Mapping[TopicPartition, KafkaError]) -> str:
    """Return the lines about refused reassignments."""
    return "\n".join(f"{partition}: {error}" for partition, error in sorted(refused.items()))


def states_text(
    proposal: Assignments,
    under_way: Mapping[TopicPartition, Reassignment],
    placement: Mapping[TopicPartition, list[int]],
) -> str:
    """Return the lines about the state of the reassignments of a file."""
    lines = ["Status of partition reassignment:"]
    for partition, target in sorted(proposal.listed):
        current = placement.get(partition, [])
        if partition in under_way:
            lines.append(f"Reassignment of partition {partition} is still in progress.")
        elif current == target:
            lines.append(f"Reassignment of partition {partition} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {partition}, but replica set is "
                f"{_ids(current)} rather than {_ids(target)}."
            )
    return "\n".join(lines)


def under_way_text(under_way: Mapping[TopicPartition, Reassignment]) -> str:
    """Return the lines about the ongoing reassignments."""
    if not under_way:
        return "No partition reassignments found."
    lines = ["Current partition reassignments:"]
    for partition, move in sorted(under_way.items()):
        line = f"{partition}: replicas: {_ids(move.replicas)}."
        line += f" adding: {_ids(move.adding)}." if move.adding else ""
        line += f" removing: {_ids(move.removing)}." if move.removing else ""
        lines.append(line)
    return "\n".join(lines)


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
