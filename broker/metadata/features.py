"""Feature levels: the levels that this software supports, and those of a new cluster (KIP-584).

Clients choose their behaviour by the finalized levels, so a level is listed here only if it is
implemented. These are the features that Apache Kafka 4.3 finalizes by records, with its levels.
"""

METADATA_VERSION = "metadata.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"  # level 1: consumer groups (KIP-848)
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"  # level 1: share groups (KIP-932)
KRAFT_VERSION = "kraft.version"  # level 1: voters that change (KIP-853); it is in the Raft log
STREAMS_VERSION = "streams.version"  # level 1: streams groups (KIP-1071)

LATEST_METADATA_VERSION = 30  # 4.3-IV0: it decides the versions of the written records

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (LATEST_METADATA_VERSION, LATEST_METADATA_VERSION),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    GROUP_VERSION: (0, 1),
    SHARE_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
}
"""The lowest and highest level of each feature that a node of this software supports."""

FEATURES_AT_FORMAT: dict[str, int] = {
    METADATA_VERSION: LATEST_METADATA_VERSION,
    ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
    TRANSACTION_VERSION: 2,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
}
"""The levels of a new cluster."""
