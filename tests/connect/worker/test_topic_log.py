"""A log of the worker's own, against a broker that does not know yet what was just made."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from connect.worker import topic_log
from connect.worker.topic_log import LogTopic, TopicLog
from millstream.connect.errors import ConnectException

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


class Brokers:
    """Answers as brokers do: without partitions or ends so many times, and then with them."""

    def __init__(
        self, without: int, refusal: int | None = KafkaError.NOT_LEADER_FOR_PARTITION
    ) -> None:
        """With `refusal` None an answer has no offset, as when a leader is lost meanwhile."""
        self.without = without
        self.refusal = refusal
        self.asked = 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        del timeout
        self.asked += 1
        is_known = self.asked > self.without
        told = SimpleNamespace(
            partitions={1: None, 0: None} if is_known else {},
            error=None if is_known else "Broker: Unknown topic or partition",
        )
        return SimpleNamespace(topics={topic: told})

    def list_offsets(self, asked: dict[TopicPartition, Any], **_: Any) -> Any:
        self.asked += 1
        futures: dict[TopicPartition, Future[Any]] = {at: Future() for at in asked}
        for future in futures.values():
            if self.asked > self.without:
                future.set_result(SimpleNamespace(offset=7))
            elif self.refusal is None:
                future.set_result(SimpleNamespace(offset=OFFSET_INVALID))
            else:
                future.set_exception(KafkaException(KafkaError(self.refusal)))
        return futures


def log_on(brokers: Brokers) -> Any:
    log: Any = TopicLog(NOWHERE, LogTopic("connect-configs", 2, 1), lambda *_: None)
    log._admin = brokers
    return log


def test_partitions_that_are_not_told_yet_are_waited_for() -> None:
    brokers = Brokers(without=2)
    assert log_on(brokers)._partitions() == [0, 1]
    assert brokers.asked == 3


def test_a_topic_that_stays_without_partitions_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_log, "_TIMEOUT_SECONDS", 0)
    with pytest.raises(ConnectException, match="connect-configs cannot be read: Broker: Unknown"):
        log_on(Brokers(without=9))._partitions()


def ends_told_by(brokers: Brokers) -> Any:
    log = log_on(brokers)
    log._positions = {0: 0, 1: 0}
    return log._end_offsets(IsolationLevel.READ_COMMITTED)


@pytest.mark.parametrize(
    "refusal",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    ],
)
def test_leaders_that_do_not_know_it_yet_are_asked_again(refusal: int) -> None:
    """Of three brokers one may answer before it has read that the topic was created."""
    assert ends_told_by(Brokers(without=2, refusal=refusal)) == {0: 7, 1: 7}


def test_leaders_that_are_lost_while_they_are_asked_are_asked_again() -> None:
    assert ends_told_by(Brokers(without=2, refusal=None)) == {0: 7, 1: 7}


def test_other_refusals_of_ends_are_errors_at_once() -> None:
    brokers = Brokers(without=9, refusal=KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ConnectException, match="the end of topic connect-configs is not known"):
        ends_told_by(brokers)
    assert brokers.asked == 1
