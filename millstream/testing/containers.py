"""A broker in a container, by the conventions of testcontainers-python.

from millstream.testing.containers import MillstreamContainer

with MillstreamContainer() as kafka:
    producer = Producer({"bootstrap.servers": kafka.get_bootstrap_server()})
    kafka.control.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER").times(3)

To replace its `KafkaContainer`, change the import. `MillstreamContainer` needs Docker,
`pip install millstream[containers]`, and the image, which `docker build --tag millstream .` builds
in a checkout.
"""

import io
import secrets
import tarfile
import time
import urllib.error
import urllib.request
from types import TracebackType
from typing import Any, Self

from testcontainers.core.container import DockerContainer

from millstream.testing.local_broker import TEST_SETTINGS
from millstream.testing.node_process import BrokerFailedError
from millstream.testing.running_brokers import RunningBrokers

IMAGE = "millstream"
_HTTP_PORT = 9644
_INTERNAL_PORT = 9092
_START_SCRIPT = "/tmp/start-broker"
_HTTP_FILE, _USERS_FILE = "/tmp/http.properties", "/tmp/http-users.properties"
_USER = "test"
_READY_SECONDS = 30
_POLL_SECONDS = 0.05


class MillstreamContainer(DockerContainer):
    """One broker, ready when `start` returns. Its data is deleted with the container.

    Clients on this machine use `get_bootstrap_server()`; containers in the same network use its
    alias and port 9092. `with_env("KAFKA_NUM_PARTITIONS", "6")` sets `num.partitions`.
    `control` has the broker's faults, requests and clock; a fault that has hit nothing raises
    UnusedFaultError at the end of the `with` block.
    """

    def __init__(self, image: str = IMAGE, port: int = 9093, **kwargs: Any) -> None:
        super().__init__(image, **kwargs)
        self.port = port
        self.with_exposed_ports(port, _HTTP_PORT)
        for name, value in TEST_SETTINGS.items():
            self.with_env(_variable(name), str(value))
        listeners = f"PLAINTEXT://:{port},BROKER://:{_INTERNAL_PORT}"
        self.with_env("KAFKA_LISTENERS", listeners)
        protocols = "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT"
        self.with_env("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", protocols)
        self.with_env("KAFKA_INTER_BROKER_LISTENER_NAME", "BROKER")
        self.with_env("KAFKA_HTTP_CONFIG", _HTTP_FILE)
        self._password = secrets.token_urlsafe(16)
        self._control: RunningBrokers | None = None

    def with_kraft(self) -> Self:
        """Do nothing: the broker always uses KRaft."""
        return self

    def get_bootstrap_server(self) -> str:
        """Return host:port for clients on this machine."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(self.port)}"

    def get_control_url(self) -> str:
        """Return the address of the control for tests, with its password."""
        host = f"{self.get_container_host_ip()}:{self.get_exposed_port(_HTTP_PORT)}"
        return f"http://{_USER}:{self._password}@{host}"

    @property
    def control(self) -> RunningBrokers:
        """The broker's faults, requests, clock and snapshots, once it is started."""
        if self._control is None:
            self._control = RunningBrokers([self.get_control_url()])
        return self._control

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._control is not None:
                self._control.faults.clear(allow_unused=error is not None)
        finally:
            super().__exit__(kind, error, trace)

    def start(self, timeout: int = _READY_SECONDS) -> Self:
        """Return when the broker is ready; raise BrokerFailedError with its log if it is not.

        The broker must know the port that clients use, which is known only after the start of the
        container. So the container waits for a script that starts the broker with this port.
        """
        self.with_kwargs(entrypoint=["sh", "-c"])
        self.with_command([f"until [ -f {_START_SCRIPT} ]; do sleep 0.05; done; . {_START_SCRIPT}"])
        super().start()
        try:
            self._put_script()
            self._wait_until_ready(timeout)
        except BaseException:
            self.stop()
            raise
        return self

    def _put_script(self) -> None:
        advertised = (
            f"PLAINTEXT://{self.get_bootstrap_server()},BROKER://$(hostname):{_INTERNAL_PORT}"
        )
        files = start_files(advertised, self._password)
        with io.BytesIO() as archive:
            with tarfile.TarFile(fileobj=archive, mode="w") as tar:
                for name, text in files.items():  # The script is the last: the container waits.
                    member = tarfile.TarInfo(name.lstrip("/"))
                    member.size, member.mode = len(text.encode()), 0o644
                    tar.addfile(member, io.BytesIO(text.encode()))
            self.get_wrapped_container().put_archive("/", archive.getvalue())

    def _wait_until_ready(self, timeout: int) -> None:
        host = self.get_container_host_ip()
        url = f"http://{host}:{self.get_exposed_port(_HTTP_PORT)}/health/ready"
        deadline = time.monotonic() + timeout
        while not _is_ready(url):
            container = self.get_wrapped_container()
            container.reload()
            if container.status != "running" or time.monotonic() > deadline:
                said = b"".join(self.get_logs()).decode(errors="replace")
                raise BrokerFailedError(f"the broker's container is not ready:\n{said}")
            time.sleep(_POLL_SECONDS)


def start_files(advertised: str, password: str, *, root: str = "") -> dict[str, str]:
    """Return the files that the container needs to start the broker, by path; the script is last.

    Other machines reach its HTTP server, so the control is for a user with a password.
    """
    http = f"authentication.method=BASIC\nauthentication.users.file={root}{_USERS_FILE}\n"
    start = "exec millstream broker start --testing"
    return {
        root + _USERS_FILE: f"{_USER}={password}\n",
        root + _HTTP_FILE: http,
        root + _START_SCRIPT: f"export KAFKA_ADVERTISED_LISTENERS={advertised}\n{start}\n",
    }


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _variable(setting: str) -> str:
    return "KAFKA_" + setting.upper().replace(".", "_")
