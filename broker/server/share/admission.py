"""The refusals that ShareFetch and ShareAcknowledge have in common.

The check before a handler knows the rights on the group. The rights on topics are looked up here at
every request, because a session keeps its topics: records of a topic that the member may no longer
read must not be acquired for it, or nobody could have them until their lock ends.
"""

from collections.abc import Iterable
from typing import Protocol

from broker.coordinator.share_group.share_group import MAX_MEMBER_ID_CHARACTERS
from broker.server.authorization.data import may_on_topic
from broker.server.authorization.guard import Guard
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import RequestContext
from broker.share.session import PartitionKey, SessionKey
from common.kafka.acls import AclOperation
from common.kafka.errors import ErrorCode, KafkaError


class OfMember(Protocol):
    """A request of a member of a share group."""

    group_id: str | None
    member_id: str | None


class Admission:
    """Checks the member of a request, and its rights on the topics of its session."""

    def __init__(self, metadata: ClusterMetadata, guard: Guard | None) -> None:
        self.metadata = metadata
        self._guard = guard

    def member_of(self, request: OfMember) -> SessionKey:
        """Return the group and the member; raises INVALID_REQUEST."""
        if request.group_id is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
        member_id = request.member_id
        if not member_id or len(member_id) > MAX_MEMBER_ID_CHARACTERS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        return SessionKey(request.group_id, member_id)

    def denied(self, context: RequestContext, keys: Iterable[PartitionKey]) -> frozenset[bytes]:
        """Return the ids of the topics of these partitions that the client may not read."""
        if self._guard is None:
            return frozenset()
        access = self._guard.access(context.connection, "SHARE_FETCH")
        return frozenset(
            topic_id
            for topic_id in dict.fromkeys(topic_id for topic_id, _ in keys)
            if not may_on_topic(access, AclOperation.READ, access.topics.name_of(topic_id))
        )


def denial() -> KafkaError:
    """Return the refusal of a partition whose topic the member may not read."""
    return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
