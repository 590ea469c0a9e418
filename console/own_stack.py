"""The stack or demo that this console belongs to: addresses, states, and switches for its parts.

`millstream up` gives the console the folder of the stack. The console reads the plan and the state
there, and writes which parts are to be stopped or paused, as `millstream stop` does. The process of
the stack does it. The folder of a demo has no plan: its switches are those of the brokers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from common.http.problems import ProblemError
from millstream.processes.switchboard import PAUSED, READY
from stack.place import Place
from stack.plan import Plan, addresses, bootstrap_servers, url_of, variables
from stack.ports import BROKER, CONNECT, CONSOLE, REGISTRY, REST_PROXY
from stack.shown import part_state

_ACTIONS: Final[Mapping[str, bool | str | None]] = {
    "stop": False,
    "kill": True,
    "pause": PAUSED,
    "start": None,
}
"""By action, what is written of a part; None: nothing, so that it runs."""


class OwnStack:
    """Reads and writes the folder of one stack."""

    def __init__(self, folder: str) -> None:
        self._place = Place(Path(folder))

    def missing(self) -> list[str]:
        """Return the parts that are not ready; the seeds come last."""
        state, plan = self._place.state(), self._plan()
        if plan is None:
            return []
        parts = [
            name
            for name in addresses(plan)
            if name != CONSOLE and part_state(plan, state, name) != READY
        ]
        others = {name: each for name, each in state.get("parts", {}).items() if name != CONSOLE}
        is_seeding = not state.get("is_ready") and all(
            each["state"] == READY for each in others.values()
        )
        return parts or (["seeds"] if is_seeding and state.get("doing") else [])

    def _plan(self) -> Plan | None:
        """Return the plan of a stack; a demo has none."""
        try:
            return self._place.plan()
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise ProblemError(503, "The folder of the stack cannot be read.") from None

    def states(self) -> dict[str, str]:
        """Return the state of each part, by its name."""
        return {name: each["state"] for name, each in self._place.state().get("parts", {}).items()}

    def shown(self) -> dict[str, Any]:
        """Return addresses, variables, states and first steps."""
        plan, state = self._plan(), self._place.state()
        if plan is None:
            return {"parts": state.get("parts", {})}
        return {
            "addresses": addresses(plan),
            "environment": variables(plan),
            "is_ready": bool(state.get("is_ready")),
            "parts": state.get("parts", {}),
            "brokers": plan["brokers"],
            "data": None if plan["is_ephemeral"] else plan["data_folder"],
            "pages": {
                f"{BROKER}-{number}": f"http://127.0.0.1:{port}/"
                for number, port in plan["broker_http_ports"].items()
            },
            "steps": [{"text": text, "command": command} for text, command in _steps(plan)],
        }

    def change(self, part: str, action: str) -> None:
        """Stop, kill, pause or start a part; raise ProblemError."""
        parts = self._place.state().get("parts", {})
        if part not in parts or part == CONSOLE or action not in _ACTIONS:
            raise ProblemError(404, f"There is no part {part!r} or no switch {action!r}.")
        wish = _ACTIONS[action]
        try:
            with self._place.starting():
                others = {name: at for name, at in self._place.stopped().items() if name != part}
                self._place.write_stopped(others if wish is None else {**others, part: wish})
        except OSError as error:
            raise ProblemError(503, f"The stack cannot be told: {error}") from None


def _steps(plan: Plan) -> list[tuple[str, str]]:
    servers = bootstrap_servers(plan)
    steps = [
        (
            "Send a record, and read it, with any client of Kafka.",
            f"echo hello | kcat -b {servers} -t greetings\nkcat -b {servers} -t greetings -C -e",
        )
    ]
    if url := url_of(plan, REST_PROXY):
        steps.append(
            (
                "Or over HTTP.",
                f"curl {url}/topics/greetings "
                "-H 'Content-Type: application/vnd.kafka.json.v2+json' "
                """-d '{"records": [{"value": "hello"}]}'""",
            )
        )
    if url := url_of(plan, REGISTRY):
        steps.append(("List the schemas.", f"curl {url}/subjects"))
    if url := url_of(plan, CONNECT):
        steps.append(("List the available connectors.", f"curl {url}/connector-plugins"))
    return steps
