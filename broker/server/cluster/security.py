"""Requests about tokens, access rules and credentials, for broker and controller listeners.

A client may ask for delegation tokens (KIP-48) if it has authenticated by something other than a
token: a stolen token must not create others. The controller learns the client's principal from the
Envelope.
"""

from ipaddress import ip_address

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import SecurityProtocol
from broker.metadata.control.limits import duplicates
from broker.metadata.control.security.acls import filter_of
from broker.metadata.image import MetadataImage
from broker.metadata.parts.scram import SECRET_KEEPER
from broker.security.delegation_tokens import (
    FIRST_VERSION_WITH_REQUESTER,
    DelegationToken,
    token_hmac,
)
from broker.security.principal import ANONYMOUS
from broker.server.network.dispatch import RequestContext
from broker.server.network.later import Steps, each
from common.kafka.acls import Acl, ResourcePattern
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request, response_class
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from common.kafka.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
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


def token_refusal(config: BrokerConfig, context: RequestContext) -> Message | None:
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


def described_tokens(
    image: MetadataImage,
    secret_key: str,
    request: DescribeDelegationTokenRequest,
    api_version: int,
) -> Steps[Message]:
    """Return the tokens of some owners and renewers; those of everybody for null."""
    owners = request.owners
    wanted = (
        None
        if owners is None
        else {f"{owner.principal_type}:{owner.principal_name}" for owner in owners}
    )
    tokens = [
        token
        for token in image.delegation_tokens.values()
        if wanted is None or any(map(token.belongs_to, wanted))
    ]
    described = yield from each(
        tokens, lambda token: _described_token(token, secret_key, api_version)
    )
    return DescribeDelegationTokenResponse(tokens=described)


def _described_token(
    token: DelegationToken, secret_key: str, api_version: int
) -> DescribedDelegationToken:
    described = _described_by_owner(token, secret_key)
    if api_version >= FIRST_VERSION_WITH_REQUESTER:
        kind, _, name = token.requester.partition(":")
        described.token_requester_principal_type = kind
        described.token_requester_principal_name = name
    return described


def _described_by_owner(token: DelegationToken, secret_key: str) -> DescribedDelegationToken:
    owner_type, _, owner_name = token.owner.partition(":")
    renewers = [renewer.partition(":") for renewer in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
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


NO_AUTHORIZER = KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def described_acls(
    config: BrokerConfig, image: MetadataImage, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """Return the rules; raises SECURITY_DISABLED without an authorizer, INVALID_REQUEST."""
    if config.security.authorizer is None:
        raise NO_AUTHORIZER
    wanted = filter_of(request)
    found: dict[ResourcePattern, list[Acl]] = {}
    for acl in image.acls.values():
        if wanted.matches(acl):
            found.setdefault(acl.pattern, []).append(acl)
    return DescribeAclsResponse(
        error_message=None,
        resources=[_described_acls(pattern, acls) for pattern, acls in found.items()],
    )


def _described_acls(pattern: ResourcePattern, acls: list[Acl]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=[
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in acls
        ],
    )


def described_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return the credentials of the named users, or of all users."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in sorted(image.scram.items()):
        if (user, mechanism) == SECRET_KEEPER:
            continue
        info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        infos.setdefault(user, []).append(info)
    named = [user.name for user in request.users or ()]
    repeated = duplicates(named)
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[
            _described_user(user, infos.get(user), is_repeated=user in repeated)
            for user in dict.fromkeys(named) or infos
        ],
    )


def _described_user(
    user: str, infos: list[CredentialInfo] | None, *, is_repeated: bool
) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=user, error_message=None)
    if is_repeated:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = f"Cannot describe SCRAM credentials for the same user twice: {user}"
    elif infos is None:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"Attempt to describe a user credential that does not exist: {user}"
    else:
        result.credential_infos = infos
    return result
