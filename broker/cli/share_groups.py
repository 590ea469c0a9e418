"""`millstream share-groups`: list, describe, reset and delete share groups (KIP-932).

The flags and the tables are those of kafka-share-groups. It exits with 1 if any part of the action
failed; Kafka's tool mostly prints the error on standard output and exits with 0.
"""

import argparse
from collections.abc import Iterable

from broker.cli import share_group_tables as tables
from broker.cli.arguments import ToolFailed
from broker.cli.group_deletion import told_deletions
from broker.cli.group_tables import new_offset_lines
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
    warn,
)
from broker.cli.offset_reset import Offsets
from broker.cli.share_group_options import SCENARIOS, checked_action, make_parser
from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import GroupListing, delete_groups, list_groups
from common.kafka.admin.share_groups import (
    SHARE,
    alter_share_offsets,
    delete_share_offsets,
    describe_share_groups,
    share_offsets,
)

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
            warn(tables.state_warning(group))
            if options.state is not None:
                print_lines(["", *tables.state_lines(group, is_verbose=options.verbose)])
            elif group.members:
                print_lines(["", *tables.member_lines(group, is_verbose=options.verbose)])
            continue
        offsets = share_offsets(client, group.group_id)
        if offsets:
            lines = tables.offset_lines(group.group_id, offsets, is_verbose=options.verbose)
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
    print_lines(["", *tables.deleted_offset_lines(outcomes)])
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
