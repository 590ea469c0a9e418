"""`millstream replica-verification`: compare replicas, as kafka-replica-verification.

In each round all brokers get a fetch of their own replicas at once; the replicas are compared when
all have answered. It runs until it is stopped, as Kafka's tool does. It names a broker that does
not answer, and its replicas, which are not compared; the other replicas are.

The batches of replicas are compared up to the high watermark. One round compares the answers of all
replicas from the same offset on. While each has another complete batch below its high watermark,
the batches must end at the same offset (otherwise the comparison cannot continue: `ReplicasDiffer`)
and have the same checksum. The next round starts after the last batch that all replicas have. Pure;
the texts are those of Kafka's ReplicaVerificationTool.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple, NoReturn

from broker.cli.admin_settings import admin_settings
from broker.cli.arguments import ADDRESSES_VARIABLE, ToolFailed, check_required, tool_parser
from broker.cli.topics import topic_pattern
from broker.model import TopicPartition
from broker.records.batch import split_batches
from broker.records.header import BatchHeader, BytesLike
from broker.server.clock import SystemClock
from common.kafka.admin import topics as admin
from common.kafka.admin.client import AdminClient
from common.kafka.admin.leaders import list_offsets
from common.kafka.admin.replica_logs import fetch_replicas
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import TopicDescription
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import PartitionData
from common.process.ending import INTERRUPTED


class Held(NamedTuple):
    """The answer of one replica about a partition; empty if it did not answer."""

    high_watermark: int = -1
    records: BytesLike = b""


class Lag(NamedTuple):
    """The partition with the largest lag of the comparison, and its offset."""

    partition: TopicPartition
    offset: int
    behind: int


class ReplicasDiffer(Exception):  # noqa: N818 -- what was found
    """Batches do not end at the same offset: the comparison cannot continue."""


class ReplicaComparison:
    """A comparison; `offsets` are the start offsets of the next round by partition."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)

    def compare(self, partition: TopicPartition, held: Mapping[int, Held]) -> Iterator[str]:
        """Compare one partition's replicas by broker id; yield a text for each difference.

        The comparison ends with the shortest replica. Raise ReplicasDiffer.
        """
        headers = {broker_id: _headers(one) for broker_id, one in held.items()}
        while True:
            row: dict[int, BatchHeader] = {}
            for broker_id, found in headers.items():
                header = next(found, None)
                if header is not None:
                    row[broker_id] = header
                    yield from _differences(partition, row, broker_id)
            if len(row) < len(headers) or not row:
                return
            self.offsets[partition] = next(iter(row.values())).next_offset

    def lag(self, high_watermarks: Mapping[TopicPartition, int]) -> Lag:
        """Return the partition with the largest lag behind its highest high watermark."""
        lags = [
            Lag(partition, self.offsets[partition], high_watermark - self.offsets[partition])
            for partition, high_watermark in high_watermarks.items()
        ]
        return max(lags, key=lambda lag: lag.behind)


def lag_text(lag: Lag, partition_count: int) -> str:
    """Return the text of a report."""
    return (
        f"max lag is {lag.behind} for partition {lag.partition} at offset {lag.offset} "
        f"among {partition_count} partitions"
    )


def highest(held: Iterable[Held]) -> int:
    """Return the highest of some replicas' high watermarks."""
    return max((one.high_watermark for one in held), default=-1)


def _headers(held: Held) -> Iterator[BatchHeader]:
    """Yield the headers of the complete batches below the high watermark."""
    for batch in split_batches(held.records):
        if batch.header.last_offset >= held.high_watermark:
            return
        yield batch.header


def _differences(
    partition: TopicPartition, row: Mapping[int, BatchHeader], broker_id: int
) -> Iterator[str]:
    """Compare the last headers of the replicas with the first replica's."""
    first_id, first = next(iter(row.items()))
    header = row[broker_id]
    if first.last_offset != header.last_offset:
        raise ReplicasDiffer(
            f"partition {partition}: replica {first_id}'s offset {first.last_offset} doesn't match "
            f"replica {broker_id}'s offset {header.last_offset}"
        )
    if first.crc != header.crc:
        yield (
            f"partition {partition} has unmatched checksum at offset {header.last_offset}; replica "
            f"{first_id}'s checksum {first.crc}; replica {broker_id}'s checksum {header.crc}"
        )


LATEST = -1
TIMEOUT_MS = 30_000
ANSWER_MS = 5_000
"""The timeout of an answer, in addition to the wait of the fetch."""
NAMED = 20
"""The maximum of named replicas that are not compared."""
DEPRECATED = "This tool is deprecated and may be removed in a future major release."


def main(arguments: list[str]) -> int:
    """Compare until stopped; return 1 if replicas cannot be compared or none match."""
    parser = _parser()
    options = parser.parse_args(arguments)
    check_required(parser, options, ["broker-list"])
    print(DEPRECATED, file=sys.stderr)
    try:
        settings = admin_settings(options.broker_list, None, None, default_timeout_ms=TIMEOUT_MS)
        with AdminClient(settings) as client, ExitStack() as stack:
            _Verification(client, settings, options, stack).run()
    except (KafkaError, ToolFailed) as error:
        print(error, file=sys.stderr)
        return 1
    except ReplicasDiffer as error:
        _tell(str(error))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "replica-verification", "Validate that all replicas for a set of topics have the same data."
    )
    parser.variables = {"--broker-list": ADDRESSES_VARIABLE}
    parser.add_argument("--broker-list", metavar="HOST:PORT,...", help="the brokers to connect to")
    parser.add_argument(
        "--fetch-size", type=int, metavar="BYTES", default=1 << 20, help="of each request"
    )
    parser.add_argument(
        "--max-wait-ms", type=int, metavar="MS", default=1_000, help="of each request"
    )
    parser.add_argument(
        "--topics-include",
        metavar="REGEX",
        default=".*",
        help="the topics whose replicas to compare",
    )
    parser.add_argument(
        "--time",
        type=int,
        metavar="TIMESTAMP",
        default=LATEST,
        help="where to begin: a timestamp, -1 (latest) or -2 (earliest)",
    )
    parser.add_argument(
        "--report-interval-ms", type=int, metavar="MS", default=30_000, help="between reports"
    )
    return parser


class _Verification:
    """Rounds of fetches from every broker, and comparisons."""

    def __init__(
        self,
        client: AdminClient,
        settings: AdminSettings,
        options: argparse.Namespace,
        stack: ExitStack,
    ) -> None:
        topics = _chosen_topics(client, options.topics_include)
        self._options = options
        self._topic_ids = {topic.name: topic.topic_id for topic in topics}
        self._hosts = _hosts(topics)
        partitions = {one for hosted in self._hosts.values() for one in hosted}
        # The longest delay of a round by an unreachable broker.
        limit_ms = options.max_wait_ms + ANSWER_MS
        impatient = replace(settings, request_timeout_ms=limit_ms, api_timeout_ms=limit_ms)
        with AdminClient(impatient) as asking:
            begin = _begin(asking, sorted(partitions), options.time)
        self._comparison = ReplicaComparison(begin)
        for broker_id, hosted in self._hosts.items():
            self._hosts[broker_id] = [one for one in hosted if one in begin]
        # A client serves one thread, and the requests to all brokers run at the same time.
        self._clients = {
            broker_id: stack.enter_context(AdminClient(impatient)) for broker_id in self._hosts
        }
        self._absent: set[int] = set()
        self._threads = stack.enter_context(ThreadPoolExecutor(len(self._hosts)))
        self._clock = SystemClock()

    def run(self) -> NoReturn:
        """Compare without end; raise ReplicasDiffer."""
        _tell("verification process is started")
        reported_ms = self._clock.now_ms()
        while True:
            held = self._fetch()
            for partition, replicas in held.items():
                for difference in self._comparison.compare(partition, replicas):
                    _tell(difference)
            if self._clock.now_ms() - reported_ms > self._options.report_interval_ms:
                reported_ms = self._clock.now_ms()
                high = {found: highest(replicas.values()) for found, replicas in held.items()}
                _tell(lag_text(self._comparison.lag(high), len(held)))
                for broker_id in sorted(self._absent):
                    _tell(self._absence(broker_id))

    def _fetch(self) -> dict[TopicPartition, dict[int, Held]]:
        held: dict[TopicPartition, dict[int, Held]] = defaultdict(dict)
        ids = list(self._hosts)
        for broker_id, answers in zip(ids, self._threads.map(self._ask, ids), strict=True):
            self._note(broker_id, is_absent=answers is None)
            if answers is None:
                continue
            for partition in self._hosts[broker_id]:
                held[partition][broker_id] = answers.get(partition, Held())
        return held

    def _note(self, broker_id: int, *, is_absent: bool) -> None:
        """Print when a broker becomes unreachable, and when it answers again."""
        if is_absent == (broker_id in self._absent):
            return
        if is_absent:
            self._absent.add(broker_id)
            _tell(self._absence(broker_id))
        else:
            self._absent.remove(broker_id)
            _tell(f"broker {broker_id} answers again: its replicas are compared from here on")

    def _absence(self, broker_id: int) -> str:
        hosted = self._hosts[broker_id]
        more = f" and {len(hosted) - NAMED} more" if len(hosted) > NAMED else ""
        named = ", ".join(map(str, hosted[:NAMED]))
        return (
            f"broker {broker_id} could not be asked, not compared are its replicas of {named}{more}"
        )

    def _ask(self, broker_id: int) -> Mapping[TopicPartition, Held] | None:
        """Fetch from one broker; return None if it does not answer."""
        offsets = {found: self._comparison.offsets[found] for found in self._hosts[broker_id]}
        try:
            answers = fetch_replicas(
                self._clients[broker_id],
                broker_id,
                self._topic_ids,
                offsets,
                max_wait_ms=self._options.max_wait_ms,
                partition_max_bytes=self._options.fetch_size,
            )
        except KafkaError as error:
            if error.code != ErrorCode.REQUEST_TIMED_OUT:
                raise
            return None
        return {found: _held(answer) for found, answer in answers.items()}


def _begin(
    client: AdminClient, partitions: Sequence[TopicPartition], time: int
) -> dict[TopicPartition, int]:
    """Return the start offset of each partition with a leader, and print the others."""
    begin: dict[TopicPartition, int] = {}
    for partition, found in list_offsets(client, partitions, time).items():
        if not isinstance(found, KafkaError):
            begin[partition] = found.offset
        elif found.code not in {ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}:
            raise found
    if missing := [found for found, offset in begin.items() if offset < 0]:
        raise ToolFailed(f"There is nothing so late in {missing[0]}.")
    if leaderless := [str(one) for one in partitions if one not in begin]:
        _tell(f"not compared, for they have no leader: {', '.join(leaderless)}")
    if not begin:
        raise ToolFailed("No partition has a leader.")
    return begin


def _held(answer: PartitionData) -> Held:
    """Return the records of an answer; none after an error, until a later round has some."""
    records = answer.records or b""
    # Received records are in memory; only records to send may be a region of a file.
    assert isinstance(records, bytes | bytearray | memoryview), type(records)
    return Held(answer.high_watermark, records)


def _chosen_topics(client: AdminClient, pattern: str) -> Sequence[TopicDescription]:
    matches = topic_pattern(pattern).fullmatch
    topics = [topic for topic in admin.list_topics(client) if matches(topic.name)]
    if not topics:
        raise ToolFailed(
            "No topics found. [topics-include] if specified, is either filtering out all topics or "
            "there is no topic."
        )
    return topics


def _hosts(topics: Sequence[TopicDescription]) -> dict[int, list[TopicPartition]]:
    """Return by broker the partitions of its replicas."""
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic in topics:
        for one in topic.partitions:
            for broker_id in one.replicas:
                found[broker_id].append(TopicPartition(topic.name, one.partition))
    return dict(sorted(found.items()))


def _tell(text: str) -> None:
    now = datetime.fromtimestamp(SystemClock().timestamp_ms() / 1000, UTC).astimezone()
    print(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}: {text}", flush=True)
