"""Follows the serving store and notifies the event streams of new snapshots.

The feed checks a few times a second whether the store was written (`PRAGMA data_version` takes
microseconds); only a new revision is read, once for all browsers.
"""

import asyncio
import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from common.process import clock
from spark_analytics.serving.layout import connect_reader
from spark_analytics.serving.reader import ServingReader

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
STALE_MS = 5_000


def badge(properties: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """Return the badge: waiting for the job, live, or stale with the time since the last heartbeat.

    The job writes heartbeats only while it reaches Kafka.
    """
    heartbeat_ms = properties.get("heartbeat_ms")
    if heartbeat_ms is None:
        return {"state": "waiting", "age_ms": None}
    age_ms = max(now_ms - int(heartbeat_ms), 0)
    return {"state": "live" if age_ms <= STALE_MS else "stale", "age_ms": age_ms}


class Feed:
    """The newest snapshot, and a condition that is notified of each newer one."""

    def __init__(self, store: Path, metrics: CollectorRegistry) -> None:
        self.snapshot: str | None = None
        self.revision = -1
        self.changed = asyncio.Condition()
        self.reader: ServingReader | None = None
        self._store = store
        self._properties: dict[str, Any] = {}
        self._metric = Gauge(
            "millstream_dashboard_revision", "Revision of the store that is shown", registry=metrics
        )

    @property
    def badge(self) -> dict[str, Any]:
        return badge(self._properties, clock.timestamp_ms())

    async def run(self) -> None:
        """Follow the store until cancelled; wait for it if it does not exist yet."""
        while True:
            try:
                await self._look()
            except sqlite3.Error as error:
                log.warning("store cannot be read now error=%r", error)
                self._disconnect()
            await asyncio.sleep(POLL_SECONDS)

    async def _look(self) -> None:
        if self.reader is None:
            connection = connect_reader(self._store)
            if connection is None:
                return
            self.reader = ServingReader(connection)
        self._properties = self.reader.properties()
        revision = self._properties.get("revision", 0)
        if revision == self.revision and self.snapshot is not None:
            return
        snapshot = await asyncio.to_thread(self.reader.snapshot)
        async with self.changed:
            self.snapshot = json.dumps(snapshot, separators=(",", ":"))
            self.revision = snapshot["revision"]
            self._metric.set(self.revision)
            self.changed.notify_all()

    def _disconnect(self) -> None:
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.close()

    async def wait_newer(self, revision: int, timeout_seconds: float) -> bool:
        """Wait for another snapshot than this one; return False after the timeout."""
        try:
            async with asyncio.timeout(timeout_seconds), self.changed:
                await self.changed.wait_for(lambda: self.revision != revision)
        except TimeoutError:
            return False
        return True
