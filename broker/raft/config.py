"""The configuration of a Raft node, and the interface of its random source.

The times are Kafka's `controller.quorum.*` settings with Kafka's defaults.
"""

from dataclasses import dataclass
from typing import Protocol

from broker.raft.voter_set import KRAFT_VERSIONS, Endpoint, ReplicaKey, VoterNode, VoterSet
from common.kafka.protocol.wire import ZERO_UUID

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
METADATA_PARTITION = 0
NEVER_MS = 2**63 - 1
CHECK_QUORUM_FACTOR = 1.5
"""A leader resigns after this many fetch timeouts without a majority; followers give up earlier."""


class RandomSource(Protocol):
    """The part of `random.Random` that this package uses."""

    def randrange(self, start: int, stop: int, /) -> int:
        """Return a number with `start` <= number < `stop`."""


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """One node's place in the quorum."""

    node_id: int
    voters: VoterSet
    """The voters of `controller.quorum.voters`, perhaps none; those in the log replace them."""
    cluster_id: str
    directory_id: bytes = ZERO_UUID
    endpoints: tuple[Endpoint, ...] = ()
    """The controller listeners of this node; the first is the one for other controllers."""
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    """Addresses of controllers, which a node asks that knows no living voter."""
    is_controller: bool = True
    """True if this node may become a voter; brokers may not."""
    joins_by_itself: bool = False
    """`controller.quorum.auto.join.enable`: ask the leader to become a voter (KIP-1186)."""
    election_timeout_ms: int = 1_000
    """A voter without a leader waits for a random time between this and twice this."""
    election_backoff_max_ms: int = 1_000
    succession_step_ms: int = 100
    """The delay from one voter's election to the next one's when the leader's process is gone."""
    fetch_timeout_ms: int = 2_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 * 1024 * 1024
    snapshot_max_bytes: int = 8 * 1024 * 1024

    @property
    def key(self) -> ReplicaKey:
        """The identity of this replica."""
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def listener_name(self) -> str:
        """The listener through which controllers reach each other; empty if it is unknown."""
        return self.endpoints[0].name if self.endpoints else ""

    @property
    def voter(self) -> VoterNode:
        """The entry of this node in a voter set."""
        return VoterNode(self.key, self.endpoints, KRAFT_VERSIONS)

    @property
    def check_quorum_ms(self) -> int:
        """How long a leader keeps its role without a Fetch from a majority."""
        return int(self.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader sends BeginQuorumEpoch to a voter that does not fetch (KIP-853)."""
        return self.fetch_timeout_ms // 2


def majority_of(voter_count: int) -> int:
    """Compute the number of voters that form a majority."""
    return voter_count // 2 + 1
