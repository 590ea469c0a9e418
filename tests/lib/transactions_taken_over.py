"""Transactions in each state at which a broker may end, taken over by another broker with its disk.

Every broker in turn commits one transaction, leaves one open, and is killed with one in the state
"prepare commit". It cannot be killed exactly at that moment, so the third is made from an open one:
the byte of the state in its last record, and the checksum, are changed. The next broker must know
the first, let its producer continue the second, and complete the third by itself.
"""

import struct
from pathlib import Path

from crc32c import crc32c

from broker.coordinator.transaction.state import TransactionState
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import create_topic
from common.kafka.protocol.records.transaction import TransactionLogKey
from common.kafka.protocol.structs import encode_struct
from tests.lib.coordinator_requests import PARTITION, TOPIC, Asks
from tests.lib.raw_kafka import RawConnection
from tests.lib.transactional_clients import GIVE_UP_SECONDS, read
from tests.lib.waiting import until

FOR_LONG_MS = 600_000
ONGOING, PREPARE_COMMIT = 1, 2  # as `__transaction_state` has them
STATUS_AT = struct.calcsize(">hqhi")  # in a value: after its version, producer and timeout
CRC_AT, UNDER_CRC_AT = 17, 21  # in a batch
END_TXN_OF_OLD, PRODUCE_OF_OLD = 4, 9  # versions with all fields
Producer = tuple[int, int]


def name(what: str, run: int) -> str:
    return f"{what}-{run}"


class TransactionsTakenOver:
    """The check of a folder that one broker after another uses."""

    def __init__(self, bootstrap: str) -> None:
        for_ever = {"retention.ms": "-1"}
        with AdminClient(AdminSettings.of(bootstrap)) as admin:
            create_topic(
                admin,
                TOPIC,
                partition_count=PARTITION + 1,
                replication_factor=1,
                configs=for_ever,
            )
        self._producers: dict[str, Producer] = {}
        self._committed: list[bytes] = []

    def go_on(self, bootstrap: str, run: int) -> None:
        """Check the state from the previous run, and leave the same for the next one."""
        with RawConnection(bootstrap, GIVE_UP_SECONDS) as connection:
            asks = Asks(connection)
            until(lambda: asks.has_coordinators(1, [name("committed", run)]))
            if run:
                self._find(asks, run - 1)
            for what in ("committed", "open", "prepared"):
                self._begin(asks, name(what, run))
            self._end(asks, name("committed", run))
        committed = [value for value in self._committed if value != b"prepared-%d" % run]
        found = read(bootstrap, TOPIC, len(committed), "read_committed")
        assert sorted(found) == sorted(committed)

    def prepare(self, folder: Path, run: int) -> None:
        """Change the files of the stopped broker as if it was killed during a commit."""
        changed = [
            change_status(path, name("prepared", run))
            for path in folder.glob("__transaction_state-*/*.log")
        ]
        assert sum(changed) == 1
        self._committed.append(b"prepared-%d" % run)

    def _begin(self, asks: Asks, transactional_id: str) -> None:
        producer = asks.producer_of(transactional_id, FOR_LONG_MS)
        assert producer[0] not in {known for known, _ in self._producers.values()}
        self._producers[transactional_id] = producer
        added = asks.add_partitions(transactional_id, producer, TOPIC, partition=PARTITION)
        assert added == 0
        self._produce(asks, transactional_id, 0)

    def _produce(self, asks: Asks, transactional_id: str, sequence: int) -> None:
        producer, value = self._producers[transactional_id], transactional_id.encode()
        code = asks.produce(transactional_id, producer, PRODUCE_OF_OLD, sequence, value)
        assert code == 0

    def _end(self, asks: Asks, transactional_id: str, count: int = 1) -> None:
        producer = self._producers[transactional_id]
        assert asks.end(transactional_id, producer, END_TXN_OF_OLD, committed=True) == 0
        self._committed += [transactional_id.encode()] * count

    def _find(self, asks: Asks, run: int) -> None:
        committed, left_open, prepared = (
            name(what, run) for what in ("committed", "open", "prepared")
        )
        until(lambda: asks.state_of(prepared) == TransactionState.COMPLETE_COMMIT.value)
        assert asks.state_of(committed) == TransactionState.COMPLETE_COMMIT.value
        producer_id, epoch = self._producers[committed]
        assert asks.producer_of(committed) == (producer_id, epoch + 1)
        assert asks.state_of(left_open) == TransactionState.ONGOING.value
        self._produce(asks, left_open, 1)
        self._end(asks, left_open, count=2)


def change_status(path: Path, transactional_id: str) -> bool:
    """Change the last record of an open transaction to the state "prepare commit"."""
    log = bytearray(path.read_bytes())
    key = encode_struct(TransactionLogKey(transactional_id=transactional_id), 0)
    key_at = log.rfind(bytes(2) + key)
    if key_at < 0:
        return False
    value_size_at = key_at + 2 + len(key)
    status_at = value_size_at + size_of_varint(log, value_size_at) + STATUS_AT
    assert log[status_at] == ONGOING
    log[status_at] = PREPARE_COMMIT
    start, end = batch_around(log, key_at)
    crc = crc32c(memoryview(log)[start + UNDER_CRC_AT : end])
    log[start + CRC_AT : start + UNDER_CRC_AT] = struct.pack(">I", crc)
    path.write_bytes(log)
    return True


def size_of_varint(log: bytearray, at: int) -> int:
    return next(number for number, byte in enumerate(log[at:], 1) if byte < 128)


def batch_around(log: bytearray, position: int) -> tuple[int, int]:
    start = 0
    while True:
        end = start + 12 + int.from_bytes(log[start + 8 : start + 12])
        if position < end:
            return start, end
        start = end
