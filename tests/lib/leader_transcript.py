"""Transcripts of leaders with transactions: two partitions, three replicas of each, real logs.

A line is a command; the indented line under it is the result. Results are written by a run of the
transcript with `REWRITE=1`, and must be read before they are committed. The partition `t` has
records; the partition `g` has the offsets of one group, and its leader is the group's coordinator.

    write a x y seq=0          a batch in a producer's transaction; verified with the coordinator
    verify a seq=0             only the verification; the result is kept
    write a x seq=0 held       with the kept result, in or outside of a transaction
    send a x seq=0             idempotent, without a transaction
    plain x                    a record without a producer id
    abort a epoch=1 v=2        a marker in `t`, with a transaction.version; `on=g` in the other
    commit a lost              a marker whose answer is lost
    offset a 7                 an offset of the group, in a transaction
    group                      the answer to a consumer that waits for stable offsets
    read                       the records for a `read_committed` reader, and its limit
    copy                       the followers fetch all records
    elect 1 on=g               another replica leads; records that it lacks are lost
    restart                    the leader is killed, restarts from its disk, and leads again
    delete 4                   DeleteRecords, and the removal of segments without other records

Producers are `a`, `b`, ...; `epoch=` is 0 unless given. The result of an appended batch is its
first offset, that of a refused request is the name of the error.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from broker.coordinator.output import EndOfTransaction
from broker.log.append import AppendOrigin
from broker.log.producers.verification import NO_GUARD, TransactionAppend
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from common.kafka.errors import KafkaError
from tests.lib.logs import NOW_MS, read_records
from tests.sim.transaction_group import GroupPartition
from tests.sim.transaction_reader import read_values
from tests.sim.transaction_replicas import REPLICA_COUNT, Replicated

T = TypeVar("T")
FIRST_PRODUCER_ID = 1000


class Steady(Random):
    """A random source that chooses the smallest segments and fetches, and no clean stop."""

    def random(self) -> float:
        """Return a value above every probability."""
        return 0.999

    def choice(self, seq: Sequence[T]) -> T:  # type: ignore[override]
        """Take the first."""
        return seq[0]


class Player:
    """Runs a transcript."""

    def __init__(self) -> None:
        self.partitions = {"t": Replicated(Steady()), "g": GroupPartition(Steady())}
        self.held: dict[str, int] = {}

    @property
    def _group(self) -> GroupPartition:
        group = self.partitions["g"]
        assert isinstance(group, GroupPartition)
        return group

    def play(self, text: str) -> str:
        """Return the transcript with the results of this run."""
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith("    "):
                continue
            lines.append(line)
            if line and not line.startswith("#"):
                told = self._play(line.split())
                lines += [f"    {told}"] if told else []
        return "\n".join(lines) + "\n"

    def _play(self, words: list[str]) -> str:
        options = dict(word.split("=") for word in words if "=" in word)
        verb, *plain = [word for word in words if "=" not in word]
        try:
            told: str = getattr(self, f"do_{verb}")(plain, options)
        except KafkaError as error:
            return error.code.name
        return told

    # --- producers ---

    def do_verify(self, words: list[str], options: dict[str, str]) -> str:
        self.held[words[0]] = self._word(words[0], options, int(options.get("seq", "-1")))
        return ""

    def _word(self, name: str, options: dict[str, str], sequence: int, on: str = "t") -> int:
        """Verify with the coordinator, which always agrees; return 0 without a verification."""
        return self.partitions[on].log.producers.begin_verification(
            id_of(name), epoch_of(options), sequence, timestamp_ms=NOW_MS, raises_epochs=True
        )

    def do_write(self, words: list[str], options: dict[str, str]) -> str:
        name, *values = [word for word in words if word != "held"]
        sequence = int(options["seq"])
        guard = self.held[name] if "held" in words else self._word(name, options, sequence)
        return self._append(name, values, options, guard=guard, is_transactional=True)

    def do_send(self, words: list[str], options: dict[str, str]) -> str:
        name, *values = words
        return self._append(name, values, options, is_transactional=False)

    def _append(
        self,
        name: str,
        values: list[str],
        options: dict[str, str],
        *,
        is_transactional: bool,
        guard: int = NO_GUARD,
    ) -> str:
        batch = build_batch(
            [(None, value.encode(), (), NOW_MS) for value in values],
            producer_id=id_of(name),
            producer_epoch=epoch_of(options),
            base_sequence=int(options["seq"]),
            is_transactional=is_transactional,
        )
        return self._appended(batch, TransactionAppend(guard), AppendOrigin.CLIENT)

    def do_plain(self, words: list[str], options: dict[str, str]) -> str:
        batch = build_batch([(None, words[0].encode(), (), NOW_MS)])
        return self._appended(batch, TransactionAppend(), AppendOrigin.CLIENT)

    def _appended(self, batch: bytes, transaction: TransactionAppend, origin: AppendOrigin) -> str:
        partition = self.partitions["t"]
        info = partition.log.append_as_leader(
            batch,
            leader_epoch=partition.epoch,
            timestamp_ms=NOW_MS,
            origin=origin,
            transaction=transaction,
        )
        return f"at {info.base_offset}"

    # --- coordinators ---

    def do_commit(self, words: list[str], options: dict[str, str]) -> str:
        return self._end(words, options, is_commit=True)

    def do_abort(self, words: list[str], options: dict[str, str]) -> str:
        return self._end(words, options, is_commit=False)

    def _end(self, words: list[str], options: dict[str, str], *, is_commit: bool) -> str:
        producer_id, epoch = id_of(words[0]), epoch_of(options)
        coordinator_epoch, version = int(options.get("ce", "0")), int(options.get("v", "0"))
        if options.get("on") == "g":
            end = EndOfTransaction(producer_id, epoch, is_commit, coordinator_epoch, version)
            told = f"at {self._group.end(end) - 1}"
        else:
            marker = build_end_marker(
                producer_id, epoch, EndMarker(is_commit, coordinator_epoch), NOW_MS
            )
            transaction = TransactionAppend(transaction_version=version)
            told = self._appended(marker, transaction, AppendOrigin.COORDINATOR)
        return f"({told})" if "lost" in words else told

    # --- the group ---

    def do_offset(self, words: list[str], options: dict[str, str]) -> str:
        name, offset = words
        guard = self._word(name, options, -1, on="g")
        end_offset = self._group.commit(id_of(name), epoch_of(options), int(offset), guard)
        return f"at {end_offset - 1}"

    def do_group(self, words: list[str], options: dict[str, str]) -> str:
        return f"offset {self._group.stable_offset()}"

    # --- readers ---

    def do_read(self, words: list[str], options: dict[str, str]) -> str:
        log = self.partitions["t"].log
        offsets = {record.value: record.offset for record in read_records(log)}
        values = read_values(log, Steady())
        assert len(offsets) == len(read_records(log)), "a value is there twice"
        found = [f"{value.decode()}@{offsets[value]}" for value in values]
        return (
            f"{' '.join(found) or 'nothing'}, to {log.last_stable_offset} of {log.high_watermark}"
        )

    # --- replicas ---

    def do_copy(self, words: list[str], options: dict[str, str]) -> str:
        for partition in self.partitions.values():
            for _ in range(100):
                for replica in range(REPLICA_COUNT):
                    partition.replicate(replica)
            assert partition.is_level
        return ""

    def do_elect(self, words: list[str], options: dict[str, str]) -> str:
        self.partitions[options.get("on", "t")].elect(int(words[0]))
        return ""

    def do_restart(self, words: list[str], options: dict[str, str]) -> str:
        partition = self.partitions[options.get("on", "t")]
        partition.restart(partition.leader)
        partition.elect(partition.leader)
        return ""

    def do_delete(self, words: list[str], options: dict[str, str]) -> str:
        log = self.partitions["t"].log
        log.delete_records_before(int(words[0]))
        count = log.delete_old_segments(NOW_MS)
        return f"{count} segments gone, from {log.log_start_offset}"


def id_of(name: str) -> int:
    """Return the producer id of `a`, `b`, ..."""
    return FIRST_PRODUCER_ID + ord(name) - ord("a")


def epoch_of(options: dict[str, str]) -> int:
    """Return the epoch of a command."""
    return int(options.get("epoch", "0"))
