"""`millstream broker start [server.properties] [--override name=value]...`: run a node.

The environment may name the cluster of an unformatted node: CLUSTER_ID, and INITIAL_CONTROLLERS in
the form of `millstream storage format --initial-controllers`. A formatted node is not changed. If
its metadata log names no voters (`kraft.version` 0), those controllers are its voters.
"""

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from broker.cli.arguments import plain_tool_parser
from broker.cli.security import is_local
from broker.config.broker_config import BrokerConfig
from broker.config.sources import collect_settings
from common.kafka.errors import KafkaError

log = logging.getLogger("millstream.start")

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
        print(f"millstream broker: {error}", file=sys.stderr)
        return INVALID_CONFIGURATION
    if parsed.testing:
        refusal = _unsafe(config)
        if refusal is not None:
            print(f"millstream broker: {refusal}", file=sys.stderr)
            return INVALID_CONFIGURATION
    return _serve(config, parsed)


def _unsafe(config: BrokerConfig) -> str | None:
    """Return why a node may not be started with `--testing`, None if it may."""
    endpoint = config.http_listener
    if endpoint is None:
        return "--testing needs an HTTP listener: its control is served there"
    if is_local(endpoint) or config.http_security.users:
        return None
    return (
        f"--testing on the HTTP listener {endpoint.host or '(all addresses)'} needs users and "
        "passwords (http.config), or an address of this machine alone, as 127.0.0.1"
    )


def _serve(config: BrokerConfig, parsed: argparse.Namespace) -> int:
    # Imported here so that a configuration error is reported before the server is loaded.
    import uvloop

    from broker.log.meta_properties import InconsistentLogDirectory
    from broker.server.quorum.initial_controllers import format_if_new
    from broker.server.running import run

    try:
        controllers = format_if_new(config, os.environ)
    except (KafkaError, InconsistentLogDirectory, OSError) as error:
        print(f"millstream broker: cannot start: {error}", file=sys.stderr)
        # A disk that fails may work again.
        return 1 if isinstance(error, OSError) else INVALID_CONFIGURATION
    node = run(
        config,
        cluster_id=os.environ.get("CLUSTER_ID"),
        controllers=controllers,
        exit_with_parent=parsed.exit_with_parent,
        is_testing=parsed.testing,
    )
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            failure = runner.run(node)
    except (OSError, KafkaError, InconsistentLogDirectory) as error:
        print(f"millstream broker: cannot start: {error}", file=sys.stderr)
        return 1
    if failure is not None:
        print(f"millstream broker: stopped: {failure}", file=sys.stderr)
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
    parser.add_argument(
        "--testing",
        action="store_true",
        help="let tests arm faults by HTTP, at /faults of the listener for metrics",
    )
    return parser
