"""The voters of the quorum: their identities, endpoints and versions (KIP-853).

A voter is a node id *and* the id of the directory that holds its log: a node that lost its disk is
another replica, and must not vote as if it still had the log. A voter without a directory id is
one of `controller.quorum.voters`, and any directory of that node matches it.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from common.kafka.protocol.records.quorum import (
    KRaftVersionFeature,
    VoterEndpoint,
    VotersRecord,
    VotersRecordVoter,
)
from common.kafka.protocol.wire import ZERO_UUID

KRAFT_VERSIONS = 0, 1
"""The levels of `kraft.version` that this software supports: 0 has static voters."""
DYNAMIC_VOTERS = 1
"""The first level of `kraft.version` with the voters in the log."""


class ReplicaKey(NamedTuple):
    """The identity of a replica; a directory id of zeros is an unknown one."""

    node_id: int
    directory_id: bytes = ZERO_UUID

    @property
    def has_directory(self) -> bool:
        """True if the directory id is known."""
        return self.directory_id != ZERO_UUID

    def __str__(self) -> str:
        """Write the key as Apache Kafka's messages do."""
        directory = urlsafe_b64encode(self.directory_id).rstrip(b"=").decode()
        known = directory if self.has_directory else "<undefined>"
        return f"ReplicaKey(id={self.node_id}, directoryId={known})"


class Endpoint(NamedTuple):
    """One listener of a controller."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class VoterNode:
    """One voter; `endpoints` has the one for other controllers first."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    versions: tuple[int, int] = (0, 0)
    """The lowest and the highest level of `kraft.version` that the voter supports."""

    def supports(self, kraft_version: int) -> bool:
        """Return True if the voter can work at a level of `kraft.version`."""
        lowest, highest = self.versions
        return lowest <= kraft_version <= highest

    def endpoint(self, listener_name: str) -> Endpoint | None:
        """Return the endpoint of a listener, else the first one; None without any."""
        named = (each for each in self.endpoints if each.name == listener_name)
        return next(named, self.endpoints[0] if self.endpoints else None)

    def is_same_as(self, other: "VoterNode") -> bool:
        """Compare two entries; the order of the endpoints has no meaning."""
        return (self.key, self.versions, sorted(self.endpoints)) == (
            other.key,
            other.versions,
            sorted(other.endpoints),
        )


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Invariant: `nodes` ascends by node id, and no id occurs twice."""

    nodes: tuple[VoterNode, ...] = ()

    def __post_init__(self) -> None:
        assert list(self.ids) == sorted(set(self.ids)), self.ids

    @property
    def ids(self) -> tuple[int, ...]:
        """The node ids, ascending."""
        return tuple(node.key.node_id for node in self.nodes)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """The identities, in the order of the node ids."""
        return tuple(node.key for node in self.nodes)

    def find(self, node_id: int) -> VoterNode | None:
        """Return the voter with a node id."""
        return next((node for node in self.nodes if node.key.node_id == node_id), None)

    def key_of(self, node_id: int) -> ReplicaKey:
        """Return the identity of a voter; for any other node one without a directory id."""
        node = self.find(node_id)
        return ReplicaKey(node_id) if node is None else node.key

    def is_voter(self, key: ReplicaKey) -> bool:
        """Return True if a replica is one of the voters."""
        node = self.find(key.node_id)
        return node is not None and node.key.directory_id in (ZERO_UUID, key.directory_id)

    def with_voter(self, voter: VoterNode) -> "VoterSet":
        """Return the set with a voter added, or with its entry replaced."""
        others = (node for node in self.nodes if node.key.node_id != voter.key.node_id)
        return VoterSet(tuple(sorted((*others, voter), key=lambda node: node.key)))

    def without(self, key: ReplicaKey) -> "VoterSet | None":
        """Return the set without a voter; None if it is no voter, or the last one."""
        rest = tuple(node for node in self.nodes if node.key != key)
        return VoterSet(rest) if rest and len(rest) < len(self.nodes) else None

    def needs_update(self, voter: VoterNode) -> bool:
        """Return True if this replica is a voter and its entry is an older one."""
        node = self.find(voter.key.node_id)
        return node is not None and self.is_voter(voter.key) and not node.is_same_as(voter)

    def __str__(self) -> str:
        """Write the identities as Apache Kafka's messages do."""
        return f"[{', '.join(map(str, self.keys))}]"


def static_voters(node_ids: Iterable[int]) -> VoterSet:
    """Return voters of whom only the ids are known, as `controller.quorum.voters` names them."""
    return VoterSet(tuple(VoterNode(ReplicaKey(node_id)) for node_id in sorted(node_ids)))


def voters_record(voters: VoterSet) -> VotersRecord:
    """Return the control record of a voter set."""
    return VotersRecord(
        voters=[
            VotersRecordVoter(
                voter_id=node.key.node_id,
                voter_directory_id=node.key.directory_id,
                endpoints=[
                    VoterEndpoint(name=each.name, host=each.host, port=each.port)
                    for each in node.endpoints
                ],
                k_raft_version_feature=KRaftVersionFeature(
                    min_supported_version=node.versions[0], max_supported_version=node.versions[1]
                ),
            )
            for node in voters.nodes
        ]
    )


def voters_of_record(record: VotersRecord) -> VoterSet:
    """Return the voter set of a control record; raise ValueError if no quorum can have it."""
    nodes = [
        VoterNode(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            tuple(Endpoint(each.name, each.host, each.port) for each in voter.endpoints),
            (
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            ),
        )
        for voter in record.voters
    ]
    ids = [node.key.node_id for node in nodes]
    if not nodes or min(ids) < 0 or len(set(ids)) < len(ids):
        raise ValueError(f"voters {ids}")
    return VoterSet(tuple(sorted(nodes, key=lambda node: node.key)))
