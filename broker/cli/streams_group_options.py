"""The flags of `streams-groups`, those of kafka-streams-groups, and their valid combinations."""

import argparse

from broker.cli.arguments import add_connection, check_not_with, tool_parser
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
