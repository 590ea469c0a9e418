"""The flags of `share-groups`, those of kafka-share-groups, and their valid combinations."""

import argparse

from broker.cli.arguments import add_connection, check_not_with, is_given, tool_parser
from broker.cli.group_options import (
    add_state,
    add_timeout,
    check_description,
    check_only_for,
    only_action,
)

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
