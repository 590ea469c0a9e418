"""DescribeUserScramCredentials (key 50), version 0: mechanisms and iterations (KIP-554).

The answer has neither salts nor keys.
"""

from broker.errors import ErrorCode
from broker.metadata.control.limits import duplicates
from broker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import Answer, RequestContext


class DescribeUserScramCredentials:
    """Answers from the metadata image."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> Answer:
        """Return the credentials of the named users, or of all users."""
        infos: dict[str, list[CredentialInfo]] = {}
        for (user, mechanism), credential in sorted(self._metadata.image.scram.items()):
            info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            infos.setdefault(user, []).append(info)
        named = [user.name for user in request.users or ()]
        repeated = duplicates(named)
        return DescribeUserScramCredentialsResponse(
            error_message=None,
            results=[
                _described(user, infos.get(user), is_repeated=user in repeated)
                for user in dict.fromkeys(named) or infos
            ],
        )


def _described(
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
