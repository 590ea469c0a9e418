"""Access rules and SCRAM credentials as answers, for broker and controller listeners."""

from broker.config.broker_config import BrokerConfig
from broker.metadata.control.limits import duplicates
from broker.metadata.control.security.acls import filter_of
from broker.metadata.image import MetadataImage
from broker.security.acls import Acl, ResourcePattern
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
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
