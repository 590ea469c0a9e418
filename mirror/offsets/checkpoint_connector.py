"""MirrorCheckpoint: writes the groups' committed offsets, translated into the target's."""

import logging
from collections.abc import Sequence
from typing import Final

from millstream.connect import ConfigDef, SourceConnector, SourceTask
from millstream.connect.config.config_def import ConfigValue
from millstream.connect.connectors import Settings, SourceOffset, SourcePartition
from mirror.cluster import GroupOffsets, MirrorCluster
from mirror.definitions import CHECKPOINT
from mirror.offsets.checkpoint_task import MirrorCheckpointTask
from mirror.schedule import Schedule
from mirror.settings import MirrorSettings
from mirror.source_offsets import check_fixed_offset

log = logging.getLogger(__name__)

_START_SECONDS: Final = 20.0
_NEEDED: Final = {
    "emit.checkpoints.enabled": "MirrorCheckpointConnector can't run with "
    "emit.checkpoints.enabled set to false",
    "emit.offset-syncs.enabled": "MirrorCheckpointConnector can't run without offset syncs",
}


class MirrorCheckpointConnector(SourceConnector):
    """Owns the list of groups, and the thread that refreshes it."""

    kafka_class = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    @classmethod
    def config(cls) -> ConfigDef:
        return CHECKPOINT

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        found = super().validate(settings)
        if str(settings.get("enabled", "true")).lower() != "false":
            for name, message in _NEEDED.items():
                if str(settings.get(name, "true")).lower() == "false":
                    found[name].error_messages.append(message)
        return found

    def start(self, settings: Settings) -> None:
        super().start(settings)
        self._groups: list[str] = []
        self._schedule = Schedule(str(settings.get("name")))
        self._mirror = made = MirrorSettings.of(CHECKPOINT, settings)
        if not made["enabled"]:
            return
        self._flow, self._filter = made.flow(), made.name_filter("groups")
        timeout = made.timeout_seconds
        self._source = MirrorCluster(made.source, made.admin("source", "source-admin"), timeout)
        self._target = MirrorCluster(made.target, made.admin("target", "target-admin"), timeout)
        self._schedule.once("creating the topic of checkpoints", self._create_topic)
        self._schedule.once("looking for groups", self._refresh)
        refresh = made.interval_seconds("refresh.groups")
        self._schedule.every("looking for groups", refresh, self._refresh, is_delayed=True)
        self._schedule.start(_START_SECONDS)

    def stop(self) -> None:
        self._schedule.stop()

    def changed_by_reading(self, settings: Settings) -> str | None:
        del settings
        return "it creates topics of the mirror at its start"

    def task_class(self) -> type[SourceTask]:
        return MirrorCheckpointTask

    def task_configs(self, max_tasks: int) -> Sequence[Settings]:
        if not self._groups or self._mirror.interval_seconds("emit.checkpoints") is None:
            return []
        count = min(max_tasks, len(self._groups))
        return [
            {
                **self.settings,
                "task.index": str(number),
                "task.assigned.groups": ",".join(self._groups[number::count]),
            }
            for number in range(count)
        ]

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        del settings
        for partition, offset in offsets:
            check_fixed_offset(partition, offset, "group", "topic", "partition")
        return True

    def _create_topic(self) -> None:
        made = self._mirror
        self._target.create_compacted(
            made.checkpoints_topic, made["checkpoints.topic.replication.factor"]
        )

    def _refresh(self) -> None:
        names = [each for each in self._source.groups() if self._is_meant(each)]
        offsets = self._source.group_offsets(names)
        # A group whose offsets cannot be read now is kept.
        found = [
            each
            for each in names
            if self._reads_what_is_mirrored(offsets.get(each))
            or (each in self._groups and each not in offsets)
        ]
        if found != self._groups:
            log.info("groups now=%s before=%s", len(found), len(self._groups))
            self._groups = found
            self.context.request_task_reconfiguration()

    def _is_meant(self, group: str) -> bool:
        if not self._filter.takes(group):
            return False
        if "," in group:
            log.warning("group is skipped, its name is not valid in a list group=%s", group)
            return False
        return True

    def _reads_what_is_mirrored(self, offsets: GroupOffsets | None) -> bool:
        return any(self._flow.checkpoints(at.topic) for at in offsets or ())
