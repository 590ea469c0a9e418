"""What clients of mirrored clusters need: which topic is whose, and where a group goes on.

    from millstream.mirror import RemoteClusterUtils

    offsets = RemoteClusterUtils.translate_offsets(
        {"bootstrap.servers": "backup:9092"}, "primary", "orders-group"
    )

The names are those of MirrorMaker 2's client library (connect-mirror-client), in Python's spelling;
what is read and written are its formats, so that it does not matter whose mirror ran. The mirror
itself is Connect's: mirror/.
"""

from millstream.connect.connectors import TopicPartition
from millstream.mirror.clients import MirrorClient, RemoteClusterUtils
from millstream.mirror.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    replication_policy,
)
from millstream.mirror.records import (
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
