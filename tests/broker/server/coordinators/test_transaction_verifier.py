"""How many questions a broker puts to a transaction coordinator in one request."""

from typing import Any

import pytest

from broker.model import TopicPartition
from broker.server.coordinators import transaction_verifier
from broker.server.coordinators.transaction_verifier import (
    Producer,
    VerificationMode,
    _Coordinator,
    _Question,
)


def question(name: str, count: int) -> _Question:
    partitions = [TopicPartition("t", number) for number in range(count)]
    return _Question(Producer(name, 1, 0), VerificationMode.ADD, partitions, lambda codes: None)


def test_a_request_has_no_more_partitions_than_a_coordinator_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction_verifier, "PARTITIONS_OF_A_CLIENT", 3)
    connection: Any = None
    coordinator = _Coordinator(connection)
    coordinator.queued = [question("a", 2), question("b", 2), question("c", 1), question("a", 1)]
    assert list(coordinator.take_next()) == ["a", "c"]
    assert list(coordinator.take_next()) == ["b", "a"]
    assert not coordinator.queued
