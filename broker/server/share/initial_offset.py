"""Where a share group begins to read a partition (`share.auto.offset.reset`)."""

from broker.metadata.share_reset import Reset
from broker.server.replication.partitions import Partition
from broker.share.group_settings import ShareGroupSettings
from common.kafka.errors import ErrorCode, KafkaError


def initial_offset(partition: Partition, settings: ShareGroupSettings, timestamp_ms: int) -> int:
    """Return the first offset of a group without state; raises KafkaError.

    With a duration longer than the age of every record it is the first record; if no record is
    young enough, it is the end.
    """
    leader, log = partition.leader, partition.log
    if leader is None:
        raise KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This broker does not lead {log.topic_partition}."
        )
    if settings.reset is Reset.EARLIEST:
        return log.log_start_offset
    end_offset = leader.latest_offset(is_read_committed=False)
    if settings.reset is Reset.LATEST:
        return end_offset
    found = log.offset_for_timestamp(timestamp_ms - settings.reset_duration_ms)
    return end_offset if found is None else min(found.offset, end_offset)
