"""Takes pictures of the cluster as long as somebody watches, once for all who do."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

from common.kafka.client.cluster import KafkaClient
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.metadata import MetadataResponse
from common.kafka.topics import TopicPartition
from common.process.clock import now_seconds, timestamp_ms
from common.process.tasks import spawn
from console.watching.changes import changes
from console.watching.flows import Flow, Leaders
from console.watching.pictures import PartitionPicture, Picture

_QUICK_MS, _PATIENT_MS = 1_500, 10_000
"""A broker that stands still must not stop the pictures for long; the metadata of a large cluster
takes its time."""
_SECONDS, _MAX_SECONDS = 0.5, 10.0
_SHARE: Final = 10
"""Between two looks is at least so much more time than one takes: a large cluster is seen less
often."""
_FLOW_SECONDS: Final = 2.0
_QUEUE: Final = 50
_MAX_REMEMBERED: Final = 100

Flows = Callable[[Leaders], Awaitable[Flow]]
Parts = Callable[[], dict[str, str]]


class ClusterWatch:
    """Owns the loop, its client, and what happened lately."""

    def __init__(
        self, make_client: Callable[[int], KafkaClient], flows: Flows, parts: Parts
    ) -> None:
        self._make_client = make_client
        self._ask_flow = flows
        self._parts = parts
        self._queues: set[asyncio.Queue[str]] = set()
        self._task: asyncio.Task[None] | None = None
        self._picture: Picture | None = None
        self._is_seen = asyncio.Event()
        self._flow = Flow()
        self._happened: deque[dict[str, Any]] = deque(maxlen=_MAX_REMEMBERED)

    async def watch(self) -> AsyncGenerator[str, None]:
        """Yield pictures as JSON, each with what has happened since the one before."""
        queue: asyncio.Queue[str] = asyncio.Queue(_QUEUE)
        self._queues.add(queue)
        if self._task is None:
            self._task = spawn(self._run())
        try:
            if self._picture is not None:
                yield self._text(self._picture, list(self._happened))
            while True:
                yield await queue.get()
        finally:
            self._queues.discard(queue)
            if not self._queues:
                await self.close()

    async def _run(self) -> None:
        quick, patient = self._make_client(_QUICK_MS), self._make_client(_PATIENT_MS)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(quick, patient))
                group.create_task(self._follow_flow())
        finally:
            await asyncio.gather(quick.close(), patient.close())

    async def _follow(self, quick: KafkaClient, patient: KafkaClient) -> None:
        taken = 0.0
        while True:
            begun = now_seconds()
            try:
                is_large = taken * 1000 > _QUICK_MS / 2
                found = await (patient if is_large else quick).metadata(None)
            except (KafkaError, ConnectionFailed) as error:
                self._tell({"failure": f"Kafka does not answer: {error}"})
            else:
                self._see(_picture(found, self._flow, self._parts()))
            taken = now_seconds() - begun
            await asyncio.sleep(_pause(_SECONDS, taken))

    async def _follow_flow(self) -> None:
        await self._is_seen.wait()
        while True:
            begun = now_seconds()
            try:
                self._flow = await self._ask_flow(self._leaders())
            except (KafkaError, ConnectionFailed):
                self._flow = Flow()  # Coordinators are away: the pictures show no lag.
            await asyncio.sleep(_pause(_FLOW_SECONDS, now_seconds() - begun))

    def _leaders(self) -> Leaders:
        seen = self._picture.partitions if self._picture is not None else {}
        return {TopicPartition(*name): each.leader for name, each in seen.items()}

    def _see(self, picture: Picture) -> None:
        before, self._picture = self._picture, picture
        self._is_seen.set()
        sentences = [] if before is None else changes(before, picture)
        happened = [{"at": str(timestamp_ms()), "sentence": each} for each in sentences]
        self._happened.extend(happened)
        if before != picture:
            self._send(self._text(picture, happened))

    def _text(self, picture: Picture, happened: list[dict[str, Any]]) -> str:
        told = {"picture": picture.as_json(), "happened": happened}
        return json.dumps(told, ensure_ascii=False)

    def _tell(self, body: dict[str, Any]) -> None:
        self._send(json.dumps(body, ensure_ascii=False))

    def _send(self, text: str) -> None:
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()  # A slow browser misses the oldest picture.
            queue.put_nowait(text)

    async def close(self) -> None:
        """End the loop; the next who watches begins it again."""
        task, self._task = self._task, None
        self._picture = None
        self._is_seen.clear()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _pause(least: float, taken: float) -> float:
    return min(max(least, _SHARE * taken), _MAX_SECONDS)


def _picture(found: MetadataResponse, flow: Flow, parts: dict[str, str]) -> Picture:
    return Picture(
        {each.node_id: f"{each.host}:{each.port}" for each in found.brokers},
        found.controller_id,
        {
            (topic.name or "", each.partition_index): PartitionPicture(
                each.leader_id, tuple(each.replica_nodes), frozenset(each.isr_nodes)
            )
            for topic in found.topics
            for each in topic.partitions
        },
        flow.lags,
        parts,
        flow.ages_ms,
        flow.written,
    )
