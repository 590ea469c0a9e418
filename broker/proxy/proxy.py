"""The listening ports, one for each broker behind; the control by HTTP, the pages, the metrics.

The first port is for the addresses that the proxy was given. A broker gets a port of its own when
an answer names it for the first time: the next free one, or with port 0 any. Clients are told the
port instead of the broker's address.
"""

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from broker.faults.calls import CallLog
from broker.faults.rule import FaultKind, Rule
from broker.faults.rule_book import RuleBook
from broker.proxy.answers import Address
from broker.proxy.forwarding import Common, Counts, Forwarding, Names
from broker.server.clock import SystemClock, monotonic_seconds, seeded_random
from broker.server.network.connection import Connection, Peer
from broker.server.network.listener import ALL_INTERFACES, bind
from broker.server.network.turns import Shared
from broker.server.testing.control import Control
from broker.server.testing.fault_routes import FaultRoutes
from broker.server.testing.open_api import About
from broker.server.testing.routes import Answer, Command, Refused, Route
from common.http.accepting import Accepting
from common.http.security import HttpSecurity
from common.http.site_guard import guard_of
from common.http.small_server import Asked, Page, SmallServer, problem, text

log = logging.getLogger("millstream.faults")

MAX_FRAME_BYTES: Final = 100 << 20
MAX_CONNECTIONS: Final = 10_000
MAX_BROKERS: Final = 1_000
PORTS_TRIED: Final = 100
LISTENER: Final = "FAULTS"
ABOUT: Final = About(
    "Millstream faults",
    "Faults on demand before any Kafka. The proxy has no clock and no snapshots of a broker.",
)
_OF_BROKERS: Final = {
    ("GET", "/clock"): "a clock",
    ("POST", "/clock"): "a clock",
    ("POST", "/snapshot"): "snapshots",
    ("POST", "/restore"): "snapshots",
}


class Addresses(NamedTuple):
    """Where the proxy listens, and what is behind."""

    listen: Address
    upstream: Sequence[Address]
    control: Address
    advertised_host: str
    """What clients are told; "": the host of `listen`, or the address that they have reached."""


class _Way:
    """A listening port, and the broker behind it."""

    def __init__(self, listening: socket.socket, forwarding: Forwarding, shared: Shared) -> None:
        self.forwarding = forwarding
        self._shared = shared
        loop = shared.turns.loop
        self._accepting = Accepting(loop, listening, self._take, self._why_full)
        self.port = self._accepting.port
        self._accepting.start()

    def close(self) -> None:
        self._accepting.stop()
        self.forwarding.close()

    def _take(self, accepted: socket.socket, host: str) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(host, LISTENER, principal="")  # Only the broker behind knows it.
        connection = Connection(
            self._shared,
            accepted,
            sink=self.forwarding,
            max_frame_bytes=MAX_FRAME_BYTES,
            peer=peer,
        )
        self.forwarding.begin(connection)

    def _why_full(self) -> str | None:
        return "the limit" if self.forwarding.connections >= MAX_CONNECTIONS else None


class FaultProxy:
    """Owns the ports, the rules and what clients have called."""

    def __init__(
        self, addresses: Addresses, tls: ssl.SSLContext | None, security: HttpSecurity
    ) -> None:
        """It listens after `open`."""
        self._addresses = addresses
        self._security = security
        self._shared = Shared.of(asyncio.get_running_loop(), monotonic_seconds)
        self.rules = RuleBook(lambda seed: seeded_random(seed).random)
        self.calls = CallLog()
        self.counts = Counts()
        self._common = Common(
            self.rules,
            self.calls,
            Names(),
            self.counts,
            tls,
            SystemClock().timestamp_ms,
            self._address_of,
        )
        self.ways: dict[Address | None, _Way] = {}
        """By the address of the broker behind; None: the first port."""
        self._control = Control([*self._routes()], ABOUT)
        self._http = SmallServer(
            self._page,
            site_guard=guard_of("", addresses.control[0]),
            security=security,
            changes=self._control.answer,
        )
        self.control_url = ""

    def open(self) -> None:
        """Begin to listen; raises OSError."""
        host, port = self._addresses.listen
        self._add(None, bind(host, port), self._addresses.upstream)
        host, port = self._addresses.control
        port = self._http.start(bind(host, port))
        self.control_url = f"{self._security.scheme}://{address_text((host, port))}"

    def close(self) -> None:
        """Close all ports and connections."""
        self._http.stop()
        for way in self.ways.values():
            way.close()

    @property
    def address(self) -> str:
        """Where clients connect to first."""
        return address_text((self._addresses.listen[0], self.ways[None].port))

    # --- ports ---

    def _address_of(self, connection: Connection, behind: Address) -> Address:
        """Return where a client reaches the proxy for a broker; raises OSError."""
        way = self.ways.get(behind) or self._add(behind, self._bind_next(), [behind])
        host = self._addresses.advertised_host or self._addresses.listen[0]
        if host in ("", ALL_INTERFACES, "::"):
            host = str(connection.socket.getsockname()[0])  # type: ignore[union-attr]
        return host, way.port

    def _bind_next(self) -> socket.socket:
        host, port = self._addresses.listen
        if len(self.ways) > MAX_BROKERS:
            raise OSError(f"there are more than {MAX_BROKERS} brokers")
        if not port:
            return bind(host, 0)
        first = port + len(self.ways)
        for candidate in range(first, min(first + PORTS_TRIED, 1 << 16)):
            try:
                return bind(host, candidate)
            except OSError as error:
                log.warning("%s", error)
        raise OSError(f"no port from {first} on is free")

    def _add(
        self, behind: Address | None, listening: socket.socket, upstream: Sequence[Address]
    ) -> _Way:
        way = _Way(listening, Forwarding(self._common, upstream), self._shared)
        self.ways[behind] = way
        log.info("port %d is for %s", way.port, ",".join(map(address_text, upstream)))
        return way

    # --- HTTP ---

    def _routes(self) -> Iterator[Route]:
        yield from FaultRoutes(self.rules, self.calls, why_not).routes()
        for (method, path), what in _OF_BROKERS.items():
            yield Route(method, path, _refused(what), f"Refused: a proxy has not {what}")

    def _page(self, asked: Asked) -> Page | None:
        match asked.path:
            case "/":
                return text(self._about())
            case "/health" | "/health/live" | "/health/ready":
                return text("ok\n")
            case "/metrics":
                # Imported here: it takes a tenth of a second.
                from prometheus_client import generate_latest

                from broker.proxy.proxy_metrics import Numbers, registry_of

                numbers = Numbers(
                    self.counts.requests,
                    self.counts.unknown_requests,
                    self.counts.lost_connections,
                    connections=sum(way.forwarding.connections for way in self.ways.values()),
                    brokers=len(self.ways) - 1,
                    rules=len(list(self.rules)),
                    hits=sum(armed.hits for armed in self.rules),
                )
                metrics = generate_latest(registry_of(numbers))
                return Page(HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", metrics)
            case _:
                return self._not_found(asked)

    @staticmethod
    def _not_found(_: Asked) -> Page:
        return problem(HTTPStatus.NOT_FOUND, "There are /faults, /requests and /openapi.json.")

    def _about(self) -> str:
        upstream = ",".join(map(address_text, self._addresses.upstream))
        brokers = [
            f"  port {way.port}: {address_text(behind)}"
            for behind, way in self.ways.items()
            if behind is not None
        ]
        lines = [f"Faults before {upstream}: clients connect to {self.address}.", *brokers]
        return "\n".join([*lines, "/faults /requests /openapi.json /metrics", ""])


def address_text(address: Address) -> str:
    """Return `host:port`, an IPv6 host in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def why_not(rule: Rule) -> str | None:
    """Return why a proxy cannot do what a rule says; None if it can."""
    if rule.kind is FaultKind.DISK:
        return "a proxy has no disk: only a broker that runs with --testing has this fault"
    if rule.principal is not None:
        return "a proxy does not know who has logged in: name a client_id instead of a principal"
    return None


def _refused(what: str) -> Callable[[Command], Answer]:
    def serve(_: Command) -> Answer:
        raise Refused(
            HTTPStatus.NOT_IMPLEMENTED,
            f"A proxy has not {what}: only a broker that runs with --testing has.",
        )

    return serve


async def run(
    addresses: Addresses,
    tls: ssl.SSLContext | None,
    security: HttpSecurity,
    say: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT; raises OSError if a port is taken."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    proxy = FaultProxy(addresses, tls, security)
    try:
        proxy.open()
        upstream = ",".join(map(address_text, addresses.upstream))
        say(
            f"millstream faults ready on {proxy.address} before {upstream}, "
            f"control {proxy.control_url}"
        )
        await stopping.wait()
    finally:
        proxy.close()
