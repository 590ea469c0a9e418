"""The offsets of a Spark query, from its checkpoint: such a query has no group in Kafka.

The folder has a file for each micro-batch in `offsets`, written before it, and one in `commits`,
written after it. A file of offsets has a version, the properties of the batch, and a line for each
source; that of Kafka is an object of topics, each with its partitions and the offset after the last
record of the batch.
"""

import json
from pathlib import Path
from typing import Any

from common.kafka.topics import TopicPartition

MAX_FILE_BYTES = 16 * 1024 * 1024
_BEFORE_SOURCES = 2


class CheckpointError(ValueError):
    """A folder that is no checkpoint of a query that has read from Kafka."""


def checkpoint_offsets(folder: Path) -> dict[TopicPartition, int]:
    """Return the offsets up to which a query has handled records; raises CheckpointError."""
    try:
        done = [int(each.name) for each in (folder / "commits").iterdir() if each.name.isdigit()]
        if not done:
            return {}
        file = folder / "offsets" / str(max(done))
        if file.stat().st_size > MAX_FILE_BYTES:
            raise CheckpointError(f"{file} is larger than {MAX_FILE_BYTES} bytes")
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{folder} is no checkpoint of Spark: {error}") from error
    found: dict[TopicPartition, int] = {}
    for line in lines[_BEFORE_SOURCES:]:
        found |= _of_source(line)
    return found


def _of_source(line: str) -> dict[TopicPartition, int]:
    """Return the offsets of one source; none of a source that is not Kafka."""
    try:
        content: Any = json.loads(line)
    except ValueError:
        return {}
    if not isinstance(content, dict):
        return {}
    found = {}
    for topic, partitions in content.items():
        if not isinstance(partitions, dict):
            continue
        for number, offset in partitions.items():
            if number.isdigit() and len(number) < 10 and isinstance(offset, int) and offset >= 0:
                found[TopicPartition(topic, int(number))] = offset
    return found
