"""The batches of a read, which of them were aborted, and the part that a member is sent."""

from pathlib import Path

import pytest

from broker.log.index.transaction_index import AbortedTransaction
from broker.log.storage import FileRegion, RealStorage
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from broker.records.errors import CorruptBatch
from broker.records.header import PATCH
from broker.server.share.log_slice import Chunk, LogSlice, slice_of
from broker.share.acquisition import Acquired, LogBatch


def at(base_offset: int, batch: bytes) -> bytes:
    """Give a batch its place in the log."""
    data = bytearray(batch)
    _, length, _ = PATCH.unpack_from(data)
    PATCH.pack_into(data, 0, base_offset, length, 0)
    return bytes(data)


def records(base_offset: int, count: int, producer_id: int = -1) -> bytes:
    values = [(None, b"value", (), 0)] * count
    if producer_id < 0:
        return at(base_offset, build_batch(values))
    return at(
        base_offset,
        build_batch(values, producer_id=producer_id, producer_epoch=0, is_transactional=True),
    )


def marker(base_offset: int, producer_id: int, *, is_commit: bool) -> bytes:
    return at(base_offset, build_end_marker(producer_id, 0, EndMarker(is_commit, 0), 0))


@pytest.fixture(params=["bytes", "file"])
def part_of(request: pytest.FixtureRequest, tmp_path: Path):
    """Make a part as the log gives it: bytes, or a region of a file with something before it."""

    def make(data: bytes) -> Chunk:
        if request.param == "bytes":
            return data
        file = RealStorage().open(str(tmp_path / "segment"), create=True)
        file.write(0, b"before", data)
        return FileRegion(file, len(b"before"), len(data))

    return make


def content(part: Chunk) -> bytes:
    return part.read() if isinstance(part, FileRegion) else part


LOG = [records(10, 5), records(15, 5), records(22, 3)]


def test_the_batches_are_those_of_the_log(part_of) -> None:
    found = slice_of(part_of(b"".join(LOG)), 1_000)
    assert list(found.batches) == [LogBatch(10, 15), LogBatch(15, 20), LogBatch(22, 25)]


def test_no_more_is_read_than_is_wanted(part_of) -> None:
    found = slice_of(part_of(b"".join(LOG)), 16)
    assert list(found.batches) == [LogBatch(10, 15), LogBatch(15, 20)]


@pytest.mark.parametrize(
    ("acquired", "expected"),
    [
        ([Acquired(10, 25, 1)], LOG),
        ([Acquired(12, 13, 1)], LOG[:1]),
        ([Acquired(14, 16, 1)], LOG[:2]),
        ([Acquired(10, 11, 1), Acquired(23, 24, 2)], LOG),
        ([Acquired(17, 18, 1)], LOG[1:2]),
        ([Acquired(20, 22, 1)], []),
        ([], []),
    ],
)
def test_whole_batches_with_acquired_records_are_sent(
    part_of, acquired: list[Acquired], expected: list[bytes]
) -> None:
    found = slice_of(part_of(b"".join(LOG)), 1_000)
    assert content(found.records(acquired)) == b"".join(expected)


def aborted(found: LogSlice) -> list[int]:
    return [batch.base_offset for batch in found.batches if batch.is_aborted]


def test_batches_of_aborted_transactions_are_known_up_to_their_marker(part_of) -> None:
    log = [
        records(0, 2, producer_id=7),
        records(2, 2, producer_id=8),
        records(4, 2),
        marker(6, 7, is_commit=False),
        records(7, 2, producer_id=7),
        marker(9, 7, is_commit=True),
        marker(10, 8, is_commit=True),
    ]
    found = slice_of(part_of(b"".join(log)), 1_000, [AbortedTransaction(7, 0, 6, 0)])
    assert aborted(found) == [0]


def test_a_transaction_that_was_aborted_later_counts_from_its_first_record(part_of) -> None:
    log = [
        records(0, 2, producer_id=7),
        marker(2, 7, is_commit=True),
        records(3, 2, producer_id=7),
        records(5, 2, producer_id=7),
        marker(7, 7, is_commit=False),
    ]
    found = slice_of(part_of(b"".join(log)), 1_000, [AbortedTransaction(7, 3, 7, 3)])
    assert aborted(found) == [3, 5]


def test_bytes_that_are_no_batch_are_refused(part_of) -> None:
    with pytest.raises(CorruptBatch):
        slice_of(part_of(LOG[0] + b"\0" * 100), 1_000)
