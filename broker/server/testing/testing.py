"""A broker under test: its rules, the calls of its clients, its disk and its control by HTTP."""

import asyncio
from collections.abc import Callable
from typing import cast

from broker.config.broker_config import BrokerConfig
from broker.faults.calls import CallLog
from broker.faults.rule import Rule
from broker.faults.rule_book import RuleBook
from broker.server.apis import SERVED_APIS
from broker.server.broker import Broker
from broker.server.clock import MovableClock, monotonic_seconds, seeded_random
from broker.server.network.dispatch import Answer, Handler, RequestContext
from broker.server.network.later import Steps
from broker.server.quorum.quorum import Quorum
from broker.server.quotas.sizes import BETWEEN_BROKERS
from broker.server.storage.saved_state import SavedState
from broker.server.testing.control import Control
from broker.server.testing.fault_routes import FaultRoutes
from broker.server.testing.faulty_handlers import FaultyHandlers, Surroundings
from broker.server.testing.faulty_storage import FaultyStorage
from broker.server.testing.routes import Route
from broker.server.testing.session_partitions import SessionPartitions
from broker.server.testing.state_routes import StateRoutes
from common.kafka.protocol.message import Message


class Testing:
    """Owns what a node has only with `--testing`."""

    def __init__(self, config: BrokerConfig) -> None:
        self._loop = asyncio.get_running_loop()
        self._config = config
        self.clock = MovableClock()
        self.rules = RuleBook(lambda seed: seeded_random(seed).random)
        self.calls = CallLog()
        self.storage = FaultyStorage(self._disk_rule)
        directories = dict.fromkeys((*config.log_dirs, config.metadata_log_dir))
        self.state = StateRoutes(self.clock, SavedState(directories, self.clock), self._forget)
        self.routes: list[Route] = [
            *FaultRoutes(self.rules, self.calls).routes(),
            *self.state.routes(),
        ]
        """Those of the control; a part that adds some does so before `control` is made."""

    def control(self) -> Control:
        """Return what answers by HTTP."""
        return Control(self.routes)

    def _forget(self) -> None:
        self.rules.clear()
        self.calls.clear()

    def _disk_rule(self, topic: str, partition: int) -> Rule | None:
        armed = self.rules.hits_on_disk(topic, partition)
        return None if armed is None else armed.rule

    # --- handlers ---

    def handlers_of(
        self, broker: Broker, make: Callable[[int], Handler | None]
    ) -> Callable[[int], Handler | None]:
        """Return a function that makes the handlers of a broker, with the rules before them."""
        faulty = self._handlers(
            broker.metadata, SessionPartitions.of(broker).listed, self._is_of_broker
        )
        return lambda api_key: faulty.handler_of(make, api_key)

    def watch(self, quorum: Quorum, broker: Broker | None) -> None:
        """Put the rules before the logins, and before the handlers of the controller listeners."""

        def on_moved() -> None:
            quorum.on_moved_time()
            if broker is not None:
                for shards in (broker.groups, broker.share_states, broker.transactions):
                    shards.run_all_due()

        self.clock.on_moved = on_moved
        faulty = self._handlers(quorum, lambda _: None, _is_of_node)
        dispatcher = quorum.dispatcher
        handle = faulty.around(dispatcher.handle)
        # Around a generator there is always one.
        dispatcher.handle = cast("Callable[[RequestContext, Message], Steps[Answer]]", handle)
        if broker is not None:
            logins = self._handlers(quorum, lambda _: None, self._is_of_broker)
            broker.listeners.put_around_logins(logins.around)

    def _handlers(
        self,
        metadata: Quorum,
        listed: Callable[[Message], Message | None],
        is_of_broker: Callable[[RequestContext, Message], bool],
    ) -> FaultyHandlers:
        def name_of(topic_id: bytes) -> str | None:
            topic = metadata.image.topics.by_id.get(topic_id)
            return None if topic is None else topic.name

        around = Surroundings(
            self._loop,
            self.clock.timestamp_ms,
            monotonic_seconds,
            name_of,
            listed,
            is_of_broker,
        )
        return FaultyHandlers(self.rules, self.calls, around)

    def _is_of_broker(self, context: RequestContext, request: Message) -> bool:
        """True if another broker sent a request: by its API, or by the listener for brokers."""
        is_between = BETWEEN_BROKERS.get(context.header.api_key)
        if is_between is not None and is_between(request, context.api_version):
            return True
        listener = self._config.replication.listener_name
        return len(self._config.listeners) > 1 and context.connection.peer.listener_name == listener


def _is_of_node(context: RequestContext, _: Message) -> bool:
    """Controller listeners serve nodes; only there a test can meet the APIs that brokers lack."""
    return context.header.api_key in SERVED_APIS
