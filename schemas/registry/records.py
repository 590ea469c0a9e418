"""The records of topic `_schemas`, byte for byte as Confluent's registry writes them.

Keys are JSON with a fixed order of members, because compaction compares bytes; a subject that is
None is left out and means the whole registry. Values leave out what is empty.

    SCHEMA          magic 1  {subject, version, id, md5, schemaType?, references?, metadata?,
                              ruleSet?, schema, deleted}; null when deleted for good
    DELETE_SUBJECT  magic 0  {subject, version}: all versions up to this one are deleted, softly
    CLEAR_SUBJECT   magic 0  {subject}: its softly deleted versions are removed
    CONFIG          magic 0  {subject?, compatibilityLevel, ...}
    MODE            magic 0  {subject?, mode}
    CONTEXT         magic 0  {tenant, context}
"""

import hashlib
import json
import uuid
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from common.process.json_text import read_json

AVRO: Final = "AVRO"
LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
STRICT: Final = "STRICT"
LENIENT: Final = "LENIENT"
_TENANT: Final = "default"

Json = dict[str, Any]


class Record(NamedTuple):
    """One record to write; a value of None deletes the key."""

    key: bytes
    value: bytes | None


class Reference(NamedTuple):
    """A schema that another one uses under a name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Content:
    """The identity of a schema: equal content has one id in a context."""

    schema: str
    schema_type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: str = ""
    """JSON, sorted as Confluent hashes it; empty for none."""
    rule_set: str = ""

    def digest(self) -> bytes:
        """Return the MD5 that Confluent's registry gives this content."""
        hashed = hashlib.md5(self.schema.encode(), usedforsecurity=False)
        for reference in self.references:
            hashed.update(reference.name.encode() + reference.subject.encode())
            hashed.update(reference.version.to_bytes(4, "big", signed=True))
        for part, hash_part in ((self.metadata, _metadata_bytes), (self.rule_set, _rules_bytes)):
            if part:
                hashed.update(b"\x01" + hash_part(json.loads(part)))
        return hashed.digest()

    @property
    def guid(self) -> str:
        return str(uuid.UUID(bytes=self.digest()))


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of one subject; `subject` is qualified."""

    subject: str
    version: int
    schema_id: int
    content: Content
    is_deleted: bool = False

    def record(self) -> Record:
        value: Json = {
            "subject": self.subject,
            "version": self.version,
            "id": self.schema_id,
            "md5": self.content.digest().hex(),
        }
        value |= content_members(self.content)
        value |= {"schema": self.content.schema, "deleted": self.is_deleted}
        return Record(schema_key(self.subject, self.version), compact_json(value).encode())


def content_members(content: Content) -> Json:
    """Return the members of a schema besides its text, without the empty ones."""
    members: Json = {}
    if content.schema_type != AVRO:
        members["schemaType"] = content.schema_type
    if content.references:
        members["references"] = [reference._asdict() for reference in content.references]
    if content.metadata:
        members["metadata"] = json.loads(content.metadata)
    if content.rule_set:
        members["ruleSet"] = json.loads(content.rule_set)
    return members


def schema_key(subject: str, version: int) -> bytes:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return compact_json(key).encode()


def subject_key(keytype: str, subject: str | None) -> bytes:
    """Return the key of a CONFIG, MODE, DELETE_SUBJECT or CLEAR_SUBJECT record."""
    of_subject = {} if subject is None else {"subject": subject}
    return compact_json({"keytype": keytype, **of_subject, "magic": 0}).encode()


def subject_record(keytype: str, subject: str | None, members: Json | None) -> Record:
    """Return such a record; members of None delete it."""
    of_subject = {} if subject is None else {"subject": subject}
    value = None if members is None else compact_json({**of_subject, **members}).encode()
    return Record(subject_key(keytype, subject), value)


def context_record(context: str) -> Record:
    names = {"tenant": _TENANT, "context": context}
    key = {"keytype": "CONTEXT", **names, "magic": 0}
    return Record(compact_json(key).encode(), compact_json(names).encode())


def entry_from(key: Json, value: Json) -> Entry:
    """Read a SCHEMA record.

    Raises KeyError, TypeError, AttributeError, ValueError or OverflowError for an invalid one.
    """
    references = tuple(
        Reference(str(each["name"]), str(each["subject"]), number_from(each["version"], -1))
        for each in value.get("references") or ()
    )
    content = Content(
        str(value["schema"]),
        str(value.get("schemaType") or AVRO),
        references,
        sorted_json(value.get("metadata")),
        sorted_json(value.get("ruleSet")),
    )
    subject, version = str(key["subject"]), number_from(key["version"])
    entry = Entry(subject, version, number_from(value["id"]), content, bool(value.get("deleted")))
    content.digest()  # Shows whether metadata and rules have their shape.
    return entry


def number_from(value: Any, lowest: int = 0) -> int:
    """Read an id or a version. Raises TypeError or ValueError for anything else."""
    number = int(value)
    if not lowest <= number < 2**31:
        raise ValueError("not an id or a version")
    return number


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def sorted_json(value: Any) -> str:
    """Return one spelling of a metadata or rule set object; empty for none.

    Names in maps are sorted, as Confluent keeps them; lists keep their order.
    """
    if not value:
        return ""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def parse_object(data: bytes | None) -> Json | None:
    """Return a JSON object, None for anything else."""
    if data is None:
        return None
    try:
        parsed = read_json(data)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _metadata_bytes(metadata: Json) -> bytes:
    parts: list[str] = []
    for tag, values in sorted((metadata.get("tags") or {}).items()):
        parts += [tag, *values]
    for name, value in sorted((metadata.get("properties") or {}).items()):
        parts += [name, str(value)]
    parts += sorted(metadata.get("sensitive") or ())
    return "".join(parts).encode()


def _rules_bytes(rule_set: Json) -> bytes:
    rules = b"".join(
        _rule_bytes(rule)
        for kind in ("migrationRules", "domainRules", "encodingRules")
        for rule in rule_set.get(kind) or ()
    )
    return rules + str(rule_set.get("enableAt") or "").encode()


def _rule_bytes(rule: Json) -> bytes:
    parts = [str(rule.get(name) or "") for name in ("name", "doc", "kind", "mode", "type")]
    parts += sorted(rule.get("tags") or ())
    for name, value in sorted((rule.get("params") or {}).items()):
        parts += [name, str(value)]
    parts += [str(rule.get(name) or "") for name in ("expr", "onSuccess", "onFailure")]
    return "".join(parts).encode() + (b"\x01" if rule.get("disabled") else b"")
