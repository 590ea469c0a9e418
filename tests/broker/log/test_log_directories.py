"""Several log directories: placement, names, locks, failure, checkpoints, moves, flushes."""

from random import Random

import pytest

from broker.log.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
    read_properties,
)
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.log.meta_properties import InconsistentLogDirectory
from broker.log.names import directory_name, parse_directory_name
from broker.log.partition_log import PartitionLog
from broker.log.storage import RealStorage, Storage, read_file, replace_file
from broker.model import TopicPartition
from broker.records.build import build_batch
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.logs import NOW_MS, log_bytes, read_records
from tests.lib.simulated_storage import SimulatedStorage

CONFIG = LogConfig(internal_segment_bytes=300, file_delete_delay_ms=100)
ID = b"topic id 16 byte"
KEY = TopicPartition("orders", 0)


def open_directories(
    storage: Storage, *paths: str, node_id: int = 1, config: LogConfig = CONFIG
) -> LogDirectories:
    ids = Random(3)
    settings = DirectorySettings(
        "cluster", node_id, lambda topic: config, lambda: ids.randbytes(16)
    )
    directories = LogDirectories(storage, paths or ["/a", "/b"], settings)
    directories.open(NOW_MS)
    return directories


def append(log: PartitionLog, count: int = 1, **fields: int) -> None:
    for _ in range(count):
        batch = build_batch([(b"k", bytes(50), (), NOW_MS)], **fields)
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
        log.advance_high_watermark(log.log_end_offset)


def test_new_partitions_go_where_the_fewest_are() -> None:
    directories = open_directories(SimulatedStorage(), "/a", "/b", "/c")
    for number in range(7):
        directories.create(TopicPartition("orders", number), ID, CONFIG)
    assert [len(directory.logs) for directory in directories.directories] == [3, 2, 2]
    placed = directories.create(TopicPartition("orders", 7), ID, CONFIG, path="/a")
    assert placed.directory == "/a/orders-7"


@pytest.mark.parametrize("count", [4, 40])
def test_everything_is_there_after_a_clean_stop(count: int) -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage)
    for number in range(count):
        append(directories.create(TopicPartition("orders", number), ID, CONFIG), number)
    contents = {log.topic_partition: log_bytes(log) for log in directories.all()}
    directories.close(broker_epoch=42)
    assert read_file(storage, f"/a/{CLEAN_SHUTDOWN}") == b'{"version":0,"brokerEpoch":42}'
    storage.crash(keep_unsynced=False)
    again = open_directories(storage)
    assert {log.topic_partition: log_bytes(log) for log in again.all()} == contents
    assert all(directory.was_clean for directory in again.directories)
    assert again.directories[0].clean_broker_epoch == 42
    # Of an empty partition the topic id may be lost; `create` brings it again.
    assert all(log.topic_id == ID for log in again.all() if log.log_end_offset)
    assert storage.status(f"/a/{CLEAN_SHUTDOWN}") is None, "this run is not clean yet"


def test_directories_that_were_left_in_different_epochs_were_not_left_cleanly() -> None:
    storage = SimulatedStorage()
    open_directories(storage, "/a", "/b").close(broker_epoch=7)
    again = open_directories(storage, "/a", "/b")
    assert again.clean_broker_epoch == 7
    again.close(broker_epoch=8)
    replace_file(storage, f"/b/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":7}')
    assert open_directories(storage, "/a", "/b").clean_broker_epoch == -1
    assert open_directories(storage, "/a", "/b").clean_broker_epoch == -1, "nor when killed"


def test_meta_properties_say_whose_directory_it_is() -> None:
    storage = SimulatedStorage()
    first = open_directories(storage, "/a")
    properties = read_properties(storage, f"/a/{META_PROPERTIES}")
    assert sorted(properties) == ["cluster.id", "directory.id", "node.id", "version"]
    assert (properties["version"], properties["node.id"]) == ("1", "1")
    directory_id = first.directories[0].directory_id
    first.close()
    storage.crash(keep_unsynced=False)
    assert open_directories(storage, "/a").directories[0].directory_id == directory_id
    storage.crash(keep_unsynced=True)
    with pytest.raises(InconsistentLogDirectory, match=r"node.id=1 and this node has 2"):
        open_directories(storage, "/a", node_id=2)


def test_a_second_process_is_kept_out() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage, "/a")
    with pytest.raises(InconsistentLogDirectory, match="another process"):
        open_directories(storage, "/a")
    directories.close()


def test_the_real_lock(tmp_path) -> None:  # type: ignore[no-untyped-def]
    directories = open_directories(RealStorage(), str(tmp_path))
    with pytest.raises(InconsistentLogDirectory, match="another process"):
        open_directories(RealStorage(), str(tmp_path))
    directories.close()
    open_directories(RealStorage(), str(tmp_path)).close()


def test_a_deleted_partition_is_gone_at_once_and_its_files_later() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage, "/a")
    append(directories.create(KEY, ID, CONFIG), 3)
    assert directories.delete(KEY, NOW_MS)
    assert directories.get(KEY) is None
    assert not directories.delete(KEY, NOW_MS)
    doomed = f"orders-0.{ID.hex()}-delete"
    assert doomed in storage.names("/a")
    again = directories.create(KEY, b"another topic id", CONFIG)
    assert again.log_end_offset == 0
    assert directories.next_removal_ms() == NOW_MS + 100
    assert directories.remove_due(NOW_MS + 99) == 0
    assert directories.remove_due(NOW_MS + 100) == 1
    assert doomed not in storage.names("/a")


def test_what_a_crash_left_to_delete_is_deleted_at_the_start() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage, "/a")
    append(directories.create(KEY, ID, CONFIG))
    directories.delete(KEY, NOW_MS)
    storage.crash(keep_unsynced=True)
    open_directories(storage, "/a")
    assert not [name for name in storage.names("/a") if "orders" in name]


def test_a_new_partition_does_not_inherit_checkpoints_of_a_deleted_one() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage, "/a")
    log = directories.create(KEY, ID, CONFIG)
    append(log, 9)
    log.flush()
    log.delete_records_before(7)
    directories.checkpoint()
    directories.delete(KEY, NOW_MS)
    again = directories.create(KEY, b"another topic id", CONFIG)
    append(again, 3)
    again.segments.active.file.write(again.segments.active.size_bytes, b"torn")
    storage.crash(keep_unsynced=True)
    reopened = open_directories(storage, "/a").get(KEY)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.log_end_offset) == (0, 3)


def test_another_incarnation_of_a_topic_is_refused() -> None:
    directories = open_directories(SimulatedStorage(), "/a")
    directories.create(KEY, ID, CONFIG)
    assert directories.create(KEY, ID, CONFIG) is directories.get(KEY)
    with pytest.raises(KafkaError) as refusal:
        directories.create(KEY, b"another topic id", CONFIG)
    assert refusal.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_failing_directory_goes_offline_and_the_others_serve_on() -> None:
    directories = open_directories(SimulatedStorage())
    for number in range(4):
        append(directories.create(TopicPartition("orders", number), ID, CONFIG))
    lost = directories.take_offline("/a", OSError("simulated"))
    assert sorted(lost) == [TopicPartition("orders", 0), TopicPartition("orders", 2)]
    assert directories.get(TopicPartition("orders", 0)) is None
    append(directories.get(TopicPartition("orders", 1)))  # type: ignore[arg-type]
    new = directories.create(TopicPartition("more", 0), ID, CONFIG)
    assert new.directory == "/b/more-0"
    directories.take_offline("/b", OSError("simulated"))
    with pytest.raises(KafkaError) as refusal:
        directories.create(TopicPartition("more", 1), ID, CONFIG)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_damage_takes_only_its_directory_offline_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage)
    logs = [directories.create(TopicPartition("orders", n), ID, CONFIG) for n in range(2)]
    for log in logs:
        append(log, 2)
        log.flush()
    directories.checkpoint()
    logs[0].segments.first.file.write(70, b"!!")
    storage.crash(keep_unsynced=True)
    again = open_directories(storage)
    assert [directory.is_offline for directory in again.directories] == [True, False]
    assert [log.topic_partition for log in again.all()] == [TopicPartition("orders", 1)]
    assert "is damaged at byte 0, offset 0, below the recovery point 2" in caplog.text


def test_no_directory_at_all_is_an_error() -> None:
    storage = SimulatedStorage()
    storage.fail_after(0)
    with pytest.raises(OSError, match="every log directory has failed"):
        open_directories(storage)


def test_checkpoints_are_written_when_something_changed() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage, "/a")
    log = directories.create(KEY, ID, CONFIG)
    append(log, 5)
    log.flush()
    log.delete_records_before(1)
    directories.checkpoint()
    assert read_offsets(storage, f"/a/{RECOVERY_POINT_CHECKPOINT}") == {KEY: 5}
    assert read_offsets(storage, f"/a/{LOG_START_CHECKPOINT}") == {KEY: 1}
    calls = storage.calls
    directories.checkpoint()
    assert storage.calls == calls


def test_high_watermarks_are_written_by_themselves() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage, "/a")
    log = directories.create(KEY, ID, CONFIG)
    append(log, 5)
    directories.checkpoint_high_watermarks()
    assert read_offsets(storage, f"/a/{HIGH_WATERMARK_CHECKPOINT}") == {KEY: 5}
    assert read_offsets(storage, f"/a/{RECOVERY_POINT_CHECKPOINT}") == {}


def test_flushes_wait_in_one_queue() -> None:
    config = LogConfig(internal_segment_bytes=300, flush_ms=50)
    directories = open_directories(SimulatedStorage(), "/a", config=config)
    log = directories.create(KEY, ID, config)
    assert directories.next_flush_ms() is None
    append(log)
    assert directories.next_flush_ms() == NOW_MS + 50
    assert directories.flushes_due(NOW_MS + 49) == []
    append(log, 3)
    assert directories.flushes_due(NOW_MS) == [log], "a roll wants a flush at once"
    log.flush()
    assert log.recovery_point == 4
    assert directories.flushes_due(NOW_MS + 50) == []
    append(log)
    assert directories.flushes_due(NOW_MS + 50) == [log]
    directories.delete(KEY, NOW_MS)
    log.flush()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_partition_moves_to_another_directory(restarts: bool) -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage)
    log = directories.create(KEY, ID, CONFIG, path="/a")
    append(log, 1, producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, 8)
    log.delete_records_before(2)
    log.delete_old_segments(NOW_MS)
    expected = read_records(log)
    assert directories.move(KEY, "/b")
    assert directories.moving() == [KEY]
    assert directories.advance_move(KEY, 300, NOW_MS).log is None
    if restarts:
        directories.close()
        storage.crash(keep_unsynced=False)
        directories = open_directories(storage)
        log = directories.get(KEY)  # type: ignore[assignment]
        log.advance_high_watermark(log.log_end_offset)
        assert directories.moving() == [KEY]
    append(log)
    moved = None
    while moved is None:
        moved = directories.advance_move(KEY, 300, NOW_MS).log
    assert directories.get(KEY) is moved
    assert moved.directory == "/b/orders-0"
    assert read_records(moved)[:-1] == expected
    assert (moved.log_start_offset, moved.log_end_offset) == (2, 10)
    assert directories.moving() == []
    directories.remove_due(NOW_MS + 100)
    assert not [name for name in storage.names("/a") if "orders" in name]
    directories.close()
    storage.crash(keep_unsynced=False)
    again = open_directories(storage).get(KEY)
    assert again is not None
    assert read_records(again)[:-1] == expected


def test_a_partition_that_begins_within_a_batch_moves() -> None:
    directories = open_directories(SimulatedStorage())
    log = directories.create(KEY, ID, CONFIG, path="/a")
    batch = build_batch([(b"%d" % number, b"", (), NOW_MS) for number in range(4)])
    log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    log.advance_high_watermark(4)
    log.delete_records_before(3)
    directories.move(KEY, "/b")
    moved = directories.advance_move(KEY, 1_000, NOW_MS).log
    assert moved is not None
    assert (moved.log_start_offset, moved.log_end_offset) == (3, 4)
    assert moved.size_bytes == log.size_bytes


def test_a_move_follows_truncation_and_may_be_given_up() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage)
    log = directories.create(KEY, ID, CONFIG, path="/a")
    append(log, 6)
    directories.move(KEY, "/b")
    while not directories.directories[1].future_logs[KEY].log_end_offset:
        directories.advance_move(KEY, 200, NOW_MS)
    log.truncate_to(1)
    log.become_leader(1)
    for _ in range(3):
        batch = build_batch([(b"new", b"", (), NOW_MS)])
        log.append_as_leader(batch, leader_epoch=1, timestamp_ms=NOW_MS)
    log.advance_high_watermark(4)
    moved = None
    while moved is None:
        moved = directories.advance_move(KEY, 200, NOW_MS).log
    assert [record.key for record in read_records(moved)] == [b"k", b"new", b"new", b"new"]
    assert directories.move(KEY, "/a")
    assert not directories.move(KEY, "/b")
    assert directories.moving() == []
    for path, code in (("/z", ErrorCode.LOG_DIR_NOT_FOUND), ("/a", None)):
        if code is not None:
            with pytest.raises(KafkaError) as refusal:
                directories.move(KEY, path)
            assert refusal.value.code == code


def test_directory_names() -> None:
    assert directory_name(KEY) == "orders-0"
    assert directory_name(KEY, ID, "-future") == f"orders-0.{ID.hex()}-future"
    long = TopicPartition("x" * 249, 12345)
    assert len(directory_name(long, ID, "-delete")) == 255
    assert parse_directory_name("a-b.c-7") == (TopicPartition("a-b.c", 7), "")
    assert parse_directory_name(directory_name(KEY, ID, "-stray")) == (KEY, "-stray")
    for name in (
        "orders",
        "orders-",
        "-1",
        "orders-x",
        ".kafka-1",
        "checkpoint",
        "my-0.old-delete",
    ):
        assert parse_directory_name(name) is None, name


def test_fifty_partitions_cost_few_calls() -> None:
    storage = SimulatedStorage()
    directories = open_directories(storage, "/a")
    before = storage.calls
    for number in range(50):
        directories.create(TopicPartition("orders", number), ID, CONFIG)
    assert storage.calls - before <= 50 * 6
