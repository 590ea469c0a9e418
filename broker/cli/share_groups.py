"""`millrace share-groups`: list, describe, reset and delete share groups (KIP-932).

The flags and the tables are those of kafka-share-groups. It exits with 1 if any part of the action
failed; Kafka's tool mostly prints the error on standard output and exits with 0.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace

from broker.cli import share_group_tables as tables
from broker.cli.admin.client import AdminClient
from broker.cli.admin.groups import GroupListing, delete_groups, list_groups
from broker.cli.admin.share_groups import (
    SHARE,
    ShareGroupDescription,
    alter_share_offsets,
    delete_share_offsets,
    describe_share_groups,
    share_offsets,
)
from broker.cli.arguments import ToolFailed, connection_of, is_given
from broker.cli.consumer_groups import check_partitions, chosen, named_partitions
from broker.cli.group_deletion import told_deletions
from broker.cli.group_tables import new_offset_lines
from broker.cli.offset_reset import RULES, Offsets, Reset
from broker.cli.share_group_options import SCENARIOS, checked_action, make_parser
from broker.errors import KafkaError
from broker.server.clock import SystemClock

GROUP_STATES = ("Stable", "Dead", "Empty")
INACTIVE = ("Empty", "Dead")


def main(arguments: list[str]) -> int:
    """Run one action on groups; return 1 if a part of it was refused."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    action = checked_action(parser, options)
    try:
        settings = replace(connection_of(options), api_timeout_ms=options.timeout)
        with AdminClient(settings) as client:
            return ACTION_FUNCTIONS[action](client, options)
    except (KafkaError, ToolFailed) as error:
        print(f"Error: Executing share group command failed due to {error}", file=sys.stderr)
        return 1


def _listed(client: AdminClient, states: Iterable[str] = ()) -> list[GroupListing]:
    return list_groups(client, list(states), [SHARE])


def _list(client: AdminClient, options: argparse.Namespace) -> int:
    groups = _listed(client, chosen(options.state, GROUP_STATES, "state"))
    if options.state is None:
        _print(group.group_id for group in groups)
    else:
        _print(tables.listing_lines(groups))
    return 0


def _describe(client: AdminClient, options: argparse.Namespace) -> int:
    groups: list[ShareGroupDescription] = []
    for _, outcome in sorted(describe_share_groups(client, _group_ids(client, options)).items()):
        if isinstance(outcome, KafkaError):
            raise outcome
        groups.append(outcome)
    for group in groups:
        if options.members or options.state is not None:
            _warn(group)
            if options.state is not None:
                _print(["", *tables.state_lines(group, is_verbose=options.verbose)])
            elif group.members:
                _print(["", *tables.member_lines(group, is_verbose=options.verbose)])
            continue
        offsets = share_offsets(client, group.group_id)
        if offsets:
            lines = tables.offset_lines(group.group_id, offsets, is_verbose=options.verbose)
            _print(["", *lines])
        else:
            _print(["", f"Share group '{group.group_id}' has no offset information."])
    return 0


def _warn(group: ShareGroupDescription) -> None:
    if group.state == "Empty":
        sys.stdout.flush()
        print(f"\nShare group '{group.group_id}' has no active members.", file=sys.stderr)


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
    _print(["", *tables.deleted_offset_lines(outcomes)])
    return 1 if any(outcomes.values()) else 0


# Resetting.


def _reset_offsets(client: AdminClient, options: argparse.Namespace) -> int:
    (group_id,) = options.group
    outcome = describe_share_groups(client, [group_id])[group_id]
    if isinstance(outcome, KafkaError):
        raise outcome
    if outcome.state not in INACTIVE:
        raise ToolFailed(f"Share group '{group_id}' is not empty.")
    offsets = _new_offsets(client, options, group_id)
    if options.execute:
        alter_share_offsets(client, group_id, offsets)
    _print(["", *new_offset_lines({group_id: offsets})])
    return 0


def _new_offsets(client: AdminClient, options: argparse.Namespace, group_id: str) -> Offsets:
    if options.topic:
        partitions, missing = named_partitions(client, options.topic)
        for partition, error in missing.items():
            raise ToolFailed(f"{partition.topic}: {error}")
    else:
        partitions = sorted(share_offsets(client, group_id))
    check_partitions(client, partitions)
    rule = next(scenario for scenario in SCENARIOS if is_given(options, scenario))
    now_ms = SystemClock().timestamp_ms()
    return RULES[rule](Reset(client, group_id, partitions, str(options.to_datetime), now_ms))


def _group_ids(client: AdminClient, options: argparse.Namespace) -> list[str]:
    if options.all_groups:
        return [group.group_id for group in _listed(client)]
    return list(dict.fromkeys(options.group))


def _print(lines: Iterable[str]) -> None:
    print("\n".join(lines), flush=True)


ACTION_FUNCTIONS = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset_offsets,
    "delete-offsets": _delete_offsets,
}
