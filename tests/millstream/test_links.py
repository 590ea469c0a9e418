"""The links between the nodes of a `LocalCluster`: they pass on, swallow, and refuse."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from millstream.testing.links import Links
from tests.lib.waiting import until

WAIT_SECONDS = 30.0


class Echo:
    """A server that says everything back, on a port that it keeps when it is stopped."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = probe.getsockname()
        self.connections: list[socket.socket] = []
        self.heard = b""
        self.start()

    def start(self) -> None:
        self._listening = socket.create_server(self.address)
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def stop(self) -> None:
        """End as a process that dies: the listener and every connection close."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):  # closed already by who dialled
                connection.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1000):
                self.heard += data
                connection.sendall(data)


@pytest.fixture
def links() -> Iterator[Links]:
    made = Links()
    yield made
    made.close()


def dial(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), WAIT_SECONDS)


def is_refused(port: int) -> bool:
    try:
        dial(port).close()
    except ConnectionRefusedError:
        return True
    return False


def said_back(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(text)
    return heard_by(connection, len(text))


def heard_by(connection: socket.socket, count: int) -> bytes:
    heard = b""
    while len(heard) < count and (data := connection.recv(count - len(heard))):
        heard += data
    return heard


def test_a_link_passes_bytes_on(links: Links) -> None:
    port = links.add(1, 2, Echo().address)
    until(lambda: not is_refused(port))
    with dial(port) as connection:
        assert said_back(connection, b"hello") == b"hello"


def test_a_link_refuses_while_nobody_listens_behind_it(links: Links) -> None:
    echo = Echo()
    port = links.add(1, 2, echo.address)
    until(lambda: not is_refused(port))
    with dial(port) as connection:
        assert said_back(connection, b"hello") == b"hello"
        echo.stop()
        # By the time the end is seen, a new connection is refused: a dead node is seen as dead.
        assert connection.recv(1) == b""
        assert is_refused(port)
    echo.start()
    until(lambda: not is_refused(port))
    with dial(port) as connection:
        assert said_back(connection, b"again") == b"again"
    echo.stop()


def test_a_cut_link_swallows_and_goes_on_when_healed(links: Links) -> None:
    echo = Echo()
    port = links.add(1, 2, echo.address)
    until(lambda: not is_refused(port))
    with dial(port) as old:
        assert said_back(old, b"before") == b"before"
        links.cut(2, 1)
        old.sendall(b"held")
        with dial(port) as new:
            new.sendall(b"silent")
            for connection in (old, new):
                connection.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
                connection.settimeout(WAIT_SECONDS)
            links.heal()
            assert old.recv(1000) == b"held"
            assert new.recv(1000) == b"silent"


def test_a_cut_link_hides_that_a_node_has_died(links: Links) -> None:
    echo = Echo()
    port = links.add(1, 2, echo.address)
    until(lambda: not is_refused(port))
    with dial(port) as connection:
        assert said_back(connection, b"before") == b"before"
        links.cut(1, 2)
        echo.stop()
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert not is_refused(port)
        connection.settimeout(WAIT_SECONDS)
        links.heal()
        assert connection.recv(1) == b""
        assert is_refused(port)


def test_one_way_cut_lets_the_other_way_through(links: Links) -> None:
    echo = Echo()
    port = links.add(1, 2, echo.address)
    until(lambda: not is_refused(port))
    with dial(port) as connection:
        assert said_back(connection, b"before") == b"before"
        links.cut_one_way(2, 1)
        connection.sendall(b"heard")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        until(lambda: echo.heard.endswith(b"heard"))
        links.heal()
        connection.settimeout(WAIT_SECONDS)
        assert connection.recv(1000) == b"heard"
        links.cut_one_way(1, 2)
        connection.sendall(b"unheard")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        assert not echo.heard.endswith(b"unheard")


def request_of(client_id: bytes) -> bytes:
    """The beginning of a request, and then something."""
    return struct.pack(">ihhih", 10 + len(client_id), 1, 12, 0, len(client_id)) + client_id + b"..."


def test_a_shared_link_knows_who_dials_by_the_client_id(links: Links) -> None:
    echo = Echo()
    port = links.add_shared((1, 2), 3, echo.address)
    until(lambda: not is_refused(port))
    links.cut(1, 3)
    first, second, stranger = map(
        request_of, (b"millstream-node-1", b"broker-2-fetcher-0", b"app-1")
    )
    with dial(port) as parted, dial(port) as near, dial(port) as other:
        assert said_back(near, second) == second
        assert said_back(other, stranger) == stranger
        parted.sendall(first)
        parted.settimeout(0.2)
        with pytest.raises(TimeoutError):
            parted.recv(1)
        links.heal()
        parted.settimeout(WAIT_SECONDS)
        assert heard_by(parted, len(first)) == first


def test_only_nodes_with_a_link_can_be_parted(links: Links) -> None:
    with pytest.raises(AssertionError):
        links.cut(1, 2)
