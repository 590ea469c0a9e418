"""One partition of `__share_group_state`: it dispatches every input to the file that handles it.

This is the shell's whole interface. The shell splits a request: a question is about one
share-partition, and the response in its reply is the `PartitionResult` of that API. Each token gets
exactly one reply, in the output of its own call. The effects of an output are
`DeleteRecordsBefore`.
"""

from collections.abc import Callable, Collection
from typing import Final

from broker.coordinator.output import Instant, Loading, Output, Reply, Token
from broker.coordinator.share_state.records import decode_record
from broker.coordinator.share_state.refusals import (
    PartitionCount,
    PartitionResult,
    refused_partition,
)
from broker.coordinator.share_state.requests import Requests
from broker.coordinator.share_state.state import SharePartitionKey, ShareStateConfig
from broker.coordinator.share_state.sweeps import Sweeps
from broker.coordinator.share_state.table import SharePartitions
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)


class ShareStateShard:
    """All share-partitions of one partition.

    Lifecycle: construct, `replay` every record of the partition, run `loaded(now)` to its end, then
    call handlers and `on_deadline`; at the end `unload(code)`.
    """

    def __init__(self, config: ShareStateConfig, partition_count: PartitionCount) -> None:
        self.table: Final = SharePartitions(config.max_batch_bytes)
        self._partition_count = partition_count
        self._requests = Requests(self.table, partition_count, config.updates_per_snapshot)
        self._sweeps = Sweeps(self.table, config)

    # Loading and unloading.

    def start_at(self, log_start_offset: int) -> None:
        """Begin to load a log that has this first offset."""
        self.table.next_offset = log_start_offset

    def replay(self, key: bytes, value: bytes | None, offset: int | None = None) -> None:
        """Apply the record at `offset`, in log order, while loading.

        Handlers apply their own records. Without an offset it is the next record. Raise DecodeError
        for a damaged record; skip types of records of a later version.
        """
        at = self.table.next_offset if offset is None else offset
        record = decode_record(key, value)
        if record is None:
            self.table.next_offset = at + 1
        else:
            self.table.put(*record, at)

    def loaded(self, now: Instant) -> Loading:
        """Begin to serve. It never yields: sweeps bound the work."""
        yield from ()
        self._sweeps.begin(now, self._partition_count)
        return Output()

    def unload(self, code: ErrorCode) -> list[Reply]:
        """End the shard; no question is parked."""
        return []

    # Requests.

    def initialize(
        self,
        token: Token,
        key: SharePartitionKey,
        wanted: initialize_share_group_state.PartitionData,
        now: Instant,
    ) -> Output:
        """One share-partition of an InitializeShareGroupState, v0."""
        return self._handle(
            token,
            key,
            initialize_share_group_state.PartitionResult,
            lambda output: self._requests.initialize(output, key, wanted, now.timestamp_ms),
        )

    def read(
        self,
        token: Token,
        key: SharePartitionKey,
        wanted: read_share_group_state.PartitionData,
        now: Instant,
    ) -> Output:
        """One share-partition of a ReadShareGroupState, v0."""
        return self._handle(
            token,
            key,
            read_share_group_state.PartitionResult,
            lambda output: self._requests.read(output, key, wanted, now.timestamp_ms),
        )

    def write(
        self,
        token: Token,
        key: SharePartitionKey,
        wanted: write_share_group_state.PartitionData,
        now: Instant,
    ) -> Output:
        """One share-partition of a WriteShareGroupState, v0-1."""
        return self._handle(
            token,
            key,
            write_share_group_state.PartitionResult,
            lambda output: self._requests.write(output, key, wanted, now.timestamp_ms),
        )

    def read_summary(
        self,
        token: Token,
        key: SharePartitionKey,
        wanted: read_share_group_state_summary.PartitionData,
        now: Instant,
    ) -> Output:
        """One share-partition of a ReadShareGroupStateSummary, v0-1; its epoch is not checked."""
        return self._handle(
            token,
            key,
            read_share_group_state_summary.PartitionResult,
            lambda output: self._requests.read_summary(key),
        )

    def delete(
        self,
        token: Token,
        key: SharePartitionKey,
        wanted: delete_share_group_state.PartitionData,
        now: Instant,
    ) -> Output:
        """One share-partition of a DeleteShareGroupState, v0."""
        return self._handle(
            token,
            key,
            delete_share_group_state.PartitionResult,
            lambda output: self._requests.delete(output, key),
        )

    def _handle(
        self,
        token: Token,
        key: SharePartitionKey,
        kind: type[PartitionResult],
        handle: Callable[[Output], PartitionResult],
    ) -> Output:
        """Run a handler; this is the one place where a refusal becomes an answer."""
        output = Output()
        try:
            answer = handle(output)
        except KafkaError as refusal:
            assert output == Output(), ("a refusal changes nothing", output)
            answer = refused_partition(kind, key.partition, refusal)
        output.replies.append(Reply(token, answer))
        return output

    # Events other than requests.

    def on_topics_deleted(self, topic_ids: Collection[bytes], now: Instant) -> Output:
        """Begin to forget the share-partitions of deleted topics."""
        self._sweeps.forget_topics(topic_ids, now)
        return Output()

    def forget(self, token: Token, now: Instant) -> Output:
        """Drop a question: none is ever parked."""
        return Output()

    def next_deadline_ms(self) -> int | None:
        """Return when `on_deadline` must be called (monotonic time); None without a deadline."""
        return self._sweeps.timers.next_deadline_ms()

    def on_deadline(self, now: Instant) -> Output:
        """Do a piece of every recurring task that is due."""
        return self._sweeps.run_due(now)
