"""Unmodified clients with transactions on three brokers: all of one is read, or nothing of it."""

import uuid
from collections.abc import Iterator

import confluent_kafka
import confluent_kafka.admin
import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from millstream.testing import LocalCluster
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools
from tests.lib.raw_kafka import RawConnection
from tests.lib.transactional_clients import (
    COPY,
    GIVE_UP_SECONDS,
    SHORT_SESSIONS,
    TRANSACT,
    Planned,
    confluent_producer,
    read,
)
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

PARTITION_COUNT = 3
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(has_links=False, **SHORT_SESSIONS) as started:
        yield started


@pytest.fixture
def topic(cluster: LocalCluster) -> str:
    return made(cluster, "orders")


def made(cluster: LocalCluster, name: str) -> str:
    topic = f"{name}-{uuid.uuid4().hex[:8]}"
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    # As many replicas as the cluster gives by itself.
    new = confluent_kafka.admin.NewTopic(topic, PARTITION_COUNT)
    admin.create_topics([new])[topic].result(GIVE_UP_SECONDS)
    return topic


def planned(number: int, is_commit: bool) -> Planned:
    values = tuple(
        (partition, b"%d-%d" % (number, partition)) for partition in range(PARTITION_COUNT)
    )
    return Planned(values, is_commit)


def values_of(plan: list[Planned], *, only_committed: bool) -> list[bytes]:
    return sorted(
        value for each in plan if each.is_commit or not only_committed for _, value in each.values
    )


@pytest.mark.parametrize("name", TRANSACT)
def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    cluster: LocalCluster, topic: str, name: str
) -> None:
    plan = [planned(number, number % 3 != 1) for number in range(9)]
    TRANSACT[name](cluster.bootstrap_servers, f"plan-{topic}", topic, plan)
    for isolation_level in (COMMITTED, UNCOMMITTED):
        wanted = values_of(plan, only_committed=isolation_level == COMMITTED)
        found = read(cluster.bootstrap_servers, topic, len(wanted), isolation_level)
        assert sorted(found) == wanted


@pytest.mark.parametrize("name", COPY)
def test_a_copier_copies_exactly_once(cluster: LocalCluster, name: str) -> None:
    source, sink = made(cluster, "source"), made(cluster, "sink")
    plan = [planned(number, number % 2 == 0) for number in range(20)]
    TRANSACT["confluent-kafka"](cluster.bootstrap_servers, f"plan-{source}", source, plan)
    wanted = values_of(plan, only_committed=True)
    COPY[name](cluster.bootstrap_servers, source, sink, lambda copied: copied >= len(wanted))
    found = read(cluster.bootstrap_servers, sink, len(wanted), COMMITTED)
    assert sorted(found) == wanted


def test_a_second_producer_fences_the_first(cluster: LocalCluster, topic: str) -> None:
    first = confluent_producer(cluster.bootstrap_servers, f"fenced-{topic}")
    first.begin_transaction()
    first.produce(topic, b"of the first", partition=0)
    first.flush(GIVE_UP_SECONDS)
    second = confluent_producer(cluster.bootstrap_servers, f"fenced-{topic}")
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        first.commit_transaction(GIVE_UP_SECONDS)
    assert refused.value.args[0].fatal()
    second.begin_transaction()
    second.produce(topic, b"of the second", partition=0)
    second.commit_transaction(GIVE_UP_SECONDS)
    assert read(cluster.bootstrap_servers, topic, 1, COMMITTED) == [b"of the second"]


def test_kafka_s_own_tools_transact_and_see_the_transactions(
    cluster: LocalCluster, topic: str
) -> None:
    bootstrap, name = cluster.bootstrap_servers, f"perf-{topic}"
    performance = (
        f"--topic {topic} --num-records 300 --record-size 20 --throughput -1 --transactional-id "
        f"{name} --transaction-duration-ms 50 --producer-props bootstrap.servers={bootstrap}"
    )
    formatter = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
    tools = [
        Tool("org.apache.kafka.tools.ProducerPerformance", tuple(performance.split())),
        Tool(
            "org.apache.kafka.tools.TransactionsCommand",
            ("--bootstrap-server", bootstrap, "describe", "--transactional-id", name),
        ),
        Tool(
            "org.apache.kafka.tools.TransactionsCommand",
            ("--bootstrap-server", bootstrap, "list"),
        ),
        Tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            (
                *("--bootstrap-server", bootstrap, "--topic", "__transaction_state"),
                *("--from-beginning", "--timeout-ms", "4000", "--formatter", formatter),
            ),
        ),
    ]
    produced, described, listed, consumed = run_tools(kafka_libs(), tools)
    assert "300 records sent" in produced.output, produced
    assert name in described.output, described
    assert "CompleteCommit" in described.output
    assert name in listed.output, listed
    assert f'"transactionalId":"{name}"' in consumed.output, consumed
    assert len(read(bootstrap, topic, 300, COMMITTED)) == 300


def coordinator_of(cluster: LocalCluster, transactional_id: str) -> int:
    found: list[int] = []

    def is_found() -> bool:
        with RawConnection(cluster.bootstrap_servers.split(",")[0]) as connection:
            request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
            answer = connection.ask(ApiKey.FIND_COORDINATOR, 4, request)
        assert isinstance(answer, FindCoordinatorResponse)
        found[:] = [one.node_id for one in answer.coordinators if one.error_code == ErrorCode.NONE]
        return bool(found)

    until(is_found)
    return found[0]


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_a_transaction_survives_its_coordinator(is_commit: bool) -> None:
    with LocalCluster(has_links=False) as cluster:
        topic = made(cluster, "orders")
        producer = confluent_producer(
            cluster.bootstrap_servers, f"survivor-{topic}", **{"transaction.timeout.ms": 60_000}
        )
        kept: list[bytes] = []
        for number in range(3):
            producer.begin_transaction()
            for partition, value in planned(number, is_commit).values:
                producer.produce(topic, value, partition=partition)
            producer.flush(GIVE_UP_SECONDS)
            if number == 1:
                cluster.kill(coordinator_of(cluster, f"survivor-{topic}"))
            if is_commit or number != 1:
                producer.commit_transaction(GIVE_UP_SECONDS)
                kept += [value for _, value in planned(number, True).values]
            else:
                producer.abort_transaction(GIVE_UP_SECONDS)
        found = read(cluster.bootstrap_servers, topic, len(kept), COMMITTED)
        assert sorted(found) == sorted(kept)
