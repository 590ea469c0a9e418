"""MirrorSource: copies the topics of one cluster into another, with their settings."""

import logging
from collections.abc import Sequence
from typing import Final

from millstream.connect import ConfigDef, ExactlyOnceSupport, SourceConnector, SourceTask
from millstream.connect.config.config_def import ConfigValue
from millstream.connect.connectors import Settings, SourceOffset, SourcePartition
from mirror.cluster import MirrorCluster, Topic
from mirror.copying.source_task import MirrorSourceTask
from mirror.definitions import SOURCE
from mirror.schedule import Schedule
from mirror.settings import MirrorSettings
from mirror.source_offsets import check_source_offset
from mirror.topics import divided, encoded, partitions_of, plan_topics, remote_acls

log = logging.getLogger(__name__)

_START_SECONDS: Final = 20.0


class MirrorSourceConnector(SourceConnector):
    """Owns the lists of both clusters' topics, and the thread that refreshes them."""

    kafka_class = "org.apache.kafka.connect.mirror.MirrorSourceConnector"

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    @classmethod
    def config(cls) -> ConfigDef:
        return SOURCE

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        found = super().validate(settings)
        emits = str(settings.get("emit.offset-syncs.enabled", "true")).lower() != "false"
        if not emits and any(name.startswith("offset-syncs.topic.") for name in settings):
            found["emit.offset-syncs.enabled"].error_messages.append(
                "MirrorSourceConnector can't setup offset-syncs feature while "
                "emit.offset-syncs.enabled set to false"
            )
        return found

    def start(self, settings: Settings) -> None:
        super().start(settings)
        self._known: dict[str, Topic] | None = None
        self._schedule = Schedule(str(settings.get("name")))
        self._mirror = made = MirrorSettings.of(SOURCE, settings)
        if not made["enabled"]:
            return
        self._flow, self._rules = made.flow(), made.config_rules()
        timeout = made.timeout_seconds
        self._source = MirrorCluster(made.source, made.admin("source", "source-admin"), timeout)
        self._target = MirrorCluster(made.target, made.admin("target", "target-admin"), timeout)
        schedule = self._schedule
        if made["emit.offset-syncs.enabled"]:
            schedule.once("creating the topic of offset syncs", self._create_syncs_topic)
        schedule.once("looking for topics", self._refresh)
        acls, configs = (
            made.interval_seconds(name) for name in ("sync.topic.acls", "sync.topic.configs")
        )
        schedule.every("following access rules", acls, self._follow_acls, is_delayed=False)
        schedule.every(
            "following topics' settings", configs, self._follow_configs, is_delayed=False
        )
        refresh = made.interval_seconds("refresh.topics")
        schedule.every("looking for topics", refresh, self._refresh, is_delayed=True)
        schedule.start(_START_SECONDS)

    def stop(self) -> None:
        self._schedule.stop()

    def changed_by_reading(self, settings: Settings) -> str | None:
        del settings
        return "it creates topics of the mirror at its start"

    def task_class(self) -> type[SourceTask]:
        return MirrorSourceTask

    def task_configs(self, max_tasks: int) -> Sequence[Settings]:
        """Divide the partitions; there are none until the source has answered."""
        known = self._known or {}
        parts = partitions_of({name: each.partition_count for name, each in known.items()})
        shares = divided(parts, max_tasks)
        return [
            {
                **self.settings,
                "task.index": str(number),
                "task.assigned.partitions": encoded(share),
                "task.assigned.topic.ids": ",".join(
                    sorted({f"{each.topic}={known[each.topic].topic_id}" for each in share})
                ),
            }
            for number, share in enumerate(shares)
        ]

    def exactly_once_support(self, settings: Settings) -> ExactlyOnceSupport:
        made = MirrorSettings.of(SOURCE, settings)
        if made.reads_committed:
            return ExactlyOnceSupport.SUPPORTED
        return ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        del settings
        for partition, offset in offsets:
            check_source_offset(partition, offset)
        return True

    # --- repeated actions, in the schedule's thread ---

    def _create_syncs_topic(self) -> None:
        made = self._mirror
        cluster = self._source if made.offset_syncs_side == "source" else self._target
        cluster.create_compacted(
            made.offset_syncs_topic, made["offset-syncs.topic.replication.factor"]
        )

    def _refresh(self) -> None:
        """List topics, create what the target lacks, divide again if partitions changed."""
        names = [each for each in self._source.topic_names() if self._flow.replicates(each)]
        found = self._source.topics(names)
        self._make_topics(found)
        if found != self._known:
            before, self._known = self._known, found
            log.info("topics flow=%s now=%s before=%s", self._flow, len(found), len(before or ()))
            if not found:
                # A list of topics leaves out, without an error, those that nobody may describe.
                log.warning(
                    "source shows no topic to copy flow=%s: it has none, or its user is not "
                    "authorized to DESCRIBE them",
                    self._flow,
                )
            self.context.request_task_reconfiguration()

    def _make_topics(self, found: dict[str, Topic]) -> None:
        remote = {self._flow.remote_topic(name): name for name in found}
        there = self._target.topics(set(remote) & set(self._target.topic_names()))
        plan = plan_topics(self._flow, _counts(found), _counts(there))
        configs = self._source.configs(remote[name] for name in plan.create)
        for name, count in plan.create.items():
            config = self._rules.of_new_topic(configs[remote[name]])
            if self._target.create(name, count, self._mirror["replication.factor"], config):
                log.info("topic created topic=%s partitions=%s", name, count)
        for name, count in plan.increase.items():
            self._target.increase(name, count)
            log.info("topic has more partitions topic=%s partitions=%s", name, count)

    def _follow_configs(self) -> None:
        known = self._known or {}
        remote = {name: self._flow.remote_topic(name) for name in known}
        source, target = self._source.configs(known), self._target.configs(remote.values())
        for name, entries in source.items():
            changes = self._rules.changes(entries, target[remote[name]])
            if changes:
                self._target.change_configs(remote[name], changes)
                log.info("settings changed topic=%s settings=%s", remote[name], sorted(changes))

    def _follow_acls(self) -> None:
        rules = self._source.acls()
        if rules is None:
            log.debug("source has no access rules flow=%s", self._flow)
            return
        there = self._target.acls()
        lacking = [each for each in remote_acls(self._flow, rules) if each not in (there or ())]
        # librdkafka shows a cluster without an authorizer as one without rules; adding one tells.
        if lacking and (there is None or not self._target.create_acls(lacking)):
            log.warning("target keeps no access rules flow=%s lacks=%s", self._flow, len(lacking))


def _counts(topics: dict[str, Topic]) -> dict[str, int]:
    return {name: each.partition_count for name, each in topics.items()}
