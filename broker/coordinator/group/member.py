"""One member of a classic group, and what a member's subscription says.

The coordinator does not understand protocols: a member's metadata is opaque bytes that the leader
reads. The one exception is Kafka's own `consumer` protocol type, where the topics a group is
subscribed to decide whether committed offsets may be deleted; for that the common prefix of all
versions of the subscription (version, topics) is read.
"""

from dataclasses import dataclass
from struct import error as StructError  # noqa: N812 - struct names its exception like a function
from struct import unpack_from
from typing import NamedTuple

CONSUMER_PROTOCOL_TYPE = "consumer"


class MemberProtocol(NamedTuple):
    """One assignment strategy a member offers, in the order it prefers them."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class Member:
    """A member, dynamic or static (with a `group_instance_id` that outlives the process).

    `is_new` holds until the member's first completed join: such a member does not know its id or
    cannot heartbeat yet, so waiting in JoinGroup does not keep it alive for ever.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    knows_its_id: bool = True

    @property
    def is_static(self) -> bool:
        """Static members (KIP-345) survive a missed rebalance until their session ends."""
        return self.group_instance_id is not None

    def metadata(self, protocol_name: str) -> bytes:
        """Return what the member said for this protocol; it must have offered it."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not offer {protocol_name}")

    def vote(self, candidates: set[str]) -> str:
        """Return the member's most preferred of the protocols that every member offers."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise AssertionError(f"{self.member_id} offers none of {sorted(candidates)}")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Read the topics of a ConsumerProtocolSubscription of any version; None when it is not one."""
    try:
        version, topic_count = unpack_from(">hi", metadata)
        # A topic takes at least two bytes, so a forged count cannot make the loop long.
        if version < 0 or not 0 <= topic_count <= len(metadata) // 2:
            return None
        topics: set[str] = set()
        position = 6
        for _ in range(topic_count):
            (length,) = unpack_from(">h", metadata, position)
            end = position + 2 + length
            if length < 0 or end > len(metadata):
                return None
            topics.add(metadata[position + 2 : end].decode())
            position = end
    except (StructError, UnicodeDecodeError):
        return None
    return frozenset(topics)
