"""Apache Kafka Connect's worker, run from its jars, to compare with Millstream's."""

import subprocess
from pathlib import Path
from typing import Self

from millstream.processes.cluster_layout import free_ports
from tests.lib.connect_worker import WORKER_SETTINGS, ConnectWorker, eventually
from tests.lib.java import archive_listed, fetched_libs, java_that_lists

_START_SECONDS = 90


def connect_libs() -> Path:
    """Return the folder of the jars; skip the test if they cannot be had."""
    return fetched_libs("connect", "connect-runtime-*.jar")


class ApacheWorker(ConnectWorker):
    """Apache's worker, with the same settings; distributed if they contain a group."""

    def __init__(self, folder: Path, settings: dict[str, str], libs: Path, name: str) -> None:
        port = next(free_ports())
        own = {
            "listeners": f"http://127.0.0.1:{port}",
            "rest.advertised.host.name": "127.0.0.1",
            "plugin.discovery": "service_load",
        }
        super().__init__(folder, {**WORKER_SETTINGS, **settings, **own}, name=name)
        self._port = port
        mode = "ConnectDistributed" if "group.id" in settings else "ConnectStandalone"
        main = f"org.apache.kafka.connect.cli.{mode}"
        properties = str(folder / f"{name}.properties")
        self._libs, self._listed = libs, folder / f"{name}.classes"
        self._command = [*java_that_lists(libs, self._listed, "-Xmx256m"), main, properties]

    def start(self) -> Self:
        with self._log_path.open("a") as log:
            # The worker logs to its output: a pipe without a reader would block it for ever.
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, text=True)
        eventually(self._is_up, _START_SECONDS)
        return self

    def stop(self) -> int:
        status = super().stop()
        archive_listed(self._libs, self._listed)
        return status

    def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        try:
            return self.call("GET", "/connectors").status == 200
        except OSError:
            return False
