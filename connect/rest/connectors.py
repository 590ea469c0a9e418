"""/connectors: create, change, show, pause, stop, restart and delete connectors."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web

from connect.connector_file import read_initial_state
from connect.definitions import secrets
from connect.definitions.concealing import HIDDEN, Concealing
from connect.definitions.connector import CLASS
from connect.herder import requests
from connect.herder.config_records import Config, RestartRequest
from connect.herder.names import RefusalError, TargetState, TaskId, bad_request, not_found
from connect.rest.bodies import answer, config_of, flag, object_body
from connect.rest.desk import Desk
from millstream.connect.config.types import BLANKS
from millstream.connect.errors import ConfigException

_FIELDS: Final = ("name", "config", "initial_state")
_WHOLE: Final = re.compile(r"-?[0-9]{1,9}")


class Connectors:
    """The resource for connectors and their tasks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        one = "/connectors/{connector}"
        return [
            web.get("/connectors", self.show_all),
            web.post("/connectors", self.create),
            web.get(one, self.show),
            web.delete(one, self.delete),
            web.get(f"{one}/config", self.show_config),
            web.put(f"{one}/config", self.put_config),
            web.patch(f"{one}/config", self.patch_config),
            web.get(f"{one}/status", self.show_status),
            web.get(f"{one}/tasks", self.show_tasks),
            web.get(f"{one}/tasks/{{task}}/status", self.show_task_status),
            web.post(f"{one}/tasks/{{task}}/restart", self.restart_task),
            web.post(f"{one}/restart", self.restart),
            web.put(f"{one}/pause", self.pause),
            web.put(f"{one}/resume", self.resume),
            web.put(f"{one}/stop", self.stop),
            web.get(f"{one}/topics", self.show_topics),
            web.put(f"{one}/topics/reset", self.reset_topics),
        ]

    # --- shown ---

    async def show_all(self, request: web.Request) -> web.Response:
        names = self._desk.herder.config.connectors()
        expansions = request.query.getall("expand", [])
        if not expansions:
            return answer(names)
        shown: dict[str, Any] = {}
        for name in names:
            try:
                shown[name] = self._expanded(name, expansions)
            except RefusalError:
                # The connector has no status yet.
                continue
        return answer(shown)

    def _expanded(self, name: str, expansions: list[str]) -> dict[str, Any]:
        by_name = {"status": self._desk.status, "info": self._desk.info}
        return {each: by_name[each](name) for each in expansions if each in by_name}

    async def show(self, request: web.Request) -> web.Response:
        return answer(self._desk.info(_name(request)))

    async def show_config(self, request: web.Request) -> web.Response:
        config = requests.connector_config(self._desk.herder, _name(request))
        return answer(secrets.shown(self._desk.plugins, config))

    async def show_status(self, request: web.Request) -> web.Response:
        return answer(self._desk.status(_name(request)))

    async def show_tasks(self, request: web.Request) -> web.Response:
        name = _name(request)
        configs = enumerate(self._task_configs(name))
        return answer(
            [
                {"id": {"connector": name, "task": number}, "config": config}
                for number, config in configs
            ]
        )

    def _task_configs(self, name: str) -> list[dict[str, str | None]]:
        """Return the tasks' settings; the connector's secrets are hidden in them, too."""
        herder = self._desk.herder
        of_connector = requests.connector_config(herder, name)
        of_class = {CLASS: of_connector.get(CLASS)}
        plugins = self._desk.plugins
        concealing = Concealing(dict.fromkeys(secrets.values(plugins, of_connector), HIDDEN))
        shown = [
            (config, concealing.all(secrets.shown(plugins, {**config, **of_class})))
            for config in herder.config.task_configs(name)
        ]
        return [{key: seen.get(key) for key in config} for config, seen in shown]

    async def show_task_status(self, request: web.Request) -> web.Response:
        return answer(requests.task_status_body(self._desk.herder, _task(request)))

    # --- changed ---

    async def create(self, request: web.Request) -> web.StreamResponse:
        body = await object_body(request)
        _require_known(body)
        name = str(body.get("name") or "").strip(BLANKS)
        config = requests.named_config(name, config_of(body.get("config")))
        try:
            state = read_initial_state(body.get("initial_state"))
        except ConfigException as error:
            raise bad_request(str(error)) from error
        await self._desk.require_valid(config)
        return await self._put(request, name, config, state, may_replace=False)

    async def put_config(self, request: web.Request) -> web.StreamResponse:
        name = _name(request)
        config = requests.named_config(name, config_of(await object_body(request)))
        before = self._desk.herder.config.connector_configs.get(name, {})
        config = secrets.kept(self._desk.plugins, before, config)
        await self._desk.require_valid(config)
        return await self._put(request, name, config, None, may_replace=True)

    async def patch_config(self, request: web.Request) -> web.StreamResponse:
        name = _name(request)
        patch = config_of(await object_body(request))

        def patched() -> Config:
            return requests.patched_config(self._desk.herder, name, patch)

        config = await self._desk.here_or_there(request, patched)
        if isinstance(config, web.Response):
            return config
        requests.named_config(name, config)
        before = self._desk.herder.config.connector_configs.get(name, {})
        config = secrets.patched(self._desk.plugins, before, config, patch)
        await self._desk.require_valid(config)
        return await self._put(request, name, config, None, may_replace=True)

    async def _put(
        self,
        request: web.Request,
        name: str,
        config: Config,
        state: TargetState | None,
        *,
        may_replace: bool,
    ) -> web.StreamResponse:
        is_new = not self._desk.herder.is_configured(name)
        records = await self._desk.here_or_there(
            request,
            lambda: requests.put_config(
                self._desk.herder, name, config, target_state=state, may_replace=may_replace
            ),
        )
        if isinstance(records, web.Response):
            return records
        await self._desk.worker.write(records)
        location = str(request.url.origin()) + f"/connectors/{quote(name, safe='')}"
        made = {"Location": location} if is_new else {}
        return answer(self._desk.info(name), 201 if is_new else 200, **made)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        name = _name(request)
        return await self._written(request, lambda: requests.delete(self._desk.herder, name), 204)

    async def stop(self, request: web.Request) -> web.StreamResponse:
        name = _name(request)
        return await self._written(request, lambda: requests.stop(self._desk.herder, name), 204)

    async def pause(self, request: web.Request) -> web.StreamResponse:
        return await self._set_paused(request, is_paused=True)

    async def resume(self, request: web.Request) -> web.StreamResponse:
        return await self._set_paused(request, is_paused=False)

    async def _set_paused(self, request: web.Request, *, is_paused: bool) -> web.StreamResponse:
        name, herder = _name(request), self._desk.herder
        return await self._written(
            request, lambda: requests.set_paused(herder, name, is_paused=is_paused), 202
        )

    async def _written(self, request: web.Request, decide: Any, status: int) -> web.StreamResponse:
        records = await self._desk.here_or_there(request, decide)
        if isinstance(records, web.Response):
            return records
        await self._desk.worker.write(records)
        return web.Response(status=status)

    # --- restarted ---

    async def restart(self, request: web.Request) -> web.StreamResponse:
        name, herder = _name(request), self._desk.herder
        wanted = RestartRequest(name, flag(request, "includeTasks"), flag(request, "onlyFailed"))
        if not wanted.include_tasks and not wanted.only_failed:
            owner = self._desk.worker.owner_url(name)
            done = await self._desk.here_or_there(
                request, lambda: requests.restart_connector(herder, name, owner)
            )
            self._desk.worker.pump()
            return web.Response(status=204) if done is None else done
        planned = await self._desk.here_or_there(
            request, lambda: requests.restart(herder, wanted, self._desk.kind(name))
        )
        if isinstance(planned, web.Response):
            return planned
        records, body = planned
        await self._desk.worker.write(records)
        return answer(body, 202)

    async def restart_task(self, request: web.Request) -> web.StreamResponse:
        task, herder = _task(request), self._desk.herder
        owner = self._desk.worker.owner_url(task)
        done = await self._desk.here_or_there(
            request, lambda: requests.restart_task(herder, task, owner)
        )
        self._desk.worker.pump()
        return web.Response(status=204) if done is None else done

    # --- topics ---

    async def show_topics(self, request: web.Request) -> web.Response:
        self._require_tracking()
        return answer(requests.topics_body(self._desk.herder, _name(request)))

    async def reset_topics(self, request: web.Request) -> web.Response:
        self._require_tracking()
        if not self._desk.worker.environment.settings["topic.tracking.allow.reset"]:
            raise RefusalError(403, "Topic tracking reset is disabled.")
        records = requests.reset_topics(self._desk.herder, _name(request))
        await self._desk.worker.write_status(records)
        return web.Response(status=202)

    def _require_tracking(self) -> None:
        if not self._desk.worker.environment.settings["topic.tracking.enable"]:
            raise RefusalError(403, "Topic tracking is disabled.")


def _require_known(body: Mapping[str, Any]) -> None:
    """Raises RefusalError for an unknown field, which may be a misspelt one."""
    unknown = sorted(body.keys() - set(_FIELDS))
    if unknown:
        raise bad_request(
            f"Unknown field {unknown[0][:200]!r}: a connector is made of {', '.join(_FIELDS)}"
        )


def _name(request: web.Request) -> str:
    return request.match_info["connector"]


def _task(request: web.Request) -> TaskId:
    number = request.match_info["task"]
    if not _WHOLE.fullmatch(number):
        raise not_found("HTTP 404 Not Found")
    return TaskId(_name(request), int(number))
