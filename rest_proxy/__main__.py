"""`python -m rest_proxy`: serve Kafka over HTTP until SIGTERM."""

import asyncio
import logging
import signal
import sys

from common.credentials.translation import ClientSettingsError
from common.http.accepting import listening_on
from common.http.serving import Site, runner_of
from common.kafka.quiet_clients import quiet_clients
from common.process.ending import run_until_closed
from common.process.starting import configure_logging
from common.process.tasks import spawn
from rest_proxy.app import build_app
from rest_proxy.proxy import Proxy
from rest_proxy.settings import Settings, SettingsError, read_settings

log = logging.getLogger("rest_proxy")

_SHUTDOWN_SECONDS = 3.0


async def serve(settings: Settings) -> None:
    """Serve until a signal. Raises ClientSettingsError, OSError when the port is taken."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    listening = listening_on(*settings.address())
    host, port = settings.address()[0] or "0.0.0.0", listening.getsockname()[1]
    proxy = Proxy.of(settings)
    runner = runner_of(build_app(proxy), _SHUTDOWN_SECONDS, settings.http)
    await runner.setup()
    try:
        await Site(runner, listening).start()
        connected = spawn(proxy.brokers.wait_until_connected())
        stopped = spawn(stopping.wait())
        await asyncio.wait([connected, stopped], return_when=asyncio.FIRST_COMPLETED)
        if connected.done():
            sys.stdout.write(
                f"millstream rest-proxy ready on {settings.http.scheme}://{host}:{port}\n"
            )
            sys.stdout.flush()
        await stopped
        connected.cancel()
        log.info("rest proxy stopping on a signal")
    finally:
        await runner.cleanup()
        log.info("rest proxy stopped")


def main() -> int:
    """Run the program; 1 when it cannot be started."""
    try:
        settings = read_settings(sys.argv[1:])
        configure_logging()
        quiet_clients()
        asyncio.run(serve(settings))
    except (SettingsError, ClientSettingsError, OSError) as error:
        sys.stderr.write(f"millstream rest-proxy: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
