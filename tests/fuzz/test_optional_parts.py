"""Every API in every version, with every optional part once filled and once empty.

An answer comes in that version, and no part of it says that the server did not know what to do.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Struct
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import CONTROLLER, LOGGED_IN, Optional, valid_requests

ANSWER_SECONDS = 10
WAIT_FOR_OTHERS: set[ApiKey] = {ApiKey.JOIN_GROUP, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS}
"""As in `test_valid_requests`."""


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as started:
        yield started


def codes_in(value: Any) -> Iterator[int]:
    """Give every error code of an answer."""
    if isinstance(value, Struct):
        for name in value.__fields__:
            part = getattr(value, name)
            if name.endswith("error_code"):
                yield int(part)
            else:
                yield from codes_in(part)
    elif isinstance(value, list):
        for each in value:
            yield from codes_in(each)


@pytest.mark.parametrize("optional", [Optional.FILLED, Optional.EMPTY], ids=lambda each: each.name)
@pytest.mark.parametrize("listener", [LOGGED_IN, CONTROLLER])
def test_every_version_is_answered_and_the_server_knows_what_to_say(
    node: InProcessNode, listener: str, optional: Optional
) -> None:
    wrong = []
    for request in valid_requests(node.world._replace(optional=optional)):
        if request.listener != listener:
            continue
        name = f"{request.api_key.name} v{request.version}"
        may_wait = request.api_key in WAIT_FOR_OTHERS
        try:
            answers = node.send(
                listener, request.frame(), answer_seconds=0 if may_wait else ANSWER_SECONDS
            )
            if not answers and may_wait:
                continue
            answer = answer_to(request.frame(), answers)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs into the list
            wrong.append(f"{name}: {type(error).__name__} {error}"[:300])
            continue
        if ErrorCode.UNKNOWN_SERVER_ERROR in codes_in(answer):
            wrong.append(f"{name}: UNKNOWN_SERVER_ERROR")
    assert wrong == []
