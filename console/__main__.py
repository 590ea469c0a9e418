"""`python -m console`: show a cluster in the browser until SIGTERM."""

import asyncio
import logging
import signal
import sys

from common.credentials.translation import ClientSettingsError
from common.http.accepting import listening_on
from common.http.serving import Site, runner_of
from common.kafka.errors import KafkaError
from common.process.ending import run_until_closed
from common.process.starting import announce, configure_logging
from console.app import build_app
from console.console import Console
from console.settings import ConsoleSettings, SettingsError, read_settings

log = logging.getLogger("console")

_SHUTDOWN_SECONDS = 1.0
_MAX_CONNECTIONS = 2_000
"""Each browser that watches something holds one."""


async def serve(settings: ConsoleSettings) -> None:
    """Serve until a signal. Raise ClientSettingsError, KafkaError, OSError if the port is taken."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    listening = listening_on(settings.host, settings.port)
    app = build_app(Console.of(settings))
    runner = runner_of(app, _SHUTDOWN_SECONDS, settings.http)
    await runner.setup()
    try:
        await Site(runner, listening, limit=_MAX_CONNECTIONS).start()
        port = listening.getsockname()[1]
        announce("console", f"{settings.http.scheme}://{settings.host}:{port}")
        await stopping.wait()
        log.info("console stopping on a signal")
    finally:
        await runner.cleanup()


def main() -> int:
    """Run the program; return 1 if it cannot be started."""
    try:
        settings = read_settings(sys.argv[1:])
        configure_logging()
        asyncio.run(serve(settings))
    except (SettingsError, ClientSettingsError, KafkaError, OSError) as error:
        sys.stderr.write(f"millstream console: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
