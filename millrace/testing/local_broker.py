"""One real broker in a process of its own, on a free port, in a temporary folder."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from millrace.testing.node_process import NodeProcess, settings_text
from millrace.testing.security import NOBODY, USER, Client, LocalSecurity, Security
from millrace.testing.topics import create_topic

# What a test wants and Kafka's defaults do not give.
TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
}


class LocalBroker:
    """A broker for tests. Settings have Kafka's names, as keywords with underscores or in a dict:

    `LocalBroker(num_partitions=3, **{"log.retention.ms": 1000})`. It is started by `with` or
    `start()`, and its folder is removed at the end. It listens on `port`, on a free one where that
    is 0. With `security` its listener is encrypted, or its clients authenticate, or both:
    `client_settings` has what they need, and `client_file` what a program needs. `users` are
    passwords by user, besides the administrator's.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        security: Security | None = None,
        users: Mapping[str, str] = NOBODY,
        **settings: object,
    ) -> None:
        self._settings = {**TEST_SETTINGS, **settings_text(settings)}
        self._kind, self._users = security, users
        self._security: LocalSecurity | None = None
        self._node: NodeProcess | None = None
        self._port = port

    # --- where it is ---

    @property
    def bootstrap_servers(self) -> str:
        """The address clients connect to, as `host:port`."""
        assert self._port, "the broker is not started"
        return f"127.0.0.1:{self._port}"

    def client_settings(
        self, client: Client = "confluent-kafka", user: str = USER
    ) -> dict[str, Any]:
        """What a client is made with: the address, and what `security` demands of a user."""
        if self._security is not None:
            return self._security.client_settings(self.bootstrap_servers, client, user)
        has_dots = client in ("confluent-kafka", "java")
        return {"bootstrap.servers" if has_dots else "bootstrap_servers": self.bootstrap_servers}

    def client_file(self, user: str = USER) -> str:
        """A file of client settings, as programs and tools take it: `--command-config`.

        Without `security` there is none, and this is "".
        """
        return "" if self._security is None else str(self._security.client_file(user))

    @property
    def http_url(self) -> str:
        """The address of its health and metrics pages."""
        return self._started().http_url

    @property
    def data_folder(self) -> Path:
        """The log directory it writes to."""
        return self._started().data_folder

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._started().pid

    def log(self) -> str:
        """What it has logged so far."""
        return self._started().log()

    def log_tail(self) -> str:
        """The end of what it has logged, for reports; nothing once it is closed."""
        return "" if self._node is None else self._node.log_tail()

    # --- what one can do to it ---

    def create_topic(
        self, name: str, partitions: int = 1, *, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Make a topic, with settings of Kafka's names; return when every partition has a leader.

        Raises confluent_kafka.KafkaException where the broker refuses it.
        """
        create_topic(self.client_settings(), name, partitions, 1, settings)

    def start(self) -> Self:
        """Start it, or start it again on the same port and data; return when it serves."""
        if self._node is None:
            folder = Path(tempfile.mkdtemp(prefix="millrace-broker-"))
            self._node = NodeProcess(folder, self._settings)
            if self._kind is not None:
                self._security = LocalSecurity(self._kind, folder, self._users)
        secured = {} if self._security is None else self._security.broker_settings()
        protocol = "PLAINTEXT" if self._security is None else self._security.protocol
        self._node.settings = {
            "listeners": f"{protocol}://127.0.0.1:{self._port}",
            **secured,
            **self._settings,
        }
        self._node.launch()
        self._port = self._node.wait_until_ready()
        return self

    def stop(self) -> None:
        """Stop it cleanly (SIGTERM) and wait."""
        if self._node is not None:
            self._node.stop()

    def kill(self) -> None:
        """Kill it (SIGKILL), as a crash would; `start()` starts it again."""
        if self._node is not None:
            self._node.kill()

    def pause(self) -> None:
        """Freeze it (SIGSTOP)."""
        self._started().pause()

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._started().resume()

    def close(self) -> None:
        """Stop it and remove its folder."""
        try:
            self.stop()
        finally:
            if self._node is not None:
                shutil.rmtree(self._node.folder, ignore_errors=True)
                self._node = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _started(self) -> NodeProcess:
        assert self._node is not None, "the broker is not started"
        return self._node
