"""Delegation tokens: who may renew and end which, until when, and that none outlives its end."""

from typing import Any

import pytest

from broker.metadata.control.security import delegation_tokens
from broker.metadata.control.view import TokenConfig
from broker.metadata.image import MetadataImage
from broker.metadata.parts import delegation_tokens as found
from broker.metadata.snapshot import snapshot_records
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from common.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from common.kafka.protocol.messages.envelope import EnvelopeRequest
from common.kafka.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from common.kafka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from common.kafka.protocol.principal import PrincipalData, encode_principal
from tests.lib.controlled_cluster import ControlledCluster

HOUR_MS = 3_600_000
CONFIG = TokenConfig("secret", max_lifetime_ms=10 * HOUR_MS, renewal_ms=2 * HOUR_MS)


@pytest.fixture
def cluster() -> ControlledCluster:
    return ControlledCluster(tokens=CONFIG)


def enveloped(request: Message, version: int, user: str) -> EnvelopeRequest:
    frame = encode_request(ApiKey(request.__api_key__), version, 7, "client", request)
    principal = encode_principal(PrincipalData(type="User", name=user))
    return EnvelopeRequest(request_data=frame[4:], request_principal=principal)


def ask(cluster: ControlledCluster, user: str, request: Message, version: int = 0) -> Any:
    version = version or (3 if isinstance(request, CreateDelegationTokenRequest) else 2)
    answer = cluster.ask(enveloped(request, version, user))
    assert answer.error_code == ErrorCode.NONE
    return decode_response(ApiKey(request.__api_key__), version, answer.response_data)[1]


def create(cluster: ControlledCluster, user: str = "ann", **fields: Any) -> Any:
    renewers = [CreatableRenewers(principal_type="User", principal_name="rob")]
    request = CreateDelegationTokenRequest(
        **{"renewers": renewers, "max_lifetime_ms": -1, **fields}
    )
    return ask(cluster, user, request)


def renew(cluster: ControlledCluster, user: str, hmac: bytes, period_ms: int = -1) -> Any:
    return ask(cluster, user, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))


def expire(cluster: ControlledCluster, user: str, hmac: bytes, period_ms: int = -1) -> Any:
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    return ask(cluster, user, request)


def test_a_token_belongs_to_the_requester_and_ends_as_the_settings_say(
    cluster: ControlledCluster,
) -> None:
    made = create(cluster)
    assert (made.principal_name, made.token_requester_principal_name) == ("ann", "ann")
    assert made.max_timestamp_ms - made.issue_timestamp_ms == 10 * HOUR_MS
    assert made.expiry_timestamp_ms - made.issue_timestamp_ms == 2 * HOUR_MS
    token = cluster.image.delegation_tokens[made.token_id]
    assert (token.owner, token.renewers) == ("User:ann", ("User:rob",))
    assert b"secret" not in b"".join(cluster.log)
    assert made.hmac not in b"".join(cluster.log)


def test_a_shorter_life_can_be_asked_for_and_no_longer_one(cluster: ControlledCluster) -> None:
    lives_ms = []
    for wanted_ms in (HOUR_MS, 2**63 - 1):
        made = create(cluster, max_lifetime_ms=wanted_ms)
        lives_ms.append(made.max_timestamp_ms - made.issue_timestamp_ms)
    assert lives_ms == [HOUR_MS, 10 * HOUR_MS]


def test_a_token_of_another_user(cluster: ControlledCluster) -> None:
    made = create(cluster, "boss", owner_principal_type="User", owner_principal_name="ann")
    token = cluster.image.delegation_tokens[made.token_id]
    assert (token.owner, token.requester) == ("User:ann", "User:boss")
    assert renew(cluster, "boss", made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_owner_and_renewer_renew_it_up_to_its_longest_life(cluster: ControlledCluster) -> None:
    made = create(cluster)
    for user in ("ann", "rob"):
        assert renew(cluster, user, made.hmac, 2**62).expiry_timestamp_ms == made.max_timestamp_ms
    refused = renew(cluster, "eve", made.hmac)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_a_token_that_is_ended_is_gone(cluster: ControlledCluster) -> None:
    made = create(cluster)
    wrong = expire(cluster, "eve", made.hmac)
    assert wrong.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    earlier = expire(cluster, "rob", made.hmac, HOUR_MS)
    assert earlier.expiry_timestamp_ms - made.issue_timestamp_ms == HOUR_MS
    assert expire(cluster, "ann", made.hmac).error_code == ErrorCode.NONE
    assert not cluster.image.delegation_tokens
    assert renew(cluster, "ann", made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert renew(cluster, "ann", b"").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_an_expired_token_is_not_renewed_and_is_removed_soon() -> None:
    cluster = ControlledCluster(tokens=TokenConfig("secret", 50, 50, check_interval_ms=1_000))
    made = create(cluster)
    cluster.now_ms += 100
    assert renew(cluster, "ann", made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    cluster.now_ms += 1_000
    cluster.tick()
    assert not cluster.image.delegation_tokens


@pytest.mark.parametrize(
    "fields",
    [
        {"renewers": [CreatableRenewers(principal_type="Group", principal_name="g")]},
        {"owner_principal_type": "Group", "owner_principal_name": "g"},
    ],
)
def test_only_users_have_tokens(cluster: ControlledCluster, fields: dict[str, Any]) -> None:
    assert create(cluster, **fields).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_without_a_secret_there_are_no_tokens() -> None:
    cluster = ControlledCluster()
    assert create(cluster).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert renew(cluster, "ann", b"").error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


@pytest.mark.parametrize(
    "envelope",
    [
        EnvelopeRequest(request_data=b"", request_principal=None),
        EnvelopeRequest(request_data=b"\0\0\0\0\0\0", request_principal=b"\0\0"),
        enveloped(DescribeClusterRequest(), 0, "ann"),
    ],
)
def test_an_envelope_with_anything_else_is_refused(
    cluster: ControlledCluster, envelope: EnvelopeRequest
) -> None:
    assert cluster.ask(envelope).error_code == ErrorCode.INVALID_REQUEST


def test_a_snapshot_has_the_tokens(cluster: ControlledCluster) -> None:
    create(cluster)
    image = MetadataImage()
    for record in snapshot_records(cluster.image):
        image.replay(record)
    assert image == cluster.image
    assert len(image.delegation_tokens) == 1


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_creates_a_token(cluster: ControlledCluster, version: int) -> None:
    answer = ask(cluster, "ann", CreateDelegationTokenRequest(max_lifetime_ms=-1), version)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.principal_name, len(answer.hmac)) == ("ann", 64)
    assert answer.token_requester_principal_name == ("ann" if version > 2 else "")


def test_a_user_makes_no_more_tokens_than_the_limit(
    cluster: ControlledCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delegation_tokens, "MAX_TOKENS_PER_REQUESTER", 2)
    first, _ = create(cluster), create(cluster)
    renew(cluster, "ann", first.hmac)
    assert create(cluster).error_code == ErrorCode.POLICY_VIOLATION
    assert create(cluster, "bob").error_code == ErrorCode.NONE
    assert expire(cluster, "ann", first.hmac).error_code == ErrorCode.NONE
    assert create(cluster).error_code == ErrorCode.NONE


def test_the_secret_of_a_token_is_computed_once_and_not_at_every_question(
    cluster: ControlledCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = [create(cluster) for _ in range(20)]
    computed: list[str] = []
    original = found.token_hmac

    def counted(secret_key: str, token_id: str) -> bytes:
        computed.append(token_id)
        return original(secret_key, token_id)

    monkeypatch.setattr(found, "token_hmac", counted)
    for token in tokens:
        assert renew(cluster, "ann", token.hmac).error_code == ErrorCode.NONE
        assert renew(cluster, "ann", b"another").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert len(computed) == 20
    assert expire(cluster, "ann", tokens[3].hmac).error_code == ErrorCode.NONE
    answer = renew(cluster, "ann", tokens[3].hmac)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_tokens_whose_time_was_skipped_go_before_the_next_check() -> None:
    cluster = ControlledCluster(tokens=TokenConfig("secret", 50, 50, check_interval_ms=HOUR_MS))
    create(cluster)
    cluster.commit(cluster.controller.expire_tokens(cluster.moment))
    assert cluster.image.delegation_tokens
    cluster.now_ms += 100
    cluster.commit(cluster.controller.expire_tokens(cluster.moment))
    assert not cluster.image.delegation_tokens
