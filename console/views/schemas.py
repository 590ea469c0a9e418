"""Schemas: subjects, versions, what differs between them, and a check before registering."""

import difflib
import json
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from common.http.problems import ProblemError
from common.process.json_text import NotJsonError, read_json
from console.answers import Fields, body_of, json_answer
from console.console import CONSOLE
from console.http_calls import HttpCalls
from console.records.skeletons import skeleton

PAGE_SUBJECTS: Final = 50
_MAX_COMPARED_CHARACTERS: Final = 1 << 20
_KINDS: Final = ("AVRO", "JSON", "PROTOBUF")


def _registry(request: web.Request) -> HttpCalls:
    found = request.app[CONSOLE].registry
    if found is None:
        raise ProblemError(404, "The console has no schema registry: --schema-registry URL")
    return found


async def get_subjects(request: web.Request) -> web.Response:
    """Return one page of the subjects whose names have a text."""
    fields = Fields(request.query)
    wanted = fields.text("q", "").casefold()
    listed = await _registry(request).ask("GET", "/subjects")
    chosen = sorted(each for each in listed or () if wanted in str(each).casefold())
    number = fields.whole("page", 1, least=1)
    return json_answer(
        {
            "count": len(chosen),
            "page": number,
            "pages": max(1, -(-len(chosen) // PAGE_SUBJECTS)),
            "subjects": chosen[(number - 1) * PAGE_SUBJECTS : number * PAGE_SUBJECTS],
        }
    )


async def get_subject(request: web.Request) -> web.Response:
    """Return the versions of a subject, one of them, and what differs from another one."""
    registry = _registry(request)
    fields = Fields(request.query)
    path = f"/subjects/{_quoted(request.match_info['subject'])}/versions"
    versions = [int(each) for each in await registry.ask("GET", path) or ()]
    if not versions:
        raise ProblemError(404, "The subject has no versions.")
    number = fields.whole("version", versions[-1], least=1)
    before = [each for each in versions if each < number]
    other = fields.whole("compare", before[-1] if before else number, least=1)
    shown = await registry.ask("GET", f"{path}/{number}")
    text = _readable(shown)
    difference: list[str] = []
    if other != number:
        old = _readable(await registry.ask("GET", f"{path}/{other}"))
        difference = _difference(old, text, f"version {other}", f"version {number}")
    return json_answer(
        {
            "subject": request.match_info["subject"],
            "versions": versions,
            "version": number,
            "id": shown.get("id"),
            "kind": shown.get("schemaType") or "AVRO",
            "text": text,
            "references": shown.get("references") or [],
            "compared": other,
            "difference": difference,
        }
    )


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _readable(answer: Any) -> str:
    """Return the text of a schema; JSON gets lines."""
    text = str(answer.get("schema", ""))
    try:
        return json.dumps(read_json(text), indent=2, ensure_ascii=False)
    except NotJsonError:
        return text


def _difference(old: str, new: str, old_name: str, new_name: str) -> list[str]:
    if len(old) + len(new) > _MAX_COMPARED_CHARACTERS:
        return ["The schemas are too large to be compared here."]
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), old_name, new_name, lineterm="", n=3
    )
    return list(lines)


async def get_skeleton(request: web.Request) -> web.Response:
    """Return a value of the newest schema of a subject, as a text of JSON, to be filled in."""
    _registry(request)
    store = request.app[CONSOLE].cluster.shelf.store
    assert store is not None, "with a registry there is a store"
    known = await store.of_version(request.match_info["subject"], None)
    value = skeleton(str(known.kind), known.codec.schema)
    return json_answer({"text": json.dumps(value, indent=2, ensure_ascii=False)})


def _new(fields: Fields) -> dict[str, Any]:
    kind = fields.text("kind", "AVRO")
    if kind not in _KINDS:
        raise ProblemError(422, f"{kind!r} is no kind of schema: {', '.join(_KINDS)}")
    return {"schema": fields.text("schema"), "schemaType": kind}


async def check_schema(request: web.Request) -> web.Response:
    """Return whether a schema may be the next version of a subject, and why not."""
    registry = _registry(request)
    new = _new(Fields(body_of(await request.read())))
    subject = _quoted(request.match_info["subject"])
    path = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
    try:
        answer = await registry.ask("POST", path, new)
    except ProblemError as error:
        if error.status != 404:
            raise
        answer = {"is_compatible": True, "messages": ["It would be the first version."]}
    return json_answer(
        {"is_compatible": answer.get("is_compatible"), "messages": answer.get("messages") or []}
    )


async def register_schema(request: web.Request) -> web.Response:
    """Register a schema as the next version of a subject."""
    registry = _registry(request)
    new = _new(Fields(body_of(await request.read())))
    path = f"/subjects/{_quoted(request.match_info['subject'])}/versions"
    return json_answer(await registry.ask("POST", path, new), 201)


ROUTES: Final = (
    web.get("/api/schemas", get_subjects),
    web.get("/api/schemas/{subject}", get_subject),
    web.get("/api/schemas/{subject}/skeleton", get_skeleton),
    web.post("/api/schemas/{subject}/check", check_schema),
    web.post("/api/schemas/{subject}", register_schema),
)
