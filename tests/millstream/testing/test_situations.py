"""Each situation in one line, with a stock client in it."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.__main__ import main as tool
from millstream.testing import LocalBroker, LocalCluster
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

WAIT = 30


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        broker.create_topic("orders")
        produce(broker, b"first")
        broker.snapshot()
        yield broker


@pytest.fixture
def broker(shared: LocalBroker) -> Iterator[LocalBroker]:
    yield shared
    shared.faults.clear()
    shared.restore(new_port=True)


def produce(broker: LocalBroker, value: bytes, **settings: object) -> None:
    sender = Producer({**broker.client_settings(), "log_level": 0, **settings})
    sender.produce("orders", value)
    assert sender.flush(WAIT) == 0


class Member:
    """A consumer of a group, with what it was told."""

    def __init__(self, broker: LocalBroker, **settings: object) -> None:
        self.told: list[str] = []
        self.values: list[bytes | None] = []
        self.consumer = Consumer(
            {
                **broker.client_settings(),
                "group.id": "fraud",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        self.consumer.subscribe(
            ["orders"],
            on_assign=lambda *_: self.told.append("assigned"),
            on_revoke=lambda *_: self.told.append("revoked"),
            on_lost=lambda *_: self.told.append("lost"),
        )
        self.poll_until(lambda: len(self.values) == 1)

    def poll_until(self, is_seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT
        while not is_seen():
            assert time.monotonic() < deadline, (self.told, self.values)
            message = self.consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.append(message.value())


@pytest.fixture(params=["classic", "consumer"])
def any_member(broker: LocalBroker, request: pytest.FixtureRequest) -> Iterator[Member]:
    """A member of a group of each protocol."""
    quick = {"heartbeat.interval.ms": 200} if request.param == "classic" else {}
    made = Member(broker, **{"group.protocol": request.param, **quick})
    yield made
    made.consumer.close()


@pytest.fixture
def member(broker: LocalBroker) -> Iterator[Member]:
    made = Member(broker, **{"heartbeat.interval.ms": 200})
    yield made
    made.consumer.close()


def transactional(broker: LocalBroker) -> Producer:
    sender = Producer({**broker.client_settings(), "transactional.id": "pay", "log_level": 0})
    sender.init_transactions(WAIT)
    sender.begin_transaction()
    sender.produce("orders", b"in a transaction")
    assert sender.flush(WAIT) == 0
    return sender


def test_a_coordinator_moves(broker: LocalBroker, any_member: Member) -> None:
    broker.requests.clear()
    broker.situations.coordinator_moves(group="fraud")
    broker.requests.wait_count(1, WAIT, api="FindCoordinator", group="fraud")
    committed = any_member.consumer.commit(asynchronous=False)
    assert [(each.offset, each.error) for each in committed or []] == [(1, None)]
    assert any_member.told == ["assigned"]


def test_a_rebalance(broker: LocalBroker, member: Member) -> None:
    rule = broker.situations.rebalance(group="fraud")
    member.poll_until(lambda: member.told == ["assigned", "revoked", "assigned"])
    assert rule.hits == 1


def test_a_member_is_thrown_out(broker: LocalBroker, any_member: Member) -> None:
    assert broker.situations.member_thrown_out(group="fraud", client_id="somebody") == 0
    assert broker.situations.member_thrown_out(group="fraud") == 1
    any_member.poll_until(lambda: any_member.told == ["assigned", "lost", "assigned"])


def test_sessions_expire(broker: LocalBroker, any_member: Member) -> None:
    broker.situations.sessions_expire()
    any_member.poll_until(lambda: any_member.told == ["assigned", "lost", "assigned"])


def test_a_producer_is_fenced(broker: LocalBroker) -> None:
    sender = transactional(broker)
    broker.situations.producer_is_fenced("pay")
    with pytest.raises(KafkaException) as raised:
        sender.commit_transaction(WAIT)
    assert raised.value.args[0].fatal()
    until(lambda: broker.records("orders")[-1].transaction == "aborted")


def test_a_transaction_times_out(broker: LocalBroker) -> None:
    sender = transactional(broker)
    broker.situations.transactions_time_out()
    until(lambda: broker.records("orders")[-1].transaction == "aborted")
    with pytest.raises(KafkaException):
        sender.commit_transaction(WAIT)


def test_a_leader_changes_during_a_produce(broker: LocalBroker) -> None:
    rule = broker.situations.leader_changes(topic="orders", partition=0)
    produce(broker, b"second")
    assert rule.hits == 1
    assert [record.value for record in broker.records("orders")] == ["first", "second"]


def test_an_offset_is_out_of_range(broker: LocalBroker, member: Member) -> None:
    broker.situations.offset_out_of_range(topic="orders")
    member.poll_until(lambda: member.values == [b"first", b"first"])


def test_a_topic_is_made_anew(broker: LocalBroker) -> None:
    admin = AdminClient(broker.client_settings())
    before = admin.describe_topics(_names("orders"))["orders"].result(WAIT).topic_id
    broker.situations.topic_made_anew("orders")
    assert broker.records("orders") == []
    assert admin.describe_topics(_names("orders"))["orders"].result(WAIT).topic_id != before
    produce(broker, b"again")
    assert [record.offset for record in broker.records("orders")] == [0]


def test_a_client_that_creates_topics_does_not_make_it_first(broker: LocalBroker) -> None:
    is_over = threading.Event()

    def ask() -> None:
        asking = Producer(broker.client_settings())
        while not is_over.is_set():
            asking.list_topics("orders", timeout=WAIT)

    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask)
        try:
            for _ in range(3):
                broker.situations.topic_made_anew("orders")
        finally:
            is_over.set()
        asked.result(WAIT)
    assert broker.records("orders") == []


def test_a_controller_is_lost(broker: LocalBroker) -> None:
    rule = broker.situations.controller_is_lost()
    admin = AdminClient(broker.client_settings())
    made = admin.create_topics([NewTopic("more", 1, 1)])["more"]
    with pytest.raises(KafkaException, match="NOT_CONTROLLER"):
        made.result(WAIT)
    assert rule.hits == 1


def test_a_quota_is_reached(broker: LocalBroker) -> None:
    told: list[Any] = []
    broker.situations.quota_is_reached(client_id="pay", ms=300)
    sender = Producer({**broker.client_settings(), "client.id": "pay", "throttle_cb": told.append})
    sender.produce("orders", b"slowly")
    assert sender.flush(WAIT) == 0
    until(lambda: sender.poll(0.05) >= 0 and bool(told))
    assert told[0].throttle_time == pytest.approx(0.3)


def test_in_a_cluster_a_leader_changes_too() -> None:
    with LocalCluster(brokers=1) as cluster:
        cluster.create_topic("orders")
        rule = cluster.situations.leader_changes(topic="orders")
        sender = Producer({**cluster.client_settings(), "log_level": 0})
        sender.produce("orders", b"value")
        assert sender.flush(WAIT) == 0
        assert rule.hits == 1


def test_a_token_expires(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalBroker(security="sasl_plaintext", delegation_token_secret_key="s") as secured:
        where = ["--bootstrap-server", secured.bootstrap_servers]
        where += ["--command-config", secured.client_file()]
        assert tool(["delegation-tokens", *where, "--create", "--max-life-time-period", "-1"]) == 0
        for count in (1, 0):
            capsys.readouterr()
            assert tool(["delegation-tokens", *where, "--describe"]) == 0
            assert f"Total number of tokens : {count}" in capsys.readouterr().out
            secured.situations.tokens_expire()
        with pytest.raises(ValueError, match="without security"):
            secured.situations.member_thrown_out(group="fraud")


def _names(*topics: str) -> Any:
    from confluent_kafka import TopicCollection

    return TopicCollection(list(topics))
