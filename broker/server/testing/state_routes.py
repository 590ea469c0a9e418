"""The routes `/clock`, which moves the time of clients, and `/snapshot` and `/restore`.

A snapshot copies the log directories, and a restore brings them back; both close every connection,
and start the parts of the node anew within its process (`Node.restart`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol

from broker.server.clock import MovableClock
from broker.server.storage.saved_state import SavedState
from broker.server.testing.routes import Answer, Command, Refused, Route

SETTLING_TURNS: Final = 20
"""What is due after a move follows within a few turns of the loop, one shard in each."""
_WHOLE: Final = {"type": "integer", "minimum": 0}


class TestedNode(Protocol):
    """What the routes need of the node."""

    @property
    def is_alone(self) -> bool:
        """True if this node is a whole cluster."""

    @property
    def is_ready(self) -> bool:
        """True if it serves."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """The address of each listener for clients, by its name."""


Restart = Callable[..., Awaitable[None]]


class StateRoutes:
    """The functions of the routes. Set `node` and `restart` before requests are served."""

    node: TestedNode
    restart: Restart
    """`Node.restart` without its first argument."""

    def __init__(
        self, clock: MovableClock, saved: SavedState, on_restored: Callable[[], None]
    ) -> None:
        """`on_restored` forgets what the test before has left."""
        self._clock = clock
        self._saved = saved
        self._on_restored = on_restored

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("GET", "/clock", self._show, "The broker's time, and how far it is ahead"),
            Route(
                "POST",
                "/clock",
                self._advance,
                "Move the time of clients forward; what is due is done before the answer",
                body={
                    "type": "object",
                    "required": ["advance_ms"],
                    "additionalProperties": False,
                    "properties": {"advance_ms": _WHOLE},
                },
            ),
            Route(
                "POST", "/snapshot", self._save, "Keep the state of the broker; clients reconnect"
            ),
            Route(
                "POST",
                "/restore",
                self._bring_back,
                "Bring the broker back to its snapshot; the answer has its addresses",
                body={
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"new_ports": {"type": "boolean"}},
                },
            ),
        ]

    # --- time ---

    def _show(self, _: Command) -> Answer:
        clock = self._clock
        return Answer(value={"timestamp_ms": clock.timestamp_ms(), "ahead_ms": clock.ahead_ms})

    async def _advance(self, command: Command) -> Answer:
        wanted = _fields(command, {"advance_ms": int})
        if "advance_ms" not in wanted:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "advance_ms is missing")
        try:
            self._clock.advance(wanted["advance_ms"])
        except ValueError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        for _ in range(SETTLING_TURNS):
            await asyncio.sleep(0)
        return self._show(command)

    # --- state ---

    async def _save(self, _: Command) -> Answer:
        self._check_alone()
        return await self._restarted(self._saved.save, is_clean=True, new_ports=False)

    async def _bring_back(self, command: Command) -> Answer:
        self._check_alone()
        wanted = _fields(command, {"new_ports": bool})
        if not self._saved.is_there:
            raise Refused(HTTPStatus.CONFLICT, "There is no snapshot.")
        self._on_restored()
        new_ports = wanted.get("new_ports", False)
        return await self._restarted(self._saved.bring_back, is_clean=False, new_ports=new_ports)

    def _check_alone(self) -> None:
        if not self.node.is_alone:
            raise Refused(HTTPStatus.CONFLICT, "Only a broker that is a whole cluster can do this.")

    async def _restarted(self, between: Callable[[], None], **how: bool) -> Answer:
        await self.restart(between, **how)
        if not self.node.is_ready:
            said = "The broker could not start again: its log says why."
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, said)
        ahead_ms = self._clock.ahead_ms
        return Answer(value={"listeners": dict(self.node.addresses), "ahead_ms": ahead_ms})


def _fields(command: Command, kinds: Mapping[str, type]) -> dict[str, Any]:
    """Return the fields of a body, of these kinds; an empty body has none; raise Refused."""
    body = command.json_body() if command.body else {}
    if not isinstance(body, dict):
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "The body is no JSON object.")
    for name, value in body.items():
        if name not in kinds:
            known = ", ".join(kinds)
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name[:40]!r} is none of: {known}")
        # A bool is an int, but it is no time.
        if type(value) is not kinds[name]:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name} is not {kinds[name].__name__}")
    return body
