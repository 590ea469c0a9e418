"""The routes `/faults`, which arms rules, and `/requests`, which tells the calls of clients."""

from collections.abc import Callable
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from broker.faults.calls import WANTED, CallLog
from broker.faults.places import Kind
from broker.faults.rule import DiskFailure, FaultKind, Rule, api_name, read_api, read_rule
from broker.faults.rule_book import Armed, RuleBook
from broker.server.testing.routes import Answer, Command, Refused, Route
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES

MOST_CALLS: Final = 1_000
"""The calls of one answer: a client asks for those that follow with `after`."""
MAX_NUMBER_DIGITS: Final = 18

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_WHOLE: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}
_FLAG: Final[dict[str, Any]] = {"type": "boolean"}
_RULE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["kind", "when"],
    "additionalProperties": False,
    "properties": {
        "kind": {"enum": [str(each) for each in FaultKind]},
        "when": {
            "oneOf": [
                {"properties": {"times": _WHOLE}, "required": ["times"]},
                {"properties": {"on_call": _WHOLE}, "required": ["on_call"]},
                {"properties": {"always": {"const": True}}, "required": ["always"]},
                {
                    "properties": {"probability": {"type": "number"}, "seed": _WHOLE},
                    "required": ["probability", "seed"],
                },
            ]
        },
        "api": {"enum": [api_name(each) for each in API_VERSION_RANGES]},
        "version": _WHOLE,
        "topic": _TEXT,
        "partition": _WHOLE,
        "client_id": _TEXT,
        "principal": _TEXT,
        "transactional_id": _TEXT,
        "group": _TEXT,
        "error": {"enum": [each.name for each in ErrorCode if each]},
        "at": {"enum": [str(each) for each in Kind]},
        "ms": _WHOLE,
        "bytes": _WHOLE,
        "after": _FLAG,
        "disk": {"enum": [str(each) for each in DiskFailure]},
    },
}


class FaultRoutes:
    """The functions of the routes."""

    def __init__(
        self,
        rules: RuleBook,
        calls: CallLog,
        why_not: Callable[[Rule], str | None] = lambda _: None,
    ) -> None:
        """`why_not` says why a rule can never act here; None if it can."""
        self._rules = rules
        self._calls = calls
        self._why_not = why_not

    def routes(self) -> list[Route]:
        """Return the routes."""
        filters = {name: f"Only calls with this {name}" for name in WANTED}
        return [
            Route(
                "POST",
                "/faults",
                self._arm,
                "Arm a rule; the answer has its id",
                body=_RULE,
                status=HTTPStatus.CREATED,
            ),
            Route("GET", "/faults", self._list, "The armed rules, with what each has hit"),
            Route("DELETE", "/faults", self._clear, "Remove all rules; the answer has them"),
            Route("GET", "/faults/{id}", self._show, "One rule, with what it has hit"),
            Route("DELETE", "/faults/{id}", self._disarm, "Remove a rule; the answer has it"),
            Route(
                "GET",
                "/requests",
                self._requests,
                f"The calls of clients, the oldest first, {MOST_CALLS} at most",
                parameters={"after": "Only calls after the one with this id", **filters},
            ),
            Route("DELETE", "/requests", self._forget, "Forget the calls so far"),
        ]

    # --- rules ---

    def _arm(self, command: Command) -> Answer:
        try:
            rule = read_rule(command.json_body())
            if (why := self._why_not(rule)) is not None:
                raise ValueError(why)
            return Answer(HTTPStatus.CREATED, self._rules.arm(rule).as_json())
        except ValueError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None

    def _list(self, _: Command) -> Answer:
        return Answer(value={"faults": [armed.as_json() for armed in self._rules]})

    def _clear(self, _: Command) -> Answer:
        removed = [armed.as_json() for armed in self._rules]
        self._rules.clear()
        return Answer(value={"faults": removed})

    def _show(self, command: Command) -> Answer:
        return _rule(self._rules.find(command.number))

    def _disarm(self, command: Command) -> Answer:
        return _rule(self._rules.disarm(command.number))

    # --- calls ---

    def _requests(self, command: Command) -> Answer:
        wanted = dict(command.parameters)
        after = wanted.pop("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) <= MAX_NUMBER_DIGITS):
            raise Refused(HTTPStatus.BAD_REQUEST, "after is the id of a call")
        if "api" in wanted:
            try:
                read_api("api", wanted["api"])
            except ValueError as error:
                raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
        found = list(islice(self._calls.since(int(after), wanted), MOST_CALLS))
        last_id = found[-1].call_id if len(found) == MOST_CALLS else self._calls.last_id
        return Answer(
            value={
                "requests": [each.as_json() for each in found],
                "last_id": last_id,
                "dropped": self._calls.dropped,
            }
        )

    def _forget(self, _: Command) -> Answer:
        self._calls.clear()
        return Answer(HTTPStatus.NO_CONTENT)


def _rule(armed: Armed | None) -> Answer:
    if armed is None:
        raise Refused(HTTPStatus.NOT_FOUND, "There is no rule with this id.")
    return Answer(value=armed.as_json())
