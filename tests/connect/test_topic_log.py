"""A log of the worker's own, against a broker that does not know yet what was just made."""

from types import SimpleNamespace
from typing import Any

import pytest

from connect.worker import topic_log
from connect.worker.topic_log import LogTopic, TopicLog
from millrace.connect.errors import ConnectException

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


class Brokers:
    """Answers as brokers do: without partitions so many times, and then with them."""

    def __init__(self, without: int) -> None:
        self.without = without
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
