"""The leader epoch a client believes in, against the one we know (KIP-320)."""

from broker.errors import ErrorCode, KafkaError

UNKNOWN_TO_CLIENT = -1


def validate_leader_epoch(claimed: int, current: int) -> None:
    """Raise FENCED_LEADER_EPOCH for an older epoch, UNKNOWN_LEADER_EPOCH for a newer one."""
    if claimed in {UNKNOWN_TO_CLIENT, current}:
        return
    if claimed < current:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
