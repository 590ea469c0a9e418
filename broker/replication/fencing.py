"""The comparison of a request's leader epoch with the known one (KIP-320).

Two replicas compare logs and count positions only if they agree on the epoch. So a follower never
truncates against a former leader, and a former leader never counts a follower of the new one.
"""

from common.kafka.errors import ErrorCode, KafkaError

ANY_EPOCH = -1  # from a client that knows no epoch; replicas always know one


def validate_leader_epoch(claimed: int, current: int) -> None:
    """Raise FENCED_LEADER_EPOCH for an older epoch, UNKNOWN_LEADER_EPOCH for a newer one."""
    if claimed in {current, ANY_EPOCH}:
        return
    if claimed < current:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
