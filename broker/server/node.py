"""One node from start to stop: open the logs, join the quorum, serve, leave, stop cleanly."""

import asyncio
import contextlib
import gc
import logging
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker.config.broker_config import BrokerConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.log.meta_properties import InconsistentLogDirectory
from broker.log.partition_log import PartitionLog
from broker.log.storage import RealStorage
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.raft.config import METADATA_TOPIC_ID
from broker.raft.quorum_state import NO_NODE
from broker.raft.voter_set import VoterSet
from broker.server.apis import make_handler, make_holding_fetch
from broker.server.broker import Broker
from broker.server.clock import (
    Clock,
    SteadyClock,
    SystemClock,
    monotonic_seconds,
    random_uuid,
    system_random,
)
from broker.server.cluster.lifecycle import BrokerState
from broker.server.collector import Collector
from broker.server.front_page import front_page, own_site
from broker.server.metrics_page import prometheus_text
from broker.server.network.accept_client import ClientAcceptor
from broker.server.network.dispatch import Dispatcher, Handler
from broker.server.network.listener import Listener, bind, reachable
from broker.server.network.turns import Shared
from broker.server.quorum.controller.controller_registration import ControllerRegistration
from broker.server.quorum.initial_controllers import InitialController, static_voters
from broker.server.quorum.quorum import MetadataDisk, Quorum
from broker.server.quorum.raft.partition_raft_log import (
    METADATA_PARTITION,
    metadata_log_config,
)
from broker.server.quorum.voters import check_formatted, configured_voters
from broker.server.replication.parked_fetches import answer_impatient
from broker.server.settings.own_settings import DynamicSettings
from broker.server.storage.cluster_id import find_cluster_id
from broker.server.storage.recovery_progress import RecoveryProgress
from common.http.small_server import Asked, Page, SmallServer, problem, text
from common.kafka.errors import KafkaError
from common.kafka.protocol.wire import ZERO_UUID
from common.process.tasks import spawn

if TYPE_CHECKING:
    from broker.server.testing.testing import Testing

log = logging.getLogger("millstream.node")
T = TypeVar("T")

NEAR_CONTROLLER_SECONDS = 0.5
"""The time that a controlled shutdown may make no progress if the active controller is in this
process: without a majority it never completes."""
FAR_CONTROLLER_SECONDS = 3
"""The same for a controller on another node, or one that needs no majority: it may be slow."""
LEAVING_SECONDS = 60
"""The longest wait of this broker for its controlled shutdown, whatever its progress."""
FAREWELL_SECONDS = 0.05
"""The time after a controlled shutdown in which this broker still answers clients with
NOT_LEADER_OR_FOLLOWER and the new leader. A client that only sees its connection close learns
neither, and librdkafka may ask for metadata a second later."""


class Node:
    """Owns this process's part in the quorum, the broker if it is one, and the listeners."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        cluster_id: str | None,
        controllers: tuple[InitialController, ...] = (),
        testing: "Testing | None" = None,
    ) -> None:
        """With `testing` a test can arm faults, move the time of clients and restart the node."""
        self._config = config
        self._wanted_cluster_id = cluster_id
        self._initial_controllers = controllers
        self._testing = testing
        self._clock: Clock = testing.clock if testing else SystemClock()
        self._steady_clock = SteadyClock(self._clock) if testing else self._clock
        self._storage = testing.storage if testing else RealStorage()
        self._http = SmallServer(
            self._page,
            site_guard=own_site(config),
            security=config.http_security,
            changes=testing.control().answer if testing else None,
        )
        self._http_url = ""
        self._collector = Collector(monotonic_seconds)
        self.is_ready = False
        """True if it serves."""
        self._state_changed = asyncio.Event()
        self._directories: LogDirectories | None = None
        self._quorum: Quorum | None = None
        self._controller_registration: ControllerRegistration | None = None
        self._broker: Broker | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._changing = asyncio.Lock()
        """Held while the node stops, or restarts."""

    async def open(self, stop: "Stop") -> None:
        """Open the logs, join and serve, or return when `stop` is set first.

        Raises OSError or KafkaError when the node cannot start.
        """
        self._open_parts(stop)
        if self._testing is None:  # Else what it spares would outlive a restart.
            self._collector.start()
        self._start_http()
        await self._begin(stop)

    def _open_parts(self, stop: "Stop") -> None:
        loop = asyncio.get_running_loop()
        check_formatted(self._config, self._storage)
        directories = self._directories = self._open_directories()
        quorum = self._quorum = self._open_quorum(directories, loop)
        quorum.on_fatal = stop.fail
        if self._config.is_broker:
            self._broker = self._make_broker(quorum, directories, loop)
            self._broker.on_fatal = stop.fail
            self._broker.spared = self._collector.spared
        else:
            self._follow_settings(quorum)
        if self._testing is not None:
            self._testing.watch(quorum, self._broker)

    async def _begin(self, stop: "Stop") -> None:
        quorum = self._quorum
        assert quorum is not None, "it is open"
        self._log_start()
        quorum.start()
        self._register_controller(quorum, asyncio.get_running_loop())
        if self._broker is not None:
            await self._join(self._broker, stop)
        self.is_ready = not stop.event.is_set()

    def _follow_settings(self, quorum: Quorum) -> None:
        """Take the certificates of the dynamic settings, as a broker does with all of them."""
        settings = DynamicSettings(self._config, quorum)
        settings.on_change = lambda: quorum.tls.change(settings.current.security)
        quorum.machine.on_change = settings.apply

    def _register_controller(self, quorum: Quorum, loop: asyncio.AbstractEventLoop) -> None:
        if self._config.is_controller:
            registration = ControllerRegistration(
                loop, self._config, quorum.incarnation_id, quorum.channel.ask
            )
            registration.start(quorum.controller_ports, socket.gethostname)
            self._controller_registration = registration

    def _start_http(self) -> None:
        endpoint = self._config.http_listener
        if endpoint is not None:
            port = self._http.start(bind(endpoint.host, endpoint.port))
            origin = f"{self._config.http_security.scheme}://{endpoint.host}:{port}"
            self._http_url = f"{origin}/metrics"
            log.info("health and metrics on %s", origin)

    def _log_start(self) -> None:
        """Log the identity, the directories and the listeners of this node in one line."""
        config = self._config
        advertised = [] if self._broker is None else self._broker.listeners.advertised()
        controllers = [(each.name, each.host, each.port) for each in config.controller_listeners]
        log.info(
            "starting node_id=%d roles=%s cluster_id=%s log_dirs=%s listeners=%s metrics=%s",
            config.node_id,
            ",".join(sorted(config.process_roles)),
            self.cluster_id,
            ",".join(dict.fromkeys((*config.log_dirs, config.metadata_log_dir))),
            ",".join(f"{name}://{host}:{port}" for name, host, port in [*advertised, *controllers]),
            self._http_url or "none",
        )

    async def _join(self, broker: Broker, stop: "Stop") -> None:
        """Register with the controller, catch up, and wait until it unfences this broker."""
        broker.lifecycle.on_state = lambda state: self._state_changed.set()
        broker.lifecycle.start(broker.listeners.advertised())
        while broker.lifecycle.state < BrokerState.RUNNING and not stop.event.is_set():
            await stop.or_result_of(self._state_changed.wait())
            self._state_changed.clear()

    def start_background(self, tasks: asyncio.TaskGroup) -> None:
        """Start the background work: retention, flushes, cleaning."""
        self._tasks = tasks
        if self._broker is not None:
            self._broker.start_background(tasks)

    def _open_directories(self) -> LogDirectories:
        storage, config = self._storage, self._config
        paths = config.log_dirs if config.is_broker else ()
        paths = tuple(dict.fromkeys((*paths, config.metadata_log_dir)))
        settings = DirectorySettings(
            cluster_id=find_cluster_id(storage, config, self._wanted_cluster_id),
            node_id=config.node_id,
            config_for=lambda topic: (
                metadata_log_config() if topic == CLUSTER_METADATA else config.log
            ),
            new_uuid=lambda: random_uuid().bytes,
            producer_expiration_ms=config.producer_id_expiration_ms,
            verifies_transactions=config.verifies_transactions,
        )
        directories = LogDirectories(storage, paths, settings)
        progress = RecoveryProgress(self._steady_clock)
        directories.open(self._clock.timestamp_ms(), progress.on_progress)
        progress.finish()
        self.cluster_id = settings.cluster_id
        return directories

    def _open_quorum(self, directories: LogDirectories, loop: asyncio.AbstractEventLoop) -> Quorum:
        metadata = directories.get(METADATA_PARTITION) or directories.create(
            METADATA_PARTITION,
            METADATA_TOPIC_ID,
            metadata_log_config(),
            self._clock.timestamp_ms(),
            self._config.metadata_log_dir,
        )
        directory = directories.directory_of(METADATA_PARTITION)
        directory_id = ZERO_UUID if directory is None else directory.directory_id
        return Quorum(
            self._config,
            MetadataDisk(
                metadata,
                metadata.directory,
                self._storage,
                self.cluster_id,
                directory_id,
                self._initial_voters(metadata),
            ),
            clock=self._steady_clock,
            random_source=system_random(),
            loop=loop,
        )

    def _initial_voters(self, metadata: PartitionLog) -> VoterSet:
        """Return the voters of an old log; a new node learns them from its snapshot or leader."""
        if not metadata.log_end_offset:
            return VoterSet()
        return static_voters(self._initial_controllers, self._config)

    def _make_broker(
        self,
        quorum: Quorum,
        directories: LogDirectories,
        loop: asyncio.AbstractEventLoop,
    ) -> Broker:
        broker = Broker(
            self._config,
            clock=self._clock,
            steady_clock=self._steady_clock,
            random_source=system_random(),
            log_directories=directories,
            quorum=quorum,
            loop=loop,
        )
        quorum.machine.on_change = broker.on_metadata_change
        config = self._config
        make: Callable[[int], Handler | None] = partial(make_handler, broker)
        shared = Shared.of(loop, monotonic_seconds)
        dispatcher = Dispatcher(
            make if self._testing is None else self._testing.handlers_of(broker, make),
            times=broker.request_times,
            turns=shared.turns,
            on_queued=partial(answer_impatient, broker.parked_fetches),
            on_closed=broker.on_connection_closed,
        )
        broker.watch(dispatcher)
        broker.quotas.meter(shared.turns, dispatcher, partial(make_holding_fetch, broker))
        for endpoint, advertised in zip(config.listeners, config.advertised_listeners, strict=True):
            # Bound, so that the port is known; connections are refused until the broker serves.
            listener = Listener(
                loop,
                bind(endpoint.host, endpoint.port),
                acceptor=ClientAcceptor(
                    config,
                    endpoint.name,
                    shared,
                    dispatcher,
                    lambda: quorum.image,
                    quorum.tls.of(endpoint.name),
                    self._clock,
                ),
                counts=broker.listeners.counts,
                rates=broker.quotas.at(endpoint.name),
            )
            broker.listeners.add(endpoint.name, listener, reachable(advertised, listener))
        return broker

    async def stop(self) -> None:
        """Leave the cluster, stop serving, then close the logs cleanly."""
        self.is_ready = False
        self._collector.stop()
        async with self._changing:
            if self._broker is not None:
                await self._leave(self._broker)
            await self._close_parts(is_clean=True)
        self._http.stop()
        log.info("stopped")

    async def restart(
        self, stop: "Stop", between: Callable[[], None], *, is_clean: bool, new_ports: bool
    ) -> None:
        """Stop all parts, do something to their files, and start new parts.

        With `is_clean` the files are complete when `between` is called, else they may be what a
        crash leaves. The ports stay, or with `new_ports` those of clients are free ones; the pages
        are served all the time. The node stops if it cannot start again. A caller that is cancelled
        does not end this. Only for a node that `is_alone`: nothing is handed over.
        """
        assert self._tasks is not None, "the node has started"
        work = self._restart(stop, between, is_clean=is_clean, new_ports=new_ports)
        await asyncio.shield(self._tasks.create_task(work))

    async def _restart(
        self, stop: "Stop", between: Callable[[], None], *, is_clean: bool, new_ports: bool
    ) -> None:
        async with self._changing:
            if stop.event.is_set():
                return
            self.is_ready = False
            self._config = self._same_ports(new_ports=new_ports)
            if self._broker is not None:
                self._broker.lifecycle.end()
            await self._close_parts(is_clean=is_clean)
            self._broker = self._quorum = self._directories = None
            gc.collect()  # What is in cycles keeps files open.
            try:
                between()
                self._open_parts(stop)
                await self._begin(stop)
            except (OSError, KafkaError, InconsistentLogDirectory) as error:
                stop.fail(f"cannot start again: {error}")
                return
            if self._tasks is not None:
                self.start_background(self._tasks)

    def _same_ports(self, *, new_ports: bool) -> BrokerConfig:
        """Return the settings with the ports that were chosen, those of clients unless new."""
        ports = {} if self._quorum is None else dict(self._quorum.controller_ports)
        if self._broker is not None and not new_ports:
            ports |= self._broker.listeners.ports
        return self._config.on_ports(ports)

    @property
    def is_alone(self) -> bool:
        """True if this node is a whole cluster."""
        broker, node_id = self._broker, self._config.node_id
        if broker is None or broker.metadata.node.voters.ids != (node_id,):
            return False
        return broker.metadata.image.brokers.keys() <= {node_id}

    async def _close_parts(self, *, is_clean: bool) -> None:
        if self._broker is not None:
            self._broker.stop()
        if self._controller_registration is not None:
            self._controller_registration.close()
        if self._quorum is not None:
            log.info("stopping: leaving the quorum")
            self._quorum.begin_stop()
            await self._quorum.wait_stopped()
        log.info("stopping: flushing logs")
        if self._directories is not None:
            epoch = -1 if self._broker is None else self._broker.lifecycle.clean_epoch
            self._directories.close(clean=is_clean, broker_epoch=epoch)

    async def _leave(self, broker: Broker) -> None:
        """Request a controlled shutdown; stop without it if the controller does not answer."""
        log.info("stopping: handing over what this broker leads")
        if broker.metadata.has_stopped:
            broker.lifecycle.end()
            return
        broker.lifecycle.stop()
        await self._wait_until_let_go(broker, NEAR_CONTROLLER_SECONDS)
        if self._may_yet_answer(broker.metadata.leader_id):
            await self._wait_until_let_go(broker, FAR_CONTROLLER_SECONDS)
        if broker.lifecycle.state != BrokerState.SHUTTING_DOWN:
            log.warning("stopping without the controller: it did not answer in time")
            broker.lifecycle.end()
        elif any(other.is_active for other in broker.metadata.image.brokers.values()):
            await asyncio.sleep(FAREWELL_SECONDS)

    def _may_yet_answer(self, controller_id: int) -> bool:
        if controller_id == self._config.node_id:
            quorum = self._quorum
            voters = configured_voters(self._config) if quorum is None else quorum.node.voters
            return voters.ids == (controller_id,)
        return controller_id != NO_NODE

    async def _wait_until_let_go(self, broker: Broker, seconds: float) -> None:
        """Wait until it is done, or until there is no progress for the given time."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + LEAVING_SECONDS
        seen_offset = -1
        while broker.metadata.applied_offset > seen_offset and loop.time() < give_up_at:
            seen_offset = broker.metadata.applied_offset
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while broker.lifecycle.state != BrokerState.SHUTTING_DOWN:
                        self._state_changed.clear()
                        await self._state_changed.wait()
                    return

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener for clients, by its name."""
        advertised = () if self._broker is None else self._broker.listeners.advertised()
        return {name: f"{host}:{port}" for name, host, port in advertised}

    def ready_line(self) -> str:
        """Return the line that says that this node is ready, and its address for clients."""
        config = self._config
        if self._broker is not None:
            _, host, port = self._broker.listeners.advertised()[0]
            return f"millstream broker {config.node_id} ready on {host}:{port}"
        endpoint = config.controller_listeners[0]
        return f"millstream controller {config.node_id} ready on {endpoint.host}:{endpoint.port}"

    def _page(self, asked: Asked) -> Page | None:
        match asked.path:
            case "/":
                return self._front_page(asked)
            case "/health/live":
                return text("alive\n")
            case "/health/ready":
                return _readiness(self._why_not_ready())
            case "/health/in-sync":
                return _readiness(self._why_not_ready() or self._why_not_in_sync())
            case "/metrics":
                return self._metrics()
            case _:
                return None

    def _why_not_ready(self) -> str | None:
        if not self.is_ready or self._quorum is None:
            return "Starting or stopping"
        if self._broker is None:
            return "No controller is elected" if self._quorum.leader_id == NO_NODE else None
        registered = self._quorum.image.brokers.get(self._config.node_id)
        return "Fenced" if registered is None or registered.is_fenced else None

    def _why_not_in_sync(self) -> str | None:
        """Return None if every replica on this node is in sync.

        The next broker may then be restarted: Kubernetes asks this before it goes on.
        """
        assert self._quorum is not None
        behind = self._quorum.image.topics.out_of_sync_count(self._config.node_id)
        return f"{behind} replicas here are not in sync" if behind else None

    def _metrics(self) -> Page:
        if self._quorum is None:
            return problem(503, "Starting again")
        body = prometheus_text(self._broker, self._quorum)
        return Page(200, "text/plain; version=0.0.4; charset=utf-8", body)

    def _front_page(self, asked: Asked) -> Page | None:
        if self._quorum is None:
            return None
        return front_page(self._config, self._quorum, self._broker, asked, self._why_not_ready())


def _readiness(why_not: str | None) -> Page:
    return text("ready\n") if why_not is None else problem(503, why_not)


class Stop:
    """The request to stop; `failure` is None for a stop that was asked for."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.failure: str | None = None

    def fail(self, why: str) -> None:
        """Request a stop because the node cannot go on."""
        log.critical("stopping: %s", why)
        self.failure = self.failure or why
        self.event.set()

    async def or_result_of(self, wait: Coroutine[object, object, T]) -> T | None:
        """Wait for a result; return None if the stop comes first."""
        waiting = spawn(wait)
        stopped = spawn(self.event.wait())
        try:
            await asyncio.wait((waiting, stopped), return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()
            stopped.cancel()
