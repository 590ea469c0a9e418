"""The metadata of the cluster, requested for each call over one connection per broker."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from common.credentials.connecting import Security
from common.kafka import group_offsets
from common.kafka.client.cluster import ANY_NODE, KafkaClient
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.group_offsets import Committed
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from common.kafka.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from rest_proxy.kafka.errors import (
    BROKER_NOT_AVAILABLE,
    KAFKA_SECONDS,
    bounded,
    refusal_of,
    refusal_of_code,
)
from rest_proxy.refusals import (
    KAFKA_RETRIABLE,
    RestError,
    illegal_state,
    partition_not_found,
    topic_not_found,
)

log = logging.getLogger(__name__)

# Half of the time of a question: if one broker is silent, the next one can still answer.
_REQUEST_TIMEOUT_MS: Final = 5_000
_CONNECT_RETRY_SECONDS: Final = 0.1
EARLIEST: Final = -2
LATEST: Final = -1
_NO_REPLICA: Final = -1
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
SET: Final = 0
DELETE: Final = 1
_NO_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)

Answer = TypeVar("Answer", bound=Message)


@dataclass(frozen=True, slots=True)
class Broker:
    broker_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class Partition:
    partition_id: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    is_internal: bool
    partitions: tuple[Partition, ...]

    def partition(self, partition_id: int) -> Partition:
        """Return a partition; raises RestError, 40402."""
        for each in self.partitions:
            if each.partition_id == partition_id:
                return each
        raise partition_not_found(self.name, partition_id)


@dataclass(frozen=True, slots=True)
class Cluster:
    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]


class ConfigEntry(NamedTuple):
    """One setting, with its fields in the order of the brokers' answer."""

    name: str
    value: str | None
    is_read_only: bool
    source: int
    is_sensitive: bool
    synonyms: Sequence[tuple[str, str | None, int]]


Change = tuple[str, int, str | None]
"""A setting, whether it is set or deleted, and its value."""


@dataclass(frozen=True, slots=True)
class Reassignment:
    topic: str
    partition_id: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class Brokers:
    """Owns a client; a call before it is connected is refused, 503. Every call raises RestError."""

    def __init__(self, bootstrap_servers: str, security: Security, client_id: str) -> None:
        self._client = KafkaClient(
            bootstrap_servers,
            security,
            client_id=client_id,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        self._connected = asyncio.Event()
        self._cluster_id: str | None = None

    async def connect(self) -> None:
        """Return when it is connected; wait while no broker can be reached."""
        is_said = False
        while not self._connected.is_set():
            try:
                await self._client.connect()
                self._connected.set()
            except (KafkaError, OSError) as error:
                if not is_said:
                    log.warning("no broker answers, waiting for one error=%s", error)
                    is_said = True
                await asyncio.sleep(_CONNECT_RETRY_SECONDS)

    async def wait_until_connected(self) -> None:
        """Return when `connect` has connected."""
        await self._connected.wait()

    async def close(self) -> None:
        await self._client.close()

    # --- the cluster and its topics ---

    async def cluster_id(self) -> str:
        """Return the id of the cluster, which never changes."""
        if self._cluster_id is None:
            self._cluster_id = (await self.cluster()).cluster_id
        return self._cluster_id

    async def cluster(self) -> Cluster:
        """Return the cluster's brokers."""
        answer = await self._metadata([])
        brokers = sorted(
            (Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers),
            key=lambda each: each.broker_id,
        )
        return Cluster(answer.cluster_id or "", answer.controller_id, tuple(brokers))

    async def topics(self) -> list[Topic]:
        """Return all topics, sorted by name."""
        answer = await self._metadata(None)
        return sorted(
            (_topic(each) for each in answer.topics if not each.error_code),
            key=lambda each: each.name,
        )

    async def topic(self, name: str) -> Topic:
        """Return one topic; raises RestError, 40401 for a missing one."""
        answer = await self._metadata([name])
        for each in answer.topics:
            if each.error_code in _NO_TOPIC:
                raise topic_not_found(name)
            if each.error_code:
                raise refusal_of_code(each.error_code)
            return _topic(each)
        raise topic_not_found(name)

    async def reassignments(self) -> list[Reassignment]:
        """Return the reassignments under way."""
        controller = (await self.cluster()).controller_id
        request = ListPartitionReassignmentsRequest(timeout_ms=_REQUEST_TIMEOUT_MS)
        answer = await self._ask(request, ListPartitionReassignmentsResponse, controller)
        if answer.error_code:
            raise refusal_of_code(answer.error_code, answer.error_message or "")
        return [
            Reassignment(
                topic.name,
                each.partition_index,
                tuple(each.adding_replicas),
                tuple(each.removing_replicas),
            )
            for topic in answer.topics
            for each in topic.partitions
        ]

    # --- settings ---

    async def configs(self, kind: int, name: str) -> list[ConfigEntry]:
        """Return the settings of a topic, a broker, or all brokers (no name)."""
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        answer = await self._ask(request, DescribeConfigsResponse, _only_broker(kind, name))
        found = answer.results[0]
        if found.error_code:
            raise refusal_of_code(found.error_code, found.error_message or "")
        return [
            ConfigEntry(
                each.name,
                each.value,
                each.read_only,
                each.config_source,
                each.is_sensitive,
                [(one.name, one.value, one.source) for one in each.synonyms],
            )
            for each in found.configs
        ]

    async def alter_configs(
        self, kind: int, name: str, changes: Iterable[Change], *, validate_only: bool = False
    ) -> None:
        """Change settings, all or none."""
        resource = AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                AlterableConfig(name=setting, config_operation=operation, value=value)
                for setting, operation, value in changes
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        answer = await self._ask(request, IncrementalAlterConfigsResponse, _only_broker(kind, name))
        found = answer.responses[0]
        if found.error_code:
            raise refusal_of_code(found.error_code, found.error_message or "")

    # --- offsets ---

    async def committed(self, group_id: str) -> Mapping[tuple[str, int], Committed]:
        """Return the committed offsets of a group; none for an unknown group."""
        try:
            return await group_offsets.until_answered(
                lambda: group_offsets.committed_offsets(self._client, group_id), KAFKA_SECONDS
            )
        except (KafkaError, OSError) as error:
            raise refusal_of(error) from None

    async def commit(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Set a group's offsets; Kafka refuses it while the group has members."""
        try:
            await group_offsets.until_answered(
                lambda: group_offsets.commit_offsets(self._client, group_id, offsets), KAFKA_SECONDS
            )
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                raise illegal_state(
                    f"Group {group_id} has members: offsets can be reset when all have left."
                ) from None
            raise refusal_of(error) from None
        except OSError as error:
            raise refusal_of(error) from None

    async def offsets(
        self, places: Iterable[tuple[str, int]], at: int
    ) -> dict[tuple[str, int], int]:
        """Return partitions' offsets at a time in milliseconds, EARLIEST or LATEST.

        It is -1 if no record is that late. A partition without leader is refused.
        """
        wanted = set(places)
        if not wanted:
            return {}
        answer = await self._metadata(sorted({topic for topic, _ in wanted}))
        by_leader: dict[int, list[tuple[str, int]]] = {}
        for topic in answer.topics:
            if topic.error_code:
                raise refusal_of_code(topic.error_code)
            for each in _topic(topic).partitions:
                place = (topic.name or "", each.partition_id)
                if place in wanted:
                    by_leader.setdefault(each.leader, []).append(place)
        if -1 in by_leader:
            raise RestError(KAFKA_RETRIABLE, f"{by_leader[-1][0]} has no leader just now.")
        found: dict[tuple[str, int], int] = {}
        for leader, own in by_leader.items():
            found |= await self._offsets_of(leader, own, at)
        missing = sorted(wanted - found.keys())
        if missing:
            raise partition_not_found(*missing[0])
        return found

    async def _offsets_of(
        self, leader: int, places: list[tuple[str, int]], at: int
    ) -> dict[tuple[str, int], int]:
        by_topic: dict[str, list[ListOffsetsPartition]] = {}
        for topic, partition in places:
            wanted = ListOffsetsPartition(partition_index=partition, timestamp=at)
            by_topic.setdefault(topic, []).append(wanted)
        request = ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            timeout_ms=_REQUEST_TIMEOUT_MS,
            topics=[
                ListOffsetsTopic(name=topic, partitions=partitions)
                for topic, partitions in by_topic.items()
            ],
        )
        try:
            async with bounded():
                answer = await self._client.ask(request, ListOffsetsResponse, leader)
        except (KafkaError, OSError) as error:
            raise refusal_of(error) from None
        found = {}
        for answered in answer.topics:
            for each in answered.partitions:
                if each.error_code:
                    raise refusal_of_code(each.error_code)
                found[answered.name, each.partition_index] = each.offset
        return found

    # --- requests ---

    async def _metadata(self, topics: list[str] | None) -> MetadataResponse:
        self._check_connected()
        try:
            async with bounded():
                return await self._client.metadata(topics)
        except (KafkaError, OSError) as error:
            raise refusal_of(error) from None

    async def _ask(self, request: Message, answer: type[Answer], first: int) -> Answer:
        """Send a request to a broker, and to the next one if it does not answer."""
        self._check_connected()
        try:
            async with bounded():
                try:
                    return await self._client.ask(request, answer, first)
                except ConnectionFailed:
                    return await self._client.ask(request, answer)
        except (KafkaError, OSError) as error:
            raise refusal_of(error) from None

    def _check_connected(self) -> None:
        if not self._connected.is_set():
            raise RestError(BROKER_NOT_AVAILABLE, "Kafka cannot be reached yet.")


def _topic(found: MetadataResponseTopic) -> Topic:
    partitions = [
        Partition(
            each.partition_index,
            each.leader_id,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
        )
        for each in found.partitions
    ]
    partitions.sort(key=lambda each: each.partition_id)
    return Topic(found.name or "", found.is_internal, tuple(partitions))


def _only_broker(kind: int, name: str) -> int:
    """Return the only broker that can answer for a resource, ANY_NODE if every broker can."""
    return int(name) if kind == BROKER_RESOURCE and name else ANY_NODE
