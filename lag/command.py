"""`millstream lag`: how far the groups of a Kafka cluster are behind."""

import argparse
import asyncio
import logging
import re
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from common.credentials.access import KafkaAccess, add_option, kafka_access, named_servers
from common.credentials.translation import ClientSettingsError
from common.http.security import add_http_option, http_security
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.client.exchange import ConnectionFailed, parse_addresses
from common.kafka.errors import KafkaError
from common.process.clock import timestamp_ms
from common.process.command_parser import CommandParser
from common.process.starting import configure_logging
from lag.asking import Asking
from lag.facts import Look
from lag.monitor import Monitor
from lag.probe.layout import ProbeSettings
from lag.spark import CheckpointError, checkpoint_offsets
from lag.table import text

TIMEOUT_MS: Final = 5_000
INTERVAL_SECONDS: Final = 10.0
_CLEAR: Final = "\x1b[H\x1b[J"


def main(arguments: Sequence[str]) -> int:
    """Print a table, once or again and again, or serve; 1 when no broker answers."""
    logging.getLogger("common.credentials").setLevel(logging.ERROR)
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.probe and options.listen is None:
        parser.error("--probe needs --listen, where its metrics are")
    servers = named_servers(parser, options)
    try:
        access = kafka_access(servers, options.command_config, needs_librdkafka=False)
        with AdminClient(_settings(access, round(options.timeout * 1000))) as client:
            return _run(client, access, options)
    except (ClientSettingsError, CheckpointError) as error:
        parser.error(str(error))
    except BrokenPipeError:
        raise  # The command ends as every one does whose reader has gone.
    except (KafkaError, ConnectionFailed, OSError) as error:
        print(f"millstream lag: {error}", file=sys.stderr)  # noqa: T201
        return 1


def _parser() -> CommandParser:
    at = "--bootstrap-server localhost:9092"
    parser = CommandParser(
        prog="millstream lag",
        description="Show how far the groups of a Kafka cluster are behind: in records, in "
        "seconds, and as one of Burrow's states. Markers of transactions are no records.",
        examples=[
            f"millstream lag {at} --watch --group 'orders-.*'",
            f"millstream lag {at} --listen 127.0.0.1:9308",
        ],
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="the brokers to connect to (KAFKA_BOOTSTRAP_SERVERS)",
    )
    add_option(parser)
    parser.add_argument("--group", type=_pattern, metavar="REGEX", help="only these groups")
    parser.add_argument("--topic", type=_pattern, metavar="REGEX", help="only these topics")
    parser.add_argument(
        "--checkpoint",
        type=_checkpoint,
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a query of Spark, which has no group, by the folder of its checkpoint",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--watch", action="store_true", help="show the table again and again")
    how.add_argument(
        "--listen",
        type=_address,
        metavar="HOST:PORT",
        help="serve /metrics, /health/live and /health/ready there",
    )
    add_http_option(parser)
    parser.add_argument(
        "--probe",
        nargs="?",
        const=ProbeSettings(),
        type=_probe,
        metavar="TOPIC",
        help="with --listen: also send messages through every broker, and measure their way",
    )
    parser.add_argument(
        "--interval",
        type=float,
        default=INTERVAL_SECONDS,
        metavar="SECONDS",
        help=f"the time between two looks ({INTERVAL_SECONDS:g} by default)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_MS / 1000,
        metavar="SECONDS",
        help="how long to wait for each answer (5 by default)",
    )
    return parser


def _settings(access: KafkaAccess, timeout_ms: int) -> AdminSettings:
    return AdminSettings(
        parse_addresses(access.bootstrap_servers, default_port=9092),
        client_id="millstream-lag",
        request_timeout_ms=timeout_ms,
        api_timeout_ms=timeout_ms,
        first_contact_timeout_ms=timeout_ms,
        security=access.security,
    )


def _run(client: AdminClient, access: KafkaAccess, options: argparse.Namespace) -> int:
    asking = Asking(client, timestamp_ms, _matches(options.group), _matches(options.topic))
    look = partial(_look, asking, dict(options.checkpoint))
    if options.listen is not None:
        asyncio.run(_serve(look, access, options))
        return 0
    monitor, is_chosen = Monitor(), bool(options.group or options.topic)
    while True:
        monitor.take(look())
        unknown = [f"unknown: {each}" for each in asking.missing]
        table = "\n".join([text(monitor, is_chosen=is_chosen), *unknown])
        print(f"{_CLEAR}{table}" if options.watch else table, flush=True)  # noqa: T201
        if not options.watch:
            return 0
        time.sleep(options.interval)


async def _serve(
    look: Callable[[], Look], access: KafkaAccess, options: argparse.Namespace
) -> None:
    # Imported here: a table needs neither a server nor aiokafka.
    from lag.server import Looking, serve

    configure_logging()
    looking, probing = Looking(look, options.interval), []
    if options.probe:
        from common.kafka.quiet_clients import quiet_clients
        from lag.probe.figures import Figures
        from lag.probe.probing import Probe

        quiet_clients()
        settings = _settings(access, round(options.timeout * 1000))
        figures = Figures(looking.registry)
        probing = [Probe(access, partial(AdminClient, settings), figures, options.probe).run()]
    await serve(
        looking,
        probing,
        options.listen,
        http_security(options.http_config),
        lambda line: print(line, flush=True),  # noqa: T201
    )


def _look(asking: Asking, checkpoints: dict[str, Path]) -> Look:
    return asking.look({name: checkpoint_offsets(at) for name, at in checkpoints.items()})


def _matches(pattern: re.Pattern[str] | None) -> Callable[[str], bool]:
    return lambda name: pattern is None or pattern.fullmatch(name) is not None


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error


def _checkpoint(text: str) -> tuple[str, Path]:
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FOLDER")
    return name, Path(folder)


def _probe(text: str) -> ProbeSettings:
    return ProbeSettings(topic=text)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdigit() and int(port) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, int(port)
