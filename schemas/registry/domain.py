"""What the registry knows: a fold over the records of topic `_schemas`.

The topic is compacted, so of one key only the last record survives; therefore the last record
of a key wins here too, and a registry that restarts after compaction knows the same. Keys and
values are Confluent's (keytype SCHEMA with magic 1; NOOP with magic 0), with a fixed order of
their members because compaction compares bytes.

Ids: equal schemas share one id in all subjects; a new schema gets the highest id plus one.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version of one subject."""

    subject: str
    version: int
    schema_id: int
    schema: str

    def key(self) -> bytes:
        key = {"keytype": "SCHEMA", "subject": self.subject, "version": self.version, "magic": 1}
        return compact_json(key).encode()

    def value(self) -> bytes:
        value = {
            "subject": self.subject,
            "version": self.version,
            "id": self.schema_id,
            "md5": hashlib.md5(self.schema.encode(), usedforsecurity=False).hexdigest(),
            "schema": self.schema,
            "deleted": False,
        }
        return compact_json(value).encode()


class Registry:
    """All subjects. Changed only by `replay`."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, int], SchemaVersion] = {}

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record; records of kinds not known here are passed over."""
        try:
            self._replay_schema(_parse_object(key) or {}, _parse_object(value))
        except (KeyError, TypeError, ValueError):
            # Whoever wrote this was no registry; it must not keep one from starting.
            return

    def _replay_schema(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        if key.get("keytype") != "SCHEMA":
            return
        place = (str(key["subject"]), int(key["version"]))
        if value is None or value.get("deleted"):
            self._versions.pop(place, None)
        else:
            entry = SchemaVersion(*place, int(value["id"]), str(value["schema"]))
            self._versions[place] = entry

    def subjects(self) -> list[str]:
        return sorted({subject for subject, _ in self._versions})

    def versions(self, subject: str) -> list[int]:
        return sorted(version for name, version in self._versions if name == subject)

    def version(self, subject: str, version: int) -> SchemaVersion | None:
        return self._versions.get((subject, version))

    def latest(self, subject: str) -> SchemaVersion | None:
        versions = self.versions(subject)
        return self._versions[subject, versions[-1]] if versions else None

    def find(self, subject: str, schema: str) -> SchemaVersion | None:
        """Return the version of `subject` that is this schema."""
        for version in self.versions(subject):
            if self._versions[subject, version].schema == schema:
                return self._versions[subject, version]
        return None

    def with_id(self, schema_id: int) -> list[SchemaVersion]:
        """Return every subject and version that has this id, in order."""
        return sorted(
            (entry for entry in self._versions.values() if entry.schema_id == schema_id),
            key=lambda entry: (entry.subject, entry.version),
        )

    def propose(self, subject: str, schema: str) -> SchemaVersion:
        """Return the entry that registering this schema under this subject would add."""
        same = (e.schema_id for e in self._versions.values() if e.schema == schema)
        latest = self.latest(subject)
        version = latest.version + 1 if latest else 1
        return SchemaVersion(subject, version, next(same, self.next_id()), schema)

    def next_id(self) -> int:
        return max((entry.schema_id for entry in self._versions.values()), default=0) + 1

    def rivals(self, entry: SchemaVersion) -> list[SchemaVersion]:
        """Return the entries that use this one's id for another schema.

        Only two registries that write at the same moment bring this about.
        """
        return [other for other in self.with_id(entry.schema_id) if other.schema != entry.schema]


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _parse_object(data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        parsed = json.loads(data)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None
