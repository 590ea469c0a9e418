"""The TLS of a node: that of its listeners, and that of its connections to other nodes.

Keys and certificates change at run time, when a file changes or by dynamic settings. A new
connection uses the new ones, and open connections go on.
"""

from collections.abc import Callable, Iterator

from broker.config.security_config import SecurityConfig
from broker.server.login.tls_changes import Ends, check_between_nodes, check_change, refused
from broker.server.login.tls_contexts import Config, Loaded, TlsContexts, context_of, load
from common.kafka.errors import KafkaError

TO_BROKERS, TO_CONTROLLERS = "connections to brokers", "connections to controllers"


class NodeTls:
    """Owns all TLS contexts of a node, each by its listener or by its kind of connections."""

    def __init__(self, security: SecurityConfig, now: Callable[[], float]) -> None:
        """Read all stores; raises KafkaError(INVALID_CONFIG)."""
        self._contexts = {use: TlsContexts(config, now) for use, config in _uses(security)}
        names = {TO_BROKERS: security.inter_broker, TO_CONTROLLERS: security.controller}
        self.listeners = frozenset(names.get(use, use) for use in self._contexts)
        """The listeners with TLS that this node has, or connects to on other nodes."""

    def of(self, use: str) -> TlsContexts | None:
        """Return the contexts of a listener, TO_BROKERS or TO_CONTROLLERS; None without TLS."""
        return self._contexts.get(use)

    def check(self, wanted: SecurityConfig) -> None:
        """Raise INVALID_REQUEST, and change nothing, if `wanted` has stores that are not allowed.

        The files are read; those that no context uses yet, and those that have changed.
        """
        old = {use: contexts.loaded for use, contexts in self._contexts.items()}
        new: dict[str, Loaded] = {}
        for use, config in _uses(wanted):
            try:
                new[use] = load(config)
                if new[use] != old[use]:
                    context_of(new[use])
                    check_change(old[use], new[use])
            except KafkaError as error:
                raise refused(f"{_named(use)}: {error.message}") from error
        for server, client in (
            (wanted.inter_broker, TO_BROKERS),
            (wanted.controller, TO_CONTROLLERS),
        ):
            if server in new and client in new:
                before, after = (Ends(each[server], each[client]) for each in (old, new))
                if after != before:
                    check_between_nodes(before, after)

    def change(self, security: SecurityConfig) -> None:
        """Use these stores for new connections; what cannot be used is logged and left out."""
        for use, config in _uses(security):
            self._contexts[use].use(config)


def _uses(security: SecurityConfig) -> Iterator[tuple[str, Config]]:
    """Return the settings of each use that has TLS."""
    for name, listener in security.listeners.items():
        if listener.tls is not None:
            yield name, listener.tls
    for use, client in (
        (TO_BROKERS, security.to_brokers),
        (TO_CONTROLLERS, security.to_controllers),
    ):
        if client.protocol.uses_tls:
            yield use, client


def _named(use: str) -> str:
    return use if use in {TO_BROKERS, TO_CONTROLLERS} else f"listener {use}"
