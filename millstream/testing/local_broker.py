"""One real broker as a child process, on a free port, in a temporary folder."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from millstream.testing.block import Block
from millstream.testing.broker_clock import BrokerClock
from millstream.testing.faults import Faults
from millstream.testing.looking import Looks
from millstream.testing.node_process import NodeProcess, settings_text
from millstream.testing.requests import Requests
from millstream.testing.security import NOBODY, USER, Client, LocalSecurity, Security
from millstream.testing.situations import Situations
from millstream.testing.topics import create_topic

# Defaults for tests that differ from Kafka's.
TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
}


class LocalBroker(Looks, Block):
    """A broker for tests. Settings have Kafka's names, as keywords with underscores or in a dict:

    `LocalBroker(num_partitions=3, **{"log.retention.ms": 1000})`. `with` or `start()`
    starts the broker; its folder is removed at the end, on Linux even if this process is killed.
    It listens on `port`; 0 means a free port.
    With `security` its listener uses TLS, or authenticates clients, or both: `client_settings`
    returns the settings for clients, and `client_file` a file for programs. `users` has passwords
    by user, besides the administrator's. `faults` and `requests` are those of the process under
    way; with `is_testing=False` the broker runs as in production, and has neither.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        security: Security | None = None,
        users: Mapping[str, str] = NOBODY,
        is_testing: bool = True,
        **settings: object,
    ) -> None:
        self._is_testing = is_testing
        self._settings = {**TEST_SETTINGS, **settings_text(settings)}
        self._kind, self._users = security, users
        self._security: LocalSecurity | None = None
        self._node: NodeProcess | None = None
        self._port = port
        self.snapshot_count = 0
        """How many snapshots were made: only the last one is kept."""

    def __repr__(self) -> str:
        is_running = self._node is not None and self._node.is_running
        where = f" {self.bootstrap_servers}" if is_running and self._port else ", not running"
        return f"<LocalBroker{where}>"

    # --- addresses and files ---

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as `host:port`."""
        assert self._port, "the broker is not started"
        return f"127.0.0.1:{self._port}"

    def client_settings(
        self, client: Client = "confluent-kafka", user: str = USER
    ) -> dict[str, Any]:
        """Return the settings of a client: the address, and what `security` needs for a user."""
        if self._security is not None:
            return self._security.client_settings(self.bootstrap_servers, client, user)
        has_dots = client in ("confluent-kafka", "java")
        return {"bootstrap.servers" if has_dots else "bootstrap_servers": self.bootstrap_servers}

    def client_file(self, user: str = USER) -> str:
        """Return a file of client settings for `--command-config` of programs and tools.

        Without `security` this is "".
        """
        return "" if self._security is None else str(self._security.client_file(user))

    @property
    def http_url(self) -> str:
        """The address of the broker's health and metrics pages."""
        return self._started().http_url

    @property
    def data_folder(self) -> Path:
        """The broker's log directory."""
        return self._started().data_folder

    @property
    def pid(self) -> int:
        """The broker's process id."""
        return self._started().pid

    @property
    def node(self) -> NodeProcess:
        """The broker's process."""
        return self._started()

    def log(self) -> str:
        """Return the broker's log messages so far."""
        return self._started().log()

    def log_tail(self) -> str:
        """Return the last log messages, for reports; empty after `close`."""
        return "" if self._node is None else self._node.log_tail()

    @property
    def faults(self) -> Faults:
        """What the broker does to the calls of its clients: errors, delays, lost answers, ..."""
        return self._started().faults

    @property
    def requests(self) -> Requests:
        """The calls that clients have made."""
        return self._started().requests

    @property
    def clock(self) -> BrokerClock:
        """The broker's time, which a test can move: `clock.advance(hours=2)`."""
        return self._started().clock

    @property
    def situations(self) -> Situations:
        """A coordinator that moves, a fenced producer, ...: each in one line."""
        return Situations(self.faults, self.clock, self.client_settings)

    # --- actions ---

    def create_topic(
        self, name: str, partitions: int = 1, *, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Create a topic, with Kafka's settings; return when every partition has a leader.

        Raise confluent_kafka.KafkaException if the broker refuses the topic.
        """
        create_topic(self.client_settings(), name, partitions, 1, settings)

    def start(self) -> Self:
        """Start the broker, or restart it with the same port and data; return when it is ready."""
        if self._node is None:
            folder = Path(tempfile.mkdtemp(prefix="millstream-broker-"))
            self._node = NodeProcess(
                folder, self._settings, temporary_folder=folder, is_testing=self._is_testing
            )
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
        """Stop the broker cleanly (SIGTERM) and wait."""
        if self._node is not None:
            self._node.stop()

    def kill(self) -> None:
        """Kill the broker (SIGKILL) like a crash; `start()` restarts it."""
        if self._node is not None:
            self._node.kill()

    def snapshot(self) -> None:
        """Keep the broker's topics, groups, settings and time for `restore`.

        All clients are disconnected, and connect again.
        """
        self._started().snapshot()
        self.snapshot_count += 1

    def restore(self, *, new_port: bool = False) -> None:
        """Bring the broker back to its snapshot; a broker that has ended is started for it.

        Faults end, and all clients are disconnected. With `new_port` the broker has another
        address, so that clients which an earlier test has left do not come back.
        """
        node = self._started()
        if not node.is_running:
            node.kill()  # The process may have died by itself: release what is left of it.
            self.start()
        self._port = node.restore(new_port=new_port)

    def pause(self) -> None:
        """Freeze the broker (SIGSTOP)."""
        self._started().pause()

    def resume(self) -> None:
        """Continue the frozen broker (SIGCONT)."""
        self._started().resume()

    def check(self, *, allow_unused: bool = False) -> None:
        """End all faults; raise UnusedFaultError if one has hit nothing."""
        if self._node is not None and self._is_testing:
            self._node.faults.clear(allow_unused=allow_unused)

    def close(self) -> None:
        """Stop the broker and remove its folder."""
        self._close_view()
        try:
            self.stop()
        finally:
            if self._node is not None:
                shutil.rmtree(self._node.folder, ignore_errors=True)
                self._node = None

    def _started(self) -> NodeProcess:
        assert self._node is not None, "the broker is not started"
        return self._node
