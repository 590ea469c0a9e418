"""One connection to each broker that is asked, made at need, for as long as its address holds."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from broker.coordinator.partitioning import partition_for
from broker.server.cluster.cluster_view import find_live
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.client_connection import ClientConnection


class AskedBroker(Protocol):
    """A broker with its connection, and what its user keeps for it."""

    connection: ClientConnection


BrokerT = TypeVar("BrokerT", bound=AskedBroker)


class BrokerConnections(Generic[BrokerT]):
    """The brokers that are asked, by id.

    `listener_name` is the listener by which brokers reach each other. `on_dropped` gets each broker
    that is gone or that has another address, after its connection is closed: what was asked there
    gets no answer.
    """

    def __init__(
        self,
        metadata: ClusterMetadata,
        listener_name: str,
        connect: Callable[[tuple[str, int]], BrokerT],
        on_dropped: Callable[[BrokerT], None],
    ) -> None:
        self._metadata, self._listener_name = metadata, listener_name
        self._connect, self._on_dropped = connect, on_dropped
        self._brokers: dict[int, BrokerT] = {}

    def coordinator_of(self, topic_name: str, key: str) -> BrokerT | None:
        """Return the leader of a key's partition of a coordinator's topic; None if unavailable."""
        topic = self._metadata.image.topics.by_name.get(topic_name)
        if topic is None:
            return None
        return self.find(topic.partitions[partition_for(key, len(topic.partitions))].leader)

    def find(self, broker_id: int) -> BrokerT | None:
        """Return a broker, connected to its present address; None if it is not alive."""
        address = self._address_of(broker_id)
        if address is None:
            return None
        found = self._brokers.get(broker_id)
        if found is None or found.connection.address != address:
            if found is not None:
                self._drop(broker_id)
            found = self._brokers[broker_id] = self._connect(address)
        return found

    def _address_of(self, broker_id: int) -> tuple[str, int] | None:
        found = find_live(self._metadata.image.brokers, broker_id, self._listener_name)
        return None if found is None else (found.host, found.port)

    def on_brokers_changed(self) -> None:
        """Stop waiting for answers of brokers that are gone, or that have another address."""
        for broker_id, broker in list(self._brokers.items()):
            if self._address_of(broker_id) != broker.connection.address:
                self._drop(broker_id)

    def _drop(self, broker_id: int) -> None:
        broker = self._brokers.pop(broker_id)
        broker.connection.close()
        self._on_dropped(broker)

    def close(self) -> None:
        """Close all connections."""
        for broker in self._brokers.values():
            broker.connection.close()
