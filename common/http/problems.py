"""Errors over HTTP: every one is `application/problem+json` (RFC 9457), aiohttp's own too.

A handler raises `ProblemError`; `answer` turns it, aiohttp's errors and a bug into a document.
"""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web

from common.http.problem_document import PROBLEM_TYPE, problem_document

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_KEPT_HEADERS = ("Accept-Encoding", "Allow", "Location", "Retry-After")
_RETRY_LATER = {"Retry-After": "1"}


class ProblemError(Exception):
    """A refusal with everything its problem document says."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}
        self.members: dict[str, Any] = {**members, **({"errors": errors} if errors else {})}

    def response(self, instance: str | None = None) -> web.Response:
        """Return the answer to a request for the path `instance`, if that could be read."""
        return web.Response(
            body=problem_document(self.status, str(self), instance, **self.members),
            status=self.status,
            headers=self.headers,
            content_type=PROBLEM_TYPE,
        )


def unavailable(detail: str) -> ProblemError:
    """Return the refusal of what may work a moment later."""
    return ProblemError(503, detail, headers=_RETRY_LATER)


async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a request, every error with a problem document."""
    try:
        return await handler(request)
    except ProblemError as refusal:
        return refusal.response(request.path)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        headers = {name: error.headers[name] for name in _KEPT_HEADERS if name in error.headers}
        if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers = _RETRY_LATER | headers
        problem = ProblemError(error.status, error.text or error.reason, headers=headers)
        return problem.response(request.path)
    # The outermost edge of a request: a bug answers 500 and is logged.
    except Exception:
        log.exception("request failed method=%s path=%s", request.method, request.path)
        return ProblemError(500, "an error of the program itself").response(request.path)
