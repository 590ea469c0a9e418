"""Where the mirror has come to, as Connect keeps it: MirrorMaker 2's form, and what it must be."""

from collections.abc import Mapping
from typing import Any, Final

from millrace.connect.connectors import SourceOffset, SourcePartition, TopicPartition
from millrace.connect.errors import ConnectException

TOPIC_ID: Final = "topicId"
"""Of which topic of that name an offset is. MirrorMaker 2 does not write it, and lets it pass."""


class Place(dict[str, Any]):
    """A partition of the source in Connect's form, and as the mirror knows it."""

    __slots__ = ("at",)

    def __init__(self, cluster: str, at: TopicPartition) -> None:
        super().__init__(cluster=cluster, topic=at.topic, partition=at.partition)
        self.at = at


def resume_offset(kept: Mapping[str, Any] | None, topic_id: str | None) -> int | None:
    """Return where to read on, None to begin: nothing was copied, or another topic of that name.

    What was copied of a topic that was deleted says nothing about the one that is there now.
    """
    if kept is None or not isinstance(kept.get("offset"), int):
        return None
    if topic_id is not None and kept.get(TOPIC_ID, topic_id) != topic_id:
        return None
    offset = int(kept["offset"])
    return None if offset < 0 else offset + 1


def check_source_offset(partition: SourcePartition | None, offset: SourceOffset | None) -> None:
    """Check what a user wants to set (KIP-875). Raises ConnectException."""
    if offset is None:
        # What is garbage may be removed.
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
    """Check what a user wants to set for checkpoints or heartbeats, which begin at 0 always."""
    if offset is None:
        return
    if partition is None or any(key not in partition for key in keys):
        raise ConnectException(f"Source partition {partition} needs {', '.join(keys)}")
    if offset.get("offset") != 0:
        raise ConnectException("The only accepted value of 'offset' is 0")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
