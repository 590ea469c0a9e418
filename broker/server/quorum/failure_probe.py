"""Fast failure detection: a broker whose process has died is fenced at once, not when it times out.

A process that ends closes its connections. So when the connection closes on which a broker has sent
its last heartbeat, the controller connects to that broker's own listener. Only a *refused*
connection counts: its machine is up, and says that nothing listens there any more. A connection
that succeeds, or is not answered at all (the network, a machine that is down), proves nothing, and
then the session timeout decides, as in Apache Kafka. A broker that is fenced though it lives is
safe: its epoch is refused everywhere until it has caught up again.
"""

import asyncio
import logging
from collections.abc import Callable

from broker.metadata.image import BrokerImage, MetadataImage
from broker.server.connection import Connection
from broker.server.quorum.dialing import Dial, Dialled

log = logging.getLogger("millrace.controller.probe")


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
        self._dials: dict[int, Dial] = {}

    def on_heartbeat(self, connection: Connection, broker_id: int) -> None:
        """Remember where a broker was heard last."""
        self._heard_on[broker_id] = connection

    def on_closed(self, connection: Connection) -> None:
        """Look after the brokers that were last heard on a connection that is gone."""
        for broker_id in [id_ for id_, heard in self._heard_on.items() if heard is connection]:
            del self._heard_on[broker_id]
            self.look_after(broker_id)

    def look_after(self, broker_id: int) -> None:
        """See whether a broker that counts as alive is still there.

        Also asked for when another process wants its id: one that starts again after it was killed
        has its port, and does not listen on it before it is registered.
        """
        broker = self._image().brokers.get(broker_id)
        if broker is not None and not broker.is_fenced and broker_id not in self._dials:
            self._probe(broker)

    def _probe(self, broker: BrokerImage) -> None:
        address = next(iter(broker.endpoints.values()), None)
        if address is None:
            return
        broker_id, broker_epoch = broker.broker_id, broker.epoch

        def on_done(result: Dialled) -> None:
            del self._dials[broker_id]
            if not isinstance(result, OSError):
                result.close()
                return
            now = self._image().brokers.get(broker_id)
            is_same = now is not None and now.epoch == broker_epoch
            if isinstance(result, ConnectionRefusedError) and is_same:
                log.info("broker is gone broker_id=%d broker_epoch=%d", broker_id, broker_epoch)
                self._on_gone(broker_id)

        self._dials[broker_id] = Dial(self._loop, address, self._timeout_ms, on_done)

    def close(self) -> None:
        """Look after nobody any more."""
        for dial in self._dials.values():
            dial.cancel()
        self._dials.clear()
        self._heard_on.clear()
