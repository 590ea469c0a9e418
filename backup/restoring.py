"""Writes a backup into a cluster that has none of its topics.

Everything is checked before anything is created: the files, and whether the cluster takes the
topics. While records are written a topic has settings of its own, so that old records are taken
with their times and not deleted at once; then it gets those of the backup.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from backup.folder import StoredBackup
from backup.manifest import TopicBackup
from backup.records import MAX_SEQUENCE, count_of, sent_by
from backup.taking import Show
from common.kafka.admin.acls import create_acls
from common.kafka.admin.client import AdminClient, error_of, raise_for
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.group_offsets import set_offsets
from common.kafka.admin.leaders import LEADER_MOVED
from common.kafka.admin.quotas import alter_quotas
from common.kafka.admin.topics import create_topic, topic_leaders
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from common.kafka.topics import TopicPartition

MEANWHILE: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "max.message.bytes": str((1 << 31) - 1),
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
    "message.timestamp.before.max.ms": str((1 << 63) - 1),
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""The settings of a topic while its records are written."""
MIN_REPLICAS: Final = "min.insync.replicas"
_ACKS_ALL: Final = -1
_LAST_VERSION_WITH_NAMES: Final = 12
_MAY_PASS: Final = LEADER_MOVED | {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
_NOT_YET: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT})
"""What Apache Kafka answers while it gets its first producer ids from the controller."""
_IS_THERE: Final = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class Restoring:
    """Owns one backup that is being written into a cluster."""

    def __init__(
        self,
        client: AdminClient,
        backup: StoredBackup,
        topics: Sequence[TopicBackup],
        show: Show,
        tell: Callable[[str], None],
    ) -> None:
        self._client = client
        self._backup = backup
        self._topics = topics
        self._show = show
        self._tell = tell
        self._leaders: dict[TopicPartition, int] = {}

    def restore(self, *, replication_factor: int | None, is_whole: bool) -> None:
        """Write topics and groups; with `is_whole` access rules and quotas too.

        Without a replication factor each topic has its own, if there are as many brokers. Raise
        FolderError and KafkaError, for instance if a topic exists.
        """
        brokers = len(self._client.nodes().nodes)
        wanted = {
            each.name: replication_factor or min(each.replication_factor, brokers)
            for each in self._topics
        }
        for topic in self._topics:
            self._create(topic, wanted[topic.name], _settings(topic, wanted), validate_only=True)
        for topic in self._topics:
            self._tell(f"checking the files of {topic.name}")
            self._backup.check(topic)
        producer = self._client.retry("a producer's id", self._producer, _NOT_YET)
        for topic in self._topics:
            self._create(topic, wanted[topic.name], MEANWHILE)
            for partition in range(len(topic.partitions)):
                self._write(topic, partition, producer)
            settings = _settings(topic, wanted)
            resource = Resource(ResourceType.TOPIC, topic.name)
            alter(self._client, {resource: {**dict.fromkeys(MEANWHILE), **settings}})
        self._commit()
        if is_whole:
            self._rules()

    def _producer(self) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answer = self._client.ask_once(request, InitProducerIdResponse)
        raise_for(answer.error_code)
        return answer.producer_id, answer.producer_epoch

    def _create(
        self,
        topic: TopicBackup,
        replicas: int,
        settings: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        try:
            create_topic(
                self._client,
                topic.name,
                partition_count=len(topic.partitions),
                replication_factor=replicas,
                configs=settings,
                validate_only=validate_only,
            )
        except KafkaError as error:
            raise KafkaError(error.code, f"topic {topic.name}: {error}") from error

    def _commit(self) -> None:
        names = {each.name for each in self._topics}
        for group, offsets in self._backup.manifest.groups.items():
            there = {
                TopicPartition(each.topic, each.partition): each.offset
                for each in offsets
                if each.topic in names
            }
            try:
                set_offsets(self._client, group, there)
            except KafkaError as error:
                raise KafkaError(error.code, f"group {group}: {error}") from error

    def _rules(self) -> None:
        manifest = self._backup.manifest
        for quotas in manifest.quotas:
            alter_quotas(self._client, quotas.entity, quotas.values)
        try:
            if manifest.acls:
                create_acls(self._client, manifest.acls)
        except KafkaError as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise
            self._tell(f"without {len(manifest.acls)} access rules: {error}")
        if manifest.scram_users:
            self._tell(
                "no cluster gives passwords away: set them for " + ", ".join(manifest.scram_users)
            )

    # --- records ---

    def _write(self, topic: TopicBackup, partition: int, producer: tuple[int, int]) -> None:
        place = TopicPartition(topic.name, partition)
        total, written = topic.partitions[partition].records, 0
        for batch in self._backup.batches(topic.name, partition):
            sent = sent_by(batch, *producer, written % MAX_SEQUENCE)
            offset = self._client.retry(
                f"{place} to take records", partial(self._sent, place, sent), _MAY_PASS
            )
            if offset not in (written, None):
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE,
                    f"{place}: another program writes into it while it is restored",
                )
            written += count_of(batch)
            self._show(place, written, written, total)

    def _sent(self, place: TopicPartition, batch: bytes) -> int | None:
        """Send a batch once; return its offset, None if it lies there already."""
        leader_id = self._leaders.pop(place, None)
        if leader_id is None:
            leader_id = topic_leaders(self._client, [place.topic]).get(place, -1)
        if leader_id < 0:
            raise error_of(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader")
        data = PartitionProduceData(index=place.partition, records=batch)
        request = ProduceRequest(
            acks=_ACKS_ALL,
            timeout_ms=self._client.settings.request_timeout_ms,
            topic_data=[TopicProduceData(name=place.topic, partition_data=[data])],
        )
        answer = self._client.ask_once(
            request, ProduceResponse, leader_id, max_version=_LAST_VERSION_WITH_NAMES
        )
        (one,) = [each for found in answer.responses for each in found.partition_responses]
        if one.error_code == _IS_THERE:
            return None
        raise_for(one.error_code, one.error_message or f"{place}: {ErrorCode(one.error_code).name}")
        self._leaders[place] = leader_id
        return one.base_offset


def _settings(topic: TopicBackup, replicas: Mapping[str, int]) -> dict[str, str]:
    """Return the settings of a restored topic; it cannot wait for more replicas than it has."""
    settings = dict(topic.settings)
    least = settings.get(MIN_REPLICAS, "")
    if least.isdecimal() and int(least) > replicas[topic.name]:
        settings[MIN_REPLICAS] = str(replicas[topic.name])
    return settings
