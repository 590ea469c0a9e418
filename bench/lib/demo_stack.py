"""The demo as a load to measure under: all its processes, with the CPU time and memory of each.

The demo runs in its own folder, starts with a few orders and then serves; a benchmark sends more.
Processes are named by the module they run; Spark's Java and Python workers are separate.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.lib.ports import free_ports
from bench.lib.servers import CLOCK_TICKS, ROOT
from demo.pipeline.analytics import PROGRAMS
from demo.pipeline.brokers import NODE_IDS
from demo.pipeline.services import SERVICES
from tests.lib.process_tree import processes_below
from tests.lib.waiting import until

REGISTRY, ORDERS = 1, 2  # the distance of each from the first port
STREAMS, _, DASHBOARD = (ORDERS + len(SERVICES) + place for place in range(len(PROGRAMS)))
PORTS = DASHBOARD + 3 * len(NODE_IDS) + 1  # and Connect's worker
_READY_SECONDS = 300.0
_STOP_SECONDS = 60.0


class DemoStack:
    """A demo from start to end, on its own or given brokers; its output is in `log`."""

    def __init__(
        self, *, lite: bool = False, warm_up_orders: int = 100, bootstrap: str = ""
    ) -> None:
        (ROOT / "build").mkdir(exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="bench-demo-", dir=ROOT / "build")
        self.log = Path(self._folder.name) / "demo.log"
        self._first_port = free_ports(PORTS)
        self._arguments = ["--count", str(warm_up_orders), "--rate", "20"]
        self._arguments += ["--ports", str(self._first_port), *(["--lite"] if lite else [])]
        self._arguments += ["--bootstrap", bootstrap] if bootstrap else []
        self.started_at = 0.0

    def __enter__(self) -> Self:
        self.started_at = time.monotonic()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "millstream", "demo", *self._arguments],
                cwd=self._folder.name,
                env={**os.environ, "PYTHONPATH": str(ROOT), "ONCE": "", "LITE": ""},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(_STOP_SECONDS)
        if error is not None:
            sys.stderr.write(self.log.read_text())
        self._folder.cleanup()

    def url(self, place: int) -> str:
        """Return the address of a program."""
        return f"http://127.0.0.1:{self._first_port + place}"

    @property
    def bootstrap(self) -> str:
        """Return the bootstrap servers of the demo's own brokers."""
        ports = [self._first_port, *(self._first_port + DASHBOARD + n for n in (1, 2))]
        return ",".join(f"127.0.0.1:{port}" for port in ports)

    def broker_pid(self, node_id: int) -> int:
        """Return the process id of one of the demo's own brokers."""
        below = processes_below(self._process.pid)
        (found,) = (pid for pid, words in below.items() if f"node.id={node_id}" in words)
        return found

    def wait_until_serving(self) -> None:
        """Wait until the first orders are processed."""
        until(
            lambda: self._is_serving() or self._process.poll() is not None,
            _READY_SECONDS,
            shown=self.log.read_text,
        )
        if not self._is_serving():
            raise RuntimeError(f"the demo does not serve:\n{self.log.read_text()}")

    def _is_serving(self) -> bool:
        return "serving until" in self.log.read_text()

    def accepted_orders(self) -> int:
        """Return how many of the first orders were accepted."""
        report = Path(self._folder.name) / "build/demo/report.json"
        return int(json.loads(report.read_text())["accepted"])

    def get(self, place: int, path: str) -> Any:
        """Return a JSON answer, None if there is none yet."""
        try:
            with urllib.request.urlopen(self.url(place) + path, timeout=30) as response:
                return json.loads(response.read())
        except urllib.error.URLError:
            return None

    def spark_log(self) -> str:
        """Return the log of the streaming job."""
        return (Path(self._folder.name) / "build/demo/logs/spark.log").read_text()

    def processes(self) -> dict[int, str]:
        """Return the demo and all its descendants: process id -> name."""
        below = processes_below(self._process.pid)
        named = {pid: _name(words) for pid, words in below.items()}
        return {self._process.pid: "demo", **named}

    def cpu_seconds(self) -> Mapping[str, float]:
        """Return the CPU time used so far, by name."""
        used: defaultdict[str, float] = defaultdict(float)
        for pid, name in self.processes().items():
            fields = _stat(pid)
            used[name] += (int(fields[11]) + int(fields[12])) / CLOCK_TICKS if fields else 0
        return used

    def memory_bytes(self) -> Mapping[str, int]:
        """Return proportional memory (pages shared by n processes count 1/n in each), by name."""
        used: Counter[str] = Counter()
        for pid, name in self.processes().items():
            used[name] += _proportional_bytes(pid)
        return used


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _name(words: list[str]) -> str:
    """Return the name of a process, from its command."""
    module = words[words.index("-m") + 1] if "-m" in words else ""
    if Path(words[0]).name == "java":
        return "spark: java"
    if module.startswith("pyspark.") or "pyspark/daemon" in " ".join(words):
        return "spark: python workers"
    if "schemas.registry.judging.process" in words:
        return "schemas.registry: judging"
    return {"spark_analytics.jobs": "spark: driver in python"}.get(module, module)


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = [line for line in lines if line.startswith("Pss:")]
    return int(found[0].split()[1]) * 1024 if found else 0
