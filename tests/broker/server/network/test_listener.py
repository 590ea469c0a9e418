"""Accepting pauses when descriptors are short, says so once, and goes on by itself."""

import errno
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.quotas.connection_counts import ConnectionCounts, ConnectionLimits
from broker.server.network.connection import Peer
from broker.server.network.listener import Listener
from common.http import accepting
from common.http.accepting import QUIET_SECONDS, RETRY_SECONDS

THREE = ConnectionLimits(3)


class Loop:
    """Keeps readers and timers, and calls none of them by itself."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def add_reader(self, descriptor: int, call: Callable[[], None]) -> None:
        self.readers[descriptor] = call

    def remove_reader(self, descriptor: int) -> None:
        self.readers.pop(descriptor, None)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        timer = seconds, call
        self.timers.append(timer)
        return type("Timer", (), {"cancel": lambda _: self.timers.remove(timer)})()

    def wake_up(self) -> None:
        for call in list(self.readers.values()):
            call()


class Listening:
    """A listening socket whose `accept` does what it is told to, in order."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)
        self.accepts = 0
        self.address = "127.0.0.1"

    def fileno(self) -> int:
        return 7

    def setblocking(self, blocking: bool) -> None: ...

    def listen(self, backlog: int) -> None: ...

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 9092

    def accept(self) -> tuple[object, tuple[str, int]]:
        self.accepts += 1
        outcome = self.outcomes.pop(0) if self.outcomes else BlockingIOError()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome, (self.address, 1234)


class Accepted:
    """A client's socket."""

    def __init__(self) -> None:
        self.is_closed = False
        self.options: list[tuple[int, int, int]] = []

    def setblocking(self, blocking: bool) -> None: ...

    def setsockopt(self, *option: int) -> None:
        self.options.append(option)  # type: ignore[arg-type]

    def close(self) -> None:
        self.is_closed = True


def listen(*outcomes: object, limits: ConnectionLimits = THREE) -> tuple[Listener, Loop, Listening]:
    loop, listening = Loop(), Listening(*outcomes)
    acceptor: Any = SimpleNamespace(
        listener_name="PLAINTEXT",
        has_handshake=False,
        connect=lambda accepted, host: SimpleNamespace(peer=Peer(host, "PLAINTEXT")),
    )
    any_loop: Any = loop
    any_socket: Any = listening
    counts = ConnectionCounts(limits, ["PLAINTEXT"])
    listener = Listener(any_loop, any_socket, acceptor=acceptor, counts=counts)
    listener.start(5)
    return listener, loop, listening


def no_descriptors() -> OSError:
    return OSError(errno.EMFILE, "Too many open files")


def lines_with(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in line for line in caplog.messages)


def test_without_descriptors_accepting_pauses_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, loop, listening = listen(*[no_descriptors() for _ in range(50)])
    for _ in range(10):
        loop.wake_up()
    assert listening.accepts == 1
    for _ in range(20):
        (seconds, retry) = loop.timers[0]
        assert seconds == RETRY_SECONDS
        retry()
        loop.wake_up()
    assert listening.accepts == 21
    assert lines_with(caplog, "accepting pauses") == 1


def test_it_goes_on_when_a_connection_has_closed() -> None:
    listener, loop, listening = listen(Accepted(), no_descriptors(), Accepted())
    loop.wake_up()
    assert loop.readers == {}
    (first,) = listener.connections.values()
    listener.forget(first)
    assert loop.timers == []
    loop.wake_up()
    assert len(listener.connections) == 1
    assert listening.outcomes == []


def test_a_shortage_that_comes_and_goes_is_one_line_and_one_of_another_day_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pairs = [(Accepted(), no_descriptors()) for _ in range(5)]
    listener, loop, _ = listen(*[outcome for pair in pairs for outcome in pair])
    for _ in range(4):
        loop.wake_up()
        listener.forget(*listener.connections.values())
        loop.now += QUIET_SECONDS / 2
    assert lines_with(caplog, "accepting pauses") == 1
    loop.now += QUIET_SECONDS
    loop.wake_up()
    assert lines_with(caplog, "accepting pauses") == 2


def test_the_last_descriptors_are_left_for_files(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = iter([55, 56])
    monkeypatch.setattr(accepting.resource, "getrlimit", lambda which: (64, 64))
    monkeypatch.setattr(accepting, "_lowest_free_descriptor", lambda: next(free))
    listener, loop, listening = listen(Accepted(), Accepted())
    loop.wake_up()
    assert len(listener.connections) == 1
    assert listening.accepts == 1
    assert loop.readers == {}
    assert lines_with(caplog, "accepting pauses") == 1


def test_a_client_that_is_gone_before_it_is_accepted_keeps_out_nobody() -> None:
    listener, loop, _ = listen(ConnectionAbortedError(errno.ECONNABORTED, "gone"), Accepted())
    loop.wake_up()
    assert len(listener.connections) == 1


def test_clients_above_the_limit_wait_until_a_connection_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clients = [Accepted() for _ in range(20)]
    listener, loop, listening = listen(*clients)
    for count in range(3, 6):
        loop.wake_up()
        assert listening.accepts == count
        assert loop.readers == {}
        listener.forget(next(iter(listener.connections.values())))
    assert not any(client.is_closed for client in clients)
    assert lines_with(caplog, "accepting pauses: max.connections is reached") == 1


def test_an_address_with_too_many_connections_is_refused_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clients = [Accepted() for _ in range(20)]
    listener, loop, _ = listen(*clients, limits=ConnectionLimits(100, 3))
    loop.wake_up()
    assert len(listener.connections) == 3
    assert [client.is_closed for client in clients] == [False] * 3 + [True] * 17
    assert lines_with(caplog, "refused: max.connections.per.ip") == 1


def test_an_ipv4_client_of_a_listener_for_both_kinds_has_its_plain_address() -> None:
    """Rules and quotas for 10.0.0.1 are about it."""
    listener, loop, listening = listen(Accepted())
    listening.address = "::ffff:10.0.0.1"
    loop.wake_up()
    (connection,) = listener.connections.values()
    assert connection.peer.host == "10.0.0.1"


def test_a_client_whose_machine_has_vanished_is_noticed_by_keep_alives() -> None:
    client = Accepted()
    _, loop, _ = listen(client)
    loop.wake_up()
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in client.options


def test_a_listener_that_stops_while_it_pauses_stays_stopped() -> None:
    listener, loop, listening = listen(no_descriptors())
    loop.wake_up()
    any_listening: Any = listening
    any_listening.close = lambda: None
    listener.stop_accepting()
    assert (loop.readers, loop.timers) == ({}, [])
