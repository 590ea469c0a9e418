"""MirrorHeartbeat: writes heartbeats into the target; flows from there copy them further."""

import threading
from collections.abc import Sequence
from typing import Final

from common.process.clock import now_ms, timestamp_ms
from millstream.connect import ConfigDef, SourceConnector, SourceRecord, SourceTask
from millstream.connect.connectors import Settings, SourceOffset, SourcePartition
from millstream.mirror.records import Heartbeat
from mirror.cluster import MirrorCluster
from mirror.definitions import HEARTBEAT
from mirror.schedule import Schedule
from mirror.settings import MirrorSettings
from mirror.source_offsets import check_fixed_offset

_START_SECONDS: Final = 20.0
_LONGEST_WAIT_SECONDS: Final = 0.1
_SOURCE_ALIAS: Final = "sourceClusterAlias"
_TARGET_ALIAS: Final = "targetClusterAlias"


class MirrorHeartbeatConnector(SourceConnector):
    """Creates the topic; its one task writes."""

    kafka_class = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    @classmethod
    def config(cls) -> ConfigDef:
        return HEARTBEAT

    def start(self, settings: Settings) -> None:
        super().start(settings)
        self._mirror = made = MirrorSettings.of(HEARTBEAT, settings)
        self._schedule = Schedule(str(settings.get("name")))
        target = MirrorCluster(
            made.target, made.admin("target", "target-admin"), made.timeout_seconds
        )
        topic, replicas = (
            made.policy.heartbeats_topic(),
            made["heartbeats.topic.replication.factor"],
        )
        self._schedule.once(
            "creating the topic of heartbeats", lambda: target.create_compacted(topic, replicas)
        )
        self._schedule.start(_START_SECONDS)

    def stop(self) -> None:
        self._schedule.stop()

    def changed_by_reading(self, settings: Settings) -> str | None:
        del settings
        return "it creates topics of the mirror at its start"

    def task_class(self) -> type[SourceTask]:
        return MirrorHeartbeatTask

    def task_configs(self, max_tasks: int) -> Sequence[Settings]:
        del max_tasks
        return [] if self._mirror.interval_seconds("emit.heartbeats") is None else [self.settings]

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        del settings
        for partition, offset in offsets:
            check_fixed_offset(partition, offset, _SOURCE_ALIAS, _TARGET_ALIAS)
        return True


class MirrorHeartbeatTask(SourceTask):
    """Writes one heartbeat per interval."""

    kafka_class = "org.apache.kafka.connect.mirror.MirrorHeartbeatTask"

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    def start(self, settings: Settings) -> None:
        super().start(settings)
        self._mirror = made = MirrorSettings.of(HEARTBEAT, settings)
        self._interval_seconds = made.interval_seconds("emit.heartbeats") or 1
        self._place = {_SOURCE_ALIAS: made.source, _TARGET_ALIAS: made.target}
        self._next_ms = now_ms() + 1000 * self._interval_seconds
        self._stopped = threading.Event()

    def poll(self) -> list[SourceRecord] | None:
        left_ms = self._next_ms - now_ms()
        if left_ms > 0:
            # A limited wait: the worker writes offsets and reacts to a stop between two polls.
            self._stopped.wait(min(left_ms / 1000, _LONGEST_WAIT_SECONDS))
            return None
        self._next_ms = now_ms() + 1000 * self._interval_seconds
        now, made = timestamp_ms(), self._mirror
        beat = Heartbeat(made.source, made.target, now)
        return [
            SourceRecord(
                topic=made.policy.heartbeats_topic(),
                kafka_partition=0,
                key=beat.record_key(),
                value=beat.record_value(),
                timestamp_ms=now,
                source_partition=self._place,
                source_offset={"offset": 0},
            )
        ]

    def stop(self) -> None:
        self._stopped.set()
