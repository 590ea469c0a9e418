"""The connectors of several Connect clusters, with their tasks; pause, resume and restart.

Settings whose names say that they are secret are hidden: a worker returns them as they are.
"""

import asyncio
import re
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from common.http.problems import ProblemError
from console.answers import Fields, json_answer
from console.console import CONSOLE
from console.http_calls import HttpCalls

_EXPANDED: Final = "/connectors?expand=status&expand=info"
_SECRET: Final = re.compile(r"password|passwd|secret|token|credential|jaas|key", re.IGNORECASE)
_SHOWN_CHARACTERS: Final = 2_000
_ACTIONS: Final = {
    "pause": ("PUT", "pause"),
    "resume": ("PUT", "resume"),
    "stop": ("PUT", "stop"),
    "restart": ("POST", "restart?includeTasks=true&onlyFailed=false"),
}


async def get_connectors(request: web.Request) -> web.Response:
    """Return the connectors of every cluster; one that does not answer says so."""
    clusters = request.app[CONSOLE].connect
    return json_answer({"clusters": await asyncio.gather(*map(_cluster, clusters))})


async def _cluster(connect: HttpCalls) -> dict[str, Any]:
    try:
        listed = await connect.ask("GET", _EXPANDED)
    except ProblemError as error:
        return {"url": connect.url, "error": str(error), "connectors": []}
    found = listed if isinstance(listed, dict) else {}
    connectors = [_connector(name, each) for name, each in sorted(found.items())]
    return {"url": connect.url, "error": "", "connectors": connectors}


def _connector(name: str, expanded: Any) -> dict[str, Any]:
    status, info = expanded.get("status") or {}, expanded.get("info") or {}
    tasks = status.get("tasks") or []
    return {
        "name": name,
        "type": info.get("type") or status.get("type") or "",
        "state": (status.get("connector") or {}).get("state", "UNASSIGNED"),
        "trace": str((status.get("connector") or {}).get("trace", ""))[:_SHOWN_CHARACTERS],
        "tasks": [
            {
                "id": each.get("id"),
                "state": each.get("state"),
                "worker": each.get("worker_id"),
                "trace": str(each.get("trace", ""))[:_SHOWN_CHARACTERS],
            }
            for each in tasks
        ],
        "settings": [
            {"name": key, "value": "hidden" if _SECRET.search(key) else str(value)}
            for key, value in sorted((info.get("config") or {}).items())
        ],
    }


async def act(request: web.Request) -> web.Response:
    """Pause, resume, stop or restart a connector with its tasks."""
    number = Fields(request.match_info).whole("cluster", most=1_000)
    clusters = request.app[CONSOLE].connect
    action = _ACTIONS.get(request.match_info["action"])
    if number >= len(clusters) or action is None:
        raise ProblemError(404, "There is no such cluster or action.")
    method, path = action
    name = quote(request.match_info["connector"], safe="")
    await clusters[number].ask(method, f"/connectors/{name}/{path}")
    return json_answer({"connector": request.match_info["connector"]}, 202)


ROUTES: Final = (
    web.get("/api/connectors", get_connectors),
    web.post("/api/connectors/{cluster}/{connector}/{action}", act),
)
