"""The follower's and the observer's side of replication: fetch, truncate, load a snapshot.

A Fetch claims that everything before its offset is on this node's disk. The order of an `Output`
guarantees it: the caller flushes the log before it sends the Fetch.
"""

from broker.model import OffsetAndEpoch
from broker.raft.joining import message_to_leader
from broker.raft.messages import fetch_request, fetch_snapshot_request, partition_of
from broker.raft.output import Envelope
from broker.raft.quorum_state import NO_NODE
from broker.raft.roles import Download, Follower, Observer, Unattached
from broker.raft.state import RaftState
from broker.raft.voter_history import read_entries
from broker.raft.voting import expect_election
from broker.records.errors import CorruptBatch
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages import fetch, fetch_snapshot
from common.kafka.protocol.messages.fetch import FetchResponse
from common.kafka.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from common.kafka.protocol.wire import Blob

_NO_EPOCH = -1


def poll_follower(state: RaftState, role: Follower, now_ms: int) -> None:
    """Fetch from the leader; start a pre-vote if the fetch timeout has expired."""
    if now_ms >= role.deadline_ms and not state.is_stopping:
        state.become_prospective(now_ms)
        return
    _pull(state, role, role.leader_id, now_ms)


def poll_observer(state: RaftState, role: Observer, now_ms: int) -> None:
    """Fetch from the leader; without a leader, ask the voters for it one after the other."""
    if now_ms >= role.deadline_ms:
        if role.leader_id is not None:
            state.become_unattached(state.epoch, now_ms)
            return
        sources = state.sources
        role.deadline_ms = now_ms + state.config.request_timeout_ms
        if sources:
            role.asked = (role.asked + 1) % len(sources)
            state.request(sources[role.asked], _fetch(state), now_ms)
    if role.leader_id is not None:
        _pull(state, role, role.leader_id, now_ms)


def poll_unattached(state: RaftState, role: Unattached, now_ms: int) -> None:
    """Start a pre-vote at the deadline; until then ask the bootstrap servers for a leader.

    All the voters that this node knows may have been replaced while it was away.
    """
    if now_ms >= role.deadline_ms and not state.is_stopping:
        state.become_prospective(now_ms)
        return
    state.ask_servers(_fetch(state), now_ms)


def _pull(state: RaftState, role: Follower | Observer, leader_id: int, now_ms: int) -> None:
    if now_ms >= role.deadline_ms - state.config.fetch_timeout_ms // 2:
        # The leader is silent, and perhaps there is another one that no known voter knows of.
        state.ask_servers(_fetch(state), now_ms)
    if now_ms < state.requests.free_at_ms(leader_id):
        return
    request = message_to_leader(state, role, now_ms)
    if request is not None:
        state.request(leader_id, request, now_ms)
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
    """Append the leader's records, truncate the log, or start a snapshot, as the answer says."""
    role, partition = state.role, partition_of(response)
    if envelope.source < NO_NODE or isinstance(role, Unattached):
        _hear_of_leader(state, partition, envelope.source, now_ms)
        return
    assert isinstance(role, Follower | Observer), role
    if partition is None:
        _refused(state, role, envelope.source, ErrorCode(response.error_code), now_ms)
        return
    if not _is_from_leader(state, role, partition, envelope.source, now_ms):
        return
    _note_alive(state, role, now_ms)
    if not _take_over(state, role, partition):
        _ask_again(state, envelope.source, now_ms)


def _hear_of_leader(
    state: RaftState, partition: fetch.PartitionData | None, source: int, now_ms: int
) -> None:
    """Observe the leader that a bootstrap server names; its other fields are not for this node."""
    role = state.role
    if partition is not None:
        leader = partition.current_leader
        state.observe(leader.leader_epoch, leader.leader_id, source, now_ms)
    if state.role is role:
        state.requests.back_off(source, now_ms + state.config.retry_backoff_ms)
        if isinstance(role, Observer) and role.leader_id is None:
            role.deadline_ms = min(role.deadline_ms, now_ms + state.config.retry_backoff_ms)


def _is_from_leader(
    state: RaftState,
    role: Follower | Observer,
    partition: fetch.PartitionData | FetchSnapshotResponsePartitionSnapshot,
    source: int,
    now_ms: int,
) -> bool:
    """Observe the answer's epoch and leader; return True if the rest of the answer is valid."""
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
    """Carry out a leader's answer; return False if no correct leader sends such an answer."""
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
    """Start the download of a snapshot; return False if it must not replace the log."""
    # Every leader has the committed records, in its newest snapshot or in the log after it. So a
    # snapshot that ends below the high watermark comes from no correct leader.
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
    state.heard_leader = state.leader_id, now_ms
    if isinstance(role, Follower):
        role.has_fetched = True


def _refused(
    state: RaftState, role: Follower | Observer, source: int, code: ErrorCode, now_ms: int
) -> None:
    """Retry after the backoff. NOT_LEADER_OR_FOLLOWER means that the leader has resigned."""
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
    """Truncate the log to where it can equal the leader's; several rounds may follow.

    Every leader has all committed records (leader completeness), so a correct truncation never goes
    below the high watermark, and it removes at least one record. Return False, and truncate
    nothing, if the leader's answer would break one of these rules.
    """
    own = state.log.end_offset_for_epoch(diverging.leader_epoch)
    offset = min(own.offset, diverging.offset)
    if not state.high_watermark <= offset < state.log.end_offset:
        return False
    state.truncate_to(offset)
    return True


def _append(state: RaftState, records: Blob | None) -> bool:
    """Append the leader's batches; return False if one is damaged or does not continue the log.

    The log keeps the batches before the bad one. The next Fetch asks for the rest again.
    """
    if not records:
        return True
    assert isinstance(records, bytes | bytearray | memoryview), type(records)
    state.output.must_flush = True
    try:
        read_entries(records)
        state.log.append_as_follower(records, state.epoch)
    except CorruptBatch:
        return False
    finally:
        state.history.read_log()
    return True


def handle_fetch_snapshot_response(
    state: RaftState, envelope: Envelope, response: FetchSnapshotResponse, now_ms: int
) -> None:
    """Write a chunk of a snapshot; after the last chunk the log starts at the snapshot's end."""
    role, partition = state.role, partition_of(response)
    assert isinstance(role, Follower | Observer), role
    if partition is None:
        _refused(state, role, envelope.source, ErrorCode(response.error_code), now_ms)
        return
    if not _is_from_leader(state, role, partition, envelope.source, now_ms):
        return
    _note_alive(state, role, now_ms)
    if not _take_chunk(state, role, partition):
        role.download = None
        _ask_again(state, envelope.source, now_ms)


def _take_chunk(
    state: RaftState,
    role: Follower | Observer,
    partition: FetchSnapshotResponsePartitionSnapshot,
) -> bool:
    """Write a chunk, and install the snapshot after the last one.

    Return False if the chunk is not the next one, or if the snapshot is damaged.
    """
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
    state.history.read_snapshot()
    state.output.must_flush = True
    state.advance_high_watermark(snapshot_id.offset)
    return True


def lose_leader(state: RaftState, node_id: int, now_ms: int) -> None:
    """Start an election early: a refused connection shows that the leader's process is gone.

    All voters notice this at about the same time. They start their elections one after the other,
    in the order of their ids, so that they do not split the vote. The first voter waits for
    `retry_backoff_ms`, because a voter that still believes in the leader rejects the pre-vote.
    """
    role = state.role
    if node_id == NO_NODE or state.leader_id != node_id:
        return
    if isinstance(role, Observer):
        role.deadline_ms = now_ms
    elif isinstance(role, Follower):
        role.has_fetched = False
        config = state.config
        place = sum(voter < config.node_id for voter in state.other_voters if voter != node_id)
        delay_ms = config.retry_backoff_ms + place * config.succession_step_ms
        role.deadline_ms = min(role.deadline_ms, now_ms + delay_ms)
