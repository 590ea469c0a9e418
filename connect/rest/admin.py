"""/, /health, /metrics and /admin/loggers: the worker itself."""

import asyncio
import logging
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from aiohttp import web
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from common.http.front import is_wanted
from common.process.clock import timestamp_ms
from common.process.tasks import spawn
from connect.herder.config_records import logger_record
from connect.herder.names import bad_request, not_found
from connect.rest.bodies import answer, object_body
from connect.rest.desk import Desk
from connect.rest.metrics import ConnectMetrics
from connect.rest.page import page_response
from connect.worker import loggers
from connect.worker.client_settings import ADMIN_SETTINGS, librdkafka_settings
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_HEALTHY: Final = "Worker has completed startup and is ready to handle requests."
STARTING: Final = "Worker is still starting up."
_UNHEALTHY: Final = (
    "Worker was unable to handle this request and may be unable to handle other requests."
)
_HEALTH_SECONDS: Final = 10.0
_CLUSTER_ID_SECONDS: Final = 5.0


def _version() -> str:
    try:
        return version("millstream")
    except PackageNotFoundError:
        return "unknown"


class Admin:
    """The resource for the worker itself."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._cluster_id: str | None = None
        self._check: asyncio.Future[None] | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(ConnectMetrics(desk.worker))

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.show_root),
            web.get("/health", self.show_health),
            web.get("/health/live", self.show_live),
            web.get("/health/ready", self.show_ready),
            web.get("/metrics", self.show_metrics),
            web.get("/admin/loggers", self.show_loggers),
            web.get("/admin/loggers/{logger}", self.show_logger),
            web.put("/admin/loggers/{logger}", self.set_logger),
        ]

    async def show_root(self, request: web.Request) -> web.Response:
        """Answer browsers with the page, and other clients with Kafka Connect's body."""
        if is_wanted(request.headers.get("Accept")):
            return page_response(self._desk.worker.is_ready)
        return await self.show_server(request)

    async def show_server(self, request: web.Request) -> web.Response:
        if self._cluster_id is None:
            self._cluster_id = await asyncio.to_thread(self._ask_cluster_id)
        return answer(
            {"version": _version(), "commit": "millstream", "kafka_cluster_id": self._cluster_id}
        )

    def _ask_cluster_id(self) -> str | None:
        settings = self._desk.worker.environment.settings
        try:
            client = {**librdkafka_settings(settings.client()), "log_level": "2"}
            admin = AdminClient({**ADMIN_SETTINGS, **client})
            return admin.list_topics(timeout=_CLUSTER_ID_SECONDS).cluster_id
        except KafkaException:
            # The brokers are unreachable; the next request tries again.
            return None

    async def show_health(self, request: web.Request) -> web.Response:
        if not self._desk.worker.is_ready:
            return answer({"status": "starting", "message": STARTING}, 503)
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                await self._require_health()
        except (ConnectException, TimeoutError) as error:
            log.warning("worker is not healthy error=%r", error)
            return answer({"status": "unhealthy", "message": _UNHEALTHY}, 500)
        return answer({"status": "healthy", "message": _HEALTHY})

    async def _require_health(self) -> None:
        """Share one check among all waiting requests: unreachable brokers block a thread."""
        if self._check is None or self._check.done():
            self._check = spawn(self._desk.worker.require_health())
        await asyncio.shield(self._check)

    async def show_live(self, request: web.Request) -> web.Response:
        return answer({"status": "live"})

    async def show_ready(self, request: web.Request) -> web.Response:
        if not self._desk.worker.is_ready:
            return answer({"status": "starting"}, 503)
        return answer({"status": "ready"})

    async def show_metrics(self, request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    # --- loggers ---

    async def show_loggers(self, request: web.Request) -> web.Response:
        return answer(loggers.all_levels())

    async def show_logger(self, request: web.Request) -> web.Response:
        name = request.match_info["logger"]
        level = loggers.level_of(name)
        if level is None:
            raise not_found(f"Logger {name} not found.")
        return answer(level)

    async def set_logger(self, request: web.Request) -> web.Response:
        name = request.match_info["logger"]
        level = (await object_body(request)).get("level")
        if level is None:
            raise bad_request("Desired 'level' parameter was not specified in request.")
        if not isinstance(level, str) or level.upper() not in loggers.LEVELS:
            raise not_found(f"invalid log level '{level}'.")
        if request.query.get("scope", "worker").lower() == "cluster":
            await self._set_everywhere(name, level.upper())
            return web.Response(status=204)
        return answer(loggers.set_level(name, level, timestamp_ms()))

    async def _set_everywhere(self, name: str, level: str) -> None:
        worker = self._desk.worker
        await worker.write([logger_record(name, level)])
