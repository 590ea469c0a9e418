"""`millstream mirror --once`: copy up to the sources' present end, verify the copy, and exit."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from common.process.clock import now_ms
from millstream.connect.connectors import TopicPartition
from mirror.cluster import MirrorCluster
from mirror.dedicated.flow_workers import FlowWorker
from mirror.dedicated.mirror_maker_settings import MirrorMakerSettings, Pair
from mirror.dedicated.progress import At, Progress, progress
from mirror.dedicated.status import copied_to, source_settings
from mirror.dedicated.verification import Compared, compare
from mirror.dedicated.whole_topic import whole_topic
from mirror.flow import Flow
from mirror.settings import MirrorSettings
from mirror.topics import partitions_of

_LOOK_SECONDS: Final = 0.2
_SAY_MS: Final = 1_000

Say = Callable[[str], None]


@dataclass(frozen=True)
class Range:
    """The offsets that a flow has to copy, by partition of the source."""

    pair: Pair
    made: MirrorSettings
    flow: Flow
    start_offsets: dict[TopicPartition, int]
    end_offsets: dict[TopicPartition, int]
    compacted_topics: frozenset[str]

    @property
    def size(self) -> int:
        return sum(end - self.start_offsets[at] for at, end in self.end_offsets.items())


def ranges(settings: MirrorMakerSettings, pairs: Sequence[Pair]) -> list[Range]:
    """Read the sources' end offsets. Raises ConnectException when one does not answer."""
    return [_range(settings, pair) for pair in pairs]


def _range(settings: MirrorMakerSettings, pair: Pair) -> Range:
    made = source_settings(settings, pair)
    flow = made.flow()
    source = MirrorCluster(made.source, made.admin("source", "once"), made.timeout_seconds)
    # Heartbeats go on for ever.
    names = [
        name
        for name in source.topic_names()
        if flow.replicates(name) and not flow.policy.is_heartbeats_topic(name)
    ]
    topics = source.topics(names)
    parts = partitions_of({name: each.partition_count for name, each in topics.items()})
    compacted = {
        topic
        for topic, entries in source.configs(topics).items()
        if any(
            each.name == "cleanup.policy" and "compact" in (each.value or "") for each in entries
        )
    }
    starts, ends = source.start_offsets(parts), source.end_offsets(parts)
    return Range(pair, made, flow, starts, ends, frozenset(compacted))


async def copy_once(flows: Sequence[FlowWorker], wanted: Sequence[Range], say: Say) -> None:
    """Wait until all of `wanted` is copied, and report the progress every second."""
    begun_ms = said_ms = now_ms()
    while True:
        left = sum(_left(one, progress(flow)) for flow, one in zip(flows, wanted, strict=True))
        total = sum(each.size for each in wanted)
        if left == 0 or now_ms() - said_ms >= _SAY_MS:
            said_ms = now_ms()
            seconds = max(1, said_ms - begun_ms) / 1000
            done = total - left
            share = 100.0 * done / total if total else 100.0
            say(f"copied {done:,} of {total:,} offsets ({share:.1f} %), {done / seconds:,.0f}/s")
        if left == 0:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _left(wanted: Range, found: dict[At, Progress]) -> int:
    left = 0
    for part, end in wanted.end_offsets.items():
        start = wanted.start_offsets[part]
        remote = wanted.flow.remote_topic(part.topic), part.partition
        position = end if start == end else found.get(remote, Progress(start, 0)).offset
        left += end - min(max(position, start), end)
    return left


def verify(settings: MirrorMakerSettings, wanted: Sequence[Range], say: Say) -> bool:
    """Compare every partition with its copy and report; return whether all are equal."""
    is_same = True
    for one in wanted:
        far = copied_to(settings, one.pair, one.made)
        source, target = (one.made.consumer(side, "verify") for side in ("source", "target"))
        for topic in sorted({at.topic for at in one.end_offsets}):
            remote = one.flow.remote_topic(topic)
            for compared in compare(
                partial(whole_topic, source, topic),
                partial(whole_topic, target, remote),
                {at: far.get(at, 0) for at in one.end_offsets if at.topic == topic},
                is_compacted=topic in one.compacted_topics,
            ):
                is_same = is_same and compared.is_same
                say(_said(one, compared))
    return is_same


def _said(one: Range, compared: Compared) -> str:
    at, source, target = compared.at, compared.source, compared.target
    place = f"{one.pair} {at.topic}-{at.partition}"
    if compared.is_same:
        said = f"same     {place}: {source.record_count:,} records, sha256 {source.sha256[:16]}"
        older = f"; {compared.only_in_target:,} older ones are in the copy only"
        return said + (older if compared.only_in_target else "")
    return (
        f"DIFFERS  {place}: {source.record_count:,} records, sha256 {source.sha256[:16]}; "
        f"the copy has {target.record_count:,}, sha256 {target.sha256[:16]}"
    )
