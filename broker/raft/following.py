"""The follower's and the observer's side of replication: pull, truncate, load a snapshot.

Everything a Fetch claims is on disk before it is sent: whatever was appended before it is flushed
first, because an `Output` is carried out in order.
"""

from broker.errors import ErrorCode
from broker.model import OffsetAndEpoch
from broker.protocol.messages import fetch, fetch_snapshot
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from broker.protocol.wire import Blob
from broker.raft.messages import fetch_request, fetch_snapshot_request, partition_of
from broker.raft.output import Envelope
from broker.raft.quorum_state import NO_NODE
from broker.raft.roles import Download, Follower, Observer
from broker.raft.state import RaftState
from broker.raft.voting import expect_election
from broker.records.errors import CorruptBatch

_NO_EPOCH = -1


def poll_follower(state: RaftState, role: Follower, now_ms: int) -> None:
    """Pull, or stand for election when the leader has been silent for too long."""
    if now_ms >= role.deadline_ms and not state.is_stopping:
        state.become_prospective(now_ms)
        return
    _pull(state, role, role.leader_id, now_ms)


def poll_observer(state: RaftState, role: Observer, now_ms: int) -> None:
    """Pull from the leader, or ask one voter after the other who that is."""
    if now_ms >= role.deadline_ms:
        if role.leader_id is not None:
            state.become_unattached(state.epoch, now_ms)
            return
        role.asked = (role.asked + 1) % len(state.config.voters)
        role.deadline_ms = now_ms + state.config.request_timeout_ms
        state.request(state.config.voters[role.asked], _fetch(state), now_ms)
    if role.leader_id is not None:
        _pull(state, role, role.leader_id, now_ms)


def _pull(state: RaftState, role: Follower | Observer, leader_id: int, now_ms: int) -> None:
    if now_ms < state.requests.free_at_ms(leader_id):
        return
    download = role.download
    if download is None:
        state.request(leader_id, _fetch(state), now_ms)
        return
    snapshot_id = fetch_snapshot.SnapshotId(
        end_offset=download.snapshot_id.offset, epoch=download.snapshot_id.leader_epoch
    )
    partition = fetch_snapshot.PartitionSnapshot(
        current_leader_epoch=state.epoch,
        snapshot_id=snapshot_id,
        position=download.position,
        replica_directory_id=state.config.directory_id,
    )
    config = state.config
    request = fetch_snapshot_request(
        config.cluster_id, config.node_id, config.snapshot_max_bytes, partition
    )
    state.request(leader_id, request, now_ms)


def _fetch(state: RaftState) -> fetch.FetchRequest:
    config = state.config
    partition = fetch.FetchPartition(
        current_leader_epoch=state.epoch,
        fetch_offset=state.log.end_offset,
        last_fetched_epoch=state.log.last_epoch,
        log_start_offset=state.log.start_offset,
        partition_max_bytes=config.fetch_max_bytes,
        replica_directory_id=config.directory_id,
        high_watermark=state.high_watermark,
    )
    return fetch_request(config.cluster_id, config.node_id, config.fetch_max_wait_ms, partition)


def handle_fetch_response(
    state: RaftState, envelope: Envelope, response: FetchResponse, now_ms: int
) -> None:
    """Take over what the leader sent, or do what it says instead."""
    role, partition = state.role, partition_of(response)
    assert isinstance(role, Follower | Observer), role
    if partition is None:
        _refused(state, role, envelope.source, ErrorCode(response.error_code), now_ms)
        return
    if not _is_from_leader(state, role, partition, envelope.source, now_ms):
        return
    _note_alive(state, role, now_ms)
    if not _take_over(state, role, partition):
        _ask_again(state, envelope.source, now_ms)


def _is_from_leader(
    state: RaftState,
    role: Follower | Observer,
    partition: fetch.PartitionData | FetchSnapshotResponsePartitionSnapshot,
    source: int,
    now_ms: int,
) -> bool:
    """Learn what an answer says of epoch and leader; tell whether the rest of it counts."""
    leader = partition.current_leader
    is_credible = state.observe(leader.leader_epoch, leader.leader_id, source, now_ms)
    if state.role is not role:
        return False
    code = ErrorCode(partition.error_code)
    if not is_credible:
        _ask_again(state, source, now_ms)
    elif code is not ErrorCode.NONE or source != role.leader_id:
        _refused(state, role, source, code, now_ms)
    else:
        return True
    return False


def _take_over(state: RaftState, role: Follower | Observer, partition: fetch.PartitionData) -> bool:
    """Do what the leader says; False when no correct leader says it."""
    if partition.diverging_epoch.epoch != _NO_EPOCH:
        diverging = partition.diverging_epoch
        return truncate_to_diverging_epoch(
            state, OffsetAndEpoch(diverging.end_offset, diverging.epoch)
        )
    if partition.snapshot_id.epoch != _NO_EPOCH:
        snapshot_id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        return _begin_download(state, role, snapshot_id)
    is_whole = _append(state, partition.records)
    state.advance_high_watermark(min(partition.high_watermark, state.log.end_offset))
    return is_whole


def _begin_download(
    state: RaftState, role: Follower | Observer, snapshot_id: OffsetAndEpoch
) -> bool:
    """Ask for a snapshot from now on, if the log may be replaced by it."""
    # What is committed is in every leader's newest snapshot, or in the log behind it.
    if snapshot_id.offset < max(state.high_watermark, 1):
        return False
    if not 0 <= snapshot_id.leader_epoch <= state.epoch:
        return False
    role.download = Download(snapshot_id)
    return True


def _ask_again(state: RaftState, source: int, now_ms: int) -> None:
    state.requests.back_off(source, now_ms + state.config.retry_backoff_ms)


def _note_alive(state: RaftState, role: Follower | Observer, now_ms: int) -> None:
    role.deadline_ms = now_ms + state.config.fetch_timeout_ms
    if isinstance(role, Follower):
        role.has_fetched = True


def _refused(
    state: RaftState, role: Follower | Observer, source: int, code: ErrorCode, now_ms: int
) -> None:
    """Ask again a little later; a leader that says it is none has resigned."""
    retry_ms = now_ms + state.config.retry_backoff_ms
    role.download = None
    state.requests.back_off(source, retry_ms)
    has_resigned = code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    if isinstance(role, Follower):
        if has_resigned:
            expect_election(state, [], now_ms)
    elif has_resigned or role.leader_id is None:
        role.deadline_ms = min(role.deadline_ms, retry_ms)


def truncate_to_diverging_epoch(state: RaftState, diverging: OffsetAndEpoch) -> bool:
    """Cut the log to where it can be equal to the leader's; several rounds may follow.

    What is committed is in every leader's log (leader completeness), so a cut never reaches it, and
    a log that diverges has something to cut: False, and nothing is cut, if that is not so.
    """
    own = state.log.end_offset_for_epoch(diverging.leader_epoch)
    offset = min(own.offset, diverging.offset)
    if not state.high_watermark <= offset < state.log.end_offset:
        return False
    state.log.truncate_to(offset)
    state.output.must_flush = True
    return True


def _append(state: RaftState, records: Blob | None) -> bool:
    """Append what came; False when it was damaged on the way, or is nothing the leader can have.

    What came before the bad batch counts, the rest has to come again.
    """
    if not records:
        return True
    assert isinstance(records, bytes | bytearray | memoryview), type(records)
    state.output.must_flush = True
    try:
        state.log.append_as_follower(records, state.epoch)
    except CorruptBatch:
        return False
    return True


def handle_fetch_snapshot_response(
    state: RaftState, envelope: Envelope, response: FetchSnapshotResponse, now_ms: int
) -> None:
    """Take over a part of a snapshot; with the last one the log begins where it ends."""
    role, partition = state.role, partition_of(response)
    assert isinstance(role, Follower | Observer), role
    if partition is None:
        _refused(state, role, envelope.source, ErrorCode(response.error_code), now_ms)
        return
    if not _is_from_leader(state, role, partition, envelope.source, now_ms):
        return
    _note_alive(state, role, now_ms)
    if not _take_part(state, role, partition):
        role.download = None
        _ask_again(state, envelope.source, now_ms)


def _take_part(
    state: RaftState,
    role: Follower | Observer,
    partition: FetchSnapshotResponsePartitionSnapshot,
) -> bool:
    """Write a part, and install the snapshot with the last one; False when it does not fit."""
    download, data = role.download, partition.unaligned_records
    assert isinstance(data, bytes | bytearray | memoryview), type(data)
    theirs = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if download is None or (theirs, partition.position) != (
        download.snapshot_id,
        download.position,
    ):
        return False
    end_position = download.position + len(data)
    if not download.position < end_position <= partition.size:
        return False
    state.log.write_snapshot(download.snapshot_id, download.position, data)
    download.position = end_position
    return end_position < partition.size or _install(state, role, download)


def _install(state: RaftState, role: Follower | Observer, download: Download) -> bool:
    snapshot_id, role.download = download.snapshot_id, None
    assert snapshot_id.offset >= state.high_watermark, (snapshot_id, state.high_watermark)
    try:
        state.log.install_snapshot(snapshot_id)
    except CorruptBatch:
        return False
    state.output.must_flush = True
    state.advance_high_watermark(snapshot_id.offset)
    return True


def lose_leader(state: RaftState, node_id: int, now_ms: int) -> None:
    """Take note that a node's process is gone, as a refused connection proves.

    The voters learn of it at the same time, so they stand one after the other, in the order of
    their ids: nobody needs luck not to be in each other's way. The first one waits until the others
    have noticed too, for whoever has not gives no pre-vote.
    """
    role = state.role
    if node_id == NO_NODE or state.leader_id != node_id:
        return
    if isinstance(role, Observer):
        role.deadline_ms = now_ms
    elif isinstance(role, Follower):
        role.has_fetched = False
        config = state.config
        place = sum(voter < config.node_id for voter in config.other_voters if voter != node_id)
        delay_ms = config.retry_backoff_ms + place * config.succession_step_ms
        role.deadline_ms = min(role.deadline_ms, now_ms + delay_ms)
