"""`millstream consumer-groups`: list, describe, reset and delete groups of consumers.

The flags and the tables are those of kafka-consumer-groups. It exits with 1 if any part of the
action failed; Kafka's tool prints the error on standard output and exits with 0.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

from broker.cli import group_tables as tables
from broker.cli.arguments import ToolFailed, add_connection, check_not_with, is_given, tool_parser
from broker.cli.group_options import (
    RULES_WITH_A_VALUE,
    add_state,
    add_timeout,
    check_description,
    check_only_for,
    check_scenario,
    only_action,
)
from broker.cli.group_tool import (
    INACTIVE,
    chosen,
    existing_partitions,
    group_ids,
    named_partitions,
    offsets_by_rule,
    print_lines,
    run_action,
    told_deleted_offsets,
    told_deletions,
    warn,
)
from broker.cli.offset_reset import RULES, Offsets, from_plan, plan_text, read_plan
from broker.coordinator.consumer_group.regex import compiled
from broker.model import TopicPartition
from common.kafka.admin import topics as admin
from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import (
    Committed,
    committed_offsets,
    committed_offsets_of,
    delete_offsets,
    set_offsets,
)
from common.kafka.admin.groups import (
    GroupDescription,
    delete_groups,
    describe_consumer_groups,
    list_consumer_groups,
)
from common.kafka.admin.leaders import LATEST, list_offsets
from common.kafka.errors import ErrorCode, KafkaError

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS = (*RULES, "from-file")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the tool."""
    parser = tool_parser(
        "consumer-groups",
        "List all consumer groups, describe a consumer group, delete consumer group info, or "
        "reset consumer group offsets.",
    )
    add_connection(parser, has_controllers=False)
    for flag, text in (
        ("list", "list all consumer groups"),
        ("describe", "describe groups and how far behind they are (their lag)"),
        ("delete", "delete groups with all their offsets"),
        ("reset-offsets", "set the offsets of groups without members; needs a rule and a scope"),
        ("delete-offsets", "delete the offsets of a group for topics"),
        ("all-groups", "apply to all consumer groups"),
        ("all-topics", "with --reset-offsets: every topic the group has offsets for"),
        ("members", "with --describe: the members of the group"),
        ("offsets", "with --describe: the partitions and their lag (the default)"),
        ("verbose", "with --describe: epochs and assignments too"),
        ("dry-run", "with --reset-offsets: only show what would be set (the default)"),
        ("execute", "with --reset-offsets: set the offsets"),
        ("export", "with --reset-offsets: print the offsets as CSV, for --from-file"),
        ("to-earliest", "reset to the earliest offset"),
        ("to-latest", "reset to the latest offset"),
        ("to-current", "reset to the current offset"),
    ):
        parser.add_argument(f"--{flag}", action="store_true", help=text)
    for flag, metavar, text in (
        *RULES_WITH_A_VALUE,
        ("validate-regex", "REGEX", "say whether a regular expression is valid"),
    ):
        parser.add_argument(f"--{flag}", metavar=metavar, help=text)
    parser.add_argument("--group", action="append", help="a group; may be given more than once")
    parser.add_argument(
        "--topic",
        action="append",
        help="a topic whose offsets to delete or reset, `topic:0,1` for some of its partitions; "
        "may be given more than once",
    )
    add_state(parser)
    parser.add_argument(
        "--type",
        nargs="?",
        const="",
        metavar="TYPE,...",
        help="with --list: show the types, or only the groups of these (classic, consumer)",
    )
    add_timeout(parser, ", as while a group is made or changes")
    return parser


def checked_action(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Return the only action; end the tool with an error for an invalid combination."""
    if options.bootstrap_server is None and not is_given(options, "validate-regex"):
        parser.error('Missing required argument "[bootstrap-server]"')
    action = only_action(parser, options, ACTIONS, end="")
    if action in {"describe", "delete", "reset-offsets"} and not (
        options.group or options.all_groups
    ):
        parser.error(f"Option [{action}] takes one of these options: [group], [all-groups]")
    allowed_for = (
        ("state", {"list", "describe"}),
        ("type", {"list"}),
        *((flag, {"describe"}) for flag in ("members", "offsets", "verbose")),
    )
    check_only_for(parser, options, action, allowed_for)
    check_not_with(parser, options, "group", ["all-groups", "list"])
    check_not_with(parser, options, "topic", ["list", "describe"])
    _check_details(parser, options, action)
    return action


def _check_details(
    parser: argparse.ArgumentParser, options: argparse.Namespace, action: str
) -> None:
    if action == "describe":
        check_description(parser, options)
    if action == "delete" and options.topic:
        parser.error("Deleting a group deletes all its offsets: use --delete-offsets for a topic.")
    if action == "delete-offsets" and not (options.group and options.topic):
        parser.error("Option [delete-offsets] takes the following options: [group], [topic]")
    if action == "reset-offsets":
        _check_reset(parser, options)


def _check_reset(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        parser.error("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    check_scenario(parser, options, SCENARIOS)
    if not (options.from_file or options.all_topics or options.topic):
        parser.error("One of the reset scopes should be defined: --all-topics, --topic.")
    if not (options.dry_run or options.execute):
        print(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0 "
            "of Kafka this command will require either --dry-run or --execute.",
            file=sys.stderr,
        )


GROUP_STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
GROUP_TYPES = ("Classic", "Consumer")


def main(arguments: list[str]) -> int:
    """Run one action on groups; return 1 if a part of it was refused."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    action = checked_action(parser, options)
    if action == "validate-regex":
        print(regex_text(options.validate_regex))
        return 0
    return run_action("consumer", ACTION_FUNCTIONS[action], options)


def regex_text(text: str) -> str:
    """Return the text about a subscription's regular expression."""
    try:
        compiled(text)
    except KafkaError as error:
        return f"The regular expression `{text}` is invalid: {error}"
    return f"The regular expression `{text}` is valid."


# Listing and describing.


def _list(client: AdminClient, options: argparse.Namespace) -> int:
    states = chosen(options.state, GROUP_STATES, "state")
    types = chosen(options.type, GROUP_TYPES, "type")
    groups = list_consumer_groups(client, states, types)
    has_state, has_type = options.state is not None, options.type is not None
    if has_state or has_type:
        lines = tables.listing_lines(groups, has_type=has_type, has_state=has_state)
    else:
        lines = [group.group_id for group in groups]
    print_lines(lines)
    return 0


def _describe(client: AdminClient, options: argparse.Namespace) -> int:
    groups = []
    for group_id, outcome in sorted(
        describe_consumer_groups(client, _group_ids(client, options)).items()
    ):
        if isinstance(outcome, KafkaError):
            raise outcome
        if outcome.state == "Dead":  # An old broker's answer for a missing group.
            raise ToolFailed(f"Group {group_id} not found.")
        groups.append(outcome)
    if options.state is None and not options.members:
        _print_offsets(client, groups, is_verbose=options.verbose)
        return 0
    describe = tables.member_lines if options.members else tables.state_lines
    for group in groups:
        warn(tables.state_warning(group))
        print_lines(["", *describe(group, is_verbose=options.verbose)])
    return 0


def _print_offsets(
    client: AdminClient, groups: Sequence[GroupDescription], *, is_verbose: bool
) -> None:
    committed = committed_offsets_of(client, [group.group_id for group in groups])
    partitions = {partition for of_group in committed.values() for partition in of_group}
    for group in groups:
        partitions.update(*(member.assignment for member in group.members))
    ends = _log_end_offsets(client, partitions)
    for group in groups:
        warn(tables.state_warning(group))
        rows = offset_rows(group, committed[group.group_id], ends)
        if rows:
            print_lines(["", *tables.offset_lines(group.group_id, rows, is_verbose=is_verbose)])


def _log_end_offsets(client: AdminClient, partitions: Iterable[TopicPartition]) -> Offsets:
    """Return the log end offsets, without partitions that are deleted or have no leader."""
    wanted = set(partitions)
    leaders = client.retry(
        "Metadata", lambda: admin.topic_leaders(client, {one.topic for one in wanted}), ()
    )
    led = sorted(one for one in wanted if leaders.get(one, admin.NO_LEADER) >= 0)
    return {
        partition: found.offset
        for partition, found in list_offsets(client, led, LATEST).items()
        if not isinstance(found, KafkaError)
    }


def offset_rows(
    group: GroupDescription, committed: Committed, ends: Offsets
) -> list[tables.OffsetRow]:
    """Return the rows of a group: by member, most partitions first, then unassigned ones."""
    members = sorted(group.members, key=lambda member: -len(member.assignment))
    listed = [(partition, member) for member in members for partition in member.assignment]
    assigned = {partition for partition, _ in listed}
    rest = [(partition, None) for partition in sorted(committed.keys() - assigned)]
    rows = []
    for partition, member in [*listed, *rest]:
        found = committed.get(partition)
        rows.append(
            tables.OffsetRow(
                partition,
                found.offset if found else None,
                found.leader_epoch if found else None,
                ends.get(partition),
                member,
            )
        )
    return rows


# Deleting.


def _delete(client: AdminClient, options: argparse.Namespace) -> int:
    outcomes = delete_groups(client, _group_ids(client, options))
    failed = {key: error for key, error in outcomes.items() if error is not None}
    return told_deletions("consumer", outcomes, failed)


def _delete_offsets(client: AdminClient, options: argparse.Namespace) -> int:
    (group_id,) = options.group[-1:]
    partitions, missing = named_partitions(client, options.topic)
    outcomes = delete_offsets(client, group_id, partitions) if partitions else {}
    outcomes |= missing
    return told_deleted_offsets(group_id, outcomes)


# Resetting.


def _reset_offsets(client: AdminClient, options: argparse.Namespace) -> int:
    group_ids = _group_ids(client, options)
    plan = read_plan(options.from_file, group_ids) if options.from_file else None
    status = 0
    offsets: dict[str, Offsets] = {}
    for group_id, outcome in describe_consumer_groups(client, group_ids).items():
        offsets[group_id] = {}
        problem = _reset_problem(group_id, outcome)
        if plan is not None and group_id not in plan:
            problem = problem or f"No reset plan for group {group_id} found"
        if problem:
            print(f"\nError: {problem}", file=sys.stderr)
            status = 1
            continue
        if plan is not None:
            offsets[group_id] = from_plan(client, plan[group_id])
        else:
            offsets[group_id] = _offsets_by_rule(client, options, group_id)
        if options.execute:
            set_offsets(client, group_id, offsets[group_id])
    if options.export:
        print(plan_text(offsets, options.group or ()))
    else:
        print_lines(["", *tables.new_offset_lines(offsets)])
    return status


def _reset_problem(group_id: str, outcome: GroupDescription | KafkaError) -> str | None:
    """Return the reason why a group cannot be reset; a reset creates a missing group."""
    if isinstance(outcome, KafkaError):
        if outcome.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise outcome
        return None
    if outcome.state in INACTIVE:
        return None
    return (
        f"Assignments can only be reset if the group '{group_id}' is inactive, but the current "
        f"state is {outcome.state}."
    )


def _offsets_by_rule(client: AdminClient, options: argparse.Namespace, group_id: str) -> Offsets:
    if options.all_topics:
        partitions = list(committed_offsets(client, group_id))
    else:
        partitions = existing_partitions(client, options.topic)
    return offsets_by_rule(client, options, group_id, partitions)


def _group_ids(client: AdminClient, options: argparse.Namespace) -> list[str]:
    return group_ids(options, lambda: list_consumer_groups(client))


ACTION_FUNCTIONS = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset_offsets,
    "delete-offsets": _delete_offsets,
}
