"""Shared by all handlers: reads names, numbers and bodies, answers as Confluent's registry does."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from aiohttp import web
from aiokafka.errors import KafkaError

from common.http.site_guard import Refusal
from common.process.json_text import read_json
from schemas.registry.domain import Registry
from schemas.registry.forwarding import ForwardedAnswer, Writes
from schemas.registry.questions import Answer, Answers, Ask, Question, Unanswered
from schemas.registry.records import compact_json
from schemas.registry.refusals import (
    RegistryError,
    invalid_subject,
    invalid_version,
    store_error,
)
from schemas.registry.rest.negotiation import CONTENT_TYPE, SENT, answered_type
from schemas.registry.subjects import (
    DEFAULT_CONTEXT,
    is_valid,
    parse_subject,
    qualified_context,
)
from schemas.registry.topic import SchemaTopic
from schemas.registry.turns import Turns


class Answering(Protocol):
    """Answers questions about schemas."""

    async def answer(self, question: Question, client: str) -> Answer:
        """Return the answer. Raises RegistryError, 429, when the client has to come again."""


TOPIC_KEY: Final = web.AppKey("topic", SchemaTopic)
WRITES_KEY: Final = web.AppKey("writes", Writes)
JUDGES_KEY: Final = web.AppKey("judges", Answering)
TURNS_KEY: Final = web.AppKey("turns", Turns)
_BODY: Final = web.RequestKey("body", object)
_ANSWERS: Final = web.RequestKey("answers", Answers)

NOT_NEGOTIATED: Final = ("/", "/metrics")
"""Paths that answer with types of their own."""

log = logging.getLogger(__name__)

_DIGITS: Final = 10
_SHOWN_CHARACTERS: Final = 100
_UNINTERRUPTED_CHARACTERS: Final = 1 << 20

LOAD_SECONDS = 10.0
"""The time that a request waits until the topic is read; then the answer is 50001."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ItemT = TypeVar("ItemT")


def answer(request: web.Request, body: Any, status: int = 200) -> web.Response:
    """Answer with JSON, of the content type the caller takes."""
    text = compact_json(body).encode()
    return web.Response(body=text, status=status, content_type=_answered_type(request))


async def answer_list(request: web.Request, items: Iterable[Any]) -> web.Response:
    """Answer with a list that may be long; other requests are served while it is written."""
    texts: list[str] = []
    written = 0
    for item in items:
        texts.append(compact_json(item))
        written += len(texts[-1])
        if written > _UNINTERRUPTED_CHARACTERS:
            written = 0
            await asyncio.sleep(0)
    body = f"[{','.join(texts)}]".encode()
    return web.Response(body=body, content_type=_answered_type(request))


def answer_text(request: web.Request, text: str) -> web.Response:
    """Answer with the text of a schema."""
    return web.Response(body=text.encode(), content_type=_answered_type(request))


def _answered_type(request: web.Request) -> str:
    return answered_type(request.headers.get("Accept", "*/*")) or CONTENT_TYPE


@web.middleware
async def registry_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every refusal into Confluent's error body."""
    try:
        _check_content_types(request)
        return await handler(request)
    except ForwardedAnswer as forwarded:
        return forwarded.response
    except RegistryError as error:
        return _refusal(request, error)
    except web.HTTPException as error:
        text = f"HTTP {error.status} {error.reason}"
        return _refusal(request, RegistryError(error.status, text))
    except (KafkaError, TimeoutError) as error:
        return _refusal(request, store_error(str(error)))
    except Exception:
        log.exception("registry failed to answer path=%s", request.path[:_SHOWN_CHARACTERS])
        return _refusal(request, RegistryError(500, "HTTP 500 Internal Server Error"))


def refused_site(request: web.Request, refusal: Refusal) -> web.Response:
    """Refuse a request of another site, in Confluent's error body."""
    return _refusal(request, RegistryError(refusal.status, refusal.detail))


def when_loaded(handler: Handler) -> Handler:
    """Return a handler that first waits until the topic is read.

    Before that the registry cannot know that a schema does not exist, and clients do not retry a
    404: a service would set aside an event whose schema exists.
    """

    async def wait_and_handle(request: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await request.app[TOPIC_KEY].wait_until_loaded()
        except TimeoutError:
            raise store_error("the topic is not read yet") from None
        return await handler(request)

    return wait_and_handle


def settled(handler: Handler) -> Handler:
    """Return a handler that runs again when one of its questions has been answered.

    A question is about a schema (see `questions`); another process answers it, and other requests
    are served meanwhile.
    """

    async def settle_and_handle(request: web.Request) -> web.StreamResponse:
        answers = request[_ANSWERS] = Answers()
        while True:
            try:
                return await handler(request)
            except Unanswered as missing:
                client = request.remote or ""
                answer = await request.app[JUDGES_KEY].answer(missing.question, client)
                answers.give(missing.question, answer)

    return settle_and_handle


def ask_of(request: web.Request) -> Ask:
    """Return the function with which a handler asks about schemas."""
    return request[_ANSWERS].ask


def _refusal(request: web.Request, error: RegistryError) -> web.Response:
    body = {"error_code": error.error_code, "message": str(error)}
    return answer(request, body, error.http_status)


def _check_content_types(request: web.Request) -> None:
    is_own = request.path not in NOT_NEGOTIATED
    if is_own and answered_type(request.headers.get("Accept", "*/*")) is None:
        raise RegistryError(406, "HTTP 406 Not Acceptable")
    if request.can_read_body and request.content_type not in SENT:
        raise RegistryError(415, "HTTP 415 Unsupported Media Type")


def registry_of(request: web.Request) -> Registry:
    return request.app[TOPIC_KEY].registry


async def read_body(request: web.Request) -> Any:
    """Read the body, once for a request. Raises RegistryError, 42201, for invalid JSON."""
    if _BODY not in request:
        data = await request.read()
        async with request.app[TURNS_KEY].turn(len(data)):
            try:
                request[_BODY] = read_json(data)
            except ValueError as error:
                raise RegistryError(42201, f"Malformed JSON: {error}") from error
    return request[_BODY]


async def read_object(request: web.Request) -> dict[str, Any]:
    body = await read_body(request)
    if not isinstance(body, dict):
        raise RegistryError(42201, "Malformed JSON: not an object")
    return body


def flag(request: web.Request, name: str) -> bool:
    """Read a flag of the query; clients spell it true, True or TRUE."""
    return request.query.get(name, "").lower() == "true"


def page(request: web.Request, items: Sequence[ItemT]) -> Sequence[ItemT]:
    """Take the part of a list that `offset` and `limit` ask for; a negative limit is none."""
    offset, limit = _integer(request, "offset", 0), _integer(request, "limit", -1)
    first = max(0, offset)
    return items[first : first + limit] if limit >= 0 else items[first:]


def _integer(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise RegistryError(404, "HTTP 404 Not Found") from error


# --- names ---


def subject_of(request: web.Request) -> str:
    """Return the subject of the path, qualified."""
    return qualified(request, request.match_info["subject"])


def qualified(request: web.Request, name: str) -> str:
    """Qualify a name by the context in the path."""
    subject = parse_subject(name)
    context = path_context(request)
    if subject.context == DEFAULT_CONTEXT and context != DEFAULT_CONTEXT:
        subject = subject._replace(context=context)
    return subject.qualified


def path_context(request: web.Request) -> str:
    """Return the context of `/contexts/{context}/...`, the default one elsewhere."""
    given = request.match_info.get("context")
    if given is None:
        return DEFAULT_CONTEXT
    name = given.strip(":")
    return name if name.startswith(".") else f".{name}"


def read_subject_of(request: web.Request) -> str:
    """Return the subject to read from: the one its alias names, if it has one."""
    subject = subject_of(request)
    config = registry_of(request).config(subject)
    alias = None if config is None else config.get("alias")
    return parse_subject(subject).relative(alias).qualified if alias else subject


def new_subject_of(request: web.Request) -> str:
    """Return the subject to register under. Raises RegistryError, 42208."""
    name = request.match_info["subject"]
    if not is_valid(name):
        raise invalid_subject(name)
    return subject_of(request)


def scope_of(request: web.Request) -> str | None:
    """Return the scope of a setting: a subject, a context, or None for the whole registry."""
    name = request.match_info.get("subject")
    if name is None:
        context = path_context(request)
        return None if context == DEFAULT_CONTEXT else qualified_context(context)
    subject = parse_subject(qualified(request, name))
    if subject.context == DEFAULT_CONTEXT and subject.is_context:
        return None
    return subject.qualified


def settable_scope_of(request: web.Request) -> str | None:
    """Return the scope of a setting for a change. Raises RegistryError, 42208."""
    name = request.match_info.get("subject")
    if name is not None and not is_valid(name, may_be_context=True):
        raise invalid_subject(name)
    return scope_of(request)


def version_of(request: web.Request) -> int | None:
    """Return the version of the path, None for the newest. Raises RegistryError, 42202."""
    text = request.match_info["version"].strip()
    if text.lower() == "latest" or text == "-1":
        return None
    number = _number(text.removeprefix("+"))
    if number is None or number < 1:
        raise invalid_version(request.match_info["version"][:_SHOWN_CHARACTERS])
    return number


def id_of(request: web.Request) -> int:
    """Return the id of the path; an invalid number is "not found", as with Confluent's."""
    number = _number(request.match_info["schema_id"])
    if number is None:
        raise web.HTTPNotFound
    return number


def _number(text: str) -> int | None:
    """Read digits below 2^31; Python refuses to read thousands of them."""
    if not (text.isascii() and text.isdigit() and len(text.lstrip("0")) <= _DIGITS):
        return None
    number = int(text[-_DIGITS:])
    return number if number < 2**31 else None
