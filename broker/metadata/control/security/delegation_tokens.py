"""Creation, renewal and end of delegation tokens, as Kafka's DelegationTokenControlManager does it.

A broker forwards such a request in an Envelope, with the principal of its client: the requester.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.parts.delegation_tokens import token_record
from broker.security.delegation_tokens import (
    FIRST_VERSION_WITH_REQUESTER,
    DelegationToken,
    token_hmac,
)
from broker.security.principal import USER
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.framing import UnsupportedVersion, decode_request, response_frame
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from common.kafka.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from common.kafka.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from common.kafka.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from common.kafka.protocol.principal import decode_principal
from common.kafka.protocol.records.metadata import RemoveDelegationTokenRecord
from common.kafka.protocol.wire import DecodeError

MAX_RENEWERS = 1_000
MAX_TOKENS_PER_REQUESTER = 1_000
"""Kafka has no limit. A job needs one token, and every node keeps and looks through all of them."""
INT64_MAX = 2**63 - 1


def handle_envelope(
    view: ClusterView, request: EnvelopeRequest, api_version: int, moment: Moment
) -> Decision:
    """Decide on the request about tokens in an envelope."""
    try:
        header, forwarded = decode_request(request.request_data)
        requester = decode_principal(request.request_principal or b"")
    except (DecodeError, UnsupportedVersion) as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The envelope has no request.") from error
    handler = _HANDLERS.get(type(forwarded))
    if handler is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The envelope has another request.")
    try:
        decision = handler(view, forwarded, f"{requester.type}:{requester.name}", moment)
    except KafkaError as error:
        decision = Decision(_response_of(forwarded)(error_code=error.code))
    response = decision.response
    if (
        isinstance(response, CreateDelegationTokenResponse)
        and header.api_version < FIRST_VERSION_WITH_REQUESTER
    ):
        response.token_requester_principal_type = response.token_requester_principal_name = ""
    frame = response_frame(header, response)
    return Decision(EnvelopeResponse(response_data=frame), decision.records)


def _create(
    view: ClusterView, request: CreateDelegationTokenRequest, requester: str, moment: Moment
) -> Decision:
    secret_key = _secret_key(view)
    types = {renewer.principal_type for renewer in request.renewers}
    if types - {USER} or (request.owner_principal_name and request.owner_principal_type != USER):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    if len(request.renewers) > MAX_RENEWERS:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    owner = requester
    if request.owner_principal_name:
        owner = f"{USER}:{request.owner_principal_name}"
    if view.image.delegation_tokens.count_of(requester) >= MAX_TOKENS_PER_REQUESTER:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    config, now_ms = view.config.tokens, moment.timestamp_ms
    lifetime_ms = config.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    token = DelegationToken(
        token_id=urlsafe_b64encode(view.random.randbytes(16)).decode().rstrip("="),
        owner=owner,
        requester=requester,
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=now_ms + lifetime_ms,
        expiry_timestamp_ms=now_ms + min(lifetime_ms, config.renewal_ms),
    )
    return Decision(_created(token, secret_key), [token_record(token)])


def _created(token: DelegationToken, secret_key: str) -> CreateDelegationTokenResponse:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    return CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=token.issue_timestamp_ms,
        expiry_timestamp_ms=token.expiry_timestamp_ms,
        max_timestamp_ms=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
    )


def _renew(
    view: ClusterView, request: RenewDelegationTokenRequest, requester: str, moment: Moment
) -> Decision:
    token = _found(view, request.hmac)
    _refuse_expired(token, moment)
    _refuse_others(token, requester)
    period_ms = request.renew_period_ms
    if period_ms < 0:
        period_ms = view.config.tokens.renewal_ms
    return _ending(token, moment.timestamp_ms + period_ms, RenewDelegationTokenResponse)


def _expire(
    view: ClusterView, request: ExpireDelegationTokenRequest, requester: str, moment: Moment
) -> Decision:
    token = _found(view, request.hmac)
    _refuse_others(token, requester)
    if request.expiry_time_period_ms < 0:
        response = ExpireDelegationTokenResponse(expiry_timestamp_ms=moment.timestamp_ms)
        return Decision(response, [RemoveDelegationTokenRecord(token_id=token.token_id)])
    _refuse_expired(token, moment)
    end_ms = moment.timestamp_ms + request.expiry_time_period_ms
    return _ending(token, end_ms, ExpireDelegationTokenResponse)


def _ending(token: DelegationToken, end_ms: int, response: Callable[..., Message]) -> Decision:
    """Give a token another end, within its maximum."""
    expiry_ms = min(token.max_timestamp_ms, end_ms, INT64_MAX)
    changed = token._replace(expiry_timestamp_ms=expiry_ms)
    return Decision(response(expiry_timestamp_ms=expiry_ms), [token_record(changed)])


def _secret_key(view: ClusterView) -> str:
    secret_key = view.config.tokens.secret_key
    if not secret_key:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return secret_key


def _found(view: ClusterView, given: bytes) -> DelegationToken:
    secret_key = _secret_key(view)
    token = view.token_finder.find(view.image.delegation_tokens, secret_key, bytes(given))
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _refuse_expired(token: DelegationToken, moment: Moment) -> None:
    if token.is_expired(moment.timestamp_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _refuse_others(token: DelegationToken, requester: str) -> None:
    if not token.belongs_to(requester):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


_HANDLERS: dict[type[Message], Callable[[ClusterView, Any, str, Moment], Decision]] = {
    CreateDelegationTokenRequest: _create,
    RenewDelegationTokenRequest: _renew,
    ExpireDelegationTokenRequest: _expire,
}
_RESPONSES: dict[type[Message], Callable[..., Message]] = {
    CreateDelegationTokenRequest: CreateDelegationTokenResponse,
    RenewDelegationTokenRequest: RenewDelegationTokenResponse,
    ExpireDelegationTokenRequest: ExpireDelegationTokenResponse,
}


def _response_of(request: Message) -> Callable[..., Message]:
    return _RESPONSES[type(request)]


class TokenExpiry:
    """Removes expired tokens now and then: soft state of the active controller."""

    def __init__(self, view: ClusterView, now_ms: int) -> None:
        self._view = view
        self._due_ms = now_ms + view.config.tokens.check_interval_ms

    def next_deadline_ms(self) -> int | None:
        """Return when to call `tick`, None if there is no token."""
        return self._due_ms if self._view.image.delegation_tokens else None

    def tick(self, moment: Moment) -> list[Message]:
        """Return the records that remove the expired tokens."""
        self._due_ms = moment.now_ms + self._view.config.tokens.check_interval_ms
        return [
            RemoveDelegationTokenRecord(token_id=token.token_id)
            for token in self._view.image.delegation_tokens.values()
            if token.is_expired(moment.timestamp_ms)
        ]
