"""`millstream share-groups`: list, describe, reset and delete share groups (KIP-932).

The flags and the tables are those of kafka-share-groups. It exits with 1 if any part of the action
failed; Kafka's tool mostly prints the error on standard output and exits with 0.
"""

import argparse
from collections.abc import Iterable, Mapping

from broker.cli.arguments import ToolFailed, add_connection, check_not_with, is_given, tool_parser
from broker.cli.group_options import (
    add_state,
    add_timeout,
    check_description,
    check_only_for,
    only_action,
)
from broker.cli.group_tables import MISSING, NAME_WIDTH, assignment_text, columns, new_offset_lines
from broker.cli.group_tool import (
    INACTIVE,
    all_described,
    chosen,
    existing_partitions,
    group_ids,
    offsets_by_rule,
    print_lines,
    print_listing,
    run_action,
    told_deletions,
    warn,
)
from broker.cli.offset_reset import Offsets
from broker.model import TopicPartition
from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import GroupListing, delete_groups, list_groups
from common.kafka.admin.share_groups import (
    SHARE,
    ShareGroupDescription,
    ShareOffset,
    alter_share_offsets,
    delete_share_offsets,
    describe_share_groups,
    share_offsets,
)
from common.kafka.errors import KafkaError

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = ("to-datetime", "to-earliest", "to-latest")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the tool."""
    parser = tool_parser(
        "share-groups",
        "List all share groups, describe a share group, delete share group info, or reset share "
        "group offsets.",
    )
    add_connection(parser, has_controllers=False)
    for flag, text in (
        ("list", "list all share groups"),
        ("describe", "describe groups and how far behind they are (their lag)"),
        ("delete", "delete groups with their state"),
        ("reset-offsets", "set the start offsets of a group without members"),
        ("delete-offsets", "forget the offsets of a group for topics"),
        ("all-groups", "apply to all share groups"),
        ("all-topics", "with --reset-offsets: every topic the group has offsets for"),
        ("members", "with --describe: the members of the group"),
        ("offsets", "with --describe: the partitions and their lag (the default)"),
        ("verbose", "with --describe: epochs too"),
        ("dry-run", "with --reset-offsets: only show what would be set"),
        ("execute", "with --reset-offsets: set the offsets"),
        ("to-earliest", "reset to the earliest offset"),
        ("to-latest", "reset to the latest offset"),
    ):
        parser.add_argument(f"--{flag}", action="store_true", help=text)
    parser.add_argument(
        "--to-datetime",
        metavar="YYYY-MM-DDThh:mm:ss.sss",
        help="reset to the offset of this time",
    )
    parser.add_argument("--group", action="append", help="a group; may be given more than once")
    parser.add_argument(
        "--topic",
        action="append",
        help="a topic whose offsets to delete or reset; to reset, `topic:0,1` for some of its "
        "partitions; may be given more than once",
    )
    add_state(parser, " (Empty, Stable, Dead)")
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
    )
    check_only_for(parser, options, action, allowed_for)
    check_not_with(parser, options, "group", ["all-groups", "list"])
    check_not_with(parser, options, "topic", ["list", "describe", "delete"])
    CHECKS[action](parser, options)
    return action


def _check_list(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Nothing more is to be checked."""


def _check_describe(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if not (options.group or options.all_groups):
        parser.error("Option [describe] takes one of these options: [all-groups], [group]")
    check_description(parser, options)


def _check_delete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if not (options.group or options.all_groups):
        parser.error("Option [delete] takes the options [group] or [all-groups]")


def _check_delete_offsets(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if not (options.group and options.topic):
        parser.error("Option [delete-offsets] takes the following options: [group], [topic]")
    _check_single_group(parser, options)


def _check_reset(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        parser.error("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not (options.dry_run or options.execute):
        parser.error("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not options.group:
        parser.error("Option [reset-offsets] takes the option: [group]")
    _check_single_group(parser, options)
    if not (options.topic or options.all_topics):
        parser.error("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    if not any(is_given(options, scenario) for scenario in SCENARIOS):
        listed = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
        parser.error(f"Option [reset-offsets] takes one of these options: {listed}")
    for scenario in SCENARIOS:
        check_not_with(parser, options, scenario, [one for one in SCENARIOS if one != scenario])


def _check_single_group(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if len(options.group) > 1:
        parser.error("Found multiple arguments for option group, but you asked for only one")


CHECKS = {
    "list": _check_list,
    "describe": _check_describe,
    "delete": _check_delete,
    "delete-offsets": _check_delete_offsets,
    "reset-offsets": _check_reset,
}


GROUP_STATES = ("Stable", "Dead", "Empty")


def main(arguments: list[str]) -> int:
    """Run one action on groups; return 1 if a part of it was refused."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    action = checked_action(parser, options)
    return run_action("share", ACTION_FUNCTIONS[action], options)


def _listed(client: AdminClient, states: Iterable[str] = ()) -> list[GroupListing]:
    return list_groups(client, list(states), [SHARE])


def _list(client: AdminClient, options: argparse.Namespace) -> int:
    groups = _listed(client, chosen(options.state, GROUP_STATES, "state"))
    print_listing(groups, has_state=options.state is not None)
    return 0


def _describe(client: AdminClient, options: argparse.Namespace) -> int:
    for group in all_described(describe_share_groups(client, _group_ids(client, options))):
        if options.members or options.state is not None:
            warn(state_warning(group))
            if options.state is not None:
                print_lines(["", *state_lines(group, is_verbose=options.verbose)])
            elif group.members:
                print_lines(["", *member_lines(group, is_verbose=options.verbose)])
            continue
        offsets = share_offsets(client, group.group_id)
        if offsets:
            lines = offset_lines(group.group_id, offsets, is_verbose=options.verbose)
            print_lines(["", *lines])
        else:
            print_lines(["", f"Share group '{group.group_id}' has no offset information."])
    return 0


# Deleting.


def _delete(client: AdminClient, options: argparse.Namespace) -> int:
    known = {group.group_id: group.state for group in _listed(client)}
    wanted = list(known) if options.all_groups else list(dict.fromkeys(options.group))
    problems: dict[str, str] = {}
    for group_id in wanted:
        if group_id not in known:
            problems[group_id] = f"Group '{group_id}' is not a share group."
        elif known[group_id] not in INACTIVE:
            problems[group_id] = f"Share group '{group_id}' is not EMPTY."
    outcomes = delete_groups(client, [one for one in wanted if one not in problems])
    problems |= {key: str(error) for key, error in outcomes.items() if error is not None}
    return told_deletions("share", wanted, problems)


def _delete_offsets(client: AdminClient, options: argparse.Namespace) -> int:
    (group_id,) = options.group
    outcomes = delete_share_offsets(client, group_id, dict.fromkeys(options.topic))
    print_lines(["", *deleted_offset_lines(outcomes)])
    return 1 if any(outcomes.values()) else 0


# Resetting.


def _reset_offsets(client: AdminClient, options: argparse.Namespace) -> int:
    (group_id,) = options.group
    (group,) = all_described(describe_share_groups(client, [group_id]))
    if group.state not in INACTIVE:
        raise ToolFailed(f"Share group '{group_id}' is not empty.")
    offsets = _new_offsets(client, options, group_id)
    if options.execute:
        alter_share_offsets(client, group_id, offsets)
    print_lines(["", *new_offset_lines({group_id: offsets})])
    return 0


def _new_offsets(client: AdminClient, options: argparse.Namespace, group_id: str) -> Offsets:
    if options.topic:
        partitions = existing_partitions(client, options.topic)
    else:
        partitions = sorted(share_offsets(client, group_id))
    return offsets_by_rule(client, options, group_id, partitions, SCENARIOS)


def _group_ids(client: AdminClient, options: argparse.Namespace) -> list[str]:
    return group_ids(options, lambda: _listed(client))


ACTION_FUNCTIONS = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset_offsets,
    "delete-offsets": _delete_offsets,
}


def offset_lines(
    group_id: str, offsets: Mapping[TopicPartition, ShareOffset], *, is_verbose: bool
) -> list[str]:
    """Return the table of a group's start offsets."""
    headers = ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    widths = [NAME_WIDTH, NAME_WIDTH, 10, 13, 0]
    rows = [
        [group_id, topic, str(partition), _text(found.start_offset), _text(found.lag)]
        for (topic, partition), found in sorted(offsets.items())
    ]
    if is_verbose:
        headers.insert(3, "LEADER-EPOCH")
        widths.insert(3, 13)
        for row, (_, found) in zip(rows, sorted(offsets.items()), strict=True):
            row.insert(3, _text(found.leader_epoch))
    return columns(headers, rows, widths)


def _text(value: object) -> str:
    return MISSING if value is None else str(value)


def state_lines(group: ShareGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's state."""
    node = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"]
    cells = [
        group.group_id,
        f"{node.host}:{node.port}  ({node.node_id})",
        group.state,
        str(len(group.members)),
    ]
    widths = [NAME_WIDTH, 25, 15, 0]
    if is_verbose:
        headers[3:3] = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
        cells[3:3] = [str(group.group_epoch), str(group.assignment_epoch)]
        widths[3:3] = [12, 17]
    return columns(headers, [cells], widths)


def member_lines(group: ShareGroupDescription, *, is_verbose: bool) -> list[str]:
    """Return the table of a group's members."""
    headers = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    headers += [*(["MEMBER-EPOCH"] if is_verbose else []), "ASSIGNMENT"]
    widths = [NAME_WIDTH] * 4 + [12, *([13] if is_verbose else []), 0]
    rows = [
        [
            group.group_id,
            member.member_id,
            member.host,
            member.client_id,
            str(len(member.assignment)),
            *([str(member.member_epoch)] if is_verbose else []),
            assignment_text(member.assignment) if member.assignment else "",
        ]
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]
    return columns(headers, rows, widths)


def state_warning(group: ShareGroupDescription) -> str | None:
    """Return the warning before the table of a group, None without one."""
    if group.state == "Empty":
        return f"Share group '{group.group_id}' has no active members."
    return None


def deleted_offset_lines(outcomes: Mapping[str, KafkaError | None]) -> list[str]:
    """Return the table of a deletion."""
    rows = [
        [topic, "Successful" if error is None else f"Error: {error}"]
        for topic, error in sorted(outcomes.items())
    ]
    return columns(["TOPIC", "STATUS"], rows, [NAME_WIDTH, 0])
