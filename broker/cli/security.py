"""`millstream security check server.properties`: what is open to whom, and what to change."""

import argparse
import os
from pathlib import Path

from broker.cli.arguments import add_sub_command, plain_tool_parser
from broker.cli.java_text import table_text
from broker.cli.security_findings import Finding, file_findings, findings, openings
from broker.config.broker_config import BrokerConfig
from broker.config.sources import collect_settings
from common.kafka.errors import KafkaError

INVALID_CONFIGURATION = 2


def main(arguments: list[str]) -> int:
    """Run one sub-command."""
    parsed = _parser().parse_args(arguments)
    status: int = parsed.run(parsed)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = plain_tool_parser("security", "Look at the security of a node's settings.")
    commands = parser.add_subparsers(required=True, metavar="{check}")
    check = add_sub_command(
        commands, "security", "check", "show what is open to whom, and what to change"
    )
    check.set_defaults(run=_check)
    check.add_argument("properties", type=Path, help="the configuration file of a node")
    check.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that replaces the file's",
    )
    check.add_argument(
        "--strict", action="store_true", help="end with status 1 if there is anything to change"
    )
    return parser


def _check(options: argparse.Namespace) -> int:
    """Print the openings and the findings; return 2 for an invalid configuration."""
    try:
        settings = collect_settings(
            file=options.properties, environment=os.environ, overrides=options.override
        )
        config = BrokerConfig.from_settings(settings)
    except KafkaError as error:
        print(f"The node would not start: {error}")
        return INVALID_CONFIGURATION
    print(_openings_text(config))
    found = [*findings(config), *file_findings(config, options.properties)]
    print(_findings_text(found))
    return 1 if found and options.strict else 0


def _openings_text(config: BrokerConfig) -> str:
    rows = [tuple(opening) for opening in openings(config)]
    authorizer = config.security.authorizer
    rights = "may do everything: there is no authorizer"
    if authorizer is not None:
        supers = ", ".join(sorted(authorizer.super_users)) or "nobody"
        rights = f"may do what access rules say; {supers} may do everything"
    table = table_text(("LISTENER", "ADDRESS", "PROTOCOL", "OPEN TO"), rows)
    return f"{table}\n\nClients that get in {rights}."


def _findings_text(found: list[Finding]) -> str:
    if not found:
        return "\nNothing to change."
    lines = [f"\n{len(found)} to change:"]
    for number, (about, problem, advice) in enumerate(found, 1):
        lines += [f"{number:3}. {about}: {problem}.", f"     {advice[0].upper()}{advice[1:]}."]
    return "\n".join(lines)
