"""`python -m schemas.registry`: serve the registry until SIGTERM."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys

from common.credentials import access
from common.credentials.translation import ClientSettingsError
from common.http.accepting import CannotListenError, listening_on
from common.http.security import add_http_option, http_security
from common.http.serving import Site, runner_of
from common.http.site_guard import guard_of
from common.kafka.quiet_clients import quiet_clients
from common.process.command_parser import CommandParser, DefaultsHelpFormatter
from common.process.ending import run_until_closed
from common.process.tasks import spawn
from schemas.registry.leader import Identity, Leadership
from schemas.registry.records import LEVELS
from schemas.registry.rest.app import build_app
from schemas.registry.topic import SchemaTopic

log = logging.getLogger("schemas.registry")


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = CommandParser(
        prog="millstream registry",
        description="Serve the schema registry over HTTP, with Confluent's calls, until SIGTERM. "
        "Schemas are kept in topic _schemas.",
        epilog="Most options are also environment variables: MILLSTREAM_HTTP_PORT, and so on.",
        examples=[
            "millstream registry --bootstrap-servers localhost:9092",
            "millstream registry --http-port 8181 --compatibility-level FULL",
        ],
        formatter_class=DefaultsHelpFormatter,
    )
    environment = os.environ
    parser.add_argument(
        "--bootstrap-servers",
        default=environment.get("MILLSTREAM_BOOTSTRAP_SERVERS", "127.0.0.1:9092"),
        help="host:port of Kafka, or a list with commas",
    )
    access.add_option(parser, environment)
    add_http_option(parser, environment)
    parser.add_argument(
        "--http-host",
        default=environment.get("MILLSTREAM_HTTP_HOST", "127.0.0.1"),
        help="address to serve HTTP on",
    )
    parser.add_argument(
        "--http-port",
        type=int,
        default=environment.get("MILLSTREAM_HTTP_PORT", "8081"),
        help="port to serve HTTP on; 0 takes a free one",
    )
    parser.add_argument(
        "--replication-factor",
        type=int,
        default=environment.get("MILLSTREAM_REPLICATION_FACTOR", "3"),
        help="replicas of topic _schemas; fewer where brokers are fewer",
    )
    parser.add_argument(
        "--advertised-host",
        help="the host name at which other instances reach this one",
    )
    parser.add_argument(
        "--neighbours",
        default=environment.get("MILLSTREAM_NEIGHBOURS", ""),
        help="servers to link to: name=http://..., with commas between",
    )
    parser.add_argument(
        "--allowed-hosts",
        default=environment.get("MILLSTREAM_ALLOWED_HOSTS", ""),
        help="names that clients reach this server by, with commas between; *: all",
    )
    parser.add_argument(
        "--group-id", default="schema-registry", help="the group that elects the leader"
    )
    parser.add_argument(
        "--no-leader-eligibility",
        action="store_true",
        help="this instance never becomes the leader; it forwards every write",
    )
    parser.add_argument(
        "--compatibility-level",
        choices=LEVELS,
        type=str.upper,
        default=environment.get("MILLSTREAM_COMPATIBILITY_LEVEL", "BACKWARD"),
        help="the compatibility level of subjects that have none of their own",
    )
    return _with_files(parser, parser.parse_args(arguments))


def _with_files(parser: CommandParser, found: argparse.Namespace) -> argparse.Namespace:
    """Read the files of settings; one that cannot be used ends the program."""
    try:
        found.http = http_security(found.http_config)
        found.kafka = access.kafka_access(
            found.bootstrap_servers, found.command_config, needs_librdkafka=False
        )
    except ClientSettingsError as error:
        parser.error(str(error))
    return found


async def serve(arguments: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    # The others are told the port before the first request can come.
    listening = listening_on(arguments.http_host, arguments.http_port)
    port = listening.getsockname()[1]
    host = arguments.advertised_host or arguments.http_host
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    topic = SchemaTopic(
        arguments.kafka, arguments.replication_factor, arguments.compatibility_level
    )
    identity = Identity(
        host,
        port,
        scheme=arguments.http.scheme,
        is_eligible=not arguments.no_leader_eligibility,
    )
    leadership = Leadership(arguments.kafka, arguments.group_id, identity)
    guard = guard_of(arguments.allowed_hosts, arguments.http_host, host)
    app = build_app(topic, leadership, arguments.neighbours, guard, arguments.http)
    runner = runner_of(app, security=arguments.http)
    await runner.setup()
    try:
        await Site(runner, listening).start()
        ready = spawn(_ready(topic, leadership))
        stopped = spawn(stopping.wait())
        await asyncio.wait([ready, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not stopping.is_set():
            line = f"millstream registry ready on {arguments.http.scheme}://{arguments.http_host}:{port}\n"
            sys.stdout.write(line)
            sys.stdout.flush()
        await stopped
        ready.cancel()
        log.info("registry stopping on a signal")
    finally:
        await runner.cleanup()
        log.info("registry stopped")


async def _ready(topic: SchemaTopic, leadership: Leadership) -> None:
    await topic.wait_until_loaded()
    await leadership.wait_until_known()


def main() -> int:
    told = parse_arguments(sys.argv[1:])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
    quiet_clients()
    try:
        asyncio.run(serve(told))
    except CannotListenError as error:
        sys.stderr.write(f"millstream registry: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
