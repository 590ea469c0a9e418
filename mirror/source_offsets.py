"""The mirror's source offsets in Connect's store: MirrorMaker 2's format, and its checks."""

from collections.abc import Mapping
from typing import Any, Final

from millstream.connect.connectors import SourceOffset, SourcePartition, TopicPartition
from millstream.connect.errors import ConnectException

TOPIC_ID: Final = "topicId"
"""The id of the topic that an offset belongs to. MirrorMaker 2 does not write it and ignores it."""


class Place(dict[str, Any]):
    """A partition of the source in Connect's form, and as the mirror knows it."""

    __slots__ = ("at",)

    def __init__(self, cluster: str, at: TopicPartition) -> None:
        super().__init__(cluster=cluster, topic=at.topic, partition=at.partition)
        self.at = at


def resume_offset(kept: Mapping[str, Any] | None, topic_id: str | None) -> int | None:
    """Return the offset to continue at, None to start at the beginning.

    It is None if nothing was copied, or if the stored offset belongs to a deleted topic of the same
    name.
    """
    if kept is None or not isinstance(kept.get("offset"), int):
        return None
    if topic_id is not None and kept.get(TOPIC_ID, topic_id) != topic_id:
        return None
    offset = int(kept["offset"])
    return None if offset < 0 else offset + 1


def check_source_offset(partition: SourcePartition | None, offset: SourceOffset | None) -> None:
    """Check an offset that a user wants to set (KIP-875). Raises ConnectException."""
    if offset is None:
        # An invalid partition may be removed.
        return
    if partition is None:
        raise ConnectException("Source partitions may not be null")
    for key in ("cluster", "topic"):
        if not isinstance(partition.get(key), str):
            raise ConnectException(f"Source partition {dict(partition)} needs a string '{key}'")
    if not _is_whole(partition.get("partition")):
        raise ConnectException(f"Source partition {dict(partition)} needs a number 'partition'")
    if not _is_whole(offset.get("offset")):
        raise ConnectException(f"Source offset {dict(offset)} needs a number 'offset', from 0 on")


def check_fixed_offset(
    partition: SourcePartition | None, offset: SourceOffset | None, *keys: str
) -> None:
    """Check an offset that a user sets for checkpoints or heartbeats; only 0 is valid."""
    if offset is None:
        return
    if partition is None or any(key not in partition for key in keys):
        raise ConnectException(f"Source partition {partition} needs {', '.join(keys)}")
    if offset.get("offset") != 0:
        raise ConnectException("The only accepted value of 'offset' is 0")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
