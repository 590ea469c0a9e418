"""Problem documents (RFC 9457), as every server of the project writes them.

It is a file of its own because the broker and the page of the stack have no aiohttp.
"""

import json
from http import HTTPStatus
from typing import Any, Final

PROBLEM_TYPE: Final = "application/problem+json"


def problem_document(
    status: int, detail: str, instance: str | None = None, **members: Any
) -> bytes:
    """Return the document of an error; `instance` is the path that was asked for, if known."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    named = {} if instance is None else {"instance": instance}
    return json.dumps({**body, "detail": detail, **named, **members}).encode()
