"""What a backup holds beside records, as plain values and as JSON. Pure.

What is read comes from a stranger's folder: every field is checked for its type, and names of
topics for the characters that Kafka allows, since they are names of folders here.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from common.kafka.acls import Acl, ResourcePattern
from common.process.json_text import NotJsonError, read_json

FORMAT: Final = 1
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


class ManifestError(Exception):
    """The manifest is not one of this format; the text says where."""


@dataclass(frozen=True)
class PartitionBackup:
    """One partition: the offsets that were read, and how many committed records were there."""

    begin: int
    end: int
    records: int


@dataclass(frozen=True)
class TopicBackup:
    """A topic, its own settings, and its partitions in order of their numbers."""

    name: str
    replication_factor: int
    settings: Mapping[str, str]
    partitions: Sequence[PartitionBackup]


@dataclass(frozen=True)
class GroupOffset:
    """A committed offset, and the number of records before it: the offset in what is restored."""

    topic: str
    partition: int
    source_offset: int
    offset: int


class QuotasBackup(NamedTuple):
    """The quotas of an entity: type of entity to name, None for the default of the type."""

    entity: dict[str, str | None]
    values: dict[str, float]


@dataclass(frozen=True)
class Manifest:
    """A backup without its records. With `is_whole` it has access rules and quotas."""

    cluster_id: str
    taken_ms: int
    is_whole: bool
    topics: Sequence[TopicBackup]
    groups: Mapping[str, Sequence[GroupOffset]]
    acls: Sequence[Acl]
    quotas: Sequence[QuotasBackup]
    scram_users: Sequence[str]
    """Users with passwords, which no cluster gives away."""


def to_json(manifest: Manifest) -> str:
    """Return the text of a manifest."""
    return json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1) + "\n"


def of_json(text: bytes) -> Manifest:
    """Read a manifest. Raise ManifestError."""
    try:
        found = read_json(text)
    except NotJsonError as error:
        raise ManifestError(f"no JSON: {error}") from None
    fields = _Fields("the manifest", found)
    if fields.number("format", 1) != FORMAT:
        raise ManifestError(f"format {fields.number('format')} is not known here, only {FORMAT}")
    topics = [_topic(each) for each in fields.parts("topics")]
    counts = {topic.name: [each.records for each in topic.partitions] for topic in topics}
    if len(counts) != len(topics):
        raise ManifestError("a topic is there twice")
    groups = fields.of("groups", dict)
    return Manifest(
        fields.of("cluster_id", str),
        fields.number("taken_ms"),
        fields.of("is_whole", bool),
        topics,
        {
            group: [_group_offset(_Fields(f"group {group}", each), counts) for each in of_group]
            for group, of_group in groups.items()
            if isinstance(of_group, list) or _refuse(f"group {group}")
        },
        [_acl(each) for each in fields.of("acls", list)],
        [_quotas(each) for each in fields.of("quotas", list)],
        [each for each in fields.of("scram_users", list) if isinstance(each, str)],
    )


class _Fields:
    """An object of JSON; methods raise ManifestError."""

    def __init__(self, what: str, found: Any) -> None:
        if not isinstance(found, dict):
            _refuse(what)
        self.what, self._found = what, found

    def of(self, name: str, kind: type) -> Any:
        value = self._found.get(name)
        if type(value) is not kind:
            _refuse(f"{self.what}, {name}")
        return value

    def number(self, name: str, least: int = 0) -> int:
        value = self.of(name, int)
        if not least <= value < 1 << 63:
            _refuse(f"{self.what}, {name}")
        return int(value)

    def texts(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.of(name, dict)
        if not all(isinstance(each, str) for each in found.values()):
            _refuse(f"{self.what}, {name}")
        return found

    def parts(self, name: str) -> "list[_Fields]":
        return [_Fields(f"{self.what}, {name}", each) for each in self.of(name, list)]


def _refuse(what: str) -> bool:
    raise ManifestError(f"{what}: not of the format of a backup")


def _topic(fields: _Fields) -> TopicBackup:
    name = fields.of("name", str)
    if not _TOPIC.fullmatch(name):
        raise ManifestError(f"{name[:80]!r} is no name of a topic")
    partitions = [
        PartitionBackup(each.number("begin"), each.number("end"), each.number("records"))
        for each in fields.parts("partitions")
    ]
    if not partitions:
        _refuse(f"topic {name}")
    return TopicBackup(
        name, fields.number("replication_factor", 1), fields.texts("settings"), partitions
    )


def _group_offset(fields: _Fields, counts: Mapping[str, Sequence[int]]) -> GroupOffset:
    found = GroupOffset(
        fields.of("topic", str),
        fields.number("partition"),
        fields.number("source_offset"),
        fields.number("offset"),
    )
    of_topic = counts.get(found.topic, ())
    if found.partition >= len(of_topic) or found.offset > of_topic[found.partition]:
        raise ManifestError(f"{fields.what}: an offset is beyond the records of {found.topic}")
    return found


def _acl(found: Any) -> Acl:
    if isinstance(found, list) and len(found) == 5:
        pattern, principal, host, operation, permission = found
        if isinstance(pattern, list) and len(pattern) == 3:
            numbers = (pattern[0], pattern[2], operation, permission)
            texts = (pattern[1], principal, host)
            if all(isinstance(each, int) and 0 <= each < 128 for each in numbers) and all(
                isinstance(each, str) for each in texts
            ):
                return Acl(ResourcePattern(*pattern), principal, host, operation, permission)
    raise ManifestError("acls: not of the format of a backup")


def _quotas(found: Any) -> QuotasBackup:
    if isinstance(found, list) and len(found) == 2:
        entity, values = found
        if (
            isinstance(entity, dict)
            and isinstance(values, dict)
            and all(isinstance(each, str | None) for each in entity.values())
            and all(isinstance(each, int | float) for each in values.values())
        ):
            return QuotasBackup(entity, {name: float(value) for name, value in values.items()})
    raise ManifestError("quotas: not of the format of a backup")
