"""A broker's life in the cluster, against a controller that is played by the test."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.config.security_config import ListenerSecurity, SecurityConfig
from broker.metadata.delta import MetadataDelta
from broker.server.cluster.lifecycle import RETRY_MS, BrokerState, Lifecycle
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

LEFT_IN_EPOCH = 3
HEARTBEAT_MS = 2_000
NODE_ID = 7


class Timers:
    """A loop whose time the test moves."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._due: list[tuple[int, Callable[[], None], SimpleNamespace]] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        handle = SimpleNamespace(cancelled=False)
        handle.cancel = lambda: setattr(handle, "cancelled", True)
        self._due.append((self.now_ms + round(seconds * 1000), call, handle))
        return handle

    def call_soon(self, call: Callable[[], None]) -> Any:
        return self.call_later(0, call)

    def advance(self, milliseconds: int) -> None:
        until_ms = self.now_ms + milliseconds
        while due := [entry for entry in self._due if entry[0] <= until_ms]:
            entry = min(due, key=lambda each: each[0])
            self._due.remove(entry)
            self.now_ms, call, handle = max(self.now_ms, entry[0]), entry[1], entry[2]
            if not handle.cancelled:
                call()
        self.now_ms = until_ms


class Cluster:
    """A broker's surroundings: the questions it asks lie in `asked` until they are answered."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.asked: list[tuple[Message, Callable[[Message], None]]] = []
        self.followed = 0
        self.fatal: list[str] = []
        self.states: list[BrokerState] = []
        config: Any = SimpleNamespace(
            node_id=NODE_ID,
            rack=None,
            registration_timeout_ms=1_000,
            controlled_shutdown=True,
            heartbeat_interval_ms=HEARTBEAT_MS,
            session_timeout_ms=9_000,
            security=SecurityConfig({"PLAINTEXT": ListenerSecurity()}),
        )
        clock: Any = SimpleNamespace(now_ms=lambda: self.timers.now_ms)
        self.brokers: dict[int, Any] = {}
        self.metadata: Any = SimpleNamespace(
            cluster_id="cluster",
            image=SimpleNamespace(brokers=self.brokers),
            applied_offset=10,
            incarnation_id=b"i" * 16,
        )
        directories: Any = SimpleNamespace(
            directories=[
                SimpleNamespace(directory_id=b"1" * 16, is_offline=False),
                SimpleNamespace(directory_id=b"2" * 16, is_offline=True),
            ],
            clean_broker_epoch=LEFT_IN_EPOCH,
        )
        timers: Any = self.timers
        self.lifecycle = Lifecycle(timers, config, clock, self.metadata, self.ask, directories)
        self.lifecycle.on_state = self.states.append
        self.lifecycle.on_fatal = self.fatal.append
        self.lifecycle.on_caught_up = self._follow

    def _follow(self) -> None:
        self.followed += 1

    def ask(
        self,
        request: Message,
        api_version: int,
        on_response: Callable[[Message], None],
        *,
        timeout_ms: int,
    ) -> None:
        self.asked.append((request, on_response))

    def take(self, kind: type[Message]) -> Any:
        assert len(self.asked) == 1, self.asked
        assert isinstance(self.asked[0][0], kind)
        return self.asked[0][0]

    def answer(self, response: Message) -> None:
        _, on_response = self.asked.pop()
        on_response(response)

    def register(self, epoch: int = 5, incarnation_id: bytes | None = None) -> None:
        """Let the metadata say that it is registered."""
        if incarnation_id is None:
            incarnation_id = self.metadata.incarnation_id
        self.brokers[NODE_ID] = SimpleNamespace(epoch=epoch, incarnation_id=incarnation_id)
        self.lifecycle.on_metadata_change(MetadataDelta())

    def run(self) -> None:
        """Bring it up to RUNNING."""
        self.lifecycle.start([("PLAINTEXT", "host", 9092)])
        self.register()
        self.answer(BrokerRegistrationResponse(broker_epoch=5))
        self.timers.advance(0)
        self.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_it_serves_once_registered_caught_up_and_unfenced(cluster: Cluster) -> None:
    cluster.lifecycle.start([("PLAINTEXT", "host", 9092)])
    request = cluster.take(BrokerRegistrationRequest)
    assert (request.broker_id, request.cluster_id) == (NODE_ID, "cluster")
    assert [(each.name, each.host, each.port) for each in request.listeners] == [
        ("PLAINTEXT", "host", 9092)
    ]

    cluster.answer(BrokerRegistrationResponse(broker_epoch=5))
    assert cluster.followed == 0  # the metadata has not come that far yet
    cluster.register(epoch=5)
    assert cluster.followed == 1

    cluster.timers.advance(0)
    beat = cluster.take(BrokerHeartbeatRequest)
    assert (beat.broker_epoch, beat.current_metadata_offset, beat.want_fence) == (5, 9, False)
    cluster.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert cluster.states == [BrokerState.STARTING, BrokerState.RECOVERY, BrokerState.RUNNING]


def test_an_older_registration_of_its_id_is_not_its_own(cluster: Cluster) -> None:
    cluster.lifecycle.start([])
    cluster.register(epoch=3)
    cluster.answer(BrokerRegistrationResponse(broker_epoch=5))
    assert cluster.followed == 0


def test_it_beats_at_its_interval_and_one_question_at_a_time(cluster: Cluster) -> None:
    cluster.run()
    cluster.timers.advance(HEARTBEAT_MS - 1)
    assert cluster.asked == []
    cluster.timers.advance(1)
    cluster.take(BrokerHeartbeatRequest)
    cluster.timers.advance(10 * HEARTBEAT_MS)
    cluster.take(BrokerHeartbeatRequest)  # still the one


def test_a_change_of_the_brokers_is_confirmed_at_once(cluster: Cluster) -> None:
    cluster.run()
    cluster.lifecycle.on_metadata_change(MetadataDelta(changed_brokers={1}))
    cluster.timers.advance(0)
    cluster.take(BrokerHeartbeatRequest)


def test_a_directory_that_fails_is_told_of_at_once(cluster: Cluster) -> None:
    cluster.run()
    cluster.lifecycle.on_directory_offline()
    cluster.timers.advance(0)
    assert cluster.take(BrokerHeartbeatRequest).offline_log_dirs == [b"2" * 16]


def test_a_fenced_broker_comes_back(cluster: Cluster) -> None:
    cluster.run()
    cluster.timers.advance(HEARTBEAT_MS)
    cluster.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True))
    cluster.timers.advance(RETRY_MS)
    cluster.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert cluster.lifecycle.state == BrokerState.RUNNING
    assert cluster.fatal == []


def test_an_id_in_use_is_tried_again_until_the_time_is_over(cluster: Cluster) -> None:
    cluster.lifecycle.start([])
    duplicate = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    cluster.answer(duplicate)
    cluster.timers.advance(RETRY_MS)
    cluster.take(BrokerRegistrationRequest)
    assert cluster.fatal == []
    cluster.timers.advance(1_000)
    cluster.answer(duplicate)
    assert "DUPLICATE_BROKER_REGISTRATION" in cluster.fatal[0]


def test_what_no_time_mends_is_fatal_at_once(cluster: Cluster) -> None:
    cluster.lifecycle.start([])
    cluster.answer(BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert "INCONSISTENT_CLUSTER_ID" in cluster.fatal[0]


def test_a_process_that_took_its_id_ends_it(cluster: Cluster) -> None:
    cluster.run()
    cluster.timers.advance(HEARTBEAT_MS)
    cluster.register(epoch=9, incarnation_id=b"another process!")
    cluster.answer(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assert "another process" in cluster.fatal[0]


def test_an_unregistered_broker_registers_again(cluster: Cluster) -> None:
    cluster.run()
    cluster.timers.advance(HEARTBEAT_MS)
    del cluster.brokers[NODE_ID]
    cluster.answer(BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    cluster.take(BrokerRegistrationRequest)
    cluster.answer(BrokerRegistrationResponse(broker_epoch=20))
    cluster.register(epoch=20)
    cluster.timers.advance(0)
    assert cluster.take(BrokerHeartbeatRequest).broker_epoch == 20
    assert cluster.followed == 1  # its logs are open already


def test_a_clean_stop_waits_until_it_is_let_go(cluster: Cluster) -> None:
    cluster.run()
    cluster.lifecycle.stop()
    cluster.timers.advance(0)
    assert cluster.take(BrokerHeartbeatRequest).want_shut_down
    cluster.answer(BrokerHeartbeatResponse(is_fenced=False))
    assert cluster.lifecycle.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN
    cluster.timers.advance(RETRY_MS)
    cluster.answer(BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True))
    assert cluster.lifecycle.state == BrokerState.SHUTTING_DOWN
    cluster.timers.advance(10 * HEARTBEAT_MS)
    assert cluster.asked == []


def test_a_stop_before_it_was_registered_asks_nobody(cluster: Cluster) -> None:
    cluster.lifecycle.start([])
    cluster.lifecycle.stop()
    assert cluster.lifecycle.state == BrokerState.SHUTTING_DOWN
    cluster.answer(BrokerRegistrationResponse(broker_epoch=5))
    cluster.register(epoch=5)
    assert cluster.followed == 0
    assert cluster.asked == []


def test_it_registers_with_the_directories_it_has_and_the_epoch_it_left_them_in() -> None:
    cluster = Cluster()
    cluster.lifecycle.start([("PLAINTEXT", "host", 9092)])
    request = cluster.take(BrokerRegistrationRequest)
    assert (request.log_dirs, request.previous_broker_epoch) == ([b"1" * 16], LEFT_IN_EPOCH)
    assert cluster.lifecycle.clean_epoch == LEFT_IN_EPOCH
    cluster.answer(BrokerRegistrationResponse(broker_epoch=5))
    assert cluster.lifecycle.clean_epoch == 5
