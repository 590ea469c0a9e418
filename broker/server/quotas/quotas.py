"""The quotas of one broker: they follow the metadata, and hold its clients and its listeners."""

from collections.abc import Callable

from broker.config.broker_config import BrokerConfig
from broker.config.quota_config import QuotaConfig
from broker.metadata.delta import MetadataDelta
from broker.quotas.accounts import Accounts
from broker.quotas.client_quotas import AddressQuotas
from broker.quotas.connection_rates import ConnectionRates
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import Dispatcher, Handler
from broker.server.network.turns import Turns
from broker.server.quotas.metering import Metering
from broker.server.quotas.mutations import Creations


class RatesOfListener:
    """The rates of new connections at one listener."""

    def __init__(self, rates: ConnectionRates, name: str, now_ms: Callable[[], int]) -> None:
        self._rates = rates
        self._name = name
        self._now_ms = now_ms

    def refuse_ms(self, host: str) -> int:
        """Return how long to keep a connection before it is closed; 0 if it may connect."""
        return self._rates.refuse_ms(host, self._now_ms())

    def pause_ms(self) -> int:
        """Count a connection, and return how long not to accept another one."""
        return self._rates.pause_ms(self._name, self._now_ms())


class Quotas:
    """Owns the rates of clients and of connections."""

    def __init__(
        self, config: BrokerConfig, metadata: ClusterMetadata, now: Callable[[], float]
    ) -> None:
        """`now` returns monotonic seconds."""
        self._metadata = metadata
        self._partition_count = config.partition_count
        self._now = now
        self._metering: Metering | None = None
        self.accounts = Accounts(config.quotas.windows, config.quotas.mutation_windows)
        self.creations = Creations(self.accounts, self.now_ms)
        self.connections = ConnectionRates(config.quotas.windows, config.replication.listener_name)
        self.change(config.quotas)

    def now_ms(self) -> int:
        """Return the time that the rates are measured in."""
        return int(self._now() * 1_000)

    def meter(
        self,
        turns: Turns,
        dispatcher: Dispatcher,
        hold_fetch: Callable[[], Handler],
    ) -> None:
        """Measure the requests of this dispatcher as soon as a client has a quota."""
        self._metering = Metering(
            turns.loop,
            self.accounts,
            dispatcher,
            hold_fetch=hold_fetch,
            partition_count_of=self._partition_count_of,
            turns=turns,
        )

    def at(self, listener: str) -> RatesOfListener:
        """Return the rates of new connections at a listener."""
        return RatesOfListener(self.connections, listener, self.now_ms)

    def change(self, config: QuotaConfig) -> None:
        """Apply the broker's settings; open connections stay."""
        self.connections.limit(config.creation_rates)

    def follow(self) -> None:
        """Use the quotas of the metadata."""
        quotas = self._metadata.image.client_quotas
        self.connections.limit_addresses(AddressQuotas(quotas))
        if self._metering is not None:
            self._metering.change(quotas)

    def apply(self, delta: MetadataDelta) -> None:
        """Apply the changes of quotas."""
        if delta.quotas_changed:
            self.follow()

    def _partition_count_of(self, name: str | None, topic_id: bytes | None) -> int:
        """Return a topic's number of partitions, 0 if it is unknown; without either the default."""
        topics = self._metadata.image.topics
        if name is not None:
            topic = topics.by_name.get(name)
        elif topic_id is not None:
            topic = topics.by_id.get(topic_id)
        else:
            return self._partition_count
        return 0 if topic is None else len(topic.partitions)
