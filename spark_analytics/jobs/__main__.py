"""`python -m spark_analytics.jobs`: the streaming job, HTTP in the main thread, Spark in another.

One line on standard output says that the query runs. On SIGTERM or SIGINT the current micro-batch
ends, then the query and Spark stop. If Spark's Java process dies, this process exits with status 1:
its supervisor restarts it, and no event is counted twice.
"""

import asyncio
import logging
import os
import signal
import sys

from aiohttp import web

from common.http.accepting import CannotListenError
from common.http.application import build_app
from common.http.front import FrontPage, Step
from common.http.neighbours import parse_neighbours
from common.http.problems import Handler
from common.http.serving import front_page_handler, runner_of, serve_on
from common.http.site_guard import guard_of
from common.process.ending import run_until_closed
from common.process.settings import read_settings
from common.process.starting import announce, configure_logging
from spark_analytics.java import JavaNotFoundError
from spark_analytics.jobs.metrics import JobMetrics
from spark_analytics.jobs.settings import JobSettings
from spark_analytics.jobs.stream import OrderStream

log = logging.getLogger(__name__)

_READY_POLL_SECONDS = 0.1


def main() -> int:
    """Run the job; return the exit status."""
    settings = read_settings(
        JobSettings,
        "millstream spark-job",
        "Compute the exact figures of the orders with Spark, until SIGTERM.",
        sys.argv[1:],
        os.environ,
    )
    configure_logging({"py4j": logging.WARNING, "pyspark": logging.WARNING})
    return asyncio.run(_serve(settings))


async def _serve(settings: JobSettings) -> int:
    metrics = JobMetrics()
    stream = OrderStream(settings, metrics)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stream.stop)

    async def missing() -> list[str]:
        return list(stream.missing)

    guard = guard_of(settings.allowed_hosts, settings.http_host)
    app = build_app(metrics.registry, missing, site_guard=guard)
    app.router.add_get("/", _front_page(settings, stream))
    runner = runner_of(app, 1.0, settings.http_security)
    await runner.setup()
    status = 1
    try:
        await serve_on(runner, settings.http_host, settings.http_port)
        scheme = settings.http_security.scheme
        url = f"{scheme}://{settings.http_host}:{runner.addresses[0][1]}"
        async with asyncio.TaskGroup() as group:
            announcing = group.create_task(_announce(stream, url))
            await asyncio.to_thread(stream.run)
            announcing.cancel()
        status = 0
        log.info("the job stopped")
    except* (CannotListenError, JavaNotFoundError) as errors:
        log.error("the job cannot start: %s", errors.exceptions[0])
    # The outermost handler: the log gets the error once.
    except* Exception:
        log.exception("the job failed")
    finally:
        await runner.cleanup()
    return status


def _front_page(settings: JobSettings, stream: OrderStream) -> Handler:
    page = FrontPage(
        name="spark",
        title="Spark",
        what="The streaming job: turns the pipeline's topics into the figures of the dashboard.",
        steps=[
            Step("See what it has done.", "curl -s {origin}/metrics | grep ^millstream_analytics"),
            Step("Look at what it has stored.", f"sqlite3 -readonly {settings.store} .tables"),
        ],
        neighbours=parse_neighbours(settings.neighbours),
    )
    facts = {
        "Kafka": settings.bootstrap_servers.replace(",", ", "),
        "Serving store": settings.store,
    }

    async def state(_: web.Request) -> tuple[list[str], dict[str, str]]:
        return list(stream.missing), facts

    return front_page_handler(page, state)


async def _announce(stream: OrderStream, url: str) -> None:
    # The condition is in Spark and Kafka, so there is no event to wait for.
    while stream.missing:  # noqa: ASYNC110
        await asyncio.sleep(_READY_POLL_SECONDS)
    announce("analytics", url)


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
