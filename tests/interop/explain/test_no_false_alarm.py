"""Groups read, transactions commit, and nothing is called a problem."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from explain.explanations import Explanation
from tests.lib.explained import GIVE_UP_SECONDS, Explained
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ROUNDS = 15


@contextmanager
def at_work(kafka: Explained, name: str) -> Iterator[None]:
    """Transactions write to a topic, and a group reads them."""
    is_over = threading.Event()

    def write() -> None:
        producer = kafka.transactional(name)
        while not is_over.is_set():
            producer.begin_transaction()
            for partition in range(3):
                producer.produce(name, b"an order", partition=partition)
            producer.commit_transaction(GIVE_UP_SECONDS)
            is_over.wait(0.02)

    def read() -> None:
        consumer = kafka.consumer(name, enable_auto_commit=True, auto_commit_interval_ms=100)
        consumer.subscribe([name])
        while not is_over.is_set():
            consumer.poll(0.1)
        consumer.close()

    threads = [threading.Thread(target=each) for each in (write, read)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        is_over.set()
        for one in threads:
            one.join(GIVE_UP_SECONDS)


def alarms(found: Explanation) -> list[str]:
    return [one.sentence for one in found.problems]


def test_a_cluster_at_work_gives_no_false_alarm(kafka: Explained, name: str) -> None:
    kafka.create(name, 3)
    with at_work(kafka, name):
        until(lambda: "group-up-to-date" in kafka.group(name).codes)
        for _ in range(ROUNDS):
            assert alarms(kafka.topic(name)) == []
            assert alarms(kafka.transaction(name)) == []
            assert alarms(kafka.group(name, lambda: threading.Event().wait(0.5))) == []
        found = kafka.cluster()
        assert "cluster-state" in found.codes
        assert [one for one in found.problems if name in one.sentence] == []
