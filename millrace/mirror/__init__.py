"""What clients of mirrored clusters need: which topic is whose, and where a group goes on.

    from millrace.mirror import RemoteClusterUtils

    offsets = RemoteClusterUtils.translate_offsets(
        {"bootstrap.servers": "backup:9092"}, "primary", "orders-group"
    )

The names are those of MirrorMaker 2's client library (connect-mirror-client), in Python's spelling;
what is read and written are its formats, so that it does not matter whose mirror ran. The mirror
itself is Connect's: mirror/.
"""

from millrace.connect.connectors import TopicPartition
from millrace.mirror.clients import MirrorClient, RemoteClusterUtils
from millrace.mirror.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    replication_policy,
)
from millrace.mirror.records import (
    Checkpoint,
    Heartbeat,
    MirrorRecordError,
    OffsetAndMetadata,
    OffsetSync,
)

__all__ = [
    "Checkpoint",
    "DefaultReplicationPolicy",
    "Heartbeat",
    "IdentityReplicationPolicy",
    "MirrorClient",
    "MirrorRecordError",
    "OffsetAndMetadata",
    "OffsetSync",
    "RemoteClusterUtils",
    "ReplicationPolicy",
    "TopicPartition",
    "replication_policy",
]
