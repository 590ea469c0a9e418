"""The leader epoch that a request was made in, against the one we know (KIP-320).

Two replicas compare logs and count positions only when they agree on the epoch: a follower never
truncates against a leader of the past, and a deposed leader never counts a follower of the new one.
"""

from broker.errors import ErrorCode, KafkaError

ANY_EPOCH = -1  # of a client that knows no epoch; replicas always do


def validate_leader_epoch(claimed: int, current: int) -> None:
    """Raise FENCED_LEADER_EPOCH for an older epoch, UNKNOWN_LEADER_EPOCH for a newer one."""
    if claimed in {current, ANY_EPOCH}:
        return
    if claimed < current:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
