"""The flags of `consumer-groups`, those of kafka-consumer-groups, and their valid combinations."""

import argparse
import sys

from broker.cli.arguments import add_connection, check_not_with, is_given, tool_parser
from broker.cli.group_options import (
    RULES_WITH_A_VALUE,
    add_state,
    add_timeout,
    check_description,
    check_only_for,
    check_scenario,
    only_action,
)
from broker.cli.offset_reset import RULES

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
