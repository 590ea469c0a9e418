"""The flags that the tools for groups have in common, and the checks of their combinations."""

import argparse
from collections.abc import Collection, Iterable

from broker.cli.arguments import check_not_with, is_given

DESCRIPTIONS = ("members", "offsets", "state")
"""The flags that select what `--describe` shows."""

RULES_WITH_A_VALUE = (
    ("to-offset", "OFFSET", "reset to this offset"),
    ("shift-by", "COUNT", "move the current offset by this many, which may be negative"),
    ("by-duration", "PnDTnHnMnS", "reset to the offset of so long ago"),
    ("to-datetime", "YYYY-MM-DDThh:mm:ss.sss", "reset to the offset of this time"),
    ("from-file", "FILE", "reset to the offsets of a CSV file"),
)
"""The flags of rules for new offsets, each with its metavar and its help."""


def add_state(parser: argparse.ArgumentParser, states: str = "") -> None:
    """Add `--state`; `states` names them in the help."""
    parser.add_argument(
        "--state",
        nargs="?",
        const="",
        metavar="STATE,...",
        help="with --describe: the state of the group; with --list: show the states, or only the "
        f"groups in these{states}",
    )


def add_timeout(parser: argparse.ArgumentParser, why: str = "") -> None:
    """Add `--timeout`; `why` goes on with its help."""
    parser.add_argument(
        "--timeout",
        type=int,
        default=30_000,
        metavar="MS",
        help=f"how long to wait for answers{why}",
    )


def only_action(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    actions: Collection[str],
    end: str = ".",
) -> str:
    """Return the only action that was given; end the tool with an error for none or several."""
    given = [action for action in actions if is_given(options, action)]
    if len(given) != 1:
        listed = ", ".join(f"--{action}" for action in actions)
        parser.error(f"Command must include exactly one action: {listed}{end}")
    return given[0]


def check_only_for(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    action: str,
    allowed_for: Iterable[tuple[str, Collection[str]]],
) -> None:
    """End the tool with an error if a flag was given that is for other actions only."""
    for flag, allowed in allowed_for:
        if is_given(options, flag) and action not in allowed:
            others = ", ".join(f"[{other}]" for other in sorted(allowed))
            parser.error(f"Option [{flag}] is only for {others}")


def check_description(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the tool with an error if `--describe` shall show more than one thing."""
    if sum(is_given(options, flag) for flag in DESCRIPTIONS) > 1:
        listed = ", ".join(f"[{flag}]" for flag in DESCRIPTIONS)
        parser.error(f"Option [describe] takes at most one of these options: {listed}")
    if options.state:
        parser.error("Option [describe] does not take a value for [state]")


def check_scenario(
    parser: argparse.ArgumentParser, options: argparse.Namespace, scenarios: Collection[str]
) -> None:
    """End the tool with an error unless one way to set new offsets was given."""
    for scenario in scenarios:
        check_not_with(parser, options, scenario, [one for one in scenarios if one != scenario])
    if not any(is_given(options, scenario) for scenario in scenarios):
        listed = ", ".join(f"[{scenario}]" for scenario in scenarios)
        parser.error(f"Option [reset-offsets] requires one of the following scenarios: {listed}")
