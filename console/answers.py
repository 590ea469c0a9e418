"""What every request passes, and how errors of Kafka are answered."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp import web

from common.http.problems import Handler, ProblemError, unavailable
from common.http.site_guard import READING
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode, KafkaError
from common.process.json_text import NotJsonError, read_json
from console.console import CONSOLE
from console.records.filters import FilterError
from rest_proxy.refusals import RestError

log = logging.getLogger(__name__)

_JSON: Final = "application/json"
_STATUSES: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.TOPIC_ALREADY_EXISTS: 409,
    ErrorCode.NON_EMPTY_GROUP: 409,
    ErrorCode.UNKNOWN_MEMBER_ID: 409,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: 409,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    ErrorCode.SECURITY_DISABLED: 404,
    ErrorCode.UNSUPPORTED_VERSION: 501,
    ErrorCode.REQUEST_TIMED_OUT: 503,
}


def json_answer(body: Any, status: int = 200) -> web.Response:
    """Return JSON that no other site may keep or read."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    # A name of a group or a client may have halves of surrogate pairs.
    data = text.encode(errors="backslashreplace")
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return web.Response(body=data, status=status, content_type=_JSON, headers=headers)


@web.middleware
async def checking_changes(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a change that this console may not make, or whose body is not JSON.

    A form of another site can send no JSON without asking first (CORS), so this and `SiteGuard`
    are two locks on one door.
    """
    if request.method in READING:
        return await handler(request)
    if request.app[CONSOLE].settings.is_read_only:
        raise ProblemError(403, "This console only reads: it was started with --read-only.")
    if request.content_type != _JSON:
        raise ProblemError(415, "A change has a body of application/json.")
    answer = await handler(request)
    request.app[CONSOLE].cluster.forget()
    return answer


@web.middleware
async def telling_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors of Kafka as problems."""
    try:
        return await handler(request)
    except (KafkaError, ConnectionFailed, FilterError, RestError) as error:
        raise problem_of(error) from None


def problem_of(error: Exception) -> ProblemError:
    """Return the refusal that an error is answered with."""
    if isinstance(error, KafkaError):
        status = _STATUSES.get(error.code, 422)
        return ProblemError(status, str(error), kafka_error=error.code.name)
    if isinstance(error, RestError):
        return ProblemError(422, f"The schema registry: {error}")
    if isinstance(error, FilterError):
        return ProblemError(422, str(error))
    return unavailable(f"Kafka does not answer: {error}")


def body_of(body: bytes) -> dict[str, Any]:
    """Return the object that is a request's body. Raise ProblemError."""
    try:
        found = read_json(body or b"{}")
    except NotJsonError as error:
        raise ProblemError(400, f"The body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ProblemError(400, "The body is no object.")
    return found


class Fields:
    """The members of a body, or the parameters of an address, checked. Raise ProblemError, 422."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text."""
        found = self._members.get(name, default)
        if not isinstance(found, str):
            raise ProblemError(422, f"{name} has to be a text.")
        return found

    def whole(self, name: str, default: int | None = None, *, least: int = 0,
              most: int = (1 << 63) - 1) -> int:  # fmt: skip
        """Return a whole number, which may be a text of digits."""
        found = self._members.get(name, default)
        if isinstance(found, str) and found.strip().lstrip("-").isdecimal() and len(found) < 25:
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise ProblemError(422, f"{name} has to be a whole number from {least} to {most}.")
        return found

    def given(self, name: str) -> bool:
        """Whether there is something of this name."""
        return self._members.get(name) not in (None, "")

    def flag(self, name: str) -> bool:
        """Return a yes or no."""
        return self._members.get(name) in (True, "1", "true", "on")

    def mapping(self, name: str, check: Callable[[Any], bool]) -> dict[str, Any]:
        """Return an object whose values pass a check."""
        found = self._members.get(name, {})
        if not isinstance(found, dict) or not all(map(check, found.values())):
            raise ProblemError(422, f"{name} is no object of the values that it has to have.")
        return found
