"""An API whose feature is disabled is refused before anything else looks at the request."""

from typing import Any

import pytest

from broker.server.cluster.feature_apis import FEATURE_OF, gated
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import API_VERSION_RANGES, request_class
from tests.lib.protocol_messages import sample

CONTEXT: Any = None
ANSWER: Any = object()


def asked(key: ApiKey, features: dict[str, int]) -> Any:
    handle = gated(key, lambda context, request: ANSWER, lambda: features)
    return handle(CONTEXT, sample(request_class(key), API_VERSION_RANGES[key].max))


def codes_of(key: ApiKey) -> list[int]:
    """Return the errors of the answer while no feature is enabled."""
    try:
        answer = asked(key, {})
    except KafkaError as error:
        return [error.code]
    assert answer.groups, "each group that was asked about has an answer"
    assert all(group.group_id for group in answer.groups)
    return [group.error_code for group in answer.groups]


@pytest.mark.parametrize("key", [ApiKey(key) for key in FEATURE_OF], ids=lambda key: key.name)
def test_an_api_is_served_only_with_its_feature(key: ApiKey) -> None:
    assert set(codes_of(key)) == {ErrorCode.UNSUPPORTED_VERSION}
    assert asked(key, {FEATURE_OF[key]: 1}) is ANSWER


def test_all_share_group_apis_of_clients_have_the_feature() -> None:
    of_clients = {key for key in ApiKey if "SHARE" in key.name and "STATE" not in key.name}
    assert of_clients <= FEATURE_OF.keys()


def test_other_apis_need_no_feature() -> None:
    assert asked(ApiKey.METADATA, {}) is ANSWER
