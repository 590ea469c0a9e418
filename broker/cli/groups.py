"""`millstream groups`: list groups of every type, with the flags of kafka-groups."""

import argparse
from collections.abc import Iterable

from broker.cli.arguments import (
    add_connection,
    check_not_with,
    connection_of,
    tool,
    tool_parser,
)
from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import CONSUMER_PROTOCOL_TYPES, GroupListing, list_groups

GROUP_TYPES = ("classic", "consumer", "share", "streams")
FILTERS = ("group-type", "protocol", "consumer", "share", "streams")
TIMEOUT_MS = 30_000
MIN_WIDTH = 20


@tool("Error while executing groups command : ")
def main(arguments: list[str]) -> int:
    """List groups; return 1 if the cluster is unreachable."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.list:
        parser.error("Command must include exactly one action: --list.")
    if options.group_type is not None and options.group_type.lower() not in GROUP_TYPES:
        parser.error("--group-type must be a valid group type.")
    for flag in ("consumer", "share", "streams"):
        check_not_with(parser, options, flag, [other for other in FILTERS if other != flag])
    with AdminClient(connection_of(options, default_timeout_ms=TIMEOUT_MS)) as client:
        groups = [group for group in list_groups(client) if is_listed(group, options)]
    print("\n".join(listing_lines(groups)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("groups", "List groups of all types.")
    add_connection(parser, has_controllers=False, is_required=True)
    parser.add_argument("--list", action="store_true", help="list the groups")
    parser.add_argument(
        "--group-type",
        metavar="TYPE",
        help=f"only groups of this type: {', '.join(GROUP_TYPES)}",
    )
    parser.add_argument("--protocol", help="only groups of this protocol type")
    parser.add_argument(
        "--consumer",
        action="store_true",
        help="only groups of consumers: those of type consumer, and of type classic whose protocol "
        "is consumer or empty",
    )
    parser.add_argument("--share", action="store_true", help="only share groups")
    parser.add_argument("--streams", action="store_true", help="only streams groups")
    return parser


def is_listed(group: GroupListing, options: argparse.Namespace) -> bool:
    """Return True if a group matches the filters."""
    group_type = group.group_type.lower()
    if options.consumer:
        return group.protocol_type in CONSUMER_PROTOCOL_TYPES or group_type == "consumer"
    if options.share or options.streams:
        return group_type == ("share" if options.share else "streams")
    wanted = options.group_type and options.group_type.lower()
    return wanted in (None, group_type) and (options.protocol in (None, group.protocol_type))


def listing_lines(groups: Iterable[GroupListing]) -> list[str]:
    """Return the table of groups; all columns have the width of the widest cell of all."""
    rows = [(group.group_id, group.group_type, group.protocol_type) for group in groups]
    width = max((len(cell) for row in rows for cell in row), default=0)
    width = max(width, MIN_WIDTH)
    lines = [" ".join(f"{cell:<{width}}" for cell in ("GROUP", "TYPE", "PROTOCOL"))]
    # As in Kafka's tool, the header ends without a space and the rows end with one.
    return lines + ["".join(f"{cell:<{width}} " for cell in row) for row in rows]
