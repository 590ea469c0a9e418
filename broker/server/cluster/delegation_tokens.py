"""Requests about delegation tokens: who may send them, and how they reach the controller (KIP-48).

A client may ask for tokens if it has authenticated by something other than a token: a stolen token
must not create others. The controller learns the client's principal from the Envelope.
"""

from ipaddress import ip_address

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import SecurityProtocol
from broker.metadata.image import MetadataImage
from broker.security.delegation_tokens import DelegationToken, token_hmac
from broker.security.principal import ANONYMOUS
from broker.server.network.dispatch import RequestContext
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request, response_class
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from common.kafka.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from common.kafka.protocol.principal import PrincipalData, encode_principal
from common.kafka.protocol.wire import DecodeError

TOKEN_APIS = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
"""The requests that the controller decides."""


def refusal(config: BrokerConfig, context: RequestContext) -> Message | None:
    """Return the refusal of a client that may not ask for tokens, None if it may."""
    peer = context.connection.peer
    protocol = config.security.protocol_of(peer.listener_name)
    is_allowed = not (
        peer.is_by_token
        or protocol is SecurityProtocol.PLAINTEXT
        or (protocol is SecurityProtocol.SSL and peer.principal == ANONYMOUS)
    )
    if not is_allowed:
        return with_error(context, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not config.security.tokens.secret_key:
        return with_error(context, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return None


def with_error(context: RequestContext, code: ErrorCode) -> Message:
    """Return the answer to a request about tokens that has only an error."""
    return response_class(context.header.api_key)(error_code=code)


def enveloped(context: RequestContext, request: Message) -> EnvelopeRequest:
    """Return the request to the controller on behalf of a client."""
    header, peer = context.header, context.connection.peer
    frame = encode_request(
        ApiKey(header.api_key), header.api_version, header.correlation_id, header.client_id, request
    )
    kind, _, name = peer.principal.partition(":")
    principal = PrincipalData(type=kind, name=name, token_authenticated=peer.is_by_token)
    return EnvelopeRequest(
        request_data=frame[4:],
        request_principal=encode_principal(principal),
        client_host_address=packed_address(peer.host),
    )


def packed_address(host: str) -> bytes:
    """Return an address as its 4 or 16 bytes."""
    return ip_address(host.partition("%")[0]).packed


def opened(context: RequestContext, response: EnvelopeResponse) -> Message:
    """Return the answer in an envelope; an envelope without one has an error."""
    if response.error_code or response.response_data is None:
        return with_error(context, ErrorCode(response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR))
    header = context.header
    try:
        _, answer = decode_response(header.api_key, header.api_version, response.response_data)
    except DecodeError:
        return with_error(context, ErrorCode.UNKNOWN_SERVER_ERROR)
    return answer


def described(
    image: MetadataImage, secret_key: str, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Return the tokens of some owners and renewers; those of everybody for null."""
    owners = request.owners
    wanted = (
        None
        if owners is None
        else {f"{owner.principal_type}:{owner.principal_name}" for owner in owners}
    )
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token, secret_key)
            for token in image.delegation_tokens.values()
            if wanted is None or any(map(token.belongs_to, wanted))
        ]
    )


def _described(token: DelegationToken, secret_key: str) -> DescribedDelegationToken:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    renewers = [renewer.partition(":") for renewer in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiry_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )
