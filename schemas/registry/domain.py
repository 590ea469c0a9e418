"""The state of the registry: a fold over the records of topic `_schemas`.

The topic is compacted, so only the last record of a key survives. The last record of a key also
wins here, so that a registry that restarts after compaction has the same state.

Invariants: within a context an id stands for one content, and a content has one id. A record that
contradicts this was written by a registry that had not read this one's records: it is kept under
its own id, and the id answers with the lower version of the subject that sorts first. The next id
is higher than all ids in the log. A version that is deleted softly keeps its number.
"""

import logging
from collections.abc import Iterable
from typing import Any, Final

from schemas.registry.records import (
    LENIENT,
    LEVELS,
    STRICT,
    Content,
    Entry,
    Json,
    entry_from,
    number_from,
    parse_object,
)
from schemas.registry.subjects import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    matches_prefix,
    parse_subject,
    qualified_context,
)

# If an error is missing in this list, a single record can stop every instance at each start.
_STRANGE: Final = (
    *(AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError),
)
_LOGGED_CHARACTERS: Final = 200
READWRITE: Final = "READWRITE"
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
CONFIG_MEMBERS: Final = {"normalize": bool, "alias": str, "compatibilityGroup": str}
_GLOBAL: Final = qualified_context(GLOBAL_CONTEXT)

Place = tuple[str, int]

log = logging.getLogger(__name__)


class Registry:
    """All subjects, configurations and modes. Changed only by `replay`."""

    def __init__(self, compatibility_level: str = "BACKWARD") -> None:
        self._default_config: Json = {"compatibilityLevel": compatibility_level}
        self._subjects: dict[str, dict[int, Entry]] = {}
        self._by_id: dict[tuple[str, int], set[Place]] = {}
        self._ids: dict[tuple[str, Content], set[int]] = {}
        self._guids: dict[str, set[tuple[str, Content]]] = {}
        """Contexts and contents by guid."""
        self._users: dict[Place, set[Place]] = {}
        """The versions that refer to a version, by that version."""
        self._highest_ids: dict[str, int] = {}
        self._configs: dict[str | None, Json] = {}
        self._modes: dict[str | None, str] = {}
        self._contexts: set[str] = set()

    # --- records ---

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record; a record that no registry writes is logged and ignored."""
        parsed_key = parse_object(key)
        parsed_value = parse_object(value)
        if parsed_key is None or (parsed_value is None and value is not None):
            _log_strange(key, "not a JSON object")
            return
        try:
            self._replay(parsed_key, parsed_value)
        except _STRANGE as error:
            # No registry writes such a record; it must not keep a registry from starting.
            _log_strange(key, repr(error))

    def _replay(self, key: Json, value: Json | None) -> None:
        subject = None if key.get("subject") is None else str(key["subject"])
        match key.get("keytype"):
            case "SCHEMA":
                self._put(
                    (str(key["subject"]), number_from(key["version"])),
                    None if value is None else entry_from(key, value),
                )
            case "DELETE_SUBJECT" if value is not None:
                self._delete_up_to(str(key["subject"]), number_from(value["version"]))
            case "CLEAR_SUBJECT" if value is not None:
                self._forget_deleted(subject or "")
            case "CONFIG":
                _put_or_drop(self._configs, subject, _config_from(value))
            case "MODE":
                _put_or_drop(self._modes, subject, None if value is None else _mode_from(value))
            case "CONTEXT":
                change = self._contexts.discard if value is None else self._contexts.add
                change(str(key["context"]))
            case _:
                pass

    def _put(self, place: Place, entry: Entry | None) -> None:
        subject, version = place
        context = parse_subject(subject).context
        old = self._subjects.get(subject, {}).pop(version, None)
        if old is not None:
            self._by_id[context, old.schema_id].discard(place)
            for target in _targets(old):
                self._users[target].discard(place)
            self._forget_content(context, old)
            if not self._subjects[subject]:
                del self._subjects[subject]
        if entry is not None:
            self._subjects.setdefault(subject, {})[version] = entry
            self._by_id.setdefault((context, entry.schema_id), set()).add(place)
            for target in _targets(entry):
                self._users.setdefault(target, set()).add(place)
            self._ids.setdefault((context, entry.content), set()).add(entry.schema_id)
            self._guids.setdefault(entry.content.guid, set()).add((context, entry.content))
            highest = self._highest_ids.get(context, 0)
            self._highest_ids[context] = max(highest, entry.schema_id)

    def _forget_content(self, context: str, old: Entry) -> None:
        places = self._by_id[context, old.schema_id]
        if not any(self._entry(place).content == old.content for place in places):
            self._ids[context, old.content].discard(old.schema_id)
            if not self._ids[context, old.content]:
                del self._ids[context, old.content]
                self._forget_guid(context, old.content)
        if not places:
            del self._by_id[context, old.schema_id]

    def _forget_guid(self, context: str, content: Content) -> None:
        known = self._guids[content.guid]
        known.discard((context, content))
        if not known:
            del self._guids[content.guid]

    def _delete_up_to(self, subject: str, last: int) -> None:
        for version, entry in list(self._subjects.get(subject, {}).items()):
            if version <= last and not entry.is_deleted:
                deleted = Entry(subject, version, entry.schema_id, entry.content, is_deleted=True)
                self._put((subject, version), deleted)

    def _forget_deleted(self, prefix: str) -> None:
        for subject in self.subjects(prefix, with_deleted=True):
            for entry in self.versions(subject, with_deleted=True):
                if entry.is_deleted:
                    self._put((subject, entry.version), None)

    def _entry(self, place: Place) -> Entry:
        return self._subjects[place[0]][place[1]]

    # --- subjects and versions ---

    def subjects(
        self, prefix: str = ":*:", *, with_deleted: bool = False, only_deleted: bool = False
    ) -> list[str]:
        """Return the qualified names of subjects, sorted."""
        return sorted(
            subject
            for subject in self._subjects
            if matches_prefix(parse_subject(subject), prefix)
            and self.has_subject(subject, with_deleted=with_deleted or only_deleted)
            and not (only_deleted and self.has_subject(subject))
        )

    def has_subject(self, subject: str, *, with_deleted: bool = False) -> bool:
        entries = self._subjects.get(subject, {}).values()
        return any(with_deleted or not entry.is_deleted for entry in entries)

    def versions(self, subject: str, *, with_deleted: bool = False) -> list[Entry]:
        """Return the versions of a subject, oldest first."""
        entries = self._subjects.get(subject, {})
        return [
            entries[version]
            for version in sorted(entries)
            if with_deleted or not entries[version].is_deleted
        ]

    def version(self, subject: str, version: int, *, with_deleted: bool = False) -> Entry | None:
        entry = self._subjects.get(subject, {}).get(version)
        return entry if entry is not None and (with_deleted or not entry.is_deleted) else None

    def latest(self, subject: str, *, with_deleted: bool = False) -> Entry | None:
        versions = self.versions(subject, with_deleted=with_deleted)
        return versions[-1] if versions else None

    def find(self, subject: str, content: Content, *, with_deleted: bool = False) -> Entry | None:
        """Return the newest version of a subject that is this schema."""
        for entry in reversed(self.versions(subject, with_deleted=with_deleted)):
            if entry.content == content:
                return entry
        return None

    # --- ids ---

    def with_id(self, context: str, schema_id: int) -> list[Entry]:
        """Return every version in a context that has this id, deleted ones too, in order."""
        places = self._by_id.get((context, schema_id), ())
        return [self._entry(place) for place in sorted(places)]

    def entry_with_id(self, schema_id: int, subject: str | None) -> Entry | None:
        """Return one version with this id: of the subject, of its context, or of any context.

        A subject in the default context that does not have the id is looked for in the others.
        """
        named = parse_subject(subject or "")
        for context in self._contexts_to_search(named.context):
            for entry in self.with_id(context, schema_id):
                if parse_subject(entry.subject).name == named.name:
                    return entry
        return next(iter(self.with_id(named.context, schema_id)), None)

    def _contexts_to_search(self, context: str) -> list[str]:
        return self.contexts() if context == DEFAULT_CONTEXT else [context]

    def id_of(self, context: str, content: Content) -> int | None:
        return min(self._ids.get((context, content), ()), default=None)

    def next_id(self, context: str) -> int:
        return self._highest_ids.get(context, 0) + 1

    def highest_id(self, context: str) -> int:
        return self._highest_ids.get(context, 0)

    def with_guid(self, guid: str) -> list[tuple[str, Entry]]:
        """Return one version per context whose content has this guid."""
        found: dict[str, Entry] = {}
        for context, content in self._guids.get(guid, ()):
            found[context] = self.with_id(context, min(self._ids[context, content]))[0]
        return sorted(found.items())

    def referenced_by(
        self, subject: str, version: int, *, with_deleted: bool = False
    ) -> list[Entry]:
        """Return the versions that refer to this one, in order."""
        users = (self._entry(place) for place in sorted(self._users.get((subject, version), ())))
        return [user for user in users if with_deleted or not user.is_deleted]

    def contexts(self) -> list[str]:
        return [DEFAULT_CONTEXT, *sorted(self._contexts - {DEFAULT_CONTEXT})]

    def has_context(self, context: str) -> bool:
        return context == DEFAULT_CONTEXT or context in self._contexts

    # --- configuration and modes ---

    def config(self, subject: str | None) -> Json | None:
        """Return the settings of exactly this subject; the whole registry always has settings."""
        found = self._configs.get(subject)
        if found is not None:
            return {**self._default_config, **found}
        return dict(self._default_config) if _is_global(subject) else None

    def config_in_scope(self, subject: str | None) -> Json:
        """Return the settings in force for a subject: its own, its context's or the registry's."""
        for scope in self._scopes(subject):
            if scope in self._configs:
                above = self._configs.get(None, {})
                return {**self._default_config, **above, **self._configs[scope]}
        return dict(self._default_config)

    def mode(self, subject: str | None) -> str | None:
        found = self._modes.get(subject)
        if found is not None:
            return found
        return READWRITE if _is_global(subject) else None

    def mode_in_scope(self, subject: str | None) -> str:
        for scope in self._scopes(subject):
            if scope in self._modes:
                return self._modes[scope]
        return READWRITE

    def has_config(self, subject: str | None) -> bool:
        return subject in self._configs

    def has_mode(self, subject: str | None) -> bool:
        return subject in self._modes

    def _scopes(self, subject: str | None) -> Iterable[str | None]:
        yield subject
        context = DEFAULT_CONTEXT if subject is None else parse_subject(subject).context
        yield None if context == DEFAULT_CONTEXT else qualified_context(context)
        yield _GLOBAL


def _targets(entry: Entry) -> set[Place]:
    """Return the references of a version."""
    subject = parse_subject(entry.subject)
    return {
        (subject.relative(each.subject).qualified, each.version)
        for each in entry.content.references
    }


def _is_global(subject: str | None) -> bool:
    return subject is None or parse_subject(subject).context == GLOBAL_CONTEXT


def _put_or_drop(settings: dict[str | None, Any], subject: str | None, value: Any) -> None:
    if value is None:
        settings.pop(subject, None)
    else:
        settings[subject] = value


def _config_from(value: Json | None) -> Json | None:
    """Read a CONFIG record. Raises ValueError for settings that this registry lacks."""
    if value is None:
        return None
    config = {name: member for name, member in value.items() if name not in ("subject", "offset")}
    if config.get("compatibilityLevel", "NONE") not in LEVELS:
        raise ValueError("not a compatibility level")
    if config.get("compatibilityPolicy", STRICT) not in (STRICT, LENIENT):
        raise ValueError("not a compatibility policy")
    for name, kind in CONFIG_MEMBERS.items():
        if not isinstance(config.get(name), kind | None):
            raise ValueError(f"{name} is not of its type")
    return config


def _mode_from(value: Json) -> str:
    mode = value["mode"]
    if mode not in MODES:
        raise ValueError("not a mode")
    return str(mode)


def _log_strange(key: bytes | None, reason: str) -> None:
    log.warning(
        "registry ignores a record key=%r reason=%s",
        *((key or b"")[:_LOGGED_CHARACTERS], reason[:_LOGGED_CHARACTERS]),
    )
