"""The raft log over a PartitionLog and snapshot files, also after a crash at any point."""

import pytest

from broker.log.log_start import OpenHints
from broker.model import OffsetAndEpoch
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.errors import CorruptBatch
from broker.server.quorum.raft.partition_raft_log import RECORDS_PER_STEP, PartitionRaftLog
from broker.server.quorum.raft.snapshot_files import SnapshotFiles
from broker.server.quorum.raft.snapshot_format import build_snapshot, snapshot_values
from common.kafka.protocol.wire import DecodeError
from tests.lib.logs import open_log, store_snapshot
from tests.lib.quorum_peer import DIRECTORY, batch_of, open_raft_log
from tests.lib.simulated_storage import SimulatedStorage


@pytest.fixture
def storage() -> SimulatedStorage:
    return SimulatedStorage()


@pytest.fixture
def log(storage):
    log = open_raft_log(storage)
    for epoch in (1, 1, 2, 4, 4):
        log.append_as_leader(batch_of(f"e{epoch}"), epoch)
    log.flush()
    storage.sync_directory("/logs")
    return log


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(0, (0, 0)), (1, (2, 1)), (2, (3, 2)), (3, (3, 2)), (4, (5, 4)), (9, (5, 4))],
)
def test_where_an_epoch_ends(log, epoch, end):
    assert log.end_offset_for_epoch(epoch) == OffsetAndEpoch(*end)


def test_an_empty_log_has_epoch_0(storage):
    log = open_raft_log(storage)
    assert (log.start_offset, log.end_offset, log.last_epoch) == (0, 0, 0)
    assert log.end_offset_for_epoch(3) == OffsetAndEpoch(0, 0)


def test_a_snapshot_takes_the_place_of_records(log, storage):
    snapshot_id = OffsetAndEpoch(3, 2)
    store_snapshot(log, snapshot_id, b"state")
    assert (log.start_offset, log.snapshot_ids()) == (0, [snapshot_id])
    log.delete_before_snapshot(snapshot_id)
    assert (log.start_offset, log.end_offset) == (3, 5)
    assert log.end_offset_for_epoch(1) == OffsetAndEpoch(3, 2)
    log.flush()
    storage.crash(keep_unsynced=False)
    again = open_raft_log(storage)
    assert (again.start_offset, again.end_offset, again.last_epoch) == (3, 5, 4)


def test_an_older_snapshot_goes_with_its_records(log):
    for snapshot_id in (OffsetAndEpoch(2, 1), OffsetAndEpoch(5, 4)):
        store_snapshot(log, snapshot_id, b"state")
    log.delete_before_snapshot(OffsetAndEpoch(5, 4))
    assert log.snapshot_ids() == [OffsetAndEpoch(5, 4)]
    assert (log.start_offset, log.end_offset, log.last_epoch) == (5, 5, 4)


@pytest.mark.parametrize("keep_unsynced", [False, True])
@pytest.mark.parametrize("calls", range(24))
def test_a_crash_while_a_snapshot_is_installed(log, storage, calls, keep_unsynced):
    older, newer = OffsetAndEpoch(2, 1), OffsetAndEpoch(9, 6)
    store_snapshot(log, older, b"old")
    log.write_snapshot(newer, 0, b"new")
    storage.fail_after(calls)
    is_installed = False
    try:
        log.install_snapshot(newer)
        log.flush()
        is_installed = True
    except OSError:
        pass
    storage.crash(keep_unsynced=keep_unsynced)
    again = open_raft_log(storage)
    newest = again.snapshot_ids()[-1]
    assert newest == newer or not is_installed
    assert again.snapshot_ids()[0].offset == again.start_offset
    assert again.end_offset >= newest.offset
    if newest == newer:
        assert (again.start_offset, again.end_offset, again.last_epoch) == (9, 9, 6)
        assert again.read_snapshot(newer, 0, 99) == b"new"


def test_an_unfinished_snapshot_is_removed(log, storage):
    log.write_snapshot(OffsetAndEpoch(9, 6), 0, b"part")
    again = open_raft_log(storage)
    assert again.snapshot_ids() == []
    assert not [name for name in storage.names(DIRECTORY) if "part" in name]


def test_snapshot_files_have_kafkas_names(log, storage):
    store_snapshot(log, OffsetAndEpoch(3, 2), b"state")
    assert "00000000000000000003-0000000002.checkpoint" in storage.names(DIRECTORY)


def test_only_what_follows_on_is_appended(log):
    (batch,) = split_batches(batch_of("x"))
    with pytest.raises(CorruptBatch, match="does not follow"):
        log.append_as_follower(bytes(batch.buffer), 9)
    assert log.end_offset == 5


def test_a_snapshot_is_complete_only_with_its_footer():
    values = [f"v{number}".encode() for number in range(2_500)]
    data = build_snapshot(values, 3, 1_000, 2_000)
    assert list(snapshot_values(data)) == values
    assert [batch.base_offset for batch in split_batches(data)] == [
        *[0, 1, 501, 1001],
        *[1501, 2001, 2501],
    ]
    last = list(split_batches(data))[-1]
    with pytest.raises(CorruptBatch, match="footer"):
        list(snapshot_values(data[: -last.header.size_bytes]))


def test_a_log_whose_snapshot_is_lost_is_not_begun_in_the_middle(log, storage):
    snapshot_id = OffsetAndEpoch(3, 2)
    store_snapshot(log, snapshot_id, b"state")
    log.delete_before_snapshot(snapshot_id)
    log.flush()
    storage.remove(f"{DIRECTORY}/{3:020d}-{2:010d}.checkpoint")
    with pytest.raises(CorruptBatch, match=r"begins at offset 3, and the snapshot .* restore it"):
        reopen_at(storage, 3)
    storage.open(f"{DIRECTORY}/{2:020d}-{1:010d}.checkpoint", create=True)
    with pytest.raises(CorruptBatch, match="begins at offset 3"):
        reopen_at(storage, 3)


def reopen_at(storage, log_start_offset):
    hints = OpenHints(log_start_offset=log_start_offset, high_watermark=5)
    return PartitionRaftLog(
        open_log(storage, hints=hints, directory=DIRECTORY),
        SnapshotFiles(storage, DIRECTORY),
        lambda: 1_000,
    )


def test_a_file_that_is_no_snapshot_is_left_alone(log, storage, caplog):
    storage.open(f"{DIRECTORY}/abc.checkpoint", create=True)
    assert open_raft_log(storage).snapshot_ids() == []
    assert f"not a snapshot, left alone file={DIRECTORY}/abc.checkpoint" in caplog.text


def test_what_was_read_ahead_in_steps_is_appended_without_another_look(storage):
    values = [f"value {number}" for number in range(2 * RECORDS_PER_STEP + 1)]
    looked_at: list[bytes] = []
    log = open_raft_log(storage)
    log._decode = looked_at.append
    records = sent(*values)
    steps = 0
    for _ in log.read_ahead(records):
        steps += 1
        assert len(looked_at) == steps * RECORDS_PER_STEP
    assert steps == 2
    assert log.end_offset == 0
    log.append_as_follower(records, 1)
    assert (log.end_offset, len(looked_at)) == (len(values), len(values))


def test_only_what_was_read_ahead_is_believed(storage):
    log = open_raft_log(storage)
    log._decode = refuse_what_is_bad
    good, bad = sent("good"), sent("bad")
    for sent_ahead in (good, bad):
        for _ in log.read_ahead(sent_ahead):
            pass
        with pytest.raises(CorruptBatch, match="a record cannot be read"):
            log.append_as_follower(bad, 1)
    assert log.end_offset == 0


def refuse_what_is_bad(value: bytes) -> None:
    if value == b"bad":
        raise DecodeError("bad")


def sent(*values: str) -> bytes:
    """Make a batch as the leader of epoch 1 sends it."""
    return build_batch([(None, value.encode(), (), 0) for value in values], leader_epoch=1)
