"""The page of the stack: addresses, health, what to try next; also as JSON and as metrics.

The process of a stack must use little memory, so this is no application of aiohttp.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from common.http.accepting import listening_on
from common.http.front import HTML, FrontPage, Link, Step, is_wanted, render, response_headers
from common.http.small_server import Asked, SmallServer
from common.http.small_server import Page as Answer
from stack.plan import Plan, addresses, bootstrap_servers, url_of, variables
from stack.ports import CONNECT, PAGE, REGISTRY, REST_PROXY
from stack.shown import READY, part_state

_JSON: Final = "application/json"
_METRICS: Final = "text/plain; version=0.0.4"


class Page:
    """Owns the listening socket."""

    def __init__(self, plan: Plan, state: Callable[[], dict[str, Any]]) -> None:
        self._plan = plan
        self._state = state
        self.server = SmallServer(self.answer)

    def start(self, port: int) -> None:
        """Listen; raise CannotListenError if the port is in use."""
        self.server.start(listening_on("127.0.0.1", port))

    def close(self) -> None:
        self.server.stop()

    def answer(self, asked: Asked) -> Answer | None:
        """Return the page at a path, None if there is none."""
        match asked.path:
            case "/":
                return self._front(asked)
            case "/health/live":
                return _json(200, {"status": "live"})
            case "/health/ready":
                missing = self._missing(self._state())
                return _json(503 if missing else 200, {"missing": missing})
            case "/metrics":
                return Answer(200, _METRICS, _metrics(self._state()).encode())
            case _:
                return None

    def _front(self, asked: Asked) -> Answer:
        state = self._state()
        if not is_wanted(asked.headers.get("accept")):
            return _json(200, self._shown(state))
        # The name of the data folder may have bytes that are no UTF-8.
        body = self._html(state, asked.host).encode(errors="backslashreplace")
        return Answer(200, HTML, body, response_headers())

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
    return Answer(status, _JSON, json.dumps(body).encode())
