"""A second cluster in the demo (`MIRROR=1`): one broker, and a mirror that copies to it.

The mirror copies the pipeline's topics and the offsets of its groups. It writes nothing to the
first cluster, which may belong to the user.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiokafka import TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.consumer import Consumer
from demo.pipeline.brokers import STANDBY, start_standby
from demo.pipeline.topics import SINK_GROUPS, Pipeline, pipeline, pipeline_partitions
from millstream.processes.child_processes import Children

PROGRAMS = (STANDBY, "mirror")
_SOURCE, _TARGET = "shop", STANDBY
_LEVEL_SECONDS = 60.0
_POLL_SECONDS = 0.1
_SCHEMAS = "_schemas"
_EVERY_SECOND = (
    "refresh.topics",
    "refresh.groups",
    "emit.checkpoints",
    "sync.topic.configs",
    "sync.group.offsets",
)
_ONE_BROKER = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "config.storage.replication.factor",
    "status.storage.replication.factor",
)


class MirrorBehindError(Exception):
    """The mirror did not copy all records of the pipeline in time."""


@dataclass(slots=True)
class Mirror:
    """The second cluster and its mirror."""

    source: KafkaAccess
    target_servers: str
    urls: Mapping[str, str]
    most_lag: int = 0
    """The largest observed lag, as reported by the mirror."""

    async def watch(self, session: aiohttp.ClientSession) -> None:
        """Record the mirror's lag until cancelled."""
        while True:
            topics = await self._topics(session)
            self.most_lag = max(self.most_lag, sum(each["lag"] for each in topics.values()))
            await asyncio.sleep(_POLL_SECONDS)

    async def wait_until_level(self, session: aiohttp.ClientSession) -> dict[str, Any]:
        """Return the mirror's part of the report: its lag, and the time until it has caught up.

        The goal is the end of the topics at the time of this call; the pipeline may write more.
        """
        ends, started_at = await self._ends(), time.monotonic()
        lag = first_lag = _lag(ends, await self._topics(session))
        while lag:
            if time.monotonic() > started_at + _LEVEL_SECONDS:
                raise MirrorBehindError(f"the mirror lacks {lag} of {sum(ends.values())} offsets")
            await asyncio.sleep(_POLL_SECONDS)
            lag = _lag(ends, await self._topics(session))
        return {
            "topics": len({at.topic for at in ends}),
            "offsets": sum(ends.values()),
            "replication_offset_lag": {"most": self.most_lag, "after_last_order": first_lag},
            "seconds_until_level": round(time.monotonic() - started_at, 3),
        }

    def rows(self, report: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the mirror's part of the report as lines of the table."""
        lag = report["replication_offset_lag"]
        return [
            ("second cluster", self.target_servers),
            ("topics", str(report["topics"])),
            ("offsets copied", str(report["offsets"])),
            ("replication-offset-lag, most seen", str(lag["most"])),
            ("replication-offset-lag after the last order", str(lag["after_last_order"])),
            ("level after that", f"{report['seconds_until_level']:.1f} s"),
        ]

    async def _ends(self) -> dict[TopicPartition, int]:
        """Return the end offsets of the pipeline's topics."""
        consumer = Consumer(**self.source.aiokafka(), isolation_level="read_committed")
        await consumer.start()
        try:
            parts = await pipeline_partitions(self.source)
            ends: dict[TopicPartition, int] = await consumer.end_offsets(parts)
            return ends
        finally:
            await consumer.stop()

    async def _topics(self, session: aiohttp.ClientSession) -> dict[str, Any]:
        """Return the mirror's progress, by the names of the copies."""
        async with session.get(self.urls["mirror"] + "/flows") as response:
            (flow,) = await response.json()
            topics: dict[str, Any] = flow["topics"]
            return topics


def _lag(ends: Mapping[TopicPartition, int], topics: Mapping[str, Any]) -> int:
    """Return the number of offsets without a copy."""
    offsets = {topic: each["offsets"] for topic, each in topics.items()}
    return sum(
        max(0, end - offsets.get(f"{_SOURCE}.{at.topic}", {}).get(str(at.partition), 0))
        for at, end in ends.items()
    )


async def start_mirror(
    children: Children, source: KafkaAccess, folder: Path, ports: Sequence[int]
) -> Mirror:
    """Start the second cluster and then the mirror; return when both are ready."""
    client_port, controller_port, page_port, mirror_port = ports
    children.begin_level()
    standby = await start_standby(children, folder, client_port, controller_port, page_port)
    children.begin_level()
    copied = await asyncio.to_thread(pipeline)
    told = {
        **_settings(source.bootstrap_servers, standby, copied),
        "listeners": f"http://127.0.0.1:{mirror_port}",
    }
    file = folder / "mm2.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    await children.start("mirror", "mirror", str(file))
    numbers = zip(PROGRAMS, (page_port, mirror_port), strict=True)
    pages = {name: f"http://127.0.0.1:{port}" for name, port in numbers}
    return Mirror(source, standby, pages)


def _settings(source_servers: str, target_servers: str, copied: Pipeline) -> dict[str, str]:
    return {
        "clusters": f"{_SOURCE}, {_TARGET}",
        f"{_SOURCE}.bootstrap.servers": source_servers,
        f"{_TARGET}.bootstrap.servers": target_servers,
        f"{_TARGET}.security.protocol": "PLAINTEXT",
        f"{_SOURCE}->{_TARGET}.enabled": "true",
        f"{_TARGET}->{_SOURCE}.emit.heartbeats.enabled": "false",
        "topics": ", ".join([*copied.topics, r".*\.dead-letter", _SCHEMAS]),
        "groups": ", ".join((*copied.groups, *SINK_GROUPS)),
        "offset-syncs.topic.location": "target",
        "sync.group.offsets.enabled": "true",
        "offset.flush.interval.ms": "1000",
        **dict.fromkeys(_ONE_BROKER, "1"),
        **{f"{name}.interval.seconds": "1" for name in _EVERY_SECOND},
    }
