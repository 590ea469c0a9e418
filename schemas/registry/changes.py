"""Decisions on writing requests: from the state of the registry to records; pure.

Each function reads the registry and returns the records to append and the answer, or raises
RegistryError. No function changes the registry: the records do so when they are replayed.
"""

from typing import Any, Final, NamedTuple

from schemas.registry import refusals
from schemas.registry.candidates import (
    Candidate,
    SchemaRequest,
    candidate,
    earlier_versions,
    known_version,
)
from schemas.registry.domain import CONFIG_MEMBERS, MODES, READWRITE, Registry
from schemas.registry.questions import Ask, Compare
from schemas.registry.records import (
    LENIENT,
    LEVELS,
    STRICT,
    Content,
    Entry,
    Json,
    Record,
    context_record,
    schema_key,
    subject_record,
)
from schemas.registry.subjects import DEFAULT_CONTEXT, parse_subject, qualified_context

IMPORTING: Final = ("IMPORT", "FORWARD")
_READ_ONLY: Final = ("READONLY", "READONLY_OVERRIDE")


class Change(NamedTuple):
    """Records to append, together or not at all, and the answer after the append."""

    records: list[Record]
    answer: Any


# --- schemas ---


def known_entry(registry: Registry, subject: str, request: SchemaRequest, ask: Ask) -> Entry | None:
    """Return the version that registering this again gives; such a request changes nothing."""
    new = candidate(registry, subject, request, ask)
    found = known_version(registry, subject, new, ask)
    if found is None or request.schema_id not in (None, found.schema_id):
        return None
    return found if request.version in (None, found.version) else None


def register(registry: Registry, subject: str, request: SchemaRequest, ask: Ask) -> Change:
    """Add a version to a subject, with the id of its content or a new one.

    Raises Unanswered while the schema is not parsed (see `questions`).
    """
    _check_may_register(registry, subject, request)
    known = known_entry(registry, subject, request, ask)
    if known is not None:
        return Change([], known)
    new = candidate(registry, subject, request, ask)
    is_import = registry.mode_in_scope(subject) in IMPORTING
    if not is_import:
        _check_compatible(registry, subject, new, ask)
    entry = Entry(
        subject,
        _version_for(registry, subject, request, is_import=is_import),
        _id_for(registry, subject, request, new.content),
        new.content,
    )
    return Change([*_new_context(registry, subject), *_replaced(registry, entry)], entry)


def _check_may_register(registry: Registry, subject: str, request: SchemaRequest) -> None:
    check_writable(registry, subject)
    mode, where = registry.mode_in_scope(subject), _where(subject)
    if request.schema_id is not None and mode not in IMPORTING:
        raise refusals.not_permitted(f"{where} is not in import mode")
    if request.schema_id is None and mode != READWRITE:
        raise refusals.not_permitted(f"{where} is not in read-write mode")


def _check_compatible(registry: Registry, subject: str, new: Candidate, ask: Ask) -> None:
    messages = check(registry, subject, new, registry.versions(subject), ask)
    if messages:
        raise refusals.incompatible_schema(subject, messages)


def check(
    registry: Registry, subject: str, new: Candidate, versions: list[Entry], ask: Ask
) -> list[str]:
    """Return the reasons against a schema after these versions of its subject."""
    config = registry.config_in_scope(subject)
    level = config["compatibilityLevel"]
    if level == "NONE":
        return []
    earlier = earlier_versions(registry, versions, new, config.get("compatibilityGroup"))
    if not level.endswith("_TRANSITIVE"):
        earlier = earlier[-1:]
    if not earlier:
        return []
    policy = config.get("compatibilityPolicy", STRICT)
    messages: list[str] = ask(Compare(level, policy, new.question, earlier))
    return messages


def _version_for(
    registry: Registry, subject: str, request: SchemaRequest, *, is_import: bool
) -> int:
    newest = registry.latest(subject, with_deleted=True)
    following = 1 if newest is None else newest.version + 1
    if request.version is None:
        return following
    if request.version != following and not is_import:
        raise refusals.invalid_schema("Version is not one more than previous version")
    return request.version


def _id_for(registry: Registry, subject: str, request: SchemaRequest, content: Content) -> int:
    context = parse_subject(subject).context
    if request.schema_id is None:
        known = registry.id_of(context, content)
        return registry.next_id(context) if known is None else known
    others = registry.with_id(context, request.schema_id)
    if any(entry.content != content for entry in others):
        raise refusals.not_permitted(
            f"Overwrite new schema with id {request.schema_id} in context "
            f"{qualified_context(context)} is not permitted."
        )
    return request.schema_id


def _new_context(registry: Registry, subject: str) -> list[Record]:
    context = parse_subject(subject).context
    return [] if registry.has_context(context) else [context_record(context)]


def _replaced(registry: Registry, entry: Entry) -> list[Record]:
    """Write a version, and drop the deleted ones of the same id that it replaces."""
    gone = [
        Record(schema_key(old.subject, old.version), None)
        for old in registry.versions(entry.subject, with_deleted=True)
        if old.is_deleted
        and old.schema_id == entry.schema_id
        and old.version < entry.version
        and not registry.referenced_by(old.subject, old.version, with_deleted=True)
    ]
    return [*gone, entry.record()]


# --- deletion ---


def delete_version(
    registry: Registry, subject: str, version: int | None, *, is_permanent: bool
) -> Change:
    """Delete one version, None for the newest: softly first, then for good."""
    entry = _version_to_delete(registry, subject, version, is_permanent=is_permanent)
    check_writable(registry, subject)
    if registry.referenced_by(subject, entry.version, with_deleted=is_permanent):
        raise refusals.reference_exists(subject, entry.version)
    if not is_permanent:
        deleted = Entry(subject, entry.version, entry.schema_id, entry.content, is_deleted=True)
        return Change([deleted.record()], entry.version)
    if not entry.is_deleted:
        raise refusals.version_not_soft_deleted(subject, entry.version)
    records = [Record(schema_key(subject, entry.version), None)]
    if len(registry.versions(subject, with_deleted=True)) == 1:
        records += _without_settings(registry, subject)
    return Change(records, entry.version)


def _version_to_delete(
    registry: Registry, subject: str, version: int | None, *, is_permanent: bool
) -> Entry:
    if version is None:
        entry = registry.latest(subject)
    else:
        entry = registry.version(subject, version, with_deleted=True)
    if entry is None:
        if not registry.has_subject(subject, with_deleted=True):
            raise refusals.subject_not_found(subject)
        raise refusals.version_not_found(-1 if version is None else version)
    if entry.is_deleted and not is_permanent:
        raise refusals.version_soft_deleted(subject, entry.version)
    return entry


def delete_subject(registry: Registry, subject: str, *, is_permanent: bool) -> Change:
    """Delete all versions of a subject: softly first, then for good."""
    if not registry.has_subject(subject, with_deleted=True):
        raise refusals.subject_not_found(subject)
    if not is_permanent and not registry.has_subject(subject):
        raise refusals.subject_soft_deleted(subject)
    check_writable(registry, subject)
    entries = registry.versions(subject, with_deleted=is_permanent)
    for entry in entries:
        users = registry.referenced_by(subject, entry.version, with_deleted=is_permanent)
        if any(user.subject != subject for user in users):
            raise refusals.reference_exists(subject, entry.version)
        if is_permanent and not entry.is_deleted:
            raise refusals.subject_not_soft_deleted(subject)
    versions = [entry.version for entry in entries]
    if not is_permanent:
        record = subject_record("DELETE_SUBJECT", subject, {"version": versions[-1]})
        return Change([record], versions)
    records = [Record(schema_key(subject, version), None) for version in reversed(versions)]
    return Change([*records, *_without_settings(registry, subject)], versions)


def _without_settings(registry: Registry, subject: str) -> list[Record]:
    records = []
    if registry.has_mode(subject):
        records.append(subject_record("MODE", subject, None))
    if registry.has_config(subject):
        records.append(subject_record("CONFIG", subject, None))
    return records


def delete_context(registry: Registry, context: str) -> Change:
    """Drop an empty context."""
    if registry.subjects(f":{context}:", with_deleted=True):
        raise refusals.context_not_empty(qualified_context(context))
    key = context_record(context).key
    return Change([Record(key, None)] if context != DEFAULT_CONTEXT else [], None)


# --- configuration and modes ---


def put_config(registry: Registry, subject: str | None, body: Json) -> Change:
    """Set the named settings, unset those that are null, keep the others; answer the request."""
    check_writable(registry, subject)
    changes = _config_members(body)
    own = dict(registry.config(subject) or {}) if registry.has_config(subject) else {}
    merged = {name: value for name, value in (own | changes).items() if value is not None}
    answer = {name: value for name, value in body.items() if value is not None}
    return Change([subject_record("CONFIG", subject, merged)], answer)


def _config_members(body: Json) -> Json:
    members: Json = {}
    for name, value in body.items():
        if name == "compatibility":
            level = None if value is None else str(value).upper()
            if level is not None and level not in LEVELS:
                raise refusals.invalid_compatibility_level()
            members["compatibilityLevel"] = level
        elif name == "compatibilityPolicy":
            policy = None if value is None else str(value).upper()
            if policy not in (None, STRICT, LENIENT):
                raise refusals.RegistryError(
                    422, "Invalid compatibility policy. Valid values are STRICT and LENIENT"
                )
            members[name] = policy
        elif name in CONFIG_MEMBERS and (value is None or isinstance(value, CONFIG_MEMBERS[name])):
            members[name] = value
        elif value is not None:
            raise refusals.RegistryError(422, f"The setting '{name}' is not supported here")
    return members


def delete_config(registry: Registry, subject: str | None) -> Change:
    """Unset all settings; answer the old ones."""
    old = registry.config(subject)
    if old is None:
        raise refusals.subject_not_found(subject or "")
    check_writable(registry, subject)
    return Change([subject_record("CONFIG", subject, None)], old)


def put_mode(registry: Registry, subject: str | None, body: Json, *, is_forced: bool) -> Change:
    """Set the mode; IMPORT requires a scope without schemas, or force."""
    given = body.get("mode")
    mode = None if given is None else str(given).upper()
    if mode is not None and mode not in MODES:
        raise refusals.invalid_mode()
    if mode == "FORWARD" and subject is not None:
        raise refusals.invalid_mode("Forward mode only supported on global level")
    records: list[Record] = []
    if mode == "IMPORT" and registry.mode_in_scope(subject) != "IMPORT" and not is_forced:
        records = _emptied(registry, subject or "")
    members = None if mode is None else {"mode": mode}
    return Change([*records, subject_record("MODE", subject, members)], {"mode": mode})


def _emptied(registry: Registry, prefix: str) -> list[Record]:
    """Remove softly deleted versions; refused while a version is not deleted."""
    if registry.subjects(prefix):
        raise refusals.not_permitted("Cannot import since found existing subjects")
    records = []
    for subject in registry.subjects(prefix, with_deleted=True):
        for entry in registry.versions(subject, with_deleted=True):
            if registry.referenced_by(subject, entry.version, with_deleted=True):
                raise refusals.reference_exists(subject, entry.version)
            records.append(Record(schema_key(subject, entry.version), None))
    return [*records, subject_record("CLEAR_SUBJECT", prefix or None, {})]


def delete_mode(registry: Registry, subject: str | None) -> Change:
    """Unset the mode; answer the old one."""
    old = registry.mode(subject)
    if old is None:
        raise refusals.subject_not_found(subject or "")
    return Change([subject_record("MODE", subject, None)], {"mode": old})


def check_writable(registry: Registry, subject: str | None) -> None:
    """Raise RegistryError if the mode in scope forbids changes."""
    if registry.mode_in_scope(subject) in _READ_ONLY:
        raise refusals.not_permitted(f"{_where(subject)} is in read-only mode")


def _where(subject: str | None) -> str:
    context = DEFAULT_CONTEXT if subject is None else parse_subject(subject).context
    return f"Subject {subject} in context {qualified_context(context)}"
