"""The cluster that the console shows: its clients, its registry, and answers kept for a moment.

Records are read by a client on the event loop. Everything else is asked by the admin client, which
blocks: it runs in threads, each with connections of its own.
"""

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar, cast

from common.credentials.access import KafkaAccess
from common.kafka.admin import groups
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.client.cluster import KafkaClient
from common.kafka.client.exchange import parse_addresses
from common.process.clock import now_seconds
from common.process.tasks import spawn
from console.group_lags import Positions, group_positions
from console.reading.schemas import SchemaShelf
from console.settings import ConsoleSettings
from rest_proxy.schema_store import SchemaStore

CLIENT_ID: Final = "millstream-console"
_THREADS: Final = 6
_REQUEST_MS: Final = 5_000
_API_MS: Final = 8_000
_FRESH_SECONDS: Final = 2.0
_MAX_KEPT_ANSWERS: Final = 50
_MAX_GROUPS: Final = 200

P = ParamSpec("P")
T = TypeVar("T")


class AdminThreads:
    """Runs functions of `common.kafka.admin` in threads, each with a client of its own."""

    def __init__(self, settings: AdminSettings) -> None:
        self._settings = settings
        self._executor = ThreadPoolExecutor(_THREADS, "admin")
        self._lock = threading.Lock()
        self._idle: list[AdminClient] = []

    async def run(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return what a function of a client and further arguments returns."""
        loop = asyncio.get_running_loop()
        call = partial(self._call, partial(function, **named), arguments)
        return await loop.run_in_executor(self._executor, call)

    def _call(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        with self._lock:
            client = self._idle.pop() if self._idle else AdminClient(self._settings)
        try:
            return function(client, *arguments)
        finally:
            with self._lock:
                self._idle.append(client)

    def close(self) -> None:
        """Close the connections; calls that wait for an answer end with their time."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for client in self._idle:
                client.close()


class Cluster:
    """Owns the clients."""

    def __init__(self, settings: ConsoleSettings) -> None:
        """Make the clients, none of which connects yet. Raise KafkaError, ClientSettingsError."""
        access = settings.kafka
        addresses = parse_addresses(access.bootstrap_servers, default_port=9092)
        self.admin = AdminThreads(
            AdminSettings(
                bootstrap=addresses,
                client_id=CLIENT_ID,
                request_timeout_ms=_REQUEST_MS,
                api_timeout_ms=_API_MS,
                first_contact_timeout_ms=_REQUEST_MS,
                security=access.security,
            )
        )
        self.client = client_of(access)
        store = None
        if settings.schema_registry:
            store = SchemaStore(settings.schema_registry, now_seconds, access.registry)
        self.shelf = SchemaShelf(store, now_seconds)
        self._kept: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    async def fresh(self, function: Callable[..., T], *arguments: Hashable, **named: Any) -> T:
        """Return what `admin.run` returns, or what it returned to somebody a moment ago."""
        key = (function, *arguments, *named.items())
        now = now_seconds()
        kept = self._kept.get(key)
        if kept is None or now - kept[0] > _FRESH_SECONDS:
            kept = self._kept[key] = (now, spawn(self.admin.run(function, *arguments, **named)))
            while len(self._kept) > _MAX_KEPT_ANSWERS:
                del self._kept[next(iter(self._kept))]
        try:
            return cast("T", await asyncio.shield(kept[1]))
        except Exception:
            self._kept.pop(key, None)
            raise

    async def positions(self) -> dict[str, Positions]:
        """Return where the first groups are; those of more are asked for where they are shown."""
        listed = (await self.fresh(groups.list_groups))[:_MAX_GROUPS]
        return await self.fresh(group_positions, tuple(listed))

    def forget(self) -> None:
        """Ask anew for everything: something was changed."""
        self._kept.clear()

    async def close(self) -> None:
        """Close all connections."""
        self.admin.close()
        await asyncio.gather(self.client.close(), self.shelf.close())


def client_of(access: KafkaAccess, request_ms: int = _REQUEST_MS) -> KafkaClient:
    """Return a client with connections of its own."""
    return KafkaClient(
        access.bootstrap_servers,
        access.security,
        client_id=CLIENT_ID,
        request_timeout_ms=request_ms,
    )
