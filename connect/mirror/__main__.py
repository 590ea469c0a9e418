"""`millrace mirror mm2.properties`: follow clusters until SIGTERM."""

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from connect.config_providers.properties import parse_properties
from connect.herder.names import RefusalError
from connect.mirror.dedicated import FlowWorker
from connect.mirror.front import Front, address
from connect.mirror.mirror_maker_settings import MirrorMakerSettings
from connect.plugins.scan import find_plugins
from millrace.connect.errors import ConfigException, KafkaException


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="millrace mirror", description=__doc__)
    parser.add_argument("config", type=Path, metavar="mm2.properties", help="clusters and flows")
    parser.add_argument(
        "--clusters", nargs="+", default=[], help="only flows into these clusters (all)"
    )
    return parser.parse_args(arguments)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read_file(path: Path) -> MirrorMakerSettings:
    """Raises ConfigException for a file that cannot be read."""
    try:
        return MirrorMakerSettings(parse_properties(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigException(f"{path} cannot be read: {error}") from error


async def serve(arguments: argparse.Namespace) -> None:
    """Mirror until told to stop. Raises KafkaException or OSError for what cannot be started."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    told = read_file(arguments.config)
    wanted = arguments.clusters
    pairs = [each for each in told.flows() if not wanted or each.target in wanted]
    if not pairs:
        raise ConfigException(f"No flows lead to {', '.join(wanted)}")
    listener = told.written.get("listeners")
    host, _ = address(listener)
    plugins = find_plugins([])
    flows = [FlowWorker(pair, told, plugins, host) for pair in pairs]
    front = Front(listener, flows)
    await front.start()
    running = [asyncio.ensure_future(each.run()) for each in flows]
    try:
        say(f"millrace mirror ready on {front.url}: {', '.join(map(str, pairs))}")
        stopped = asyncio.ensure_future(stopping.wait())
        await asyncio.wait([*running, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
    finally:
        for each in running:
            each.cancel()
        ended = await asyncio.gather(*running, return_exceptions=True)
        await front.stop()
    for outcome in ended:
        if isinstance(outcome, Exception):
            raise outcome
    say("millrace mirror stopped")


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(serve(parse_arguments(sys.argv[1:])))
    except (KafkaException, RefusalError, OSError) as error:
        sys.stderr.write(f"millrace mirror: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
