"""A whole stack for tests: brokers, schema registry, REST proxy and Connect, on free ports."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from millstream.testing.block import Block
from millstream.testing.broker_clock import BrokerClock
from millstream.testing.faults import Faults
from millstream.testing.local_broker import LocalBroker
from millstream.testing.local_cluster import LocalCluster
from millstream.testing.local_program import (
    LocalConnect,
    LocalProgram,
    LocalRegistry,
    LocalRestProxy,
)
from millstream.testing.looking import Looks
from millstream.testing.requests import Requests

PARTS = ("registry", "rest-proxy", "connect")
_MAX_REPLICAS = 3


class LocalStack(Looks, Block):
    """A stack for tests: brokers and the named parts. Keywords are settings of the brokers.

    `with` or `start()` starts the stack. `LocalStack(brokers=3)` has a cluster of three brokers;
    `LocalStack(parts=["registry"])` has a broker and a registry. With `security` all programs
    connect as the administrator.
    """

    def __init__(self, brokers: int = 1, parts: Sequence[str] = PARTS, **settings: object) -> None:
        unknown = [part for part in parts if part not in PARTS]
        if unknown:
            raise ValueError(f"{unknown[0]} is not one of {', '.join(PARTS)}")
        self._parts = parts
        self._replicas = min(brokers, _MAX_REPLICAS)
        self.brokers: LocalBroker | LocalCluster = (
            LocalBroker(**settings)  # type: ignore[arg-type]
            if brokers == 1
            else LocalCluster(brokers, has_links=False, **settings)  # type: ignore[arg-type]
        )
        self.programs: dict[str, LocalProgram] = {}
        self._running = ExitStack()

    # --- addresses ---

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers for Kafka clients."""
        return self.brokers.bootstrap_servers

    @property
    def schema_registry_url(self) -> str:
        """The address of the schema registry."""
        return self.programs["registry"].url

    @property
    def rest_proxy_url(self) -> str:
        """The address of the REST proxy."""
        return self.programs["rest-proxy"].url

    @property
    def connect_url(self) -> str:
        """The address of the Connect worker."""
        return self.programs["connect"].url

    def client_file(self) -> str:
        """Return a file of client settings of the administrator, "" if none are needed."""
        return self.brokers.client_file()

    def environment(self) -> dict[str, str]:
        """Return environment variables with the addresses of all parts."""
        names = {
            "registry": "SCHEMA_REGISTRY_URL",
            "rest-proxy": "KAFKA_REST_URL",
            "connect": "CONNECT_URL",
        }
        urls = {names[part]: program.url for part, program in self.programs.items()}
        return {"KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers, **urls}

    def logs(self) -> dict[str, str]:
        """Return the last log messages of every program, for reports."""
        return {part: program.log_tail() for part, program in self.programs.items()}

    # --- actions ---

    def start(self) -> Self:
        """Start all programs; return when they are ready."""
        with ExitStack() as starting:
            starting.enter_context(self.brokers)
            registry_url = ""
            file = self.brokers.client_file()
            if "registry" in self._parts:
                registry = LocalRegistry(
                    self.bootstrap_servers, replicas=self._replicas, command_config=file
                )
                registry_url = self._start("registry", registry, starting)
            if "rest-proxy" in self._parts:
                proxy = LocalRestProxy(self.bootstrap_servers, registry_url, command_config=file)
                self._start("rest-proxy", proxy, starting)
            if "connect" in self._parts:
                worker = LocalConnect(
                    self.bootstrap_servers,
                    registry_url,
                    replicas=self._replicas,
                    command_config=file,
                )
                self._start("connect", worker, starting)
            self.registry_url = registry_url
            self._running = starting.pop_all()
        return self

    def _start(self, part: str, program: LocalProgram, starting: ExitStack) -> str:
        starting.enter_context(program)
        self.programs[part] = program
        return program.url

    @property
    def clock(self) -> BrokerClock:
        """The time of the brokers, which a test can move."""
        return self.brokers.clock

    @property
    def faults(self) -> Faults:
        """What the brokers do to the calls of their clients."""
        return self.brokers.faults

    @property
    def requests(self) -> Requests:
        """The calls that clients have made."""
        return self.brokers.requests

    def check(self) -> None:
        """End all faults; raise UnusedFaultError if one has hit nothing."""
        self.brokers.check()

    def close(self) -> None:
        """Stop all programs, the brokers last, and remove their folders."""
        self.brokers.check(allow_unused=True)  # After a failed test, only its failure counts.
        self._close_view()
        self._running.close()
