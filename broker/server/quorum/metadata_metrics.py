"""The numbers of the metadata on a node, with Kafka's names.

kafka_server_broker_metadata_metrics_<name>    what this node has applied
kafka_server_metadata_loader_<name>            MetadataLoader: levels and loaded snapshots
kafka_server_snapshot_emitter_<name>           SnapshotEmitter: the snapshot taken last
kafka_server_node_metrics_<name>               the feature levels that this software supports
"""

from typing import Any

from broker.metadata.features import KRAFT_VERSION, METADATA_VERSION, SUPPORTED_FEATURES
from broker.server.quorum.quorum import Quorum


def ignores_static_voters(quorum: Quorum) -> bool:
    """Return True if `controller.quorum.voters` is set and the voters are in the log."""
    return bool(quorum.config.voters) and quorum.kraft_version > 0


def lag_ms(quorum: Quorum, timestamp_ms: int) -> int:
    """Return the age of the last record that this node has applied; 0 if there is none."""
    last_ms = quorum.machine.last_timestamp_ms
    return max(timestamp_ms - last_ms, 0) if last_ms >= 0 else 0


def metadata_families(quorum: Quorum, now_ms: int, timestamp_ms: int) -> list[Any]:
    """Return the numbers as families of the Prometheus client."""
    machine, snapshots = quorum.machine, quorum.snapshots
    age_ms = now_ms - snapshots.taken_ms if snapshots.latest_size_bytes else 0
    numbers = {
        "broker_metadata_metrics_last_applied_record_offset": quorum.applied_offset - 1,
        "broker_metadata_metrics_last_applied_record_timestamp": machine.last_timestamp_ms,
        "broker_metadata_metrics_last_applied_record_lag_ms": lag_ms(quorum, timestamp_ms),
        "broker_metadata_metrics_ignored_static_voters": int(ignores_static_voters(quorum)),
        "metadata_loader_current_controller_id": quorum.leader_id,
        "metadata_loader_current_metadata_version": quorum.image.features.get(METADATA_VERSION, 0),
        "metadata_loader_handle_load_snapshot_count": machine.loaded_snapshot_count,
        "snapshot_emitter_latest_snapshot_generated_bytes": snapshots.latest_size_bytes,
        "snapshot_emitter_latest_snapshot_generated_age_ms": age_ms,
    }
    from prometheus_client.core import GaugeMetricFamily

    return [
        *(
            GaugeMetricFamily(f"kafka_server_{name}", name.replace("_", " "), number)
            for name, number in numbers.items()
        ),
        *_levels(quorum),
    ]


def _levels(quorum: Quorum) -> list[Any]:
    from prometheus_client.core import GaugeMetricFamily

    finalized = GaugeMetricFamily(
        "kafka_server_metadata_loader_finalized_level",
        "The finalized level of each feature",
        labels=["feature_name"],
    )
    lowest, highest = (
        GaugeMetricFamily(
            f"kafka_server_node_metrics_{word}_supported_level",
            f"The {word} level of each feature that this software supports",
            labels=["feature_name"],
        )
        for word in ("minimum", "maximum")
    )
    levels = {**quorum.image.features, KRAFT_VERSION: quorum.kraft_version}
    for name, (minimum, maximum) in sorted(SUPPORTED_FEATURES.items()):
        finalized.add_metric([name], levels.get(name, 0))
        lowest.add_metric([name], minimum)
        highest.add_metric([name], maximum)
    return [finalized, lowest, highest]
