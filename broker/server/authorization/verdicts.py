"""The verdicts of checks, and the functions that build most checks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, Union

from broker.server.authorization.access import CLUSTER, Access
from common.kafka.acls import AclOperation, ResourceType
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message

E = TypeVar("E")


class Refused(NamedTuple):
    """The handler does not run: this is the answer."""

    response: Message


class Closed(NamedTuple):
    """The handler does not run, and a request that wants no answer ends its connection."""


class Narrowed(NamedTuple):
    """The handler gets the rest of the request; `complete` changes its answer."""

    complete: Callable[[Any], None]


Verdict = Union[Refused, Closed, Narrowed, None]  # noqa: UP007 - None is a verdict: go on
Check = Callable[[Access, Any, int], Verdict]
"""Takes the rights, the request, which it may shorten, and the version of the API."""


def always(access: Access, request: Any, api_version: int) -> Verdict:
    """Allow every requester."""
    return None


def with_code(response: type[Message], code: ErrorCode) -> Refused:
    """Return the refusal of an API whose answer has one error code at its top level."""
    return Refused(response(error_code=code))


def on_cluster(operation: AclOperation, response: type[Message], **more: Any) -> Check:
    """Return a check of one right on the cluster; `more` are fields of its refusal."""

    def check(access: Access, request: Any, api_version: int) -> Verdict:
        if access.may(operation, CLUSTER):
            return None
        return Refused(response(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, **more))

    return check


def divide(entries: Iterable[E], is_allowed: Callable[[E], bool]) -> tuple[list[E], list[E]]:
    """Return the entries that are allowed, and those that are denied."""
    allowed: list[E] = []
    denied: list[E] = []
    for entry in entries:
        (allowed if is_allowed(entry) else denied).append(entry)
    return allowed, denied


def _name(entry: Any) -> str:
    name: str = entry.name
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class OnEach:
    """A check of each entry of one array."""

    entries: str
    """The array of the request."""
    operation: AclOperation
    kind: ResourceType
    response: type[Message]
    answers: str
    """The array of the response."""
    refuse: Callable[[Any], Any]
    """Makes the answer of an entry that is denied."""
    name_of: Callable[[Any], str] = _name

    def __call__(self, access: Access, request: Any, api_version: int) -> Verdict:
        """Refuse the denied entries, and let the handler answer the others."""
        allowed, denied = divide(
            getattr(request, self.entries),
            lambda entry: access.may(self.operation, self.kind, self.name_of(entry)),
        )
        if not denied:
            return None
        refusals = [self.refuse(entry) for entry in denied]
        if not allowed:
            return Refused(self.response(**{self.answers: refusals}))
        setattr(request, self.entries, allowed)
        return Narrowed(lambda answer: getattr(answer, self.answers).extend(refusals))
