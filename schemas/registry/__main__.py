"""`python -m schemas.registry`: serve the registry until SIGTERM."""

import argparse
import asyncio
import logging
import os
import signal
import sys

from aiohttp import web

from schemas.registry.app import build_app
from schemas.registry.topic import SchemaTopic

log = logging.getLogger("schemas.registry")


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="schemas.registry", description=__doc__)
    environment = os.environ
    parser.add_argument(
        "--bootstrap-servers",
        default=environment.get("MILLRACE_BOOTSTRAP_SERVERS", "127.0.0.1:9092"),
    )
    parser.add_argument("--http-host", default=environment.get("MILLRACE_HTTP_HOST", "127.0.0.1"))
    parser.add_argument(
        "--http-port", type=int, default=int(environment.get("MILLRACE_HTTP_PORT", "8081"))
    )
    parser.add_argument(
        "--replication-factor",
        type=int,
        default=int(environment.get("MILLRACE_REPLICATION_FACTOR", "3")),
    )
    return parser.parse_args(arguments)


async def serve(arguments: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    topic = SchemaTopic(arguments.bootstrap_servers, arguments.replication_factor)
    runner = web.AppRunner(build_app(topic), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, arguments.http_host, arguments.http_port).start()
        port = runner.addresses[0][1]
        loaded = asyncio.ensure_future(topic.wait_until_loaded())
        stopped = asyncio.ensure_future(stopping.wait())
        await asyncio.wait([loaded, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not stopping.is_set():
            line = f"millrace registry ready on http://{arguments.http_host}:{port}\n"
            sys.stdout.write(line)
            sys.stdout.flush()
        await stopped
        loaded.cancel()
        log.info("registry stopping on a signal")
    finally:
        await runner.cleanup()
        log.info("registry stopped")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
    asyncio.run(serve(parse_arguments(sys.argv[1:])))
