"""`millstream mirror mm2.properties`: follow clusters until SIGTERM, or copy them once.

`millstream mirror status mm2.properties` shows the state of the flows, also of other processes.
"""

import argparse
import asyncio
import json
import logging
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from common.credentials.access import add_option, kafka_access, read_client_file
from common.credentials.translation import ClientSettingsError
from common.http.security import add_http_option, check_listener, http_security
from common.kafka.quiet_clients import quiet_clients
from common.process import traces
from common.process.command_parser import CommandParser
from common.process.ending import run_until_closed
from common.process.properties import suggestion
from common.process.starting import collect_seldom
from common.process.tasks import spawn
from connect.herder.names import RefusalError
from connect.plugins.scan import find_plugins
from millstream.connect.errors import ConfigException, KafkaException
from mirror.dedicated.flow_workers import FlowWorker
from mirror.dedicated.front import Front, address
from mirror.dedicated.mirror_maker_settings import NAMES, MirrorMakerSettings, Pair
from mirror.dedicated.one_copy import copy_once, ranges, verify
from mirror.dedicated.own_secrets import OwnSecrets
from mirror.dedicated.status import flow_status, status_body, status_lines

log = logging.getLogger("mirror")

_ONCE: Final = {"offset.flush.interval.ms": "1000"}


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    is_status = arguments[:1] == ["status"]
    name = "millstream mirror status" if is_status else "millstream mirror"
    more = "--json" if is_status else "--once"
    parser = CommandParser(
        prog=name,
        description="Show the state of the flows in a properties file, whoever runs them."
        if is_status
        else "Mirror clusters until SIGTERM, or copy them once, by a properties file of Kafka's "
        "MirrorMaker. `millstream mirror status mm2.properties` shows the state of its flows.",
        examples=[f"{name} mm2.properties", f"{name} mm2.properties --clusters berlin {more}"],
    )
    parser.add_argument("config", type=Path, metavar="mm2.properties", help="clusters and flows")
    parser.add_argument(
        "--clusters", nargs="+", default=[], help="only flows into these clusters (all)"
    )
    add_option(parser)
    add_http_option(parser)
    if is_status:
        parser.add_argument("--json", action="store_true", help="for programs")
    else:
        parser.add_argument(
            "--once",
            action="store_true",
            help="copy up to where the sources end now, compare all of it, and end",
        )
    options = parser.parse_args(arguments[1:] if is_status else arguments)
    options.is_status = is_status
    return options


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read_file(path: Path, command_config: str = "") -> MirrorMakerSettings:
    """Raises ConfigException for a file that cannot be read.

    `command_config` is a file of settings for clients of every cluster.
    """
    try:
        common = kafka_access("", command_config).properties
        return MirrorMakerSettings({**common, **read_client_file(path)})
    except ClientSettingsError as error:
        raise ConfigException(str(error)) from None


def choose_flows(settings: MirrorMakerSettings, clusters: Sequence[str]) -> list[Pair]:
    """Return the flows into the named clusters. Raises ConfigException when there are none."""
    pairs = [each for each in settings.flows() if not clusters or each.target in clusters]
    if not pairs:
        raise ConfigException(f"No flows lead to {', '.join(clusters)}")
    return pairs


async def serve(options: argparse.Namespace) -> int:
    """Mirror until a signal comes. Raises KafkaException or OSError when it cannot start."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    told = read_file(options.config, options.command_config)
    if options.once:
        told = MirrorMakerSettings({**_ONCE, **told.written})
    pairs = choose_flows(told, options.clusters)
    for name in told.unread():
        log.warning("nobody reads %s%s", name, suggestion(name, NAMES))
    listener = told.written.get("listeners")
    security = http_security(options.http_config)
    check_listener(security, listener or security.scheme)
    host, _ = address(listener)
    plugins = find_plugins([])
    plugins.add(OwnSecrets)
    flows = [FlowWorker(pair, told, plugins, host) for pair in pairs]
    wanted = await asyncio.to_thread(ranges, told, pairs) if options.once else []
    front = Front(listener, flows, security)
    await front.start()
    say(f"millstream mirror ready on {front.url}: {', '.join(map(str, pairs))}")
    ends: list[Coroutine[Any, Any, object]] = [stopping.wait()]
    if options.once:
        ends.append(copy_once(flows, wanted, say))
    try:
        await _run_until(flows, ends)
    finally:
        await front.stop()
    say("millstream mirror stopped")
    if options.once and not stopping.is_set():
        return 0 if await asyncio.to_thread(verify, told, wanted, say) else 1
    return 0


async def _run_until(
    flows: Sequence[FlowWorker], ends: Sequence[Coroutine[Any, Any, object]]
) -> None:
    """Run flows until one of `ends` finishes. Raises what a flow or an end raises."""
    running = [spawn(each.run()) for each in flows]
    ending = [spawn(each) for each in ends]
    try:
        await asyncio.wait([*running, *ending], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (*ending, *running):
            each.cancel()
        outcomes = await asyncio.gather(*ending, *running, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


def show_status(options: argparse.Namespace) -> int:
    told = read_file(options.config, options.command_config)
    found = [flow_status(told, pair) for pair in choose_flows(told, options.clusters)]
    if options.json:
        say(json.dumps([status_body(each) for each in found], indent=2))
    else:
        for each in found:
            say("\n".join(status_lines(each)))
    return 0


def main() -> int:
    options = parse_arguments(sys.argv[1:])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    quiet_clients()
    try:
        if options.is_status:
            return show_status(options)
        collect_seldom()
        with traces.recorded("mirror"):
            return asyncio.run(serve(options))
    except (ClientSettingsError, KafkaException, RefusalError, OSError) as error:
        sys.stderr.write(f"millstream mirror: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
