"""The metadata of the cluster, requested for each call over one connection per broker."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    RequestTimedOutError,
)
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest

from common.kafka.brokers import any_broker
from rest_proxy.kafka.errors import BROKER_NOT_AVAILABLE, refusal_of, refusal_of_code
from rest_proxy.kafka.group_offsets import GroupOffsets
from rest_proxy.kafka.raw import (
    BROKER_RESOURCE,
    DescribeConfigs1,
    IncrementalAlterConfigs0,
    ListPartitionReassignments0,
)
from rest_proxy.kafka.waiting import bounded
from rest_proxy.refusals import (
    KAFKA_RETRIABLE,
    RestError,
    partition_not_found,
    topic_not_found,
)

log = logging.getLogger(__name__)

_DID_NOT_ANSWER: Final = (NodeNotReadyError, KafkaConnectionError, RequestTimedOutError)
# Half of the time of a question: if one broker is silent, the next one can still answer.
_REQUEST_TIMEOUT_MS: Final = 5_000
_CONNECT_RETRY_SECONDS: Final = 0.1
EARLIEST: Final = -2
LATEST: Final = -1
_NO_REPLICA: Final = -1
_READ_UNCOMMITTED: Final = 0
_UNKNOWN_TOPIC: Final = 3
_INVALID_TOPIC: Final = 17


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
    """Owns a client of aiokafka; a call before it is connected is refused, 503."""

    def __init__(self, client_settings: Mapping[str, Any]) -> None:
        self._client = AIOKafkaClient(request_timeout_ms=_REQUEST_TIMEOUT_MS, **client_settings)
        self.groups = GroupOffsets(self._client)
        self._connected = asyncio.Event()
        self._cluster_id: str | None = None

    async def connect(self) -> None:
        """Return when it is connected; wait while no broker can be reached."""
        is_said = False
        while not self._connected.is_set():
            try:
                await self._client.bootstrap()
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

    async def cluster_id(self) -> str:
        """Return the id of the cluster, which never changes; raises RestError."""
        if self._cluster_id is None:
            self._cluster_id = (await self.cluster()).cluster_id
        return self._cluster_id

    async def cluster(self) -> Cluster:
        """Return the cluster's brokers; raises RestError."""
        answer = await self._metadata([])
        brokers = [Broker(*each) for each in sorted(answer.brokers)]
        return Cluster(answer.cluster_id, answer.controller_id, tuple(brokers))

    async def topics(self) -> list[Topic]:
        """Return all topics, sorted by name; raises RestError."""
        answer = await self._metadata(None)
        return sorted(
            (_topic(*each) for each in answer.topics if not each[0]), key=lambda each: each.name
        )

    async def topic(self, name: str) -> Topic:
        """Return one topic; raises RestError, 40401 for a missing one."""
        answer = await self._metadata([name])
        for each in answer.topics:
            if each[0] in (_UNKNOWN_TOPIC, _INVALID_TOPIC):
                raise topic_not_found(name)
            if each[0]:
                raise refusal_of_code(each[0])
            return _topic(*each)
        raise topic_not_found(name)

    async def configs(self, kind: int, name: str) -> list[ConfigEntry]:
        """Return the settings of a topic, a broker, or all brokers (no name); raises RestError."""
        answer = await self._ask(DescribeConfigs1([(kind, name, None)], True), _told(kind, name))
        code, message, _, _, configs = answer.resources[0]
        if code:
            raise refusal_of_code(code, message or "")
        return [ConfigEntry(*each) for each in configs]

    async def alter_configs(
        self, kind: int, name: str, changes: Iterable[Change], *, validate_only: bool = False
    ) -> None:
        """Change settings, all or none; raises RestError."""
        request = IncrementalAlterConfigs0([(kind, name, list(changes))], validate_only)
        answer = await self._ask(request, _told(kind, name))
        code, message, _, _ = answer.responses[0]
        if code:
            raise refusal_of_code(code, message or "")

    async def reassignments(self) -> list[Reassignment]:
        """Return the reassignments under way; raises RestError."""
        controller = (await self.cluster()).controller_id
        request = ListPartitionReassignments0(_REQUEST_TIMEOUT_MS, None, {})
        answer = await self._ask(request, first=controller)
        if answer.error_code:
            raise refusal_of_code(answer.error_code, answer.error_message or "")
        return [
            Reassignment(topic, partition, tuple(adding), tuple(removing))
            for topic, partitions, _ in answer.topics or ()
            for partition, _, adding, removing, _ in partitions
        ]

    async def offsets(
        self, places: Iterable[tuple[str, int]], at: int
    ) -> dict[tuple[str, int], int]:
        """Return partitions' offsets at a time in milliseconds, EARLIEST or LATEST.

        It is -1 if no record is that late. Raises RestError, also for a partition without leader.
        """
        wanted = set(places)
        if not wanted:
            return {}
        answer = await self._metadata(sorted({topic for topic, _ in wanted}))
        by_leader: dict[int, list[tuple[str, int]]] = {}
        for code, name, is_internal, partitions in answer.topics:
            if code:
                raise refusal_of_code(code)
            for each in _topic(code, name, is_internal, partitions).partitions:
                if (name, each.partition_id) in wanted:
                    by_leader.setdefault(each.leader, []).append((name, each.partition_id))
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
        by_topic: dict[str, list[tuple[int, int]]] = {}
        for topic, partition in places:
            by_topic.setdefault(topic, []).append((partition, at))
        request = OffsetRequest(_NO_REPLICA, _READ_UNCOMMITTED, list(by_topic.items()))
        try:
            async with bounded():
                answer = await self._client.send(leader, request)
        except (KafkaError, OSError) as error:
            raise refusal_of(error) from None
        found = {}
        for topic, partitions in answer.topics:
            for partition, code, _, offset, *_ in partitions:
                if code:
                    raise refusal_of_code(code)
                found[topic, partition] = offset
        return found

    async def _metadata(self, topics: list[str] | None) -> Any:
        return await self._ask(MetadataRequest(topics, allow_auto_topic_creation=False))

    async def _ask(self, request: Any, first: int | None = None) -> Any:
        """Send a request to a broker, and to the next one if it does not answer."""
        if not self._connected.is_set():
            raise RestError(BROKER_NOT_AVAILABLE, "Kafka cannot be reached yet.")
        try:
            first = any_broker(self._client) if first is None or first < 0 else first
            known = {broker.nodeId for broker in self._client.cluster.brokers()}
            failure: KafkaError = NodeNotReadyError()
            async with bounded():
                for node in (first, *sorted(known - {first})):
                    try:
                        return await self._client.send(node, request)
                    except _DID_NOT_ANSWER as error:
                        failure = error
                # The known brokers may be gone for good, so the list is requested again.
                await self._client.force_metadata_update()
            raise failure
        except (KafkaError, OSError) as error:
            raise refusal_of(error) from None


def _topic(code: int, name: str, is_internal: bool, partitions: Iterable[Any]) -> Topic:
    assert not code, (code, name)
    found = sorted(
        (Partition(number, leader, tuple(replicas), tuple(isr))
         for _, number, leader, replicas, isr, _ in partitions),
        key=lambda each: each.partition_id,
    )  # fmt: skip
    return Topic(name, is_internal, tuple(found))


def _told(kind: int, name: str) -> int | None:
    """Return the only broker that can answer for a resource, None if every broker can."""
    return int(name) if kind == BROKER_RESOURCE and name else None
