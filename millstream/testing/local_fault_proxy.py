"""A proxy that puts faults on demand before any Kafka, Apache's too: `millstream faults`."""

from collections.abc import Sequence
from pathlib import Path

from millstream.processes.cluster_layout import free_ports
from millstream.testing.broker_control import BrokerControl
from millstream.testing.faults import Faults
from millstream.testing.local_program import LocalProgram
from millstream.testing.requests import Requests


class LocalFaultProxy(LocalProgram):
    """Runs before the brokers at `upstream`, which a client reaches at `bootstrap_servers`.

    A rule for a `principal` is refused, and so is one for disks. `command_config` is a file with
    the TLS of the brokers; clients connect to the proxy in clear text, and log in through it. At
    the end of a `with` block a fault that has hit nothing raises UnusedFaultError.
    """

    module = "broker"

    def __init__(self, upstream: str, *, port: int = 0, command_config: str = "") -> None:
        super().__init__()
        self._upstream = upstream
        self._listen_port = port
        self._command_config = command_config
        self._control_port = next(free_ports())
        self.control = BrokerControl(lambda: self.control_url)
        self.faults = Faults(lambda: [self.control])
        """What happens to the calls of clients."""
        self.requests = Requests(lambda: [self.control])
        """The calls that clients have made."""

    def arguments(self, folder: Path) -> Sequence[str]:
        return (
            "faults",
            *("--listen", f"127.0.0.1:{self._listen_port}"),
            *("--upstream", self._upstream),
            *("--control", f"127.0.0.1:{self._control_port}"),
            f"--command-config={self._command_config}",
        )

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as `host:port`."""
        return self.url

    @property
    def control_url(self) -> str:
        """The address of the control by HTTP."""
        return f"http://127.0.0.1:{self._control_port}"

    def check(self, *, allow_unused: bool = False) -> None:
        """End all faults; raise UnusedFaultError if one has hit nothing."""
        self.faults.clear(allow_unused=allow_unused)
