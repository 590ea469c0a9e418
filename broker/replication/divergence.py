"""Where two logs diverge: by leader epochs, never by the high watermark (KIP-101, 279, 595).

Each leader epoch has one leader, which writes its records in order. So if two logs have a record of
the same offset and epoch, they are equal up to that record. A follower's Fetch names its log's end
offset and last epoch. If the leader's log does not have that epoch, or that epoch ends before that
offset there, the leader returns its largest epoch at or below the follower's, with its end offset:
the logs are equal at most up to there. The follower truncates its log to where it has that epoch
too, and fetches again: one round for each epoch that only one of the two logs has.
"""

from broker.model import OffsetAndEpoch
from broker.replication.log import ReplicaLog
from common.kafka.errors import ErrorCode, KafkaError

UNKNOWN_EPOCH = -1


def find_divergence(
    log: ReplicaLog, *, fetch_offset: int, last_fetched_epoch: int
) -> OffsetAndEpoch | None:
    """Return the end of the reader's largest possible common part with this log.

    Return None if this log continues the reader's. Raise OFFSET_OUT_OF_RANGE if this log does not
    know the reader's epoch, or starts after the reader's offset.
    """
    if last_fetched_epoch == UNKNOWN_EPOCH:
        return None
    if last_fetched_epoch == log.leader_epoch and (
        log.log_start_offset <= fetch_offset <= log.log_end_offset
    ):
        return None
    epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
    if epoch == UNKNOWN_EPOCH or fetch_offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return OffsetAndEpoch(end_offset, epoch)
    return None


def truncation_offset(log: ReplicaLog, leader_end: OffsetAndEpoch) -> int:
    """Compute the offset to truncate a follower's log to, given the leader's diverging epoch.

    If only the leader has that epoch, the end of the follower's next smaller epoch limits the
    offset.
    """
    epoch, end_offset = log.end_offset_for_epoch(leader_end.leader_epoch)
    if epoch == UNKNOWN_EPOCH:
        end_offset = log.log_end_offset
    return min(end_offset, leader_end.offset, log.log_end_offset)


ANY_EPOCH = -1  # from a client that knows no epoch; replicas always know one


def validate_leader_epoch(claimed: int, current: int) -> None:
    """Raise FENCED_LEADER_EPOCH for an older epoch, UNKNOWN_LEADER_EPOCH for a newer one (KIP-320).

    Two replicas compare logs and count positions only if they agree on the epoch. So a follower
    never truncates against a former leader, and a former leader never counts a follower of the new
    one.
    """
    if claimed in {current, ANY_EPOCH}:
        return
    if claimed < current:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
