"""A broker with all the connections that it may have: clients wait, and brokers get through."""

from collections.abc import Iterator

import pytest

from broker.__main__ import main as tool
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.metadata import MetadataRequest
from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

ANY = MetadataRequest(topics=[])
LIMIT = 6


@pytest.fixture
def addresses() -> tuple[str, str]:
    ports = free_ports()
    return f"127.0.0.1:{next(ports)}", f"127.0.0.1:{next(ports)}"


@pytest.fixture
def broker(addresses: tuple[str, str]) -> Iterator[LocalBroker]:
    clients, brokers = addresses
    settings = {
        "listeners": f"CLIENTS://{clients},BROKERS://{brokers}",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "max.connections": LIMIT,
    }
    with LocalBroker(**settings) as started:
        yield started


def ask(connection: RawConnection) -> None:
    connection.ask(ApiKey.METADATA, 9, ANY)


def is_open(connection: RawConnection) -> bool:
    connection.socket.setblocking(False)
    try:
        return connection.socket.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.socket.settimeout(10)


def test_clients_wait_for_room_and_brokers_take_that_of_the_longest_idle_client(
    broker: LocalBroker, addresses: tuple[str, str]
) -> None:
    at_clients, at_brokers = addresses
    clients = [RawConnection(at_clients) for _ in range(LIMIT)]
    for client in clients:
        ask(client)
    ask(clients[0])  # The second client is the one that has asked nothing for the longest time.
    waiting = RawConnection(at_clients, timeout_seconds=0.5)
    with pytest.raises(TimeoutError):
        ask(waiting)
    until(lambda: "accepting pauses: max.connections is reached" in broker.log())
    with RawConnection(at_brokers) as other_broker:
        ask(other_broker)
        until(lambda: not is_open(clients[1]))
        assert [is_open(client) for client in clients] == [True, False, True, True, True, True]
        assert "closed: max.connections is reached" in broker.log()
        for client in (clients[0], *clients[2:]):
            ask(client)
        clients[2].socket.close()
        waiting.socket.settimeout(30)
        waiting.receive_frame()
        ask(other_broker)
    for client in (*clients, waiting):
        client.socket.close()


def test_a_lower_limit_closes_idle_connections(
    broker: LocalBroker, addresses: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    at_clients, at_brokers = addresses
    clients = [RawConnection(at_clients) for _ in range(4)]
    for client in clients:
        ask(client)
    where = ("--bootstrap-server", at_brokers, "--entity-type", "brokers", "--entity-default")
    assert tool(["configs", *where, "--alter", "--add-config", "max.connections=2"]) == 0
    until(lambda: not is_open(clients[0]))
    assert is_open(clients[3])
    own = "listener.name.clients.max.connections"
    assert tool(["configs", *where, "--alter", "--add-config", f"{own}=no"]) == 1
    assert "no: not a whole number" in capsys.readouterr().err
    assert tool(["configs", *where, "--alter", "--add-config", f"{own}=0,max.connections=50"]) == 0
    with RawConnection(at_clients, timeout_seconds=0.5) as late, pytest.raises(TimeoutError):
        ask(late)
    capsys.readouterr()
    assert tool(["configs", *where, "--describe"]) == 0
    assert f"{own}=0 sensitive=false" in capsys.readouterr().out
    for client in clients:
        client.socket.close()
