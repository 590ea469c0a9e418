"""One member of a classic group, and the decoding of its subscription.

The coordinator does not interpret protocols: a member's metadata is opaque bytes for the leader.
The one exception is Kafka's own `consumer` protocol type: the topics of a group decide whether
committed offsets may be deleted. For that the coordinator decodes the fields that all versions of
the subscription have first (version, topics).
"""

from dataclasses import dataclass
from struct import error as StructError  # noqa: N812 - struct names its exception like a function
from struct import unpack_from
from typing import NamedTuple

CONSUMER_PROTOCOL_TYPE = "consumer"


class MemberProtocol(NamedTuple):
    """One assignment strategy that a member offers, with the member's metadata for it."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class Member:
    """A member: dynamic, or static (with a `group_instance_id` that stays after a restart).

    `is_new` is True until the member's first join phase ends. A new member does not know its id or
    cannot send heartbeats yet, so a parked JoinGroup does not keep it in the group for ever.
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
        """True for a static member (KIP-345), which stays after a missed rebalance."""
        return self.group_instance_id is not None

    def metadata(self, protocol_name: str) -> bytes:
        """Return the member's metadata for a protocol that it offers."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not offer {protocol_name}")

    def vote(self, candidates: set[str]) -> str:
        """Return the member's most preferred protocol of the candidates."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise AssertionError(f"{self.member_id} offers none of {sorted(candidates)}")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Decode the topics of a ConsumerProtocolSubscription; None if the bytes are not one."""
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
