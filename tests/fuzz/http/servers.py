"""The HTTP servers that are fuzzed, each a real process, on one broker and one registry."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from millstream.testing import LocalBroker, LocalConnect, LocalRegistry, LocalRestProxy
from millstream.testing.local_program import LocalProgram

ORDERS, STREAMS, DASHBOARD = "orders", "streams", "dashboard"
REGISTRY, CONNECT, REST_PROXY = "registry", "connect", "rest-proxy"
EVERY = (REGISTRY, CONNECT, ORDERS, STREAMS, DASHBOARD, REST_PROXY)
_MODULES = {
    ORDERS: "services.orders",
    STREAMS: "streams",
    DASHBOARD: "spark_analytics.dashboard",
}


class _Program(LocalProgram):
    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        super().__init__()
        self.module = module
        self._arguments = arguments

    def arguments(self, folder: Path) -> Sequence[str]:
        return [each.replace("FOLDER", str(folder)) for each in self._arguments]


@contextmanager
def running(names: Sequence[str]) -> Iterator[dict[str, LocalProgram]]:
    """Start the servers that are named."""
    with ExitStack() as stack:
        broker = stack.enter_context(LocalBroker())
        kafka = broker.bootstrap_servers
        registry = stack.enter_context(LocalRegistry(kafka))
        found: dict[str, LocalProgram] = {}
        for name in names:
            found[name] = (
                registry
                if name == REGISTRY
                else stack.enter_context(_program(name, kafka, registry.url))
            )
        yield found


def _program(name: str, kafka: str, registry_url: str) -> LocalProgram:
    match name:
        case "connect":
            return LocalConnect(kafka, registry_url)
        case "rest-proxy":
            return LocalRestProxy(kafka, registry_url)
        case "dashboard":
            return _Program(_MODULES[name], ["--store", "FOLDER/serving.sqlite"])
        case _:
            arguments = ["--bootstrap-servers", kafka, "--registry-url", registry_url]
            arguments += ["--replication-factor", "1"]
            arguments += ["--data-dir", "FOLDER"] if name == STREAMS else []
            return _Program(_MODULES[name], arguments)
