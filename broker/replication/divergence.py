"""Where two logs part: found by leader epochs, never by the high watermark (KIP-101, 279, 595).

A leader has one epoch at most once, at one place of the log, and writes what it wants there; so if
two logs have a record of the same offset and epoch, they are equal up to it. A follower says which
epoch its log ends in. If that epoch did not end there, or not so late, in the leader's log, the
leader names its own largest epoch that is not larger, and where it ends: the logs are equal at most
up to there. The follower cuts its log to where it has that epoch too, and asks again: one round for
each epoch that only one of them has.
"""

from broker.errors import ErrorCode, KafkaError
from broker.model import OffsetAndEpoch
from broker.replication.log import ReplicaLog

UNKNOWN_EPOCH = -1


def find_divergence(
    log: ReplicaLog, *, fetch_offset: int, last_fetched_epoch: int
) -> OffsetAndEpoch | None:
    """Say up to where at most a reader's log equals this one; None when this one continues it.

    Raises OFFSET_OUT_OF_RANGE when this log says nothing about the reader's epoch, or begins later.
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
    """Compute where to cut a follower's log that parts from its leader's at most there.

    With an epoch that only the leader has, the follower's largest smaller one ends before it.
    """
    epoch, end_offset = log.end_offset_for_epoch(leader_end.leader_epoch)
    if epoch == UNKNOWN_EPOCH:
        end_offset = log.log_end_offset
    return min(end_offset, leader_end.offset, log.log_end_offset)
