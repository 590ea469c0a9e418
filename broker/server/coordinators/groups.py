"""The group shards: one for each partition of `__consumer_offsets` that this broker leads."""

import logging
from collections.abc import Iterable

from broker.coordinator.group.refusals import refuse
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.output import EndOfTransaction, Instant, InTransaction, Output, ShardContext
from broker.coordinator.share_group.initialization import InitializeState
from broker.log.partition_log import PartitionLog
from broker.metadata.delta import MetadataDelta
from broker.metadata.features import SHARE_VERSION
from broker.metadata.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from broker.model import TopicPartition
from broker.records.control import EndMarker
from broker.server.clock import Random
from broker.server.coordinators.shard_loading import load_with_transactions
from broker.server.coordinators.shards import AskedShard, ShardKind, ShardParts, Shards
from broker.server.coordinators.share_state_calls import ShareStateCalls, by_topic, divided
from broker.server.network.dispatch import RequestContext
from common.kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

log = logging.getLogger("millstream.groups")


class Groups(Shards[GroupShard]):
    """Every group shard this broker owns."""

    def __init__(
        self,
        parts: ShardParts,
        config: GroupConfig,
        random_source: Random,
        calls: ShareStateCalls,
    ) -> None:
        self._calls = calls
        self._config = config
        kind = ShardKind(
            CONSUMER_OFFSETS,
            make=lambda: GroupShard(self._config, random_source, lambda: parts.metadata.image),
            refuse=refuse,
            commit_timeout_ms=config.commit_timeout_ms,
            begin=self._initialize_share_state,
            load=load_with_transactions,
        )
        super().__init__(parts, kind)

    def change(self, config: GroupConfig) -> None:
        """Use other settings from the next request on."""
        self._config = config
        for shard in self._shards.values():
            shard.state.config = config

    # --- share groups ---

    @property
    def lacks_share_coordinator(self) -> bool:
        """True if there may be share groups, but not the topic of their state."""
        image = self._metadata.image
        is_enabled = image.features.get(SHARE_VERSION, 0) > 0
        return is_enabled and SHARE_GROUP_STATE not in image.topics.by_name

    def _initialize_share_state(self, number: int, effect: InitializeState) -> None:
        """Have state begun, and tell the shard that wants it, if it is still the same one."""
        shard = self._shards.get(number)
        asked = self._calls.initialize(effect)

        def tell() -> None:
            if shard is not None and self._shards.get(number) is shard:
                done, refused = divided(asked.value)
                for (topic_id, partition), result in refused.items():
                    log.warning(
                        "share state cannot begin group=%s topic_id=%s partition=%d error=%s",
                        effect.group_id, topic_id.hex(), partition, result.error_message,
                    )  # fmt: skip
                now = self._now()
                output = shard.on_share_state(effect.group_id, done, by_topic(refused), now)
                self._run(number, output)

        asked.when_done(tell)

    def shards(self) -> Iterable[GroupShard]:
        """Return the shards that this broker coordinates."""
        return self._shards.values()

    # --- transactions ---

    def place_of(self, group_id: str) -> TopicPartition:
        """Return the partition of a group's records; raises NOT_COORDINATOR and the like."""
        return TopicPartition(CONSUMER_OFFSETS, self._number_of(group_id))

    def commit_in_transaction(
        self, context: RequestContext, request: TxnOffsetCommitRequest, guard: int
    ) -> AskedShard:
        """Put offsets to the group's shard, if its log takes them; raises KafkaError.

        The log is checked before the shard decides, because the shard's records must be written.
        """
        number = self._number_of(request.group_id)
        producer = request.producer_id, request.producer_epoch
        self._log(number).producers.validate_in_transaction(*producer, guard)

        def ask(shard: GroupShard, asked: AskedShard, who: ShardContext, now: Instant) -> Output:
            output = shard.commit_in_transaction(asked, who, request, now)
            if isinstance(output.transaction, InTransaction):
                output.transaction = output.transaction._replace(guard=guard)
            return output

        return self._ask(context, number, ask)

    def end_transaction(
        self, context: RequestContext, number: int, end: EndOfTransaction
    ) -> AskedShard:
        """Put a marker to a shard, which answers with an ErrorCode; raises KafkaError."""
        self._validate_number(number)
        marker = EndMarker(end.is_commit, end.coordinator_epoch)
        self._log(number).producers.validate_marker(
            end.producer_id, end.producer_epoch, marker, end.transaction_version
        )
        return self._ask(
            context, number, lambda shard, asked, who, now: shard.end_transaction(asked, end, now)
        )

    def _log(self, number: int) -> PartitionLog:
        return self._partitions.get(CONSUMER_OFFSETS, number).log

    def on_topic_deleted(self, topic: str, topic_id: bytes) -> None:
        """Drop the committed offsets of a deleted topic."""
        timestamp_ms = self._clock.timestamp_ms()
        self.run_one_by_one(lambda shard: shard.on_topic_deleted(topic, topic_id, timestamp_ms))

    def on_metadata_change(self, delta: MetadataDelta) -> None:
        """Follow the topics of the cluster."""
        for deleted in delta.deleted_topics:
            self.on_topic_deleted(deleted.name, deleted.topic_id)
        if delta.created_topics or delta.deleted_ids or delta.changed_partitions:
            for shard in self._shards.values():
                shard.on_topics_changed()

    def expire_offsets(self) -> None:
        """Drop offsets that were not used for offsets.retention.minutes."""
        timestamp_ms = self._clock.timestamp_ms()
        self.run_one_by_one(lambda shard: shard.expire_offsets(timestamp_ms))
