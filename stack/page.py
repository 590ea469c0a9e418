"""The page of the stack: addresses, health, what to try next; also as JSON and as metrics.

It is a small server on h11, because the process of a stack must use little memory. It is read-only.
A request whose Host header is a foreign name is refused, so that no web site can read the page
through a DNS name that points to this machine.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

import h11

from common.http.front import HTML, FrontPage, Link, Step, is_wanted, render, response_headers
from common.http.site_guard import SiteGuard
from stack.plan import Plan, addresses, bootstrap_servers, url_of, variables
from stack.ports import CONNECT, PAGE, REGISTRY, REST_PROXY
from stack.shown import READY, part_state

_MAX_REQUEST_BYTES: Final = 16 << 10
_IDLE_SECONDS: Final = 30.0
_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_METRICS: Final = "text/plain; version=0.0.4"
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
Answer = tuple[int, Mapping[str, str], bytes]


class Page:
    """Owns the listening socket."""

    def __init__(self, plan: Plan, state: Callable[[], dict[str, Any]]) -> None:
        self._plan = plan
        self._state = state
        self._guard = SiteGuard()
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> None:
        """Listen; raise OSError if the port is in use."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self.answer), "127.0.0.1", port
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def answer(self, method: str, target: str, headers: Mapping[str, str]) -> Answer:
        """Return status, headers and body for a request."""
        if not self._guard.is_own(headers.get("host", "")):
            return _problem(421, "The Host header is not this server's.")
        if method not in ("GET", "HEAD"):
            return _problem(405, "Only GET and HEAD.", {"Allow": "GET, HEAD"})
        answers = {
            "/": self._front,
            "/health/live": self._live,
            "/health/ready": self._ready,
            "/metrics": self._metrics,
        }
        found = answers.get(target.partition("?")[0])
        return _problem(404, "This page does not exist.") if found is None else found(headers)

    def _front(self, headers: Mapping[str, str]) -> Answer:
        state = self._state()
        if not is_wanted(headers.get("accept")):
            return _json(200, self._shown(state))
        html = self._html(state, headers.get("host", ""))
        # The name of the data folder may have bytes that are no UTF-8.
        body = html.encode(errors="backslashreplace")
        return 200, {"Content-Type": HTML, **response_headers()}, body

    def _live(self, _: Mapping[str, str]) -> Answer:
        return _json(200, {"status": "live"})

    def _ready(self, _: Mapping[str, str]) -> Answer:
        missing = self._missing(self._state())
        return _json(503 if missing else 200, {"missing": missing})

    def _metrics(self, _: Mapping[str, str]) -> Answer:
        return 200, {"Content-Type": _METRICS}, _metrics(self._state()).encode()

    def _missing(self, state: Mapping[str, Any]) -> list[str]:
        parts = [
            name for name in addresses(self._plan) if part_state(self._plan, state, name) != READY
        ]
        return parts or ([] if state["is_ready"] else ["seeds"])

    def _shown(self, state: Mapping[str, Any]) -> dict[str, Any]:
        shown = {"addresses": addresses(self._plan), "environment": variables(self._plan)}
        return {**shown, "is_ready": state["is_ready"], "parts": state["parts"]}

    def _html(self, state: Mapping[str, Any], host: str) -> str:
        plan = self._plan
        urls = {name: url_of(plan, name) for name in (PAGE, REGISTRY, REST_PROXY, CONNECT)}
        page = FrontPage(
            name=PAGE,
            title="Millstream",
            what="A development stack on this machine: Kafka and its companions.",
            steps=_steps(plan),
            links=[
                Link(f"http://127.0.0.1:{port}/", f"broker {number}", "its health and metrics")
                for number, port in plan["broker_http_ports"].items()
            ],
            neighbours={name: f"{url}/" for name, url in urls.items() if url},
        )
        facts = {
            name: f"{address} ({part_state(plan, state, name)})"
            for name, address in addresses(plan).items()
        }
        facts["data"] = "deleted at the end" if plan["is_ephemeral"] else plan["data_folder"]
        return render(page, origin=f"http://{host}", missing=self._missing(state), facts=facts)


def _steps(plan: Plan) -> list[Step]:
    steps = [
        Step(
            "Send a record, and read it, with any client of Kafka.",
            f"echo hello | kcat -b {bootstrap_servers(plan)} -t greetings\n"
            f"kcat -b {bootstrap_servers(plan)} -t greetings -C -e",
        )
    ]
    if url := url_of(plan, REST_PROXY):
        steps.append(
            Step(
                "Or over HTTP.",
                f"curl {url}/topics/greetings "
                "-H 'Content-Type: application/vnd.kafka.json.v2+json' "
                """-d '{"records": [{"value": "hello"}]}'""",
            )
        )
    if url := url_of(plan, REGISTRY):
        steps.append(Step("List the schemas.", f"curl {url}/subjects"))
    if url := url_of(plan, CONNECT):
        steps.append(Step("List the available connectors.", f"curl {url}/connector-plugins"))
    return steps


def _metrics(state: Mapping[str, Any]) -> str:
    lines = ["# TYPE millstream_stack_part_ready gauge"]
    lines += [
        f'millstream_stack_part_ready{{part="{name}"}} {int(part["state"] == READY)}'
        for name, part in state["parts"].items()
    ]
    return "\n".join(lines) + "\n"


def _json(status: int, body: Any) -> Answer:
    return status, {"Content-Type": _JSON}, json.dumps(body).encode()


def _problem(status: int, detail: str, headers: Mapping[str, str] = _NO_HEADERS) -> Answer:
    """Return an error as a problem document (RFC 9457)."""
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return status, {"Content-Type": _PROBLEM, **headers}, json.dumps(body).encode()


class _Connection(asyncio.Protocol):
    """The connection of one client: one request at a time, without a body."""

    def __init__(self, answer: Callable[[str, str, Mapping[str, str]], Answer]) -> None:
        self._answer = answer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_REQUEST_BYTES)
        self._transport: asyncio.Transport | None = None
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._idle = asyncio.get_running_loop().call_later(_IDLE_SECONDS, transport.close)

    def connection_lost(self, error: Exception | None) -> None:
        if self._idle is not None:
            self._idle.cancel()

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        try:
            self._http.receive_data(data)
            while isinstance(event := self._http.next_event(), h11.Request):
                self._send(event)
        except h11.RemoteProtocolError as error:
            if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                self._give(_problem(error.error_status_hint, str(error)))
            self._transport.close()

    def _send(self, request: h11.Request) -> None:
        assert self._transport is not None
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers
        }
        method = request.method.decode("latin-1")
        answer = self._answer(method, request.target.decode("latin-1"), headers)
        self._give(answer, has_body=method != "HEAD")

    def _give(self, answer: Answer, *, has_body: bool = True) -> None:
        """Send an answer and close the connection."""
        assert self._transport is not None
        status, told, body = answer
        told = {**told, "Content-Length": str(len(body)), "Connection": "close"}
        response = h11.Response(status_code=status, headers=list(told.items()))
        sent = self._http.send(response) or b""
        if has_body:
            sent += self._http.send(h11.Data(data=body)) or b""
        self._transport.write(sent)
        self._transport.close()
