"""What a route of the control is, and what its function is given and returns."""

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from common.process.json_text import NotJsonError, read_json

JSON: Final = "application/json"


class Answer(NamedTuple):
    """What a route answers, as JSON; None for nothing."""

    status: int = HTTPStatus.OK
    value: object = None

    def body(self) -> bytes:
        """Return the bytes to send."""
        return b"" if self.value is None else json.dumps(self.value).encode() + b"\n"


class Refused(Exception):  # noqa: N818 - a refusal, as `site_guard` has it
    """A request that is not carried out."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Command:
    """One request to a route."""

    number: int
    """What stands for `{id}` in the path; 0 if the route has none."""
    parameters: Mapping[str, str]
    """Those of the query; the route has all of them in its table."""
    body: bytes

    def json_body(self) -> Any:
        """Return the value of the body; raise Refused if it is no JSON."""
        try:
            return read_json(self.body)
        except NotJsonError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"The body is no JSON: {error}") from None


Serve = Callable[[Command], Answer | Coroutine[None, None, Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path. `{id}` in the path stands for a number."""

    method: str
    path: str
    serve: Serve
    what: str
    """A sentence for `/openapi.json`."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Those of the query, each with a sentence."""
    body: Mapping[str, Any] | None = None
    """The JSON schema of the body; None if the route takes none."""
    status: int = HTTPStatus.OK
    """The status of success."""
