"""`/subjects` and `/compatibility`: versions of subjects, and the check of a new one."""

from aiohttp import web

from schemas.registry import changes, refusals
from schemas.registry.candidates import (
    SchemaRequest,
    candidate,
    known_version,
    question_about,
    read_request,
)
from schemas.registry.domain import Registry
from schemas.registry.questions import Ask, Write
from schemas.registry.records import Entry, Json, content_members
from schemas.registry.refusals import RegistryError
from schemas.registry.rest.answers import (
    WRITES_KEY,
    answer,
    answer_text,
    ask_of,
    flag,
    new_subject_of,
    page,
    path_context,
    read_body,
    read_subject_of,
    registry_of,
    subject_of,
    version_of,
)
from schemas.registry.subjects import DEFAULT_CONTEXT, parse_subject, qualified_context


def entry_body(registry: Registry, entry: Entry, how: str, ask: Ask) -> Json:
    """Describe a version, with its schema in the requested form."""
    return {
        "subject": entry.subject,
        "version": entry.version,
        "id": entry.schema_id,
        "guid": entry.content.guid,
        **content_members(entry.content),
        "schema": text_of(registry, entry, how, ask),
        **({"deleted": True} if entry.is_deleted else {}),
    }


def text_of(registry: Registry, entry: Entry, how: str, ask: Ask) -> str:
    if not how.strip():
        return entry.content.schema
    return str(ask(Write(question_about(registry, entry), how)))


async def _read_schema(request: web.Request) -> SchemaRequest:
    return read_request(await read_body(request), is_normalized=flag(request, "normalize"))


async def get_subjects(request: web.Request) -> web.Response:
    context = path_context(request)
    everywhere = ":*:" if context == DEFAULT_CONTEXT else qualified_context(context)
    prefix = request.query.get("subjectPrefix", everywhere)
    names = registry_of(request).subjects(
        prefix, with_deleted=flag(request, "deleted"), only_deleted=flag(request, "deletedOnly")
    )
    return answer(request, page(request, names))


async def get_versions(request: web.Request) -> web.Response:
    registry, subject = registry_of(request), read_subject_of(request)
    only_deleted = flag(request, "deletedOnly")
    with_deleted = flag(request, "deleted") or only_deleted
    if not registry.has_subject(subject, with_deleted=with_deleted):
        raise refusals.subject_not_found(subject)
    entries = registry.versions(subject, with_deleted=with_deleted)
    versions = [entry.version for entry in entries if entry.is_deleted or not only_deleted]
    return answer(request, page(request, versions))


def _named_version(request: web.Request, *, with_deleted: bool) -> Entry:
    registry, subject, version = registry_of(request), read_subject_of(request), version_of(request)
    for each in _same_name_elsewhere(registry, subject):
        if version is None:
            entry = registry.latest(each, with_deleted=with_deleted)
        else:
            entry = registry.version(each, version, with_deleted=with_deleted)
        if entry is not None:
            return entry
    if not registry.has_subject(subject, with_deleted=with_deleted):
        raise refusals.subject_not_found(subject)
    raise refusals.version_not_found(-1 if version is None else version)


def _same_name_elsewhere(registry: Registry, subject: str) -> list[str]:
    """Return where a plain name is looked up: in the default context, then in the others."""
    named = parse_subject(subject)
    if named.context != DEFAULT_CONTEXT:
        return [subject]
    return [named._replace(context=context).qualified for context in registry.contexts()]


async def get_version(request: web.Request) -> web.Response:
    entry = _named_version(request, with_deleted=flag(request, "deleted"))
    how = request.query.get("format", "")
    return answer(request, entry_body(registry_of(request), entry, how, ask_of(request)))


async def get_version_schema(request: web.Request) -> web.Response:
    entry = _named_version(request, with_deleted=flag(request, "deleted"))
    how = request.query.get("format", "")
    return answer_text(request, text_of(registry_of(request), entry, how, ask_of(request)))


async def get_referenced_by(request: web.Request) -> web.Response:
    entry = _named_version(request, with_deleted=True)
    users = registry_of(request).referenced_by(
        entry.subject, entry.version, with_deleted=flag(request, "deleted")
    )
    return answer(request, page(request, sorted({user.schema_id for user in users})))


async def get_metadata(request: web.Request) -> web.Response:
    """The newest version whose metadata has all properties of the query."""
    registry, subject = registry_of(request), read_subject_of(request)
    wanted = dict(
        zip(request.query.getall("key", []), request.query.getall("value", []), strict=False)
    )
    with_deleted = flag(request, "deleted")
    for entry in reversed(registry.versions(subject, with_deleted=with_deleted)):
        properties = content_members(entry.content).get("metadata", {}).get("properties") or {}
        if all(properties.get(name) == value for name, value in wanted.items()):
            how = request.query.get("format", "")
            return answer(request, entry_body(registry, entry, how, ask_of(request)))
    if not registry.has_subject(subject, with_deleted=with_deleted):
        raise refusals.subject_not_found(subject)
    raise refusals.schema_not_found()


async def register(request: web.Request) -> web.Response:
    subject, new = new_subject_of(request), await _read_schema(request)
    registry, ask = registry_of(request), ask_of(request)
    known = changes.known_entry(registry, subject, new, ask)
    if known is None:
        decided = await request.app[WRITES_KEY].write(
            request, lambda registry: changes.register(registry, subject, new, ask)
        )
        assert isinstance(decided, Entry), decided
        known = decided
    body = entry_body(registry, known, request.query.get("format") or new.form, ask)
    del body["subject"]
    return answer(request, body)


async def look_up(request: web.Request) -> web.Response:
    registry, subject = registry_of(request), read_subject_of(request)
    with_deleted, asked = flag(request, "deleted"), await _read_schema(request)
    for each in _same_name_elsewhere(registry, subject):
        new = candidate(registry, each, asked, ask_of(request))
        entry = known_version(registry, each, new, ask_of(request), with_deleted=with_deleted)
        if entry is not None:
            how = request.query.get("format") or asked.form
            return answer(request, entry_body(registry, entry, how, ask_of(request)))
    if not registry.has_subject(subject, with_deleted=with_deleted):
        raise refusals.subject_not_found(subject)
    raise refusals.schema_not_found()


async def delete_subject(request: web.Request) -> web.Response:
    subject, is_permanent = subject_of(request), flag(request, "permanent")
    versions = await request.app[WRITES_KEY].write(
        request,
        lambda registry: changes.delete_subject(registry, subject, is_permanent=is_permanent),
    )
    return answer(request, versions)


async def delete_version(request: web.Request) -> web.Response:
    subject, version = subject_of(request), version_of(request)
    is_permanent = flag(request, "permanent")
    deleted = await request.app[WRITES_KEY].write(
        request,
        lambda registry: changes.delete_version(
            registry, subject, version, is_permanent=is_permanent
        ),
    )
    return answer(request, deleted)


async def check_compatibility(request: web.Request) -> web.Response:
    """Compare with one version, or with the versions that the level requires."""
    registry, subject = registry_of(request), read_subject_of(request)
    if "version" in request.match_info:
        version = version_of(request)
        one = registry.latest(subject) if version is None else registry.version(subject, version)
        if one is None and version is not None:
            raise refusals.version_not_found(version)
        versions = [] if one is None else [one]
    else:
        versions = registry.versions(subject)
    is_verbose = flag(request, "verbose")
    try:
        new = candidate(registry, subject, await _read_schema(request), ask_of(request))
        messages = changes.check(registry, subject, new, versions, ask_of(request))
    except RegistryError as error:
        if not is_verbose or error.error_code != 42201:
            raise
        messages = [str(error)]
    told = {"messages": messages} if is_verbose else {}
    return answer(request, {"is_compatible": not messages, **told})


ROUTES = [
    ("GET", "/subjects", get_subjects),
    ("POST", "/subjects/{subject:[^/]+}", look_up),
    ("DELETE", "/subjects/{subject:[^/]+}", delete_subject),
    ("GET", "/subjects/{subject:[^/]+}/metadata", get_metadata),
    ("GET", "/subjects/{subject:[^/]+}/versions", get_versions),
    ("POST", "/subjects/{subject:[^/]+}/versions", register),
    ("GET", "/subjects/{subject:[^/]+}/versions/{version}", get_version),
    ("DELETE", "/subjects/{subject:[^/]+}/versions/{version}", delete_version),
    ("GET", "/subjects/{subject:[^/]+}/versions/{version}/schema", get_version_schema),
    ("GET", "/subjects/{subject:[^/]+}/versions/{version}/referencedby", get_referenced_by),
    ("POST", "/compatibility/subjects/{subject:[^/]+}/versions", check_compatibility),
    ("POST", "/compatibility/subjects/{subject:[^/]+}/versions/{version}", check_compatibility),
]
