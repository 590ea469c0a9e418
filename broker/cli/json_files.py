"""The JSON files of the tools.

They have partitions to elect, topics to move, assignments, and offsets to delete up to.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from broker.cli.arguments import ToolFailed
from broker.model import TopicPartition
from common.kafka.admin.log_directories import Replica, ReplicaPlace
from common.process.json_text import NotJsonError
from common.process.json_text import read_json as read_json_text

ANY_LOG_DIRECTORY = "any"
VERSION = 1
MAX_TEXT_BYTES = 2**15 - 1
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


class Assignments(NamedTuple):
    """The content of a reassignment file; `listed` may name a partition twice."""

    listed: list[tuple[TopicPartition, list[int]]]
    log_directories: dict[Replica, str]

    def replicas(self) -> dict[TopicPartition, list[int]]:
        """Return the replicas of each partition."""
        return dict(self.listed)


def read_json(path: str) -> Any:
    """Read a JSON file; raise ToolFailed."""
    try:
        return read_json_text(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ToolFailed(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ToolFailed(f"cannot read {path}: {error}") from error
    except NotJsonError as error:
        raise ToolFailed(f"The input string is not a valid JSON: {error}") from error


def election_partitions(content: Any) -> set[TopicPartition]:
    """Return the partitions of an election; raise ToolFailed."""
    listed = _entries(content, "partitions")
    if listed is None:
        raise ToolFailed('Replica election data is missing "partitions" field')
    partitions = [_partition(entry) for entry in listed]
    twice = sorted({one for one in partitions if partitions.count(one) > 1})
    if twice:
        listed_text = ", ".join(map(str, twice))
        raise ToolFailed(f"Replica election data contains duplicate partitions: [{listed_text}]")
    return set(partitions)


def topics_to_move(content: Any) -> list[str]:
    """Return the topics of a `--topics-to-move-json-file`; raise ToolFailed."""
    _check_version(content)
    topics = [str(_field(entry, "topic", str)) for entry in _entries(content, "topics") or ()]
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        raise ToolFailed(
            f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]"
        )
    return topics


def assignments(content: Any) -> Assignments:
    """Return the unchecked content of a `--reassignment-json-file`; raise ToolFailed."""
    _check_version(content)
    found = Assignments([], {})
    for entry in _entries(content, "partitions") or ():
        partition = _partition(entry)
        replicas = _numbers(entry, "replicas")
        directories = (
            _field(entry, "log_dirs", list)
            if "log_dirs" in entry
            else [ANY_LOG_DIRECTORY] * len(replicas)
        )
        if len(directories) != len(replicas):
            raise ToolFailed(
                f"Size of replicas list {replicas} is different from size of log dirs list "
                f"{directories} for partition {partition}"
            )
        found.listed.append((partition, replicas))
        for broker_id, directory in zip(replicas, directories, strict=True):
            if directory != ANY_LOG_DIRECTORY:
                found.log_directories[Replica(broker_id, *partition)] = str(directory)
    return found


def offsets_to_delete(content: Any) -> dict[TopicPartition, int]:
    """Return the offset of each partition of an `--offset-json-file`; raise ToolFailed."""
    _check_version(content)
    entries = _entries(content, "partitions")
    if entries is None:
        raise ToolFailed("Missing partitions field")
    listed = [(_partition(entry), _offset(entry)) for entry in entries]
    counts = Counter(partition for partition, _ in listed)
    twice = ",".join(str(partition) for partition, count in counts.items() if count > 1)
    if twice:
        raise ToolFailed(f"Offset json file contains duplicate topic partitions: {twice}")
    return dict(listed)


def assignment_text(
    replicas: Mapping[TopicPartition, list[int]],
    directories: Mapping[Replica, ReplicaPlace | None] | None = None,
) -> str:
    """Return an assignment in the format of a reassignment file, on one line."""
    known = directories or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": brokers,
            "log_dirs": [_directory(known.get(Replica(one, *partition))) for one in brokers],
        }
        for partition, brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"))


def _directory(place: ReplicaPlace | None) -> str:
    return ANY_LOG_DIRECTORY if place is None or place.current is None else place.current


def _check_version(content: Any) -> None:
    if not isinstance(content, dict):
        raise ToolFailed("The input string is not a valid JSON: it is no object")
    version = content.get("version", VERSION)
    if version != VERSION:
        raise ToolFailed(f"Not supported version field value {version}")


def _entries(content: Any, name: str) -> list[Any] | None:
    entries = content.get(name) if isinstance(content, dict) else None
    if entries is not None and not isinstance(entries, list):
        raise ToolFailed(f'the field "{name}" is no list')
    return entries


def _partition(entry: Any) -> TopicPartition:
    partition = _field(entry, "partition", int)
    if not 0 <= partition <= INT32_MAX:
        raise ToolFailed(f'the field "partition" is no number of a partition: {entry}')
    return TopicPartition(_field(entry, "topic", str), partition)


def _offset(entry: Any) -> int:
    offset: int = _field(entry, "offset", int)
    if abs(offset) > INT64_MAX:
        raise ToolFailed(f'the field "offset" is no number of 64 bits: {entry}')
    return offset


def _field(entry: Any, name: str, kind: type) -> Any:
    value = entry.get(name) if isinstance(entry, dict) else None
    # A bool is an int in Python.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ToolFailed(f'the field "{name}" is missing or no {kind.__name__}: {entry}')
    if isinstance(value, str):
        check_text(value, name)
    return value


def check_text(text: str, name: str) -> None:
    """Raise ToolFailed for a text that no request can contain."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise ToolFailed(f"'{name}' field is no UTF-8: {error}") from None
    if size_bytes > MAX_TEXT_BYTES:
        raise ToolFailed(f"'{name}' field is too long to be serialized")


def _numbers(entry: Any, name: str) -> list[int]:
    values = _field(entry, name, list)
    if not all(type(value) is int and abs(value) <= INT32_MAX for value in values):
        raise ToolFailed(f'the field "{name}" is no list of numbers of 32 bits: {entry}')
    return list(values)
