"""`millrace consumer-groups`: list, describe, reset and delete groups of consumers.

The flags and the tables are those of kafka-consumer-groups. It exits with 1 if any part of the
action failed; Kafka's tool prints the error on standard output and exits with 0.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from broker.cli import group_tables as tables
from broker.cli.admin import topics as admin
from broker.cli.admin.client import AdminClient
from broker.cli.admin.group_offsets import (
    Committed,
    committed_offsets,
    committed_offsets_of,
    delete_offsets,
    set_offsets,
)
from broker.cli.admin.groups import (
    GroupDescription,
    delete_groups,
    describe_consumer_groups,
    list_consumer_groups,
)
from broker.cli.admin.leaders import LATEST, list_offsets
from broker.cli.arguments import ToolFailed, connection_of, is_given
from broker.cli.consumer_group_options import checked_action, make_parser
from broker.cli.group_deletion import told_deletions
from broker.cli.offset_reset import RULES, Offsets, Reset, from_plan, plan_text, read_plan
from broker.coordinator.consumer_group.regex import compiled
from broker.errors import ErrorCode, KafkaError
from broker.model import TopicPartition
from broker.server.clock import SystemClock

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
INACTIVE = ("Empty", "Dead")


def main(arguments: list[str]) -> int:
    """Run one action on groups; return 1 if a part of it was refused."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    action = checked_action(parser, options)
    try:
        if action == "validate-regex":
            print(regex_text(options.validate_regex))
            return 0
        settings = replace(connection_of(options), api_timeout_ms=options.timeout)
        with AdminClient(settings) as client:
            return ACTION_FUNCTIONS[action](client, options)
    except (KafkaError, ToolFailed) as error:
        print(f"Error: Executing consumer group command failed due to {error}", file=sys.stderr)
        return 1


# Arguments.


def chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Return the states or types in a list, compared without regard to case."""
    by_name = {one.lower(): one for one in known}
    names = [name.strip().lower() for name in text.split(",")] if text else []
    if any(name not in by_name for name in names):
        raise ToolFailed(f"Invalid {what} list '{text}'. Valid {what}s are: {', '.join(known)}")
    return [by_name[name] for name in names]


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
    _print(lines)
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
        _warn(group)
        _print(["", *describe(group, is_verbose=options.verbose)])
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
        _warn(group)
        rows = offset_rows(group, committed[group.group_id], ends)
        if rows:
            _print(["", *tables.offset_lines(group.group_id, rows, is_verbose=is_verbose)])


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


def _warn(group: GroupDescription) -> None:
    warning = tables.state_warning(group)
    if warning:
        sys.stdout.flush()
        print(f"\n{warning}", file=sys.stderr)


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
    is_done = not any(outcomes.values())
    if is_done:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    else:
        print(
            "\nError: Encountered some partition-level error, see the follow-up details.",
            file=sys.stderr,
        )
    _print(["", *tables.deleted_offset_lines(outcomes)])
    return 0 if is_done else 1


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
        _print(["", *tables.new_offset_lines(offsets)])
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
    rule = next(scenario for scenario in RULES if is_given(options, scenario))
    if options.all_topics:
        partitions = list(committed_offsets(client, group_id))
    else:
        partitions, missing = named_partitions(client, options.topic)
        for partition, error in missing.items():
            raise ToolFailed(f"{partition.topic}: {error}")
    check_partitions(client, partitions)
    value = getattr(options, rule.replace("-", "_"))
    now_ms = SystemClock().timestamp_ms()
    return RULES[rule](Reset(client, group_id, partitions, str(value), now_ms))


def check_partitions(client: AdminClient, partitions: Sequence[TopicPartition]) -> None:
    leaders = client.retry(
        "Metadata", lambda: admin.topic_leaders(client, {one.topic for one in partitions}), ()
    )
    for lacks, problem in (
        ([one for one in partitions if one not in leaders], "do not exist"),
        ([one for one in partitions if leaders.get(one, 0) == admin.NO_LEADER], "have no leader"),
    ):
        if lacks:
            raise ToolFailed(f'The partitions "{",".join(map(str, lacks))}" {problem}')


# The groups and partitions of the arguments.


def _group_ids(client: AdminClient, options: argparse.Namespace) -> list[str]:
    if options.all_groups:
        return [group.group_id for group in list_consumer_groups(client)]
    return list(dict.fromkeys(options.group))


def named_partitions(
    client: AdminClient, texts: Iterable[str]
) -> tuple[list[TopicPartition], dict[TopicPartition, KafkaError | None]]:
    """Return the partitions of `topic` and `topic:0,1`, and the error of each missing topic."""
    named = [parse_partitions(text) for text in texts if ":" in text]
    whole = [text for text in texts if ":" not in text]
    leaders = client.retry("Metadata", lambda: admin.topic_leaders(client, whole), ())
    found = {topic: [one for one in leaders if one.topic == topic] for topic in whole}
    missing: dict[TopicPartition, KafkaError | None] = {
        TopicPartition(topic, -1): KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
        for topic in whole
        if not found[topic]
    }
    listed = [*named, *found.values()]
    return sorted({one for partitions in listed for one in partitions}), missing


def parse_partitions(text: str) -> list[TopicPartition]:
    """Parse `topic:0,1`."""
    topic, _, numbers = text.partition(":")
    if not numbers or ":" in numbers:
        raise ToolFailed(f"Invalid topic arg '{text}', expected topic name and partitions")
    try:
        return [TopicPartition(topic, int(number)) for number in numbers.split(",")]
    except ValueError:
        raise ToolFailed(
            f"Invalid partition specified in topic arg '{text}': it is no number"
        ) from None


def _print(lines: Iterable[str]) -> None:
    print("\n".join(lines), flush=True)


ACTION_FUNCTIONS = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset_offsets,
    "delete-offsets": _delete_offsets,
}
