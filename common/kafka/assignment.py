"""Two ways to divide partitions among the members of a group, beside Kafka's `range`.

`advertising_range` assigns like `range` (the same partition of every input to the same member,
so keys meet) and lets members know each other: every member puts its URL into its join request,
and the member that computes the assignment puts the whole map of partitions to URLs into every
answer. So each instance knows the owner of a partition from the same generation of the group
that made it the owner, and no other topic or service is needed.

`single_owner` gives every partition to the member that was started first; the others wait.
"""

import json
from collections.abc import Iterable, Mapping

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

Assignor = type[AbstractPartitionAssignor]
DEFAULT: Assignor = RangePartitionAssignor
Members = Mapping[str, ConsumerProtocolMemberMetadata]
Assignments = dict[str, ConsumerProtocolMemberAssignment]

_VERSION = 0


class Directory:
    """Which instance, by URL, holds which partition of a topic."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[int, str]] = {}

    def owner(self, topic: str, partition: int) -> str | None:
        return self._owners.get(topic, {}).get(partition)

    def owners(self, topic: str) -> list[str]:
        return sorted(set(self._owners.get(topic, {}).values()))

    def update(self, data: bytes) -> None:
        owners: dict[str, dict[int, str]] = {}
        for url, topics in json.loads(data or b"{}").items():
            for topic, partitions in topics.items():
                owners.setdefault(topic, {}).update(dict.fromkeys(partitions, url))
        self._owners = owners


def directory_data(members: Members, assignments: Assignments) -> bytes:
    """Return what `Directory.update` reads: URL -> topic -> partitions."""
    by_url = {
        members[member_id].user_data.decode(): dict(assignment.assignment)
        for member_id, assignment in assignments.items()
    }
    return json.dumps(by_url, separators=(",", ":")).encode()


def advertising_range(url: str, directory: Directory) -> type[AbstractPartitionAssignor]:
    """Return the assignor of an instance reached at `url`; it keeps `directory` up to date.

    aiokafka takes a class and calls its class methods, hence a class per instance.
    """

    class AdvertisingRangeAssignor(RangePartitionAssignor):  # type: ignore[misc, unused-ignore]
        name = "millstream-advertising-range"

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), url.encode())

        @classmethod
        def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
            assignments = super().assign(cluster, members)
            data = directory_data(members, assignments)
            return {
                member_id: ConsumerProtocolMemberAssignment(_VERSION, assignment.assignment, data)
                for member_id, assignment in assignments.items()
            }

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            directory.update(assignment.user_data)

    return AdvertisingRangeAssignor


def single_owner(started_at_ms: int) -> Assignor:
    """Return the assignor of an instance started at this time."""

    class SingleOwnerAssignor(AbstractPartitionAssignor):  # type: ignore[misc, unused-ignore]
        name = "millstream-single-owner"

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            data = str(started_at_ms).encode()
            return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), data)

        @classmethod
        def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
            owner = first_started(members)
            everything = [
                (topic, sorted(cluster.partitions_for_topic(topic) or ()))
                for topic in sorted(members[owner].subscription)
            ]
            return {
                member_id: ConsumerProtocolMemberAssignment(
                    _VERSION, everything if member_id == owner else [], b""
                )
                for member_id in members
            }

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            """Do nothing: this protocol tells members nothing."""

    return SingleOwnerAssignor


def first_started(members: Members) -> str:
    """Return the member that was started first; its id decides between equals."""
    return min(members, key=lambda member_id: (int(members[member_id].user_data), member_id))
