"""Feature levels: what this software can do, what a new cluster starts with (KIP-584).

Clients choose their behaviour by the finalized levels, so a level stands here only once it is true.
`LEFT_OUT` has those that Apache Kafka 4.3 finalizes too and that this software has not: a metadata
log in which Apache Kafka has run is taken over with these brought down to 0, as an operator does it
with kafka-features, and whoever asks for a version that they stand for is refused.
"""

METADATA_VERSION = "metadata.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"  # 1: consumer groups (KIP-848)
TRANSACTION_VERSION = "transaction.version"

LATEST_METADATA_VERSION = 30  # 4.3-IV0: the versions of the records that are written here

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (LATEST_METADATA_VERSION, LATEST_METADATA_VERSION),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    GROUP_VERSION: (0, 1),
}
"""The lowest and highest level of each feature that a node of this software supports."""

FEATURES_AT_FORMAT: dict[str, int] = {
    METADATA_VERSION: LATEST_METADATA_VERSION,
    ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
    TRANSACTION_VERSION: 2,
    GROUP_VERSION: 1,
}
"""The levels that a new cluster starts with."""

LEFT_OUT = frozenset({"share.version", "streams.version"})
"""What Apache Kafka 4.3 finalizes as well, and is not built here."""
