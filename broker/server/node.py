"""One node from start to stop: open the logs, replay, listen, serve, stop cleanly."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys

from broker.config.broker_config import BrokerConfig, Endpoint
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.log.storage import RealStorage
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.server.broker import Broker
from broker.server.buffers import ReceiveBuffers
from broker.server.cleaner import Cleaner
from broker.server.clock import Clock, SystemClock, random_uuid, system_random
from broker.server.cluster_id import find_cluster_id
from broker.server.connection import Connection, Peer
from broker.server.dispatch import Dispatcher
from broker.server.http import HttpServer, Page, problem, text
from broker.server.listener import Listener, listen
from broker.server.metadata_log import METADATA_PARTITION, MetadataLog, metadata_log_config
from broker.server.metrics import prometheus_text
from broker.server.recovery_progress import RecoveryProgress

log = logging.getLogger("millrace.node")

ALL_INTERFACES = "0.0.0.0"
METADATA_TOPIC_ID = bytes(15) + b"\x01"  # Uuid.METADATA_TOPIC_ID


class Node:
    """Owns the broker, its listeners and its web server."""

    def __init__(self, config: BrokerConfig, *, cluster_id: str | None) -> None:
        self._config = config
        self._cluster_id = cluster_id
        self._http = HttpServer(
            {
                "/health/live": lambda: text("alive\n"),
                "/health/ready": self._readiness,
                "/metrics": self._metrics,
            }
        )
        self._is_ready = False
        self.cluster_id = ""
        self._broker: Broker | None = None
        self._cleaner: Cleaner | None = None

    @property
    def broker(self) -> Broker:
        """The broker, once started."""
        assert self._broker is not None, "not started"
        return self._broker

    async def open(self, stop: "Stop") -> None:
        """Open everything and serve; raises OSError or KafkaError when that is not possible."""
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        directories = self._open_directories(clock)
        metadata = directories.get(METADATA_PARTITION) or directories.create(
            METADATA_PARTITION, METADATA_TOPIC_ID, metadata_log_config(), clock.timestamp_ms()
        )
        metadata_log = MetadataLog(metadata, self.cluster_id)
        metadata_log.load()
        self._broker = Broker(
            self._config,
            clock=clock,
            random_source=system_random(),
            log_directories=directories,
            metadata_log=metadata_log,
            loop=loop,
        )
        self._broker.on_fatal = stop.fail
        self._broker.topics.open_all()
        self._broker.groups.load()
        self._listen(loop)
        if self._config.http_listener is not None:
            endpoint = self._config.http_listener
            port = await self._http.start(endpoint.host or ALL_INTERFACES, endpoint.port)
            log.info("health and metrics on http://%s:%d", endpoint.host, port)
        # What is alive now stays alive: the collector need never look at it again.
        gc.collect()
        gc.freeze()
        self._is_ready = True

    def start_background(self, tasks: asyncio.TaskGroup) -> None:
        """Begin what goes on beside the requests: retention, flushes, cleaning."""
        self.broker.housekeeping.start()
        self.broker.flusher.start(tasks)
        self.broker.mover.start()
        self._cleaner = Cleaner(self.broker, asyncio.get_running_loop(), tasks)
        self._cleaner.start()

    def _open_directories(self, clock: Clock) -> LogDirectories:
        storage, config = RealStorage(), self._config
        settings = DirectorySettings(
            cluster_id=find_cluster_id(storage, config.log_dirs, self._cluster_id),
            node_id=config.node_id,
            config_for=lambda topic: (
                metadata_log_config() if topic == CLUSTER_METADATA else config.log
            ),
            new_uuid=lambda: random_uuid().bytes,
            producer_expiration_ms=config.producer_id_expiration_ms,
        )
        directories = LogDirectories(storage, config.log_dirs, settings)
        progress = RecoveryProgress(clock)
        directories.open(clock.timestamp_ms(), progress.on_progress)
        self.cluster_id = settings.cluster_id
        return directories

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        config = self._config
        dispatcher = Dispatcher(self.broker)
        buffers = ReceiveBuffers()
        for endpoint, advertised in zip(config.listeners, config.advertised_listeners, strict=True):
            listening = listen(
                endpoint.host or ALL_INTERFACES, endpoint.port, config.listen_backlog
            )

            def accept(accepted: socket.socket, host: str, name: str = endpoint.name) -> Connection:
                return Connection(
                    loop,
                    accepted,
                    sink=dispatcher,
                    buffers=buffers,
                    max_frame_bytes=config.max_frame_bytes,
                    peer=Peer(host, name),
                )

            listener = Listener(
                loop,
                listening,
                accept=accept,
                max_connections=config.max_connections,
                max_connections_per_ip=config.max_connections_per_ip,
            )
            self.broker.add_listener(endpoint.name, listener, _reachable(advertised, listener))

    def stop(self) -> None:
        """Stop serving, then close the logs cleanly."""
        broker = self.broker
        self._is_ready = False
        log.info("stopping: no new connections")
        self._http.stop()
        for listener in broker.listeners.values():
            listener.stop_accepting()
        broker.housekeeping.stop()
        broker.flusher.stop()
        broker.mover.stop()
        if self._cleaner is not None:
            self._cleaner.stop()
        broker.groups.stop()
        for listener in broker.listeners.values():
            listener.close_connections()
        log.info("stopping: flushing logs")
        broker.log_directories.close(clean=True)
        log.info("stopped")

    def address(self) -> str:
        """Return the host and port of the first listener, as clients are told."""
        host, port = self.broker.advertised(self._config.listeners[0].name)
        return f"{host}:{port}"

    def _readiness(self) -> Page:
        return text("ready\n") if self._is_ready else problem(503, "Not ready")

    def _metrics(self) -> Page:
        return 200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(self.broker)


def _reachable(advertised: Endpoint, listener: Listener) -> tuple[str, int]:
    """Return what clients are told: the real port for 0, this machine's name for no host."""
    host = advertised.host
    if host in {"", ALL_INTERFACES, "::"}:
        host = socket.gethostname()
    return host, advertised.port or listener.port


def _on_stdin(stopped: asyncio.Event) -> None:
    if os.read(sys.stdin.fileno(), 4096) == b"":
        stopped.set()


class Stop:
    """Why and when the node stops; `failure` is None for a stop that was asked for."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.failure: str | None = None

    def fail(self, why: str) -> None:
        """Stop because the node cannot go on."""
        log.critical("stopping: %s", why)
        self.failure = self.failure or why
        self.event.set()


async def run(
    config: BrokerConfig, *, cluster_id: str | None, exit_with_parent: bool = False
) -> str | None:
    """Serve until SIGTERM or SIGINT, or until standard input closes if `exit_with_parent`.

    Return None for such a clean end, else what went wrong.
    """
    loop = asyncio.get_running_loop()
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.event.set)
    if exit_with_parent:
        loop.add_reader(sys.stdin.fileno(), _on_stdin, stop.event)
    node = Node(config, cluster_id=cluster_id)
    await node.open(stop)
    async with asyncio.TaskGroup() as tasks:
        node.start_background(tasks)
        _announce(f"millrace broker {config.node_id} ready on {node.address()}")
        await stop.event.wait()
        node.stop()
    return stop.failure


def _announce(line: str) -> None:
    """Print the one line that whoever started this program waits for."""
    print(line, flush=True)  # noqa: T201
