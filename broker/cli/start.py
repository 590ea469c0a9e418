"""`millrace broker start [server.properties] [--override name=value]...`: run a node.

The environment may name the cluster of an unformatted node: CLUSTER_ID, and INITIAL_CONTROLLERS in
the form of `millrace storage format --initial-controllers`. Both have no effect on a formatted one.
"""

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from broker.cli.arguments import plain_tool_parser
from broker.config.broker_config import BrokerConfig
from broker.config.sources import collect_settings
from broker.errors import KafkaError

log = logging.getLogger("millrace.start")

INVALID_CONFIGURATION = 2


def main(arguments: list[str]) -> int:
    """Run a node until SIGTERM; return 2 for an invalid configuration, 1 for a failed start."""
    parsed = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    try:
        settings = collect_settings(
            file=parsed.properties, environment=os.environ, overrides=parsed.override
        )
        config = BrokerConfig.from_settings(settings)
    except KafkaError as error:
        print(f"millrace broker: {error}", file=sys.stderr)
        return INVALID_CONFIGURATION
    cluster_id = os.environ.get("CLUSTER_ID")
    controllers = os.environ.get("INITIAL_CONTROLLERS")
    if cluster_id and controllers and not _is_formatted(config, cluster_id, controllers):
        return INVALID_CONFIGURATION
    return _serve(config, cluster_id, parsed.exit_with_parent)


def _is_formatted(config: BrokerConfig, cluster_id: str, controllers: str) -> bool:
    """Format the node if it is new; print why that is not possible."""
    from broker.cli.storage import Refused, format_new_node
    from broker.log.meta_properties import InconsistentLogDirectory

    try:
        format_new_node(config, cluster_id, controllers)
    except (Refused, KafkaError, InconsistentLogDirectory, OSError) as error:
        print(f"millrace broker: cannot format: {error}", file=sys.stderr)
        return False
    return True


def _serve(config: BrokerConfig, cluster_id: str | None, exit_with_parent: bool) -> int:
    # Imported here so that a configuration error is reported before the server is loaded.
    import uvloop

    from broker.log.meta_properties import InconsistentLogDirectory
    from broker.server.node import run

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            failure = runner.run(
                run(config, cluster_id=cluster_id, exit_with_parent=exit_with_parent)
            )
    except (OSError, KafkaError, InconsistentLogDirectory) as error:
        print(f"millrace broker: cannot start: {error}", file=sys.stderr)
        return 1
    if failure is not None:
        print(f"millrace broker: stopped: {failure}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = plain_tool_parser(
        "broker start",
        "Run one Kafka-compatible broker node. Settings have Kafka's own names; they "
        "come from the file, then from KAFKA_ variables, then from --override.",
    )
    parser.usage_status = INVALID_CONFIGURATION
    parser.add_argument(
        "properties", nargs="?", type=Path, help="a server.properties file, as Kafka's"
    )
    parser.add_argument(
        "--override", action="append", default=[], metavar="NAME=VALUE", help="one more setting"
    )
    parser.add_argument(
        "--exit-with-parent",
        action="store_true",
        help="stop when standard input closes, as it does when the starting process ends",
    )
    return parser
