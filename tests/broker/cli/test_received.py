"""The messages and errors of one poll of a verifiable consumer."""

from typing import Any

import pytest

from broker.cli.arguments import ToolFailed
from broker.cli.clients.received import by_partition


class Error:
    def __init__(self, *, is_fatal: bool) -> None:
        self._is_fatal = is_fatal

    def fatal(self) -> bool:
        return self._is_fatal

    def name(self) -> str:
        return "_FAILED"

    def str(self) -> str:
        return "it failed"


class Received:
    def __init__(self, partition: int | None, error: Error | None = None) -> None:
        self._partition, self._error = partition, error

    def topic(self) -> str | None:
        return None if self._partition is None else "t"

    def partition(self) -> int | None:
        return self._partition

    def error(self) -> Error | None:
        return self._error


def test_messages_are_found_by_their_partition(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = Received(1), Received(0), Received(1)
    polled: Any = [first, Received(None, Error(is_fatal=False)), second, third]
    assert by_partition(polled) == {("t", 1): [first, third], ("t", 0): [second]}
    assert capsys.readouterr().err == "WARN _FAILED: it failed\n"


@pytest.mark.parametrize(("is_fatal", "must_succeed"), [(True, False), (False, True)])
def test_an_error_ends_the_tool(is_fatal: bool, must_succeed: bool) -> None:
    polled: Any = [Received(0), Received(None, Error(is_fatal=is_fatal))]
    with pytest.raises(ToolFailed, match="_FAILED: it failed"):
        by_partition(polled, must_succeed=must_succeed)
