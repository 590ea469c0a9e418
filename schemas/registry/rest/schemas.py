"""`/schemas`: schemas by id, by guid, and all of them."""

from collections.abc import Iterator

from aiohttp import web

from schemas.registry import refusals
from schemas.registry.domain import Registry
from schemas.registry.questions import Ask
from schemas.registry.records import Entry, Json, content_members
from schemas.registry.rest.answers import (
    answer,
    answer_list,
    answer_text,
    ask_of,
    flag,
    id_of,
    page,
    path_context,
    qualified,
    registry_of,
)
from schemas.registry.rest.subjects import entry_body, text_of
from schemas.registry.schema_types.parsing import SCHEMA_TYPES
from schemas.registry.subjects import DEFAULT_CONTEXT, parse_subject, qualified_context


async def get_schemas(request: web.Request) -> web.Response:
    """All versions of the subjects with a prefix, or the newest of each."""
    registry, with_deleted = registry_of(request), flag(request, "deleted")
    context = path_context(request)
    everywhere = ":*:" if context == DEFAULT_CONTEXT else qualified_context(context)
    entries: list[Entry] = []
    for subject in registry.subjects(
        request.query.get("subjectPrefix") or everywhere, with_deleted=with_deleted
    ):
        versions = registry.versions(subject, with_deleted=with_deleted)
        entries += versions[-1:] if flag(request, "latestOnly") else versions
    return await answer_list(request, _bodies(request, entries))


def _bodies(request: web.Request, entries: list[Entry]) -> Iterator[Json]:
    for entry in page(request, entries):
        yield entry_body(registry_of(request), entry, "", ask_of(request))


async def get_types(request: web.Request) -> web.Response:
    return answer(request, list(SCHEMA_TYPES))


def _entry_with_id(request: web.Request) -> Entry:
    schema_id, subject = id_of(request), _subject_in_query(request)
    entry = registry_of(request).entry_with_id(schema_id, subject)
    if entry is None:
        raise refusals.schema_not_found(schema_id)
    return entry


def _subject_in_query(request: web.Request) -> str:
    return qualified(request, request.query.get("subject", ""))


def _schema_body(registry: Registry, entry: Entry, how: str, ask: Ask) -> Json:
    return {
        "guid": entry.content.guid,
        **content_members(entry.content),
        "schema": text_of(registry, entry, how, ask),
    }


async def get_schema(request: web.Request) -> web.Response:
    entry, registry = _entry_with_id(request), registry_of(request)
    body = _schema_body(registry, entry, request.query.get("format", ""), ask_of(request))
    if "subject" in request.query:
        body = {"subject": entry.subject, "version": entry.version, **body}
    if flag(request, "fetchMaxId"):
        body["maxId"] = registry.highest_id(parse_subject(entry.subject).context)
    return answer(request, body)


async def get_schema_text(request: web.Request) -> web.Response:
    entry = _entry_with_id(request)
    how = request.query.get("format", "")
    return answer_text(request, text_of(registry_of(request), entry, how, ask_of(request)))


def _all_with_id(request: web.Request) -> list[Entry]:
    entry, registry = _entry_with_id(request), registry_of(request)
    same = registry.with_id(parse_subject(entry.subject).context, entry.schema_id)
    with_deleted = flag(request, "deleted")
    return [each for each in same if with_deleted or not each.is_deleted]


async def get_id_subjects(request: web.Request) -> web.Response:
    names = dict.fromkeys(entry.subject for entry in _all_with_id(request))
    return answer(request, page(request, list(names)))


async def get_id_versions(request: web.Request) -> web.Response:
    entries = page(request, _all_with_id(request))
    places = [{"subject": entry.subject, "version": entry.version} for entry in entries]
    return answer(request, places)


async def get_by_guid(request: web.Request) -> web.Response:
    guid, registry = request.match_info["guid"], registry_of(request)
    found = registry.with_guid(guid.lower())
    if not found:
        raise refusals.schema_not_found(guid)
    how = request.query.get("format", "")
    return answer(request, _schema_body(registry, found[0][1], how, ask_of(request)))


async def get_guid_ids(request: web.Request) -> web.Response:
    found = registry_of(request).with_guid(request.match_info["guid"].lower())
    ids = [{"context": context, "id": entry.schema_id} for context, entry in found]
    return answer(request, ids)


ROUTES = [
    ("GET", "/schemas", get_schemas),
    ("GET", "/schemas/types", get_types),
    ("GET", "/schemas/ids/{schema_id}", get_schema),
    ("GET", "/schemas/ids/{schema_id}/schema", get_schema_text),
    ("GET", "/schemas/ids/{schema_id}/subjects", get_id_subjects),
    ("GET", "/schemas/ids/{schema_id}/versions", get_id_versions),
    ("GET", "/schemas/guids/{guid}", get_by_guid),
    ("GET", "/schemas/guids/{guid}/ids", get_guid_ids),
]
