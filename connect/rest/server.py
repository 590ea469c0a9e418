"""Listens, authenticates requests, and turns every error into Kafka Connect's error body.

Kafka Connect's settings say how the interface is served:

    listeners=https://0.0.0.0:8083
    listeners.https.ssl.keystore.location=certificates/worker.pem

What begins with `listeners.https.` counts alone; where nothing does, the worker's own `ssl.`
settings count, as in Kafka Connect.
"""

import asyncio
import base64
import binascii
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from common.credentials.translation import ClientSettingsError
from common.http.bodies import reading_bodies
from common.http.guarding import guarding, letting_pages_read
from common.http.security import OPEN, SERVER_SETTINGS, HttpSecurity, of_settings
from common.http.serving import Site, runner_of
from common.http.site_guard import Refusal, SiteGuard, names_of, parse_names
from connect.definitions.concealing import places
from connect.herder import requests
from connect.herder.names import ElsewhereError, RefusalError
from connect.herder.offsets import Offsets, read_offsets
from connect.rest.admin import STARTING, Admin
from connect.rest.bodies import BODY_LIMIT_BYTES, answer, json_body, refusal
from connect.rest.connectors import Connectors
from connect.rest.desk import Alone, Desk
from connect.rest.forwarding import Internal, ToOthers, is_internal
from connect.rest.page import Page
from connect.rest.plugins import ConnectorPlugins
from connect.worker.client_settings import with_prefix
from connect.worker.distributed import Cluster
from connect.worker.offsets.requests import change_offsets, shown_offsets
from connect.worker.settings import WorkerSettings
from connect.worker.topic_log import TooLargeError
from connect.worker.worker import Worker
from millstream.connect.errors import ConfigException, ConnectException

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_OPEN_PATHS: Final = ("/health", "/health/live", "/health/ready")
_DEFAULT_PORT: Final = 8083
_ANY_HOST: Final = ("", "0.0.0.0", "::")


class RestServer:
    """Owns the listening socket. The address is known before the worker is made."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Raises ConfigException for an invalid address or invalid credentials."""
        self._settings = settings
        self._host, self._port = _address(settings["listeners"])
        self.security = rest_security(settings)
        self._credentials = _credentials(settings)
        self._socket: socket.socket | None = None
        self._runner: web.AppRunner | None = None
        self._worker: Worker | None = None

    async def listen(self) -> None:
        """Bind the port. Raises OSError when it is in use."""
        self._socket = socket.create_server((self._host, self._port))
        self._port = self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{self.security.scheme}://{self._host}:{self._port}"

    @property
    def advertised(self) -> str:
        """The address for other workers, as `host:port`; it is the worker's id."""
        host = self._settings["rest.advertised.host.name"] or self._host
        if host in _ANY_HOST:
            host = socket.gethostname()
        return f"{host}:{self._settings['rest.advertised.port'] or self._port}"

    async def start(self, worker: Worker, cluster: Cluster | None = None) -> None:
        """Start to answer requests."""
        assert self._socket is not None, "listen first"
        self._worker = worker
        desk = Desk(worker, Alone() if cluster is None else ToOthers(cluster))
        guard = self._guard()
        app = web.Application(
            middlewares=[guarding(guard, _refuse), self._answer, reading_bodies()],
            client_max_size=BODY_LIMIT_BYTES,
        )
        app.on_response_prepare.append(letting_pages_read(guard))
        for resource in (Connectors, ConnectorOffsets, ConnectorPlugins, Admin, Page):
            app.add_routes(_with_slashes(resource(desk).routes()))
        if cluster is not None:
            app.add_routes(Internal(desk, cluster).routes())
        self._runner = runner_of(app, security=self.security)
        await self._runner.setup()
        await Site(self._runner, self._socket).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        elif self._socket is not None:
            self._socket.close()

    def _guard(self) -> SiteGuard:
        advertised = self._settings["rest.advertised.host.name"]
        return SiteGuard(
            allowed_hosts=parse_names(",".join(self._settings["allowed.hosts"])),
            allowed_origins=parse_names(self._settings["access.control.allow.origin"]),
            own_names=names_of(self._host, advertised),
            hosts_setting="allowed.hosts",
            origins_setting="access.control.allow.origin",
        )

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._is_allowed(request):
            denied = refusal(401, "User cannot access the resource.")
            denied.headers["WWW-Authenticate"] = 'Basic realm="millstream connect"'
            return denied
        if not self._may_answer(request):
            return refusal(503, STARTING)
        try:
            return await handler(request)
        # The outermost edge of a request.
        except Exception as error:  # noqa: BLE001 - what is a bug is logged and answers 500
            return _error(request, error)

    def _may_answer(self, request: web.Request) -> bool:
        """Return False for connectors while the worker does not know which there are."""
        is_ready = self._worker is None or self._worker.is_ready
        is_of_connectors = request.path.startswith("/connectors")
        return is_ready or not is_of_connectors or is_internal(request)

    def _is_allowed(self, request: web.Request) -> bool:
        if not self._credentials or request.path in _OPEN_PATHS or is_internal(request):
            return True
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            pair = base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            return False
        matches = [hmac.compare_digest(pair, each) for each in self._credentials]
        return any(matches)


def _refuse(_: web.Request, refused: Refusal) -> web.Response:
    return refusal(refused.status, refused.detail)


def _with_slashes(routes: list[web.RouteDef]) -> list[web.RouteDef]:
    """Serve every path with a slash at its end too, as Kafka Connect does."""
    more = [
        web.RouteDef(each.method, f"{each.path}/", each.handler, each.kwargs)
        for each in routes
        if each.path != "/"
    ]
    return [*routes, *more]


def _error(request: web.Request, error: Exception) -> web.Response:
    match error:
        case RefusalError():
            return refusal(error.status, str(error))
        case ElsewhereError():
            return refusal(409, str(error))
        case TooLargeError():
            return refusal(413, str(error))
        case ConfigException() | ConnectException():
            log.warning("request failed path=%s error=%s", request.path, error)
            return refusal(500, str(error))
        case web.HTTPException():
            phrase = HTTPStatus(error.status).phrase
            answered = refusal(error.status, f"HTTP {error.status} {phrase}")
            if "Allow" in error.headers:
                answered.headers["Allow"] = error.headers["Allow"]
            return answered
        case _:
            log.error("request failed path=%s\n%s", request.path, places(error))
            return refusal(500, "an error of the worker itself")


def _address(listeners: list[str]) -> tuple[str, int]:
    if len(listeners) != 1:
        raise ConfigException.of_value("listeners", listeners, "give one: http://host:port")
    parts = urlsplit(listeners[0])
    try:
        port = parts.port
    except ValueError as error:
        raise ConfigException.of_value("listeners", listeners[0], str(error)) from error
    if parts.scheme.lower() not in ("http", "https"):
        raise ConfigException.of_value("listeners", listeners[0], "http or https is served")
    return parts.hostname or "0.0.0.0", _DEFAULT_PORT if port is None else port


def _credentials(settings: WorkerSettings) -> list[bytes]:
    said = settings["rest.basic.auth.credentials"]
    if said is None:
        return []
    pairs = [pair.strip() for pair in said.value.split(",") if pair.strip()]
    if not pairs or not all(":" in pair for pair in pairs):
        raise ConfigException("rest.basic.auth.credentials has to say user:password")
    return [pair.encode() for pair in pairs]


class ConnectorOffsets:
    """The resource for a connector's offsets."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        path = "/connectors/{connector}/offsets"
        return [
            web.get(path, self.show),
            web.patch(path, self.alter),
            web.delete(path, self.reset),
        ]

    async def show(self, request: web.Request) -> web.Response:
        name = request.match_info["connector"]
        config = requests.connector_config(self._desk.herder, name)
        environment = self._desk.worker.environment
        try:
            return answer(await asyncio.to_thread(shown_offsets, environment, name, config))
        except ConnectException as error:
            raise RefusalError(500, str(error)) from error

    async def alter(self, request: web.Request) -> web.StreamResponse:
        return await self._change(request, read_offsets(await json_body(request)))

    async def reset(self, request: web.Request) -> web.StreamResponse:
        return await self._change(request, None)

    async def _change(self, request: web.Request, offsets: Offsets | None) -> web.StreamResponse:
        name, herder = request.match_info["connector"], self._desk.herder
        elsewhere = await self._desk.here_or_there(
            request, lambda: requests.check_offsets_may_change(herder, name)
        )
        if elsewhere is not None:
            return elsewhere
        worker = self._desk.worker
        await worker.prepare_offsets_change(name)
        config = requests.connector_config(herder, name)
        try:
            message = await asyncio.to_thread(
                change_offsets, worker.environment, name, config, offsets
            )
        except ConnectException as error:
            raise RefusalError(500, str(error)) from error
        return answer({"message": message})


_PREFIX: Final = "listeners.https."


def rest_security(settings: WorkerSettings) -> HttpSecurity:
    """Return the security of the listener. Raises ConfigException."""
    listener = ",".join(settings["listeners"])
    if urlsplit(listener).scheme.lower() != "https":
        return OPEN
    own = with_prefix(settings.written, _PREFIX) or {
        name: value for name, value in settings.written.items() if name in SERVER_SETTINGS
    }
    try:
        found = of_settings({name: value or "" for name, value in own.items()}, "listeners.https")
    except ClientSettingsError as error:
        raise ConfigException(str(error)) from None
    if not found.has_tls:
        raise ConfigException(f"listeners={listener} needs {_PREFIX}ssl.keystore.location")
    return found
