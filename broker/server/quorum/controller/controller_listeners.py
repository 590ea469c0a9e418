"""The listeners of the controller role: sockets that other nodes connect to."""

import asyncio
from collections.abc import Callable

from broker.config.broker_config import BrokerConfig, Endpoint
from broker.metadata.image import MetadataImage
from broker.quotas.connection_counts import ConnectionCounts
from broker.server.clock import Clock, monotonic_seconds
from broker.server.login.node_tls import NodeTls
from broker.server.network.accept_client import ClientAcceptor
from broker.server.network.connection import Connection, FrameSink
from broker.server.network.later import Making
from broker.server.network.listener import Listener, bind
from broker.server.network.sending import Part
from broker.server.network.turns import Shared


class ControllerListeners:
    """Listens on every controller listener of a node; frames go to one sink."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: BrokerConfig,
        image: Callable[[], MetadataImage],
        tls: NodeTls,
        clock: Clock,
    ) -> None:
        self._image = image
        self._tls = tls
        self._clock = clock
        self._loop = loop
        self._config = config
        self.sink: FrameSink | None = None
        """Gets the frames; set it before `open`."""
        self._shared = Shared.of(loop, monotonic_seconds)
        names = [endpoint.name for endpoint in config.controller_listeners]
        self._counts = ConnectionCounts(config.quotas.connections, names)
        self._listeners: dict[str, Listener] = {}

    def bind(self) -> None:
        """Take the addresses, whose ports are known then; raises OSError when one is taken."""
        for endpoint in self._config.controller_listeners:
            self._bind(endpoint)

    def open(self) -> None:
        """Listen: before this call the system refuses each connection."""
        for listener in self._listeners.values():
            listener.start(self._config.listen_backlog)

    def _bind(self, endpoint: Endpoint) -> None:
        listener = Listener(
            self._loop,
            bind(endpoint.host, endpoint.port),
            acceptor=ClientAcceptor(
                self._config,
                endpoint.name,
                self._shared,
                self,
                self._image,
                self._tls.of(endpoint.name),
                self._clock,
            ),
            counts=self._counts,
        )
        listener.on_room = self._go_on
        self._listeners[endpoint.name] = listener

    def _go_on(self) -> None:
        for listener in self._listeners.values():
            listener.go_on()

    def on_frame(self, connection: Connection, frame: memoryview) -> list[Part] | Making | None:
        """Pass a request on."""
        assert self.sink is not None, "set it before `open`"
        return self.sink.on_frame(connection, frame)

    def on_closed(self, connection: Connection) -> None:
        """Drop a connection, then pass on its end."""
        self._listeners[connection.peer.listener_name].forget(connection)
        if self.sink is not None:
            self.sink.on_closed(connection)

    @property
    def ports(self) -> dict[str, int]:
        """The port of each listener: the port that the system chose if 0 was asked for."""
        return {name: listener.port for name, listener in self._listeners.items()}

    def close(self) -> None:
        """Stop listening, and close every connection."""
        for listener in self._listeners.values():
            listener.stop_accepting()
        for listener in self._listeners.values():
            listener.close_connections()
