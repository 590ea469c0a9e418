"""`millstream streams-groups`: list, describe, reset and delete streams groups (KIP-1071).

The flags and the tables are those of kafka-streams-groups. It exits with 1 if any part of the
action failed; Kafka's tool mostly prints the error on standard output and exits with 0.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.cli.arguments import ToolFailed, add_connection, check_not_with, tool_parser
from broker.cli.group_options import (
    RULES_WITH_A_VALUE,
    add_state,
    add_timeout,
    check_description,
    check_only_for,
    check_scenario,
    only_action,
)
from broker.cli.group_tables import MISSING, NAME_WIDTH, columns, new_offset_lines
from broker.cli.group_tool import (
    INACTIVE,
    all_described,
    chosen,
    existing_partitions,
    group_ids,
    named_partitions,
    offsets_by_rule,
    print_lines,
    print_listing,
    run_action,
    told_deleted_offsets,
    told_deletions,
    warn,
)
from broker.cli.offset_reset import RULES, Offsets, from_plan, plan_text, read_plan
from broker.model import TopicPartition
from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import committed_offsets, delete_offsets, set_offsets
from common.kafka.admin.groups import GroupListing, delete_groups, list_groups
from common.kafka.admin.leaders import EARLIEST, LATEST, list_offsets, successes
from common.kafka.admin.streams_groups import (
    STREAMS,
    Assigned,
    StreamsGroupDescription,
    Tasks,
    describe_streams_groups,
)
from common.kafka.admin.topics import delete_topics
from common.kafka.errors import KafkaError


class StreamsOffset(NamedTuple):
    """Where a group is in a partition; None for what is not known."""

    offset: int | None
    leader_epoch: int | None
    log_end_offset: int
    lag: int


def offset_lines(
    group_id: str, offsets: Mapping[TopicPartition, StreamsOffset], *, is_verbose: bool
) -> list[str]:
    """Return the table of a group's offsets."""
    found = sorted(offsets.items())
    if not is_verbose:
        headers = ["GROUP", "TOPIC", "PARTITION", "OFFSET-LAG"]
        rows = [[group_id, topic, str(number), str(one.lag)] for (topic, number), one in found]
        return columns(headers, rows, [NAME_WIDTH, NAME_WIDTH, 10, 0])
    headers = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LEADER-EPOCH"]
    headers += ["LOG-END-OFFSET", "OFFSET-LAG"]
    rows = [
        [
            group_id,
            topic,
            str(number),
            *(
                MISSING if value is None else str(value)
                for value in (one.offset, one.leader_epoch, one.log_end_offset, one.lag)
            ),
        ]
        for (topic, number), one in found
    ]
    return columns(headers, rows, [NAME_WIDTH, NAME_WIDTH, 10, 15, 15, 15, 15])


def member_lines(group: StreamsGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's members."""
    headers = ["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
    widths = [NAME_WIDTH, NAME_WIDTH, NAME_WIDTH, NAME_WIDTH, 0]
    rows = [
        [
            group.group_id,
            one.member_id,
            one.process_id,
            one.client_id,
            tasks_text(one.assignment),
        ]
        for one in group.members
    ]
    if not is_verbose:
        return columns(headers, rows, widths)
    headers[1:1] = ["TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH"]
    headers[4:4] = ["MEMBER-PROTOCOL", "MEMBER-EPOCH"]
    widths[1:1] = [25, NAME_WIDTH]
    widths[4:4] = [NAME_WIDTH, NAME_WIDTH]
    for row, one in zip(rows, group.members, strict=True):
        row[1:1] = [str(group.target_epoch), str(group.topology_epoch)]
        row[4:4] = ["classic" if one.is_classic else "streams", str(one.member_epoch)]
        row[-1] += tasks_text(one.target_assignment, "TARGET-")
    return columns(headers, rows, widths)


def tasks_text(assigned: Assigned, prefix: str = "") -> str:
    """Return tasks as `ACTIVE: 0:[0,1]; STANDBY: 1:[2]; `."""
    kinds = ("ACTIVE", "STANDBY", "WARMUP")
    pairs = zip(kinds, assigned, strict=True)
    return "".join(_tasks(f"{prefix}{kind}", tasks) for kind, tasks in pairs)


def _tasks(kind: str, tasks: Tasks) -> str:
    listed = [f"{name}:[{','.join(map(str, partitions))}]; " for name, partitions in tasks]
    return f"{kind}: {''.join(listed)}" if listed else ""


def state_lines(group: StreamsGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's state."""
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"]
    cells = [
        group.group_id,
        f"{node.host}:{node.port} ({node.node_id})",
        group.state,
        str(len(group.members)),
    ]
    widths = [NAME_WIDTH, 25, 25, 0]
    if is_verbose:
        headers[3:3] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells[3:3] = [str(group.group_epoch), str(group.target_epoch)]
        widths[3:3] = [NAME_WIDTH, 25]
    return columns(headers, [cells], widths)


def state_warning(group: StreamsGroupDescription) -> str | None:
    """Return the warning before the table of a group, None without one."""
    if group.state == "Empty":
        return f"Streams group '{group.group_id}' has no active members."
    return None


ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = (*RULES, "from-file")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the tool."""
    parser = tool_parser(
        "streams-groups",
        "List all streams groups, describe a streams group, delete streams group info, or reset "
        "streams group offsets.",
    )
    add_connection(parser, has_controllers=False)
    for flag, text in (
        ("list", "list all streams groups"),
        ("describe", "describe groups and how far behind they are (their lag)"),
        ("delete", "delete groups with their offsets"),
        ("reset-offsets", "set the offsets of a group without members on its input topics"),
        ("delete-offsets", "delete the offsets of a group for input topics"),
        ("all-groups", "apply to all streams groups"),
        ("all-input-topics", "every topic of the user that the group reads"),
        ("members", "with --describe: the members of the group and their tasks"),
        ("offsets", "with --describe: the partitions and their lag (the default)"),
        ("verbose", "with --describe: epochs, target tasks and offsets too"),
        ("dry-run", "with --reset-offsets: only show what would be set"),
        ("execute", "with --reset-offsets: set the offsets"),
        ("export", "with --reset-offsets: print the offsets as CSV, for --from-file"),
        ("to-earliest", "reset to the earliest offset"),
        ("to-latest", "reset to the latest offset"),
        ("to-current", "reset to the current offset"),
        (
            "delete-all-internal-topics",
            "with --delete, or --reset-offsets --execute: delete the group's internal topics too",
        ),
    ):
        parser.add_argument(f"--{flag}", action="store_true", help=text)
    for flag, metavar, text in RULES_WITH_A_VALUE:
        parser.add_argument(f"--{flag}", metavar=metavar, help=text)
    for flag, text in (
        ("group", "a group; may be given more than once"),
        (
            "input-topic",
            "a topic of the user, `topic:0,1` for some of its partitions; may be given more than "
            "once",
        ),
        (
            "delete-internal-topic",
            "with --reset-offsets --execute: an internal topic to delete; may be given more than "
            "once",
        ),
    ):
        parser.add_argument(f"--{flag}", action="append", help=text)
    add_state(parser)
    add_timeout(parser)
    return parser


def checked_action(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Return the only action; end the tool with an error for an invalid combination."""
    if options.bootstrap_server is None:
        parser.error('Missing required argument "[bootstrap-server]"')
    action = only_action(parser, options, ACTIONS)
    allowed_for = (
        ("state", {"list", "describe"}),
        *((flag, {"describe"}) for flag in ("members", "offsets", "verbose")),
        *((flag, {"reset-offsets"}) for flag in (*SCENARIOS, "dry-run", "execute", "export")),
        ("delete-internal-topic", {"reset-offsets"}),
        ("delete-all-internal-topics", {"reset-offsets", "delete"}),
        *((flag, {"reset-offsets", "delete-offsets"}) for flag in ("input-topic",)),
        ("all-input-topics", {"reset-offsets", "delete-offsets"}),
    )
    check_only_for(parser, options, action, allowed_for)
    check_not_with(parser, options, "group", ["all-groups", "list"])
    if action != "list" and not (options.group or options.all_groups):
        parser.error(f"Option [{action}] takes one of these options: [all-groups], [group]")
    _check_details(parser, options, action)
    return action


def _check_details(
    parser: argparse.ArgumentParser, options: argparse.Namespace, action: str
) -> None:
    if action == "describe":
        check_description(parser, options)
    if action == "delete-offsets":
        if not (options.input_topic or options.all_input_topics):
            parser.error(
                "Option [delete-offsets] takes the [group] and one of these options: "
                "[all-input-topics], [input-topic]"
            )
        if options.all_groups or len(options.group) > 1:
            parser.error("Option [delete-offsets] supports only one [group] at a time")
    if action == "reset-offsets":
        _check_reset(parser, options)


def _check_reset(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.dry_run == options.execute:
        parser.error("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    check_scenario(parser, options, SCENARIOS)
    if not (options.from_file or options.all_input_topics or options.input_topic):
        parser.error(
            "One of the reset scopes should be defined: --all-input-topics, --input-topic."
        )
    deletes = options.delete_internal_topic or options.delete_all_internal_topics
    if deletes and not options.execute:
        parser.error("Internal topics are only deleted with [execute]")


GROUP_STATES = ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead")

_is_internal = re.compile(
    r".*-(changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
).fullmatch


def main(arguments: list[str]) -> int:
    """Run one action on groups; return 1 if a part of it was refused."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    action = checked_action(parser, options)
    return run_action("streams", ACTION_FUNCTIONS[action], options)


def _listed(client: AdminClient, states: Iterable[str] = ()) -> list[GroupListing]:
    return list_groups(client, list(states), [STREAMS])


def _list(client: AdminClient, options: argparse.Namespace) -> int:
    groups = _listed(client, chosen(options.state, GROUP_STATES, "state"))
    print_listing(groups, has_state=options.state is not None)
    return 0


def _described(client: AdminClient, group_ids: Iterable[str]) -> list[StreamsGroupDescription]:
    return all_described(describe_streams_groups(client, group_ids))


def _describe(client: AdminClient, options: argparse.Namespace) -> int:
    for group in _described(client, _group_ids(client, options)):
        warn(state_warning(group))
        if options.state is not None:
            print_lines(state_lines(group, is_verbose=options.verbose))
        elif group.members and options.members:
            print_lines(member_lines(group, is_verbose=options.verbose))
        elif group.members:
            offsets = _offsets(client, group)
            print_lines(offset_lines(group.group_id, offsets, is_verbose=options.verbose))
    return 0


def _offsets(
    client: AdminClient, group: StreamsGroupDescription
) -> dict[TopicPartition, StreamsOffset]:
    """Return where the group is in the partitions of its active tasks."""
    partitions = sorted(
        {
            partition
            for member in group.members
            for partition in group.partitions_of(member.assignment.active)
        }
    )
    committed = committed_offsets(client, group.group_id)
    starts = successes(list_offsets(client, partitions, EARLIEST))
    ends = successes(list_offsets(client, partitions, LATEST))
    found = {}
    for partition in partitions:
        if partition not in starts or partition not in ends:
            continue
        end, known = ends[partition].offset, committed.get(partition)
        begun = starts[partition].offset if known is None else known.offset
        found[partition] = StreamsOffset(
            None if known is None else known.offset,
            None if known is None else known.leader_epoch,
            end,
            end - begun,
        )
    return found


# Deleting.


def _delete(client: AdminClient, options: argparse.Namespace) -> int:
    known = {group.group_id: group.state for group in _listed(client)}
    wanted = list(known) if options.all_groups else list(dict.fromkeys(options.group))
    problems: dict[str, str] = {}
    for group_id in wanted:
        if group_id not in known:
            problems[group_id] = f"Group '{group_id}' does not exist or is not a streams group."
        elif known[group_id] not in INACTIVE:
            problems[group_id] = f"Streams group '{group_id}' is not EMPTY."
    doomed = [one for one in wanted if one not in problems]
    described = _described(client, doomed) if options.delete_all_internal_topics else []
    outcomes = delete_groups(client, doomed)
    problems |= {key: str(error) for key, error in outcomes.items() if error is not None}
    status = told_deletions("streams", wanted, problems, end=".")
    for group in described:
        if group.group_id not in problems:
            _delete_internal_topics(client, group, _inferred_topics(group))
    return status


def _inferred_topics(group: StreamsGroupDescription) -> list[str]:
    """Return the internal topics whose names say that they belong to this group alone."""
    inferred = []
    for topic in group.internal_topics:
        if topic.startswith(f"{group.group_id}-") and _is_internal(topic):
            inferred.append(topic)
        else:
            print(
                f"\nError: The internal topic '{topic}' is not inferred as internal and thus will "
                f"not be deleted with the group '{group.group_id}'.",
                file=sys.stderr,
            )
    return inferred


def _delete_internal_topics(
    client: AdminClient, group: StreamsGroupDescription, topics: list[str]
) -> None:
    if topics:
        delete_topics(client, topics)
        print(
            f"Deletion of associated internal topics of the streams groups ('{group.group_id}') "
            "was successful."
        )


def _delete_offsets(client: AdminClient, options: argparse.Namespace) -> int:
    (group_id,) = options.group
    missing: dict[TopicPartition, KafkaError | None] = {}
    if options.all_input_topics:
        (group,) = _described(client, [group_id])
        partitions = _committed_inputs(client, group)
    else:
        partitions, missing = named_partitions(client, options.input_topic)
    outcomes = delete_offsets(client, group_id, partitions) if partitions else {}
    outcomes |= missing
    return told_deleted_offsets(group_id, outcomes)


def _committed_inputs(client: AdminClient, group: StreamsGroupDescription) -> list[TopicPartition]:
    """Return the partitions of the user's topics that the group has offsets for."""
    committed = committed_offsets(client, group.group_id)
    return sorted(each for each in committed if each.topic in group.input_topics)


# Resetting.


def _reset_offsets(client: AdminClient, options: argparse.Namespace) -> int:
    group_ids = _group_ids(client, options)
    plan = read_plan(options.from_file, group_ids) if options.from_file else None
    status = 0
    offsets: dict[str, Offsets] = {}
    for group in _described(client, group_ids):
        problem = None
        if group.state not in INACTIVE:
            problem = (
                f"Assignments can only be reset if the group '{group.group_id}' is inactive, but "
                f"the current state is {group.state}."
            )
        elif plan is not None and group.group_id not in plan:
            problem = f"No reset plan for group {group.group_id} found"
        if problem:
            print(f"\nError: {problem}", file=sys.stderr)
            status = 1
            continue
        if plan is not None:
            offsets[group.group_id] = from_plan(client, plan[group.group_id])
        else:
            offsets[group.group_id] = _offsets_by_rule(client, options, group)
        if options.execute:
            set_offsets(client, group.group_id, offsets[group.group_id])
            topics = options.delete_internal_topic or []
            if options.delete_all_internal_topics:
                topics = _inferred_topics(group)
            _delete_internal_topics(client, group, topics)
    if options.export:
        print(plan_text(offsets, options.group or ()))
    else:
        print_lines(["", *new_offset_lines(offsets)])
    return status


def _offsets_by_rule(
    client: AdminClient, options: argparse.Namespace, group: StreamsGroupDescription
) -> Offsets:
    known = _committed_inputs(client, group)
    if options.all_input_topics:
        partitions = known
    else:
        partitions = existing_partitions(client, options.input_topic)
        if not set(partitions) <= set(known):
            raise ToolFailed(f"One or more topics are not part of the group '{group.group_id}'.")
    return offsets_by_rule(client, options, group.group_id, partitions)


def _group_ids(client: AdminClient, options: argparse.Namespace) -> list[str]:
    return group_ids(options, lambda: _listed(client))


ACTION_FUNCTIONS = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset_offsets,
    "delete-offsets": _delete_offsets,
}
