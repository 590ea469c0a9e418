"""The messages and errors of one poll of a verifiable consumer."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from broker.cli.arguments import ToolFailed
from broker.cli.clients.events import by_partition
from broker.cli.clients.library import told


class Received:
    def __init__(self, partition: int | None, error: KafkaError | None = None) -> None:
        self._partition, self._error = partition, error

    def topic(self) -> str | None:
        return None if self._partition is None else "t"

    def partition(self) -> int | None:
        return self._partition

    def error(self) -> KafkaError | None:
        return self._error


def test_messages_are_found_by_their_partition(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = Received(1), Received(0), Received(1)
    polled: Any = [first, Received(None, KafkaError(KafkaError._FAIL, "it failed")), second, third]
    assert by_partition(polled) == {("t", 1): [first, third], ("t", 0): [second]}
    assert capsys.readouterr().err == "WARN _FAIL: it failed\n"


FATAL = KafkaError(KafkaError._FATAL, "it failed", fatal=True)
NO_RIGHT = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "it failed")
PASSING = KafkaError(KafkaError._FAIL, "it failed")


@pytest.mark.parametrize(
    ("error", "must_succeed"), [(FATAL, False), (NO_RIGHT, False), (PASSING, True)]
)
def test_an_error_ends_the_tool(error: KafkaError, must_succeed: bool) -> None:
    polled: Any = [Received(0), Received(None, error)]
    with pytest.raises(ToolFailed, match="it failed"):
        by_partition(polled, must_succeed=must_succeed)


def test_a_fatal_error_in_a_report_of_a_delivery_is_told_as_one() -> None:
    fatal = KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, "no right"))
    with pytest.raises(ToolFailed, match="CLUSTER_AUTHORIZATION_FAILED: no right"), told():
        raise SystemError("key returned a result with an exception set") from fatal
    with pytest.raises(SystemError), told():
        raise SystemError("another")
