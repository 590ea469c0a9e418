"""The first generation of a classic group takes in members that come a few milliseconds apart."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

APART_SECONDS = 0.02
TRIES = 5


def join(bootstrap: str, group: str, after_seconds: float) -> Message:
    """Join as clients do: once for an id, and once more with it."""
    with RawConnection(bootstrap) as connection:
        connection.find_coordinator(group)
        time.sleep(after_seconds)
        member_id = ""
        for _ in range(2):
            request = JoinGroupRequest(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
            answer = connection.ask(ApiKey.JOIN_GROUP, 5, request)
            member_id = answer.member_id
        return answer


def test_two_members_a_few_milliseconds_apart_are_in_one_generation() -> None:
    with LocalBroker() as broker, ThreadPoolExecutor(2) as pool:
        for number in range(TRIES):
            group = f"together-{number}"
            with RawConnection(broker.bootstrap_servers) as connection:
                connection.find_coordinator(group)
            joining = [
                pool.submit(join, broker.bootstrap_servers, group, after_seconds)
                for after_seconds in (0, APART_SECONDS)
            ]
            answers = [each.result(30) for each in joining]
            assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
            assert max(len(answer.members) for answer in answers) == 2
