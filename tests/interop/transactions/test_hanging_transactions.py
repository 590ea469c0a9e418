"""Transactions that nobody will end, or that are to end now: found and ended by the tools.

Before KIP-890 a broker took what a producer sent in a transaction without asking the coordinator
whether the partition belongs to it. A batch that came late (sent before the transaction was ended,
appended after) opened a transaction that the coordinator knows nothing of: readers of what is
committed stand before it for ever. A broker that is told not to verify still takes it.
"""

from collections.abc import Callable, Iterator
from importlib import import_module

import confluent_kafka.admin
import pytest

from millstream.testing import LocalBroker
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools
from tests.lib.coordinator_requests import NOW_MS, PARTITION, TOPIC, Asks
from tests.lib.raw_kafka import RawConnection
from tests.lib.transactional_clients import GIVE_UP_SECONDS, confluent_producer, read

pytestmark = pytest.mark.interop

BEFORE, AFTER = b"before", b"after"
FIND = ("find-hanging", "--topic", TOPIC)
Run = Callable[..., tuple[int, list[list[str]]]]


@pytest.fixture
def bootstrap() -> Iterator[str]:
    never_verified = {"transaction.partition.verification.enable": "false"}
    with LocalBroker(**never_verified) as broker:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
        yield broker.bootstrap_servers


@pytest.fixture
def ours(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, list[list[str]]]:
        capsys.readouterr()
        main = import_module("broker.cli.transactions").main
        status = main(["--bootstrap-server", bootstrap, *words])
        return status, rows_of(capsys.readouterr().out)

    return run


def theirs(bootstrap: str, *words: str) -> tuple[int, list[list[str]]]:
    arguments = ("--bootstrap-server", bootstrap, *words)
    tool = Tool("org.apache.kafka.tools.TransactionsCommand", arguments)
    (result,) = run_tools(kafka_libs(), [tool])
    return result.status, rows_of(result.output)


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def commit(producer: confluent_kafka.Producer, value: bytes) -> None:
    producer.begin_transaction()
    producer.produce(TOPIC, value, partition=PARTITION)
    producer.commit_transaction(GIVE_UP_SECONDS)


def hang(bootstrap: str) -> int:
    """Have a batch appended that belongs to no transaction; gives the id of its producer."""
    with RawConnection(bootstrap) as connection:
        asks = Asks(connection)
        producer = asks.producer_of("late")
        assert asks.produce("late", producer, 9) == 0
    return producer[0]


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "of Apache Kafka"])
def test_a_transaction_that_nobody_ends_is_found_and_aborted(
    bootstrap: str, ours: Run, is_ours: bool
) -> None:
    def run(*words: str) -> tuple[int, list[list[str]]]:
        return ours(*words) if is_ours else theirs(bootstrap, *words)

    producer = confluent_producer(bootstrap, "polite")
    commit(producer, BEFORE)
    assert read(bootstrap, TOPIC, 1, "read_committed") == [BEFORE]
    producer_id = hang(bootstrap)
    commit(producer, AFTER)
    assert read(bootstrap, TOPIC, 1, "read_committed") == [BEFORE]

    status, (_, *found) = run(*FIND)
    start_offset = "2"  # behind what was committed before, and its marker
    (row,) = found
    assert status == 0
    assert row[:3] == [TOPIC, str(PARTITION), str(producer_id)]
    assert row[5:7] == [start_offset, str(NOW_MS)]

    where = ("--topic", TOPIC, "--partition", str(PARTITION), "--start-offset", start_offset)
    assert run("abort", *where) == (0, [])
    assert run(*FIND)[1][1:] == []
    assert read(bootstrap, TOPIC, 2, "read_committed") == [BEFORE, AFTER]
    commit(producer, b"and on")


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "of Apache Kafka"])
def test_a_transaction_is_ended_over_its_producer_s_head(
    bootstrap: str, ours: Run, is_ours: bool
) -> None:
    producer = confluent_producer(bootstrap, "fenced")
    commit(producer, BEFORE)
    producer.begin_transaction()
    producer.produce(TOPIC, b"never read", partition=PARTITION)
    producer.flush(GIVE_UP_SECONDS)
    words = ("forceTerminateTransaction", "--transactionalId", "fenced")
    assert (ours(*words) if is_ours else theirs(bootstrap, *words)) == (0, [])
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        producer.commit_transaction(GIVE_UP_SECONDS)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    commit(confluent_producer(bootstrap, "fenced"), AFTER)
    assert read(bootstrap, TOPIC, 2, "read_committed") == [BEFORE, AFTER]
