"""The leader's side of replication: Fetch and FetchSnapshot, the high watermark, check-quorum.

A replica's Fetch names the end offset and the last epoch of its log. If the leader's log has that
epoch up to at least that offset, the two logs are equal up to there (log matching, Raft 5.3) and
the leader counts the replica. Otherwise the answer names the latest point at which the logs can be
equal, the *diverging epoch*; or a snapshot, if the leader's log starts after the replica's end.
"""

from typing import NamedTuple

from broker.model import OffsetAndEpoch
from broker.raft.log import RaftLog
from broker.raft.messages import (
    begin_epoch_request,
    fetch_response,
    fetch_snapshot_response,
    partition_of,
    refusal_of,
    replica_id_of,
)
from broker.raft.output import Envelope
from broker.raft.progress import ReplicaProgress, compute_high_watermark, majority_heard_ms
from broker.raft.roles import Leader, ParkedFetch
from broker.raft.state import RaftState
from broker.raft.voter_changes import finish_committed_change, give_up_change, is_removed
from broker.raft.voter_set import ReplicaKey
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages import fetch, fetch_snapshot
from common.kafka.protocol.messages.fetch import FetchRequest
from common.kafka.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from common.kafka.protocol.wire import ZERO_UUID

MAX_PARKED = 1_000
MAX_OBSERVERS = 10_000


class Diverging(NamedTuple):
    """The two logs are equal at most up to the end of this epoch."""

    end: OffsetAndEpoch


class NeedsSnapshot(NamedTuple):
    """The leader's log starts after the record that the replica needs next."""

    snapshot_id: OffsetAndEpoch


def check_position(
    log: RaftLog, fetch_offset: int, last_fetched_epoch: int
) -> Diverging | NeedsSnapshot | None:
    """Compare the end of a replica's log with this log; return None if this log continues it."""
    snapshots = log.snapshot_ids()
    if fetch_offset == log.start_offset == 0:
        return None
    if snapshots:
        start = snapshots[0]
        is_before = fetch_offset < log.start_offset or last_fetched_epoch < start.leader_epoch
        if log.start_offset and (
            is_before or (fetch_offset == start.offset and last_fetched_epoch != start.leader_epoch)
        ):
            return NeedsSnapshot(snapshots[-1])
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if end.leader_epoch != last_fetched_epoch or end.offset < fetch_offset:
        return Diverging(end)
    return None


def _refuse(state: RaftState, current_leader_epoch: int) -> ErrorCode:
    """Return the error for a request of another epoch, or to a node that does not lead."""
    if current_leader_epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if current_leader_epoch > state.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(state.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def _is_from_itself(state: RaftState, partition: fetch.FetchPartition) -> bool:
    """Return True for a request of this node's own: one of its bootstrap servers is itself.

    A leader sends none. A request that reaches a leader is of a copy of this node's directory.
    """
    directory_id = state.config.directory_id
    is_own = directory_id != ZERO_UUID and partition.replica_directory_id == directory_id
    return is_own and not isinstance(state.role, Leader)


def handle_fetch(state: RaftState, envelope: Envelope, request: FetchRequest, now_ms: int) -> None:
    """Answer a replica's Fetch, or park it until there is something new."""
    partition = partition_of(request)
    is_own_id = replica_id_of(request) == state.config.node_id
    if is_own_id and partition is not None and _is_from_itself(state, partition):
        state.respond(
            envelope, fetch_response(_fetch_part(state, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        )
        return
    if (
        partition is None
        or min(partition.fetch_offset, partition.last_fetched_epoch, request.max_wait_ms) < 0
        or is_own_id
    ):
        # Another process that uses this node's id must not count for what is on this node's disk.
        state.respond(envelope, refusal_of(request, ErrorCode.INVALID_REQUEST))
        return
    code = _refuse(state, partition.current_leader_epoch)
    if code is not ErrorCode.NONE or not isinstance(state.role, Leader):
        state.respond(envelope, fetch_response(_fetch_part(state, code)))
        return
    key = ReplicaKey(replica_id_of(request), partition.replica_directory_id)
    replica = _replica(state, state.role, key, now_ms)
    replica.note_fetch(now_ms)
    found = check_position(state.log, partition.fetch_offset, partition.last_fetched_epoch)
    if found is not None:
        state.respond(envelope, fetch_response(_elsewhere(state, found)))
        return
    replica.note_position(partition.fetch_offset, state.log.end_offset, now_ms)
    _commit(state, state.role)
    parked = ParkedFetch(
        envelope,
        partition.fetch_offset,
        partition.high_watermark,
        # Not the partition's own limit: Kafka's replicas leave it at 0 here.
        max(0, min(request.max_bytes, state.config.fetch_max_bytes)),
        now_ms + request.max_wait_ms,
    )
    if len(state.role.parked) >= MAX_PARKED:
        parked = parked._replace(deadline_ms=now_ms)
    state.role.parked.append(parked)


def _replica(state: RaftState, role: Leader, key: ReplicaKey, now_ms: int) -> ReplicaProgress:
    """Return the progress of a voter or an observer; the progress of other readers is not kept.

    A node with a voter's id and another directory is an observer: it does not have what the voter
    acknowledged.
    """
    if state.voters.is_voter(key):
        return role.progress[key.node_id]
    if key.node_id < 0 or (len(role.observers) >= MAX_OBSERVERS and key not in role.observers):
        return ReplicaProgress(now_ms)
    return role.observers.setdefault(key, ReplicaProgress(now_ms))


def _fetch_part(state: RaftState, code: ErrorCode, records: bytes = b"") -> fetch.PartitionData:
    return fetch.PartitionData(
        error_code=code,
        high_watermark=state.high_watermark,
        log_start_offset=state.log.start_offset,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=state.leader_id, leader_epoch=state.epoch),
        records=records,
    )


def _elsewhere(state: RaftState, found: Diverging | NeedsSnapshot) -> fetch.PartitionData:
    part = _fetch_part(state, ErrorCode.NONE)
    match found:
        case Diverging(end):
            part.diverging_epoch = fetch.EpochEndOffset(
                epoch=end.leader_epoch, end_offset=end.offset
            )
        case NeedsSnapshot(snapshot_id):
            part.snapshot_id = fetch.SnapshotId(
                end_offset=snapshot_id.offset, epoch=snapshot_id.leader_epoch
            )
    return part


def answer_parked(state: RaftState, role: Leader, now_ms: int) -> None:
    """Answer the parked Fetches that have new records, a new high watermark, or no time left."""
    still_parked = []
    for parked in role.parked:
        if parked.fetch_offset < state.log.start_offset:
            # The log start has moved beyond the offset. The answer to the next Fetch names a
            # snapshot.
            part = _fetch_part(state, ErrorCode.NONE)
        elif (
            parked.fetch_offset < state.log.end_offset
            or parked.high_watermark < state.high_watermark
            or parked.deadline_ms <= now_ms
        ):
            records = state.log.read(parked.fetch_offset, parked.max_bytes)
            part = _fetch_part(state, ErrorCode.NONE, records)
        else:
            still_parked.append(parked)
            continue
        state.respond(parked.envelope, fetch_response(part))
    role.parked = still_parked


def answer_abandoned(state: RaftState) -> None:
    """Answer the Fetches that were parked when this node stopped leading."""
    for parked in state.abandoned:
        part = _fetch_part(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        state.respond(parked.envelope, fetch_response(part))
    state.abandoned.clear()


def handle_fetch_snapshot(
    state: RaftState, envelope: Envelope, request: FetchSnapshotRequest, now_ms: int
) -> None:
    """Answer with one chunk of a snapshot."""
    partition = partition_of(request)
    if partition is None:
        state.respond(envelope, refusal_of(request, ErrorCode.INVALID_REQUEST))
        return
    part = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
        error_code=_refuse(state, partition.current_leader_epoch),
        snapshot_id=partition.snapshot_id,
        current_leader=fetch_snapshot.LeaderIdAndEpoch(
            leader_id=state.leader_id, leader_epoch=state.epoch
        ),
        position=partition.position,
        unaligned_records=b"",
    )
    if isinstance(state.role, Leader) and part.error_code == ErrorCode.NONE:
        key = ReplicaKey(request.replica_id, partition.replica_directory_id)
        _replica(state, state.role, key, now_ms).note_fetch(now_ms)
        max_bytes = max(0, min(request.max_bytes, state.config.snapshot_max_bytes))
        _fill_snapshot_part(state.log, part, max_bytes)
    state.respond(envelope, fetch_snapshot_response(part))


def _fill_snapshot_part(
    log: RaftLog, part: fetch_snapshot.FetchSnapshotResponsePartitionSnapshot, max_bytes: int
) -> None:
    snapshot_id = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
    size_bytes = log.snapshot_size_bytes(snapshot_id)
    if size_bytes is None:
        part.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
    elif not 0 <= part.position < size_bytes:
        part.error_code = ErrorCode.POSITION_OUT_OF_RANGE
    else:
        part.size = size_bytes
        part.unaligned_records = log.read_snapshot(snapshot_id, part.position, max_bytes)


def note_flushed(state: RaftState, role: Leader, end_offset: int, now_ms: int) -> None:
    """Count the leader itself for everything below `end_offset`, which is on its disk.

    A leader that has removed itself does not count.
    """
    if state.is_voter:
        role.progress[state.config.node_id].note_position(end_offset, end_offset, now_ms)
        _commit(state, role)


def _commit(state: RaftState, role: Leader) -> None:
    end_offsets = [replica.end_offset for replica in role.progress.values()]
    is_more = state.advance_high_watermark(
        compute_high_watermark(end_offsets, role.epoch_start_offset, state.high_watermark)
    )
    if is_more:
        finish_committed_change(state, role)


def quorum_deadline_ms(state: RaftState, role: Leader) -> int:
    """Compute when the leader resigns unless a majority of the voters fetches (check-quorum)."""
    config = state.config
    heard_ms = majority_heard_ms(role.progress, config.node_id, state.voters.ids)
    return heard_ms + config.check_quorum_ms


def announce_at_ms(state: RaftState, role: Leader, voter: int) -> int:
    """Compute when to send BeginQuorumEpoch to a voter: at once, and again while it is silent."""
    replica = role.progress[voter]
    silent_until_ms = replica.last_fetch_ms + state.config.begin_epoch_interval_ms
    due_ms = silent_until_ms if replica.has_fetched else 0
    return max(due_ms, state.requests.free_at_ms(voter))


def poll_leader(state: RaftState, role: Leader, now_ms: int) -> None:
    """Resign without a majority, or when this node's removal is committed.

    Else send BeginQuorumEpoch, answer parked Fetches, and give up a change of the voters that takes
    too long.
    """
    if now_ms >= quorum_deadline_ms(state, role) or is_removed(state, role):
        state.become_resigned(now_ms)
        return
    config = state.config
    for voter in state.other_voters:
        if now_ms >= announce_at_ms(state, role, voter):
            request = begin_epoch_request(
                config.cluster_id,
                state.voters.key_of(voter),
                config.node_id,
                state.epoch,
                config.endpoints,
            )
            state.request(voter, request, now_ms)
    answer_parked(state, role, now_ms)
    give_up_change(state, role, now_ms)
