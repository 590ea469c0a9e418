"""What all resources use: the worker, its plugins, and the forwarding to other workers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from aiohttp import web

from connect.definitions import secrets
from connect.definitions.concealing import Concealing
from connect.definitions.plugin_errors import concealed
from connect.definitions.validation import kind_of, require_valid, validate, version_of
from connect.herder import requests
from connect.herder.herder import Herder
from connect.herder.names import ElsewhereError, RefusalError
from connect.local_files import file_mistakes
from connect.worker.override_policy import override_policy
from connect.worker.worker import Worker

T = TypeVar("T")

_AT_REST: Final = ("PAUSED", "STOPPED")
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")


class Forwarding(Protocol):
    """Forwards requests to another worker."""

    async def forward(self, request: web.Request, url: str | None) -> web.Response:
        """Raises RefusalError when no worker is known or the request was forwarded twice."""

    async def ask_all(self, request: web.Request, path: str) -> list[Any]:
        """Ask the other workers of the group; those that do not answer are left out."""


class Alone:
    """The forwarding of a standalone worker, which refuses."""

    async def forward(self, request: web.Request, url: str | None) -> web.Response:
        del request, url
        raise RefusalError(409, "The worker is stopping.")

    async def ask_all(self, request: web.Request, path: str) -> list[Any]:
        del request, path
        return []


class Desk:
    """Owns no state; it acts through the worker."""

    def __init__(self, worker: Worker, forwarding: Forwarding) -> None:
        self.worker = worker
        self.plugins = worker.environment.plugins
        self._forwarding = forwarding
        self._policy = override_policy(worker.environment.settings)

    @property
    def herder(self) -> Herder:
        return self.worker.herder

    def kind(self, name: str) -> str:
        return kind_of(self.plugins, self.herder.config.connector_configs.get(name, {}))

    def info(self, name: str) -> dict[str, Any]:
        config = requests.connector_config(self.herder, name)
        shown = secrets.shown(self.plugins, config)
        return requests.info_body(self.herder, name, shown, self.kind(name))

    def status(self, name: str) -> dict[str, Any]:
        body = requests.status_body(self.herder, name, self.kind(name))
        connector = body["connector"]
        if connector["version"] is None and connector["state"] in _AT_REST:
            # The connector never ran here, so the worker has no version of it.
            config = self.herder.config.connector_configs.get(name, {})
            connector["version"] = version_of(self.plugins, config)
        return body

    async def validated(self, config: Mapping[str, str | None]) -> dict[str, Any]:
        """Validate a configuration in a thread, since plugins may block."""
        return await asyncio.to_thread(self._validated, config)

    def _validated(self, config: Mapping[str, str | None]) -> dict[str, Any]:
        environment = self.worker.environment
        variables = environment.variables(config)
        resolved = variables.filled(config)
        concealing = environment.concealing(config, variables)
        settings = environment.settings
        converters = {name: settings[name] for name in _CONVERTERS}
        with concealed(concealing, "the validation"):
            infos = validate(
                self.plugins,
                resolved,
                self._policy,
                converters,
                is_exactly_once=settings.is_exactly_once,
                wrong_files=file_mistakes,
            )
        written = Concealing(variables.written_for)
        return secrets.without_resolved(infos, config, resolved, written, concealing)

    async def require_valid(self, config: Mapping[str, str | None]) -> None:
        require_valid(await self.validated(config))

    async def ask_all(self, request: web.Request, path: str) -> list[Any]:
        """Ask the other workers of the group; those that do not answer are left out."""
        return await self._forwarding.ask_all(request, path)

    async def here_or_there(
        self, request: web.Request, decide: Callable[[], T]
    ) -> T | web.Response:
        """Return the result of `decide`, or the answer of the worker that can decide."""
        try:
            return decide()
        except ElsewhereError as elsewhere:
            return await self._forwarding.forward(request, elsewhere.url)
