"""The refusals that ShareFetch and ShareAcknowledge have in common."""

from typing import Protocol

from broker.errors import ErrorCode, KafkaError
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.share.settings import has_share_groups
from broker.share.session import SessionKey

MAX_MEMBER_ID_CHARACTERS = 36


class OfMember(Protocol):
    """A request of a member of a share group."""

    group_id: str | None
    member_id: str | None


def require_share_groups(metadata: ClusterMetadata) -> None:
    """Raise UNSUPPORTED_VERSION while the feature share.version is not enabled."""
    if not has_share_groups(metadata):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "Share groups are not enabled in this cluster."
        )


def member_of(request: OfMember) -> SessionKey:
    """Return the group and the member; raises INVALID_REQUEST."""
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    member_id = request.member_id
    if not member_id or len(member_id) > MAX_MEMBER_ID_CHARACTERS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return SessionKey(request.group_id, member_id)
