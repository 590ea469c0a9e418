"""The answer to a heartbeat whose coordinator is missing or loading."""

from typing import Any

import pytest

from broker.server.handlers.groups.members import Heartbeats
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest


class Refusing:
    """Groups of which none can be asked."""

    def __init__(self, code: ErrorCode) -> None:
        self._code = code

    def answer(self, *_: object) -> Any:
        raise KafkaError(self._code)


def told(code: ErrorCode) -> Any:
    groups: Any = Refusing(code)
    context: Any = None
    return Heartbeats(groups).handle(
        context, HeartbeatRequest(group_id="group", generation_id=1, member_id="member")
    )


def test_while_the_group_is_loaded_all_is_well() -> None:
    assert told(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS).error_code == ErrorCode.NONE


def test_any_other_refusal_is_told() -> None:
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        told(ErrorCode.NOT_COORDINATOR)
