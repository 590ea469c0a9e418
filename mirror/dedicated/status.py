"""`millstream mirror status`: the state of a flow, read from the clusters.

It does not matter which process mirrors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.process.clock import timestamp_ms
from connect.herder.offsets import OffsetState
from millstream.connect.connectors import TopicPartition
from millstream.mirror.records import Checkpoint, MirrorRecordError
from mirror.cluster import MirrorCluster
from mirror.dedicated.mirror_maker_settings import MirrorMakerSettings, Pair
from mirror.dedicated.whole_topic import whole_topic
from mirror.definitions import CHECKPOINT, SOURCE
from mirror.settings import MirrorSettings
from mirror.topics import partitions_of

_CONNECTOR = "MirrorSourceConnector"


@dataclass(frozen=True)
class FlowStatus:
    """The state of a flow: offsets of each partition of the source, and the topics left out."""

    pair: Pair
    start_offsets: Mapping[TopicPartition, int]
    end_offsets: Mapping[TopicPartition, int]
    copied_to: Mapping[TopicPartition, int]
    """The first offset without a copy, as stored; a partition that is not started is missing."""
    excluded: Mapping[str, str]
    """Topic -> the reason why it is left out."""
    excluded_groups: Mapping[str, str]
    checkpoints: Mapping[str, int] = field(default_factory=dict)
    """Group -> the age of its last checkpoint in ms."""

    def lag(self, at: TopicPartition) -> int:
        """Return the number of the source's offsets after the last one with a known copy.

        A transaction marker at the source's end counts.
        """
        copied = self.copied_to.get(at, self.start_offsets.get(at, 0))
        return max(0, self.end_offsets[at] - copied)

    def topic_lags(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for at in self.end_offsets:
            found[at.topic] = found.get(at.topic, 0) + self.lag(at)
        return found


def source_settings(settings: MirrorMakerSettings, pair: Pair) -> MirrorSettings:
    """Raises ConfigException."""
    return MirrorSettings.of(SOURCE, settings.connector(pair, _CONNECTOR))


def checkpoint_settings(settings: MirrorMakerSettings, pair: Pair) -> MirrorSettings:
    """Raises ConfigException."""
    return MirrorSettings.of(CHECKPOINT, settings.connector(pair, "MirrorCheckpointConnector"))


def _left_out(flow_settings: MirrorSettings, groups: Sequence[str]) -> dict[str, str]:
    groups_filter = flow_settings.name_filter("groups")
    return {name: why for name in groups if (why := groups_filter.why_not(name)) is not None}


def flow_status(settings: MirrorMakerSettings, pair: Pair) -> FlowStatus:
    """Read the state from both clusters. Raises ConnectException when one does not answer."""
    made = source_settings(settings, pair)
    flow = made.flow()
    source = MirrorCluster(made.source, made.admin("source", "status"), made.timeout_seconds)
    names = source.topic_names()
    why = {name: reason for name in names if (reason := flow.why_not(name)) is not None}
    topics = source.topics([name for name in names if name not in why])
    parts = partitions_of({name: each.partition_count for name, each in topics.items()})
    return FlowStatus(
        pair,
        source.start_offsets(parts),
        source.end_offsets(parts),
        copied_to(settings, pair, made),
        why,
        _left_out(checkpoint_settings(settings, pair), source.groups()),
        _checkpoint_ages(settings, pair),
    )


def copied_to(
    settings: MirrorMakerSettings, pair: Pair, flow_settings: MirrorSettings
) -> dict[TopicPartition, int]:
    """Read a flow's positions from Connect's offset topic."""
    state = OffsetState()
    topic = settings.worker(pair)["offset.storage.topic"]
    for message in whole_topic(flow_settings.consumer("target", "status"), topic):
        state.replay(message.key(), message.value())
    return {
        TopicPartition(place["topic"], place["partition"]): offset["offset"] + 1
        for place, offset in state.of_connector(_CONNECTOR)
        if place.get("cluster") == pair.source and isinstance(offset.get("offset"), int)
    }


def _checkpoint_ages(settings: MirrorMakerSettings, pair: Pair) -> dict[str, int]:
    made = checkpoint_settings(settings, pair)
    ages: dict[str, int] = {}
    now = timestamp_ms()
    for message in whole_topic(made.consumer("target", "status"), made.checkpoints_topic):
        try:
            group = Checkpoint.of_record(message.key(), message.value()).consumer_group_id
        except MirrorRecordError:
            # Any program with write access to the topic may have written this record.
            continue
        age_ms = now - message.timestamp()[1]
        ages[group] = min(age_ms, ages.get(group, age_ms))
    return ages


def status_lines(status: FlowStatus) -> list[str]:
    """Return the status as lines of text."""
    lags = status.topic_lags()
    total, behind = sum(lags.values()), {topic: lag for topic, lag in lags.items() if lag}
    lines = [
        f"{status.pair}: {len(lags)} topics, {len(status.end_offsets)} partitions, "
        f"replication-offset-lag {total:,}"
    ]
    for topic, lag in sorted(behind.items(), key=lambda each: (-each[1], each[0])):
        lines.append(f"  behind    {topic}: {lag:,}")
    for group, age_ms in sorted(status.checkpoints.items()):
        lines.append(f"  group     {group}: last checkpoint {age_ms / 1000:,.0f} s ago")
    for topic, why in sorted(status.excluded.items()):
        lines.append(f"  left out  {topic}: {why}")
    for group, why in sorted(status.excluded_groups.items()):
        lines.append(f"  left out  group {group}: {why}")
    return lines


def status_body(status: FlowStatus) -> dict[str, Any]:
    """Return the status as JSON."""
    return {
        "flow": str(status.pair),
        "lag": sum(status.topic_lags().values()),
        "topics": status.topic_lags(),
        "checkpoint_age_ms": dict(status.checkpoints),
        "excluded": dict(status.excluded),
        "excluded_groups": dict(status.excluded_groups),
    }
