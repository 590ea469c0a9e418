"""`python -P -m streams`: run until SIGTERM.

HTTP starts first, so that probes are answered and the instance knows its URL; then the topics, then
Faust. A line on standard output reports that records are handled. An app that crashes, or that is
not ready for a minute, is stopped and replaced by a new one in the same process; its state is in
the changelogs, so nothing is lost. On SIGTERM or SIGINT the positions are committed and the
instance leaves the group.
"""

import asyncio
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress

from common.http.accepting import CannotListenError
from common.http.serving import runner_of, serve_on
from common.kafka.quiet_clients import quiet_clients
from common.kafka.topic_creation import WrongPartitionCountError, ensure_topics
from common.process import clock, traces
from common.process.ending import run_until_closed
from common.process.settings import read_settings
from common.process.starting import announce, configure_logging
from common.process.tasks import spawn
from streams.app import Topologies, build_app
from streams.around_faust.delivery import AWAY
from streams.settings import Settings
from streams.telemetry import Metrics
from streams.topics import wanted_topics
from streams.topology import UndeclaredTopicError
from streams.web import build_web, peer_session

log = logging.getLogger("streams")

_POLL_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_READY_LIMIT_SECONDS = 60.0
_STOP_LIMIT_SECONDS = 6.0
_COMMIT_LIMIT_SECONDS = 2.0


class Program:
    """Runs an app, and replaces it when it fails."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._stopping = asyncio.Event()
        self._current: Topologies | None = None
        self._is_announced = False

    async def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
        async with peer_session(self._settings) as http:
            site = runner_of(
                build_web(self._settings, lambda: self._current, self._metrics, http),
                2.0,
                self._settings.http_security,
            )
            await site.setup()
            try:
                host, port = self._settings.http_host, self._settings.http_port
                await serve_on(site, host, port)
                scheme = self._settings.http_security.scheme
                await self._serve(f"{scheme}://{host}:{site.addresses[0][1]}")
            finally:
                await site.cleanup()

    async def _serve(self, url: str) -> None:
        while not self._stopping.is_set():
            try:
                replicas = await ensure_topics(
                    self._settings.kafka,
                    wanted_topics(self._settings.application_id),
                    replication_factor=self._settings.replication_factor,
                )
            except AWAY as error:
                log.warning("Kafka cannot be reached, waiting error=%r", error)
            else:
                await self._run_app(url, replicas)
                self._metrics.restarts.inc(not self._stopping.is_set())
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_SECONDS):
                    await self._stopping.wait()

    async def _run_app(self, url: str, replicas: int) -> None:
        """Run one app until it crashes, hangs, or the program gets a signal to stop."""
        own_url = self._settings.advertised_url or url
        current = build_app(self._settings, own_url, self._metrics, replication_factor=replicas)
        self._current = current
        keeping_up = spawn(current.delivery.keep_up())
        try:
            wanted = wanted_topics(self._settings.application_id)
            await current.delivery.writer.start([topic.name for topic in wanted])
            current.app.finalize()
            await current.app.start()
            await self._watch(current, url)
            if self._stopping.is_set():
                # Uncommitted records come again and are recognized, so a long wait is not needed.
                commit = spawn(current.delivery.commit())
                await asyncio.wait({commit}, timeout=_COMMIT_LIMIT_SECONDS)
        except AWAY as error:
            log.warning("app ends error=%r", error)
        finally:
            keeping_up.cancel()
            self._current = None
            await self._stop(current)

    async def _watch(self, current: Topologies, url: str) -> None:
        not_ready_since: float | None = clock.now_seconds()
        while not self._stopping.is_set():
            if current.app.should_stop:
                log.error("app crashed, will be replaced reason=%r", current.app.crash_reason)
                return
            if current.delivery.is_open:
                not_ready_since = None
                self._announce(url)
            elif not_ready_since is None:
                not_ready_since = clock.now_seconds()
            elif clock.now_seconds() - not_ready_since > _READY_LIMIT_SECONDS:
                log.error("app is not ready in time, will be replaced")
                return
            # Faust's own tasks change the readiness without a notification, so it is polled.
            await asyncio.sleep(_POLL_SECONDS)

    def _announce(self, url: str) -> None:
        if not self._is_announced:
            self._is_announced = True
            announce("streams", url)
            log.info("streams ready")

    async def _stop(self, current: Topologies) -> None:
        """Stop an app; end the process if the app does not stop.

        Faust's consumer runs in a thread that may wait for Kafka without limit. Such an app keeps
        its partitions, so a new app could not replace it.
        """
        current.delivery.close()
        stopping = spawn(_stop_parts(current))
        _, pending = await asyncio.wait({stopping}, timeout=_STOP_LIMIT_SECONDS)
        if pending:
            log.warning("app did not stop in time, the process ends without it")
            logging.shutdown()
            os._exit(0 if self._stopping.is_set() else 1)


async def _stop_parts(current: Topologies) -> None:
    """Stop all parts of an app, even if one raises an error."""
    try:
        async with AsyncExitStack() as parts:
            parts.push_async_callback(current.delivery.writer.close)
            parts.push_async_callback(current.delivery.log_reader.close)
            parts.push_async_callback(current.app.stop)
    # The app has crashed, so its parts may raise any error.
    except Exception:
        log.exception("app did not stop cleanly")


def main() -> int:
    settings = read_settings(
        Settings,
        "millstream streams",
        "Keep live views of the orders, and serve them over HTTP, until SIGTERM.",
        sys.argv[1:],
        os.environ,
    )
    # Faust logs every heartbeat.
    quiet = ("faust", "mode", "streams.around_faust.tables")
    configure_logging(dict.fromkeys(quiet, logging.WARNING))
    quiet_clients()
    try:
        with traces.recorded("streams"):
            asyncio.run(Program(settings).run())
    except WrongPartitionCountError as error:
        sys.exit(str(error))
    except (CannotListenError, UndeclaredTopicError) as error:
        sys.exit(f"millstream streams: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(run_until_closed(main))
