"""The page at `/`: connectors and tasks, their rates and their errors.

The page reads `/page/state` and sends commands to the REST interface as any client does. Each
worker keeps the counts of its own tasks: the leader asks the other members of the group for theirs,
and all other workers ask the leader.
"""

import os
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from common.http.front import HTML, badge
from common.http.neighbours import LOOK, navigation, parse_neighbours
from connect.herder.names import State, TaskId, not_found
from connect.rest.bodies import answer
from connect.rest.desk import Desk
from connect.worker.tasks.thread import TaskCounts

_PAGE: Final = Path(str(files(__package__))) / "page"
_ASSETS: Final = {
    "look.css": "text/css",
    "connect.css": "text/css",
    "connect.js": "text/javascript",
    "favicon.svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept",
}
_COUNTS: Final = "/page/counts"
_TRACE_LIMIT: Final = 20_000

Counts = dict[str, Any]


def page_response(is_ready: bool) -> web.Response:
    """Return the page."""
    links = navigation(parse_neighbours(os.environ.get("MILLSTREAM_NEIGHBOURS", "")), "connect")
    text = (_PAGE / "index.html").read_text(encoding="utf-8")
    text = text.replace("<!-- navigation -->", links)
    text = text.replace("<!-- badge -->", badge(() if is_ready else ("its cluster",)))
    return web.Response(text=text, content_type=HTML, headers=_HEADERS)


class Page:
    """The resource for the files and the state that the page loads."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/page/state", self.show_state),
            web.get(_COUNTS, self.show_counts),
            web.get("/page/{name}", self.show_asset),
        ]

    async def show_asset(self, request: web.Request) -> web.FileResponse:
        """Serve one of the files that the page loads."""
        name = request.match_info["name"]
        if name not in _ASSETS:
            raise not_found("HTTP 404 Not Found")
        headers = {**_HEADERS, "Content-Type": _ASSETS[name]}
        return web.FileResponse(LOOK if name == LOOK.name else _PAGE / name, headers=headers)

    async def show_counts(self, request: web.Request) -> web.Response:
        # Only the leader asks others: two workers that take each other for the leader would
        # otherwise ask each other without end.
        is_everywhere = request.query.get("scope") == "cluster" and self._desk.herder.is_leader
        return answer(await self._all_counts(request) if is_everywhere else self._counts())

    def _counts(self) -> Counts:
        """Return the counts of the tasks that run here, and the last errors on this worker."""
        worker = self._desk.worker
        return {
            "tasks": {str(task): _counted(each) for task, each in worker.task_counts().items()},
            "errors": {
                _key(of): {"timestamp": each.timestamp_ms, "trace": each.trace[-_TRACE_LIMIT:]}
                for of, each in worker.last_errors.items()
            },
        }

    async def show_state(self, request: web.Request) -> web.Response:
        desk, herder = self._desk, self._desk.herder
        settings = desk.worker.environment.settings
        counts = await self._all_counts(request)
        names = sorted(herder.config.connectors())
        return answer(
            {
                "worker": herder.worker_id,
                "group": settings.parsed.get("group.id"),
                "ready": desk.worker.is_ready,
                "connectors": [self._connector(name, counts) for name in names],
            }
        )

    async def _all_counts(self, request: web.Request) -> Counts:
        said = await self._desk.ask_all(request, _COUNTS)
        told = [each for each in said if isinstance(each, dict)]
        together: Counts = {"tasks": {}, "errors": {}}
        for each in (*told, self._counts()):
            for kind, found in together.items():
                found.update(each.get(kind) or {})
        return together

    def _connector(self, name: str, counts: Counts) -> Counts:
        herder = self._desk.herder
        status = herder.statuses.connectors.get(name)
        return {
            "name": name,
            "type": self._desk.kind(name),
            "target": herder.config.target_state(name).value,
            "state": (State.UNASSIGNED if status is None else status.state).value,
            "worker": None if status is None else status.worker_id,
            "note": None if status is None else status.note,
            "error": _error(name, None if status is None else status.trace, counts),
            "tasks": [
                {
                    "id": task.task,
                    "state": each.state.value,
                    "worker": each.worker_id,
                    "restarts": each.restarts,
                    "note": each.note,
                    "counts": counts["tasks"].get(str(task)),
                    "error": _error(task, each.trace, counts),
                }
                for task, each in herder.statuses.tasks_of(name)
            ],
        }


def _error(of: str | TaskId, trace: str | None, counts: Counts) -> Counts | None:
    """Return the last error of a connector or task, also when it runs again."""
    before: Counts | None = counts["errors"].get(_key(of))
    if trace is None:
        return before
    known = before["timestamp"] if before is not None else None
    return {"timestamp": known, "trace": trace[-_TRACE_LIMIT:], "is_now": True}


def _key(of: str | TaskId) -> str:
    return f"connector {of}" if isinstance(of, str) else str(of)


def _counted(counts: TaskCounts) -> Counts:
    is_source = counts.kind == "source"
    return {
        "in": counts.source_record_poll_total if is_source else counts.sink_record_read_total,
        "out": counts.source_record_write_total if is_source else counts.sink_record_send_total,
        "lag": counts.record_lag,
        "skipped": counts.errors.total_records_skipped,
    }
