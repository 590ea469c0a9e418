"""Formatting a node's directories, as Apache Kafka's kafka-storage does (KIP-631, KIP-853).

Every directory gets its `meta.properties` and a `bootstrap.checkpoint` with the feature levels of a
new cluster, which its first active controller writes to the metadata log. With initial controllers
the metadata log gets an empty snapshot, `00000000000000000000-0000000000.checkpoint`, which names
the voters. A directory that is formatted is never changed.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.config.broker_config import BrokerConfig
from broker.log.checkpoints import (
    META_PROPERTIES,
    encode_uuid,
    write_properties,
)
from broker.log.meta_properties import InconsistentLogDirectory, read_meta_properties
from broker.log.storage import Storage, read_file, replace_file
from broker.metadata.features import (
    FEATURES_AT_FORMAT,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from broker.model import OffsetAndEpoch
from broker.records.errors import CorruptBatch
from broker.server.quorum.raft.partition_raft_log import METADATA_PARTITION
from broker.server.quorum.raft.snapshot_files import SnapshotFiles
from broker.server.quorum.raft.snapshot_format import build_snapshot, snapshot_values
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from common.kafka.protocol.records.quorum import VotersRecord
from common.kafka.protocol.wire import DecodeError

log = logging.getLogger("millstream.quorum.formatting")

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
NOTHING = OffsetAndEpoch(0, 0)


@dataclass(frozen=True, slots=True)
class FormatPlan:
    """The content of formatted directories; `voters` is for initial controllers only."""

    cluster_id: str
    features: Mapping[str, int]
    metadata_directory_id: bytes
    voters: VotersRecord | None = None
    credentials: tuple[UserScramCredentialRecord, ...] = ()
    """The credentials of users that the new cluster knows from its first moment."""


@dataclass(slots=True)
class Directories:
    """The directories of a node: the formatted ones with their properties, and the others."""

    formatted: dict[str, dict[str, str]] = field(default_factory=dict)
    unformatted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def directories_of(config: BrokerConfig) -> list[str]:
    """Return all directories of a node, including that of the metadata log."""
    return sorted({*config.log_dirs, config.metadata_log_dir})


def examine(storage: Storage, config: BrokerConfig) -> Directories:
    """Inspect the directories; raises InconsistentLogDirectory for unknown content."""
    found = Directories()
    for path in directories_of(config):
        properties = read_meta_properties(storage, path)
        if properties:
            found.formatted[path] = properties
        elif storage.status(path) is not None:
            found.unformatted.append(path)
        else:
            found.missing.append(path)
    return found


def validate_owner(found: Directories, cluster_id: str, node_id: int) -> None:
    """Raise InconsistentLogDirectory for a directory of another cluster or node."""
    for path, properties in found.formatted.items():
        file = f"{path}/{META_PROPERTIES}"
        read_cluster_id = properties.get("cluster.id", cluster_id)
        if read_cluster_id != cluster_id:
            raise InconsistentLogDirectory(
                f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {read_cluster_id}"
            )
        read_node_id = properties.get("node.id", str(node_id))
        if read_node_id != str(node_id):
            raise InconsistentLogDirectory(
                f"Stored node id {read_node_id} doesn't match the configured node id {node_id} in "
                f"{file}. If you moved your data, make sure your configured node id matches. If "
                "you intend to create a new node, you should remove all data in your data "
                "directories."
            )


def format_directory(
    storage: Storage,
    path: str,
    config: BrokerConfig,
    plan: FormatPlan,
    *,
    new_uuid: Callable[[], bytes],
    timestamp_ms: int,
) -> None:
    """Format one directory; `meta.properties` is written last, as the mark of a whole format."""
    is_metadata = path == config.metadata_log_dir
    storage.make_directory(path)
    values = [
        encode_metadata_record(FeatureLevelRecord(name=name, feature_level=level))
        for name, level in plan.features.items()
        if level
    ]
    values += map(encode_metadata_record, plan.credentials)
    bootstrap = build_snapshot(values, 0, 0, timestamp_ms)
    replace_file(storage, f"{path}/{BOOTSTRAP_CHECKPOINT}", bootstrap)
    if is_metadata and plan.voters is not None:
        directory = f"{path}/{METADATA_PARTITION}"
        storage.make_directory(directory)
        snapshots = SnapshotFiles(storage, directory)
        data = build_snapshot([], 0, timestamp_ms, timestamp_ms, plan.voters)
        snapshots.write(NOTHING, 0, data)
        snapshots.finish(NOTHING)
    directory_id = plan.metadata_directory_id if is_metadata else new_uuid()
    properties = {
        "version": "1",
        "cluster.id": plan.cluster_id,
        "node.id": str(config.node_id),
        "directory.id": encode_uuid(directory_id),
    }
    write_properties(storage, f"{path}/{META_PROPERTIES}", properties)


def formatted_features(storage: Storage, path: str) -> dict[str, int]:
    """Return the feature levels of a new cluster, from the format of the directory.

    A directory of Apache Kafka's may name features that are not built here: they are left out, and
    no client will use them. Raises InconsistentLogDirectory for the metadata version of another
    release, whose records differ from those of this project.
    """
    records = _bootstrap_records(storage, path)
    if not records:
        return dict(FEATURES_AT_FORMAT)
    features: dict[str, int] = {}
    for record in records:
        if not isinstance(record, FeatureLevelRecord):
            continue
        if record.name == KRAFT_VERSION:
            continue  # Its level is in the metadata log.
        lowest, highest = SUPPORTED_FEATURES.get(record.name, (0, 0))
        if lowest <= record.feature_level <= highest:
            features[record.name] = record.feature_level
        elif record.name == METADATA_VERSION:
            raise InconsistentLogDirectory(
                f"{path} was formatted with metadata.version {record.feature_level}, and this "
                f"software has only {highest}: format it for the release 4.3"
            )
        else:
            log.info("left out: %s=%d is not supported", record.name, record.feature_level)
    return features or dict(FEATURES_AT_FORMAT)


def formatted_credentials(storage: Storage, path: str) -> list[Message]:
    """Return the SCRAM credentials that a new cluster begins with (KIP-900).

    Raises InconsistentLogDirectory for a damaged file.
    """
    records = _bootstrap_records(storage, path)
    return [record for record in records if isinstance(record, UserScramCredentialRecord)]


def _bootstrap_records(storage: Storage, path: str) -> list[Message]:
    """Read the file that formatting wrote; without it there are no records."""
    data = read_file(storage, f"{path}/{BOOTSTRAP_CHECKPOINT}")
    if data is None:
        return []
    try:
        return [decode_metadata_record(value) for value in snapshot_values(data)]
    except (CorruptBatch, DecodeError) as error:
        raise InconsistentLogDirectory(
            f"{path}/{BOOTSTRAP_CHECKPOINT} is damaged ({error}): restore it, or remove it, for "
            "only a new cluster needs it, and without it begins with the default features"
        ) from error
