"""The checks of delegation tokens (KIP-48, KIP-373).

Owner and renewers may renew, end and see a token without any rule; the controller compares them.
"""

from broker.security.acls import AclOperation, ResourceType
from broker.security.principal import USER
from broker.server.authorization.access import Access
from broker.server.authorization.verdicts import Narrowed, Verdict, with_code
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from common.kafka.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def check_create_delegation_token(
    access: Access, request: CreateDelegationTokenRequest, api_version: int
) -> Verdict:
    """CREATE_TOKENS on the user that is to own the token, unless it is the requester."""
    if not request.owner_principal_name:
        return None
    owner = f"{request.owner_principal_type or USER}:{request.owner_principal_name}"
    if owner == access.requester.principal:
        return None
    if access.may(AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
        return None
    return with_code(CreateDelegationTokenResponse, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


def check_describe_delegation_token(
    access: Access, request: DescribeDelegationTokenRequest, api_version: int
) -> Verdict:
    """Own tokens; others need DESCRIBE on the token, or DESCRIBE_TOKENS on its owner."""

    def may_see(token: DescribedDelegationToken) -> bool:
        owner = f"{token.principal_type}:{token.principal_name}"
        renewers = [f"{each.principal_type}:{each.principal_name}" for each in token.renewers]
        return (
            access.requester.principal in {owner, *renewers}
            or access.can_see(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
            or access.can_see(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, owner)
        )

    def complete(answer: DescribeDelegationTokenResponse) -> None:
        answer.tokens = [token for token in answer.tokens if may_see(token)]

    return Narrowed(complete)
