"""One file damaged in one way: what the log says of it, and what is left."""

import struct
from collections.abc import Callable

import pytest

from broker.log.append import AppendOrigin
from broker.log.checkpoints import META_PROPERTIES, PARTITION_METADATA
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.log.meta_properties import InconsistentLogDirectory
from broker.log.names import TRANSACTION_INDEX_SUFFIX
from broker.log.partition_log import PartitionLog
from broker.log.recovery import DamagedLog
from broker.log.storage import read_file, replace_file
from broker.model import TopicPartition
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.logs import NOW_MS, joined, log_bytes, open_log, read_records, reopen
from tests.lib.simulated_storage import SimulatedStorage

KEY = TopicPartition("orders", 0)
ID = b"topic id 16 byte"
LOG = f"/logs/topic-0/{0:020d}.log"


def filled_log(batches: int = 6, records: int = 5, **settings: object) -> PartitionLog:
    log = open_log(SimulatedStorage(), LogConfig(**settings))  # type: ignore[arg-type]
    for number in range(batches):
        append(log, f"{number}".encode() * 20, records)
    return log


def append(log: PartitionLog, value: bytes, count: int = 1) -> int:
    batch = build_batch([(value, value, (), NOW_MS)] * count)
    info = log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


def reopen_clean(log: PartitionLog) -> PartitionLog:
    return reopen(log.place.storage, log, is_clean=True)


@pytest.mark.parametrize("index_interval_bytes", [0, 4096])
def test_a_clean_start_with_a_torn_tail_loses_the_last_batch_only_and_says_so(
    index_interval_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled_log(index_interval_bytes=index_interval_bytes)
    log.close()
    last_bytes = log.size_bytes // 6
    log.segments.active.file.truncate(log.size_bytes - 7)
    again = reopen_clean(log)
    assert again.log_end_offset == 25
    assert f"file={LOG} offset=25 bytes={last_bytes - 7}" in caplog.text
    assert append(again, b"new") == 25
    again.close()
    third = reopen_clean(again)
    assert [record.offset for record in read_records(third)] == list(range(26))


def test_a_flipped_length_of_the_first_batch_is_named(caplog: pytest.LogCaptureFixture) -> None:
    log = filled_log(index_interval_bytes=0)
    log.close()
    log.segments.active.file.write(10, b"\x7f")
    with pytest.raises(DamagedLog, match=f"{LOG} is damaged at byte 0, offset 0"):
        reopen_clean(log)
    assert f"changed since the clean stop, recovered file={LOG}" in caplog.text


def test_a_flipped_byte_amid_intact_records_cuts_nothing() -> None:
    log = filled_log()
    log.close()
    size_bytes = log.size_bytes
    log.segments.active.file.write(size_bytes // 2 + 80, b"!")
    with pytest.raises(DamagedLog, match="restore the file, or move its directory away"):
        reopen_clean(log)
    assert log.segments.active.file.size_bytes() == size_bytes


@pytest.mark.parametrize("name", ["abc.log", "5.log", "٣.log", "abc.index", "abc.swap"])
def test_a_file_that_is_no_segments_is_left_alone(name: str) -> None:
    log = filled_log()
    log.close()
    storage, whole = log.place.storage, log_bytes(log)
    storage.open(f"/logs/topic-0/{name}", create=True).write(0, b"what is this")
    assert log_bytes(reopen_clean(log)) == whole
    assert read_file(storage, f"/logs/topic-0/{name}") == b"what is this"


def test_an_index_entry_that_is_wrong_and_makes_sense_is_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else a reader would be sent behind the records he wants, and never see them."""
    log = filled_log(12, index_interval_bytes=400)
    log.close()
    first, second, *_ = log.segments.active.offset_index.relative_offsets
    assert second - first > 5, "a reader between the two walks from the first"
    log.segments.active.offset_index.relative_offsets[1] = first + 1
    log.segments.active.close_indexes()
    again = reopen_clean(log)
    read = again.read(first + 2, max_bytes=1, max_offset=again.log_end_offset)
    assert int.from_bytes(joined(read.parts)[:8], "big") == first + 1
    assert "index does not match its log, rebuilt" in caplog.text


def test_an_index_entry_that_was_compared_says_nothing_of_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = filled_log(12, index_interval_bytes=400)
    log.close()
    first, second, third, *_ = log.segments.active.offset_index.relative_offsets
    assert third - second > 5
    log.segments.active.offset_index.relative_offsets[1] = second + 1
    log.segments.active.close_indexes()
    again = reopen_clean(log)
    for _ in range(2):
        again.read(first + 2, max_bytes=1, max_offset=again.log_end_offset)
    assert "index does not fit its log" not in caplog.text
    read = again.read(second + 2, max_bytes=1, max_offset=again.log_end_offset)
    assert int.from_bytes(joined(read.parts)[:8], "big") <= second + 2
    assert "index does not match its log, rebuilt" in caplog.text


@pytest.mark.parametrize("size_bytes", [0, 300, 100])
def test_a_closed_segment_that_ends_early_is_named_when_it_is_read(
    size_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled_log(12, internal_segment_bytes=600)
    log.close()
    log.segments[0].file.truncate(size_bytes)
    again = reopen_clean(log)
    try:
        read = again.read(5, max_bytes=1, max_offset=again.log_end_offset)
        assert read.size_bytes
    except KafkaError as error:
        assert error.code == ErrorCode.CORRUPT_MESSAGE  # noqa: PT017 - it is said either way
    assert any(LOG in line and "offset=0" in line for line in caplog.messages) or size_bytes
    assert LOG in caplog.text


def test_what_is_behind_the_last_batch_of_a_closed_segment_is_no_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = filled_log(12, internal_segment_bytes=600)
    whole = log_bytes(log)
    log.close()
    first = log.segments[0]
    first.file.write(first.size_bytes, b"garbage that nobody wrote" * 5)
    assert log_bytes(reopen_clean(log)) == whole
    assert f"left out what is behind the last batch file={LOG}" in caplog.text


# The files of the log directory.


def open_directory(storage: SimulatedStorage) -> LogDirectories:
    settings = DirectorySettings("cluster", 1, lambda topic: LogConfig(), lambda: b"x" * 16)
    directories = LogDirectories(storage, ["/a"], settings)
    directories.open(NOW_MS)
    return directories


def left_behind() -> SimulatedStorage:
    """Give a disk with a partition of three records, after a clean stop."""
    storage = SimulatedStorage()
    directories = open_directory(storage)
    log = directories.create(KEY, ID, LogConfig())
    append(log, b"value", 3)
    directories.close()
    storage.crash(keep_unsynced=True)
    return storage


@pytest.mark.parametrize(
    "harm",
    [
        lambda index: None,
        lambda index: index[:-34],
        lambda index: index[:10] + struct.pack(">q", 0) + index[18:],
    ],
    ids=["lost", "an entry less", "another first offset"],
)
@pytest.mark.parametrize("segment", [0, -1])
def test_a_transaction_index_that_is_not_as_it_was_is_made_anew(
    segment: int, harm: Callable[[bytes], bytes | None], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing else says that there was one: without it what was aborted is read as committed."""
    log = filled_log(2, internal_segment_bytes=1000)
    for producer_id in range(9):
        abort(log, producer_id)
    aborted = [entry for each in log.segments for entry in each.transaction_index.entries]
    log.close()
    indexes = [
        each.path(TRANSACTION_INDEX_SUFFIX) for each in log.segments if each.transaction_index_crc
    ]
    assert len(indexes) > 1
    path, storage = indexes[segment], log.place.storage
    index = read_file(storage, path)
    assert index is not None
    storage.remove(path)
    harmed = harm(index)
    if harmed is not None:
        replace_file(storage, path, harmed)
    again = reopen_clean(log)
    assert [entry for each in again.segments for entry in each.transaction_index.entries] == aborted
    assert [line for line in caplog.messages if path in line] == [
        f"index does not match its log, rebuilt file={path}"
    ]
    again.close()
    caplog.clear()
    reopen_clean(again)
    assert not caplog.messages


def abort(log: PartitionLog, producer_id: int) -> None:
    batch = build_batch(
        [(None, b"aborted" * 20, (), NOW_MS)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    marker = build_end_marker(producer_id, 0, EndMarker(False, 0), NOW_MS)
    log.append_as_leader(
        marker, leader_epoch=0, timestamp_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.advance_high_watermark(log.log_end_offset)


def test_an_emptied_segment_of_a_compacted_log_is_named(caplog: pytest.LogCaptureFixture) -> None:
    log = filled_log(1, cleanup_policy=("compact",), internal_segment_bytes=300)
    for number in range(6):
        append(log, b"%d" % number * 90)
    log.close()
    first = log.segments.first
    first.file.truncate(0)
    reopen_clean(log)
    assert any(first.path(".log") in line for line in caplog.messages)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "is missing in a directory that has partitions"),
        (b"", "is damaged"),
        (bytes(90), "is damaged"),
        (b"version=9\ncluster.id=cluster\nnode.id=1\n", "has version 9"),
        (b"version=1\nnode.id=1\n", "does not say cluster.id"),
        (b"version=1\ncluster.id=c\xff\n", "is not text"),
        (b"version=1\ncluster.id=cluster\nnode.id=1\ndirectory.id=short\n", "has no directory.id"),
    ],
)
def test_a_lost_identity_is_not_made_up_again(data: bytes | None, problem: str) -> None:
    storage = left_behind()
    path = f"/a/{META_PROPERTIES}"
    if data is None:
        storage.remove(path)
    else:
        replace_file(storage, path, data)
    with pytest.raises(InconsistentLogDirectory) as refusal:
        open_directory(storage)
    line = str(refusal.value)
    assert line.startswith(f"{path} {problem}")
    assert "restore it, or write it anew with version=1, cluster.id, node.id" in line
    assert "\n" not in line


def test_an_empty_directory_becomes_ours() -> None:
    storage = SimulatedStorage()
    storage.make_directory("/a/lost+found")
    assert open_directory(storage).directories[0].directory_id == b"x" * 16


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", bytes(40), b"version: 0\ntopic_id: x"])
def test_a_partition_that_does_not_say_whose_it_is_stays_offline(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    storage = left_behind()
    path = f"/a/orders-0/{PARTITION_METADATA}"
    replace_file(storage, path, data)
    for _ in range(2):
        directories = open_directory(storage)
        assert directories.get(KEY) is None
        with pytest.raises(KafkaError) as refusal:
            directories.create(KEY, ID, LogConfig())
        assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert path in str(refusal.value)
        directories.checkpoint()
        directories.close()
        storage.crash(keep_unsynced=True)
    assert f"partition is not served: {path} is damaged" in caplog.text
    storage.remove(path)
    log = open_directory(storage).create(KEY, ID, LogConfig())
    assert (log.log_end_offset, log.recovery_point) == (3, 3)


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b'{"version":0,"brokerEpoch":"x"}'])
def test_a_mark_of_a_clean_stop_that_cannot_be_read_is_none(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    storage = left_behind()
    replace_file(storage, "/a/.kafka_cleanshutdown", data)
    directories = open_directory(storage)
    assert not directories.directories[0].was_clean
    assert "clean-shutdown file ignored path=/a/.kafka_cleanshutdown" in caplog.text


def test_only_what_a_node_has_named_for_deletion_is_deleted_at_the_start() -> None:
    storage = left_behind()
    storage.make_directory("/a/old orders-delete")
    storage.open("/a/old orders-delete/all of them", create=True)
    open_directory(storage)
    assert storage.names("/a/old orders-delete") == ["all of them"]
