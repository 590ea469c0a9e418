"""What ShareFetch and ShareAcknowledge have in common: refusals, and acknowledgements.

The check before a handler knows the rights on the group. The rights on topics are looked up here at
every request, because a session keeps its topics: records of a topic that the member may no longer
read must not be acquired for it, or nobody could have them until their lock ends. Each partition of
an acknowledgement has its own result.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from broker.coordinator.share_group.share_group import MAX_MEMBER_ID_CHARACTERS
from broker.server.authorization.data import may_on_topic
from broker.server.authorization.guard import Guard
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import RequestContext
from broker.server.network.later import Later, Steps
from broker.server.share.share_partitions import SharePartitions
from broker.share.acknowledgement import (
    Acknowledgement,
    Batch,
    acknowledgements,
    validate_batches,
)
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


PARTITIONS_PER_STEP = 16
TYPES_PER_STEP = 1_000
"""A step ends when it has begun with so many acknowledgements, or partitions."""

Batches = dict[PartitionKey, Sequence[Batch]]
Results = dict[PartitionKey, KafkaError | None]
"""The refusal of each partition, None if its acknowledgements are stored."""


def batches_in(topics: Iterable[Any]) -> Batches:
    """Return the batches of each partition that a request names, also if there are none.

    A partition that is named twice has the batches of both places.
    """
    batches: Batches = {}
    for topic in topics:
        for partition in topic.partitions:
            key = topic.topic_id, partition.partition_index
            found = partition.acknowledgement_batches
            batches[key] = [*batches[key], *found] if key in batches else found
    return batches


class Acknowledging:
    """Acknowledgements that have been begun, and whose results are waited for."""

    def __init__(
        self, shares: SharePartitions, member: SessionKey, batches: Batches, *, may_renew: bool
    ) -> None:
        self._shares = shares
        self._member = member
        self._may_renew = may_renew
        self._batches = batches
        self._results: Results = {}
        self._waiting: dict[PartitionKey, tuple[Later, Sequence[Acknowledgement]]] = {}

    def begin(self, denied: frozenset[bytes]) -> Steps[None]:
        """Begin with all of them, a number of partitions in each step.

        Partitions of topics that are `denied` to the member are refused.
        """
        partitions = types = 0
        for key, of_partition in self._batches.items():
            try:
                self._begin(key, of_partition, is_denied=key[0] in denied)
            except KafkaError as error:
                self._results[key] = error
            partitions += 1
            types += sum(len(batch.acknowledge_types) for batch in of_partition)
            if partitions >= PARTITIONS_PER_STEP or types >= TYPES_PER_STEP:
                partitions = types = 0
                yield None

    def _begin(self, key: PartitionKey, batches: Sequence[Batch], *, is_denied: bool) -> None:
        topic = self._shares.name_of(key)
        metrics = self._shares.metrics
        validate_batches(batches, may_renew=self._may_renew)
        if is_denied:
            raise denial()
        if not batches:
            self._results[key] = None
            return
        metrics.total_acknowledgements[topic] += 1
        try:
            led = self._shares.find(self._member.group_id, key)
            if led is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    "The group does not read this partition here.",
                )
            acknowledged = list(acknowledgements(batches))
            written = led.acknowledge(self._member.member_id, acknowledged)
        except KafkaError:
            metrics.failed_acknowledgements[topic] += 1
            raise
        self._waiting[key] = written, acknowledged

    def results(self) -> Steps[Results]:
        """Wait for all results."""
        for key, (written, acknowledged) in self._waiting.items():
            refusal = self._results[key] = yield written
            if refusal is None:
                self._shares.metrics.note_acknowledged(acknowledged)
        return self._results


def has_batches(batches: Mapping[PartitionKey, Sequence[Batch]]) -> bool:
    """Return whether a request acknowledges anything."""
    return any(batches.values())
