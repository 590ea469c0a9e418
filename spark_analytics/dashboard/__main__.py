"""`python -m spark_analytics.dashboard`: serve the page.

The process is ready once it serves HTTP. Without a store the page says that it waits for the job.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from common.http.accepting import CannotListenError
from common.http.serving import runner_of, serve_on
from common.http.site_guard import guard_of
from common.process.ending import run_until_closed
from common.process.settings import read_settings
from common.process.starting import announce, configure_logging
from spark_analytics.dashboard.app import FEED_KEY, STOPPING_KEY, build_dashboard
from spark_analytics.settings import Settings


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    guard = guard_of(settings.allowed_hosts, settings.http_host)
    app = build_dashboard(Path(settings.store), settings.neighbours, guard)
    stopping = app[STOPPING_KEY]
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    runner = runner_of(app, 2.0, settings.http_security)
    await runner.setup()
    try:
        await serve_on(runner, settings.http_host, settings.http_port)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(app[FEED_KEY].run())
            scheme = settings.http_security.scheme
            announce("dashboard", f"{scheme}://{settings.http_host}:{runner.addresses[0][1]}")
            await stopping.wait()
            following.cancel()
    finally:
        await runner.cleanup()


def main() -> int:
    told = read_settings(
        Settings,
        "millstream dashboard",
        "Serve the page that shows the figures of the Spark job, until SIGTERM.",
        sys.argv[1:],
        os.environ,
    )
    configure_logging()
    try:
        asyncio.run(serve(told))
    except CannotListenError as error:
        sys.stderr.write(f"millstream dashboard: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
