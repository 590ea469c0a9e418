"""`millstream streams-groups`: list, describe, reset and delete streams groups (KIP-1071).

The flags and the tables are those of kafka-streams-groups. It exits with 1 if any part of the
action failed; Kafka's tool mostly prints the error on standard output and exits with 0.
"""

import argparse
import re
import sys
from collections.abc import Iterable

from broker.cli import streams_group_tables as tables
from broker.cli.arguments import ToolFailed
from broker.cli.group_deletion import told_deleted_offsets, told_deletions
from broker.cli.group_tables import new_offset_lines
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
    warn,
)
from broker.cli.offset_reset import Offsets, from_plan, plan_text, read_plan
from broker.cli.streams_group_options import checked_action, make_parser
from broker.model import TopicPartition
from common.kafka.admin.client import AdminClient
from common.kafka.admin.group_offsets import committed_offsets, delete_offsets, set_offsets
from common.kafka.admin.groups import GroupListing, delete_groups, list_groups
from common.kafka.admin.leaders import EARLIEST, LATEST, list_offsets, successes
from common.kafka.admin.streams_groups import (
    STREAMS,
    StreamsGroupDescription,
    describe_streams_groups,
)
from common.kafka.admin.topics import delete_topics
from common.kafka.errors import KafkaError

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
        warn(tables.state_warning(group))
        if options.state is not None:
            print_lines(tables.state_lines(group, is_verbose=options.verbose))
        elif group.members and options.members:
            print_lines(tables.member_lines(group, is_verbose=options.verbose))
        elif group.members:
            offsets = _offsets(client, group)
            print_lines(tables.offset_lines(group.group_id, offsets, is_verbose=options.verbose))
    return 0


def _offsets(
    client: AdminClient, group: StreamsGroupDescription
) -> dict[TopicPartition, tables.StreamsOffset]:
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
        found[partition] = tables.StreamsOffset(
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
