"""Fast failure detection: a broker whose process has died is fenced at once, not when it times out.

A process that ends closes its connections. When the connection of a broker's last heartbeat closes,
the controller therefore connects to that broker's own listener. Only a *refused* connection counts:
the machine is up, and no process listens on the port. A connection that is not answered at all (the
network, a machine that is down), or that succeeds and stays open, proves nothing: the session
timeout then decides, as in Apache Kafka. A connection that succeeds and is closed again was
accepted by a system that had not yet closed the listener of the dead process: it is tried once
more. Fencing a live broker is safe: every node refuses its epoch until it has caught up again.
"""

import asyncio
import logging
import socket
from collections.abc import Callable

from broker.metadata.image import BrokerImage, MetadataImage
from broker.server.network.connection import Connection
from broker.server.network.dialing import Dial, Dialled

log = logging.getLogger("millstream.controller.probe")

MAX_TRIES = 3


class FailureProbe:
    """Watches the connections that heartbeats come on; `on_gone` gets the broker's id."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout_ms: int,
        image: Callable[[], MetadataImage],
        on_gone: Callable[[int], None],
    ) -> None:
        self._loop = loop
        self._timeout_ms = timeout_ms
        self._image = image
        self._on_gone = on_gone
        self._heard_on: dict[int, Connection] = {}
        self._probes: dict[int, _Probe] = {}

    def on_heartbeat(self, connection: Connection, broker_id: int) -> None:
        """Record the connection of a broker's last heartbeat."""
        self._heard_on[broker_id] = connection

    def on_closed(self, connection: Connection) -> None:
        """Probe the brokers whose last heartbeat came on a closed connection."""
        for broker_id in [id_ for id_, heard in self._heard_on.items() if heard is connection]:
            del self._heard_on[broker_id]
            self.look_after(broker_id)

    def look_after(self, broker_id: int) -> None:
        """Probe a broker that is not fenced.

        A probe is also made when another process wants to register with its id: a process that was
        killed and starts again has the same port, and does not listen before it is registered.
        """
        broker = self._image().brokers.get(broker_id)
        if broker is not None and not broker.is_fenced and broker_id not in self._probes:
            self._probe(broker)

    def _probe(self, broker: BrokerImage) -> None:
        address = next(iter(broker.endpoints.values()), None)
        if address is None:
            return
        broker_id, broker_epoch = broker.broker_id, broker.epoch

        def on_end(is_gone: bool) -> None:
            del self._probes[broker_id]
            now = self._image().brokers.get(broker_id)
            if is_gone and now is not None and now.epoch == broker_epoch:
                log.info("broker is gone broker_id=%d broker_epoch=%d", broker_id, broker_epoch)
                self._on_gone(broker_id)

        self._probes[broker_id] = _Probe(self._loop, address, self._timeout_ms, on_end)

    def close(self) -> None:
        """Stop all probes."""
        for probe in self._probes.values():
            probe.cancel()
        self._probes.clear()
        self._heard_on.clear()


class _Probe:
    """Probes one broker; `on_end` is called once, later, with True if it is gone."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: tuple[str, int],
        timeout_ms: int,
        on_end: Callable[[bool], None],
    ) -> None:
        self._loop = loop
        self._address = address
        self._timeout_ms = timeout_ms
        self._on_end = on_end
        self._tries_left = MAX_TRIES
        self._connected: socket.socket | None = None
        self._timer = loop.call_later(timeout_ms / 1000, self._end, False)
        self._dial: Dial | None = None
        self._try()

    def _try(self) -> None:
        self._tries_left -= 1
        self._dial = Dial(self._loop, self._address, self._timeout_ms, self._on_dialled)

    def _on_dialled(self, result: Dialled) -> None:
        self._dial = None
        if isinstance(result, OSError):
            self._end(isinstance(result, ConnectionRefusedError))
        else:
            self._connected = result
            # A broker sends nothing without a request: readable means the end of the connection.
            self._loop.add_reader(result.fileno(), self._on_closed)

    def _on_closed(self) -> None:
        self._hang_up()
        if self._tries_left:
            self._try()
        else:
            self._end(False)

    def _hang_up(self) -> None:
        if self._connected is not None:
            self._loop.remove_reader(self._connected.fileno())
            self._connected.close()
            self._connected = None

    def _end(self, is_gone: bool) -> None:
        self.cancel()
        self._on_end(is_gone)

    def cancel(self) -> None:
        """Stop; `on_end` is not called after this."""
        self._timer.cancel()
        self._hang_up()
        if self._dial is not None:
            self._dial.cancel()
            self._dial = None
