"""Feature levels: what this software can do, what a new cluster starts with (KIP-584).

Clients choose their behaviour by the finalized levels, so a level stands here only once it is true:
`transaction.version`, `group.version`, `share.version` and `streams.version`, which Apache Kafka
4.3 finalizes when it formats, are left out until the broker has what they promise.

`eligible.leader.replicas.version` can be finalized, and then partitions follow KIP-966; a new
cluster starts without it as long as partitions have one replica: the replica of a broker that was
killed would be taken back only by an unclean election, for no other could have been chosen.
"""

METADATA_VERSION = "metadata.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"

LATEST_METADATA_VERSION = 30  # 4.3-IV0: the versions of the records that are written here
MIN_METADATA_VERSION_FOR_ELR = 23  # 4.0-IV1

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (LATEST_METADATA_VERSION, LATEST_METADATA_VERSION),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
}
"""The lowest and highest level of each feature that a node of this software supports."""

FEATURES_AT_FORMAT: dict[str, int] = {METADATA_VERSION: LATEST_METADATA_VERSION}
"""The levels that a new cluster starts with."""
