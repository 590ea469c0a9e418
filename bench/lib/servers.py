"""The two servers that are measured side by side, ours and Apache Kafka's, with one interface."""

import os
import shutil
import subprocess
import tempfile
import time
from abc import abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from bench.lib.ports import free_port

ROOT = Path(__file__).parent.parent.parent
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

SETTINGS = {
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "log.segment.bytes": "1073741824",
    "log.retention.ms": "-1",
}
JAVA_OPTIONS = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)


class Server(Protocol):
    """One node in its own folder."""

    name: str
    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    started_at: float

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command of the server process."""

    def prepare(self) -> None:
        """Prepare the folder once before the first start."""
        return

    @property
    def bootstrap(self) -> str:
        """The bootstrap server."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-", dir=ROOT / "build"))
        self.port = free_port()
        self.prepare()
        self.start()
        return self

    def start(self) -> None:
        """Start the node, for the first time or on its existing folder."""
        self.started_at = time.monotonic()
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the node, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def resident_bytes(self) -> int:
        """Return its resident memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    def forget_peak(self) -> None:
        """Reset `peak_bytes`."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """Return the peak of the resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])


class Millstream(Server):
    """Our broker, of this checkout or of another one."""

    name = "millstream"

    def __init__(self, checkout: Path = ROOT) -> None:
        self.checkout = checkout

    def command(self) -> list[str]:
        """Run its broker."""
        settings = {
            **SETTINGS,
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.folder / "data"),
        }
        overrides = [f"--override={name}={value}" for name, value in settings.items()]
        return [str(ROOT / ".venv/bin/python"), "-P", "-m", "broker", "start", *overrides]

    def __enter__(self) -> Self:
        os.environ["PYTHONPATH"] = str(self.checkout)
        return super().__enter__()


class ApacheKafka(Server):
    """One combined KRaft node of Apache Kafka, from its jars."""

    name = "kafka"

    def __init__(self, libraries: Path, heap: str = "1g") -> None:
        self.libraries = libraries
        self.heap = heap

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        heap = [f"-Xms{self.heap}", f"-Xmx{self.heap}"]
        path = ["-cp", f"{self.libraries}/*"]
        return ["java", *heap, *JAVA_OPTIONS, *path, main_class, *arguments]

    def prepare(self) -> None:
        """Write its configuration and format its folder."""
        controller = free_port()
        settings = {
            **SETTINGS,
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "server.properties").write_text(text)
        subprocess.run(
            self._java(
                "kafka.tools.StorageTool",
                *("format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c"),
                str(self.folder / "server.properties"),
            ),
            check=True,
            capture_output=True,
        )

    def command(self) -> list[str]:
        """Run the node."""
        return self._java("kafka.Kafka", str(self.folder / "server.properties"))


def find_kafka() -> Path | None:
    """Return the folder of Apache Kafka's jars, or None if they or Java are not installed."""
    if shutil.which("java") is None:
        return None
    given = os.environ.get("MILLSTREAM_KAFKA_LIBS")
    folder = Path(given) if given else ROOT / "build" / "kafka-libs"
    if not folder.is_dir() and shutil.which("mvn"):
        script = ROOT / "tests" / "interop" / "java" / "resolve.sh"
        subprocess.run([str(script)], check=True)
    return folder if folder.is_dir() else None
