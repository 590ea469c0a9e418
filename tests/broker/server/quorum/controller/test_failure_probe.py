"""What counts as a broker that is gone: only that its port refuses, in the end."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

from broker.server.quorum.controller.failure_probe import FailureProbe
from tests.lib.quorum_nodes import until

BROKER_ID = 7
LONG_MS = 60_000
SHORT_MS = 50


def listening_socket() -> socket.socket:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    return listening


def make_probe(address: tuple[str, int], timeout_ms: int, gone: list[int]) -> FailureProbe:
    broker = SimpleNamespace(
        broker_id=BROKER_ID, epoch=5, is_fenced=False, endpoints={"PLAINTEXT": address}
    )
    image: Any = SimpleNamespace(brokers={BROKER_ID: broker})
    return FailureProbe(asyncio.get_running_loop(), timeout_ms, lambda: image, gone.append)


def test_a_port_that_refuses_is_a_broker_that_is_gone() -> None:
    async def scenario() -> None:
        listening = listening_socket()
        address = listening.getsockname()
        listening.close()
        gone: list[int] = []
        make_probe(address, LONG_MS, gone).look_after(BROKER_ID)
        await until(lambda: gone == [BROKER_ID])

    asyncio.run(scenario())


def test_a_dying_process_whose_listener_closes_last_is_gone() -> None:
    async def scenario() -> None:
        listening = listening_socket()
        gone: list[int] = []
        probe = make_probe(listening.getsockname(), LONG_MS, gone)
        probe.look_after(BROKER_ID)
        await until(lambda: probe._probes[BROKER_ID]._connected is not None)
        listening.close()  # and with it the connection that nobody had accepted
        await until(lambda: gone == [BROKER_ID])

    asyncio.run(scenario())


def test_a_connection_that_stays_proves_nothing() -> None:
    async def scenario() -> None:
        with listening_socket() as listening:
            gone: list[int] = []
            probe = make_probe(listening.getsockname(), SHORT_MS, gone)
            probe.look_after(BROKER_ID)
            await until(lambda: not probe._probes)
            assert gone == []

    asyncio.run(scenario())


def test_a_broker_that_closes_every_connection_lives() -> None:
    async def scenario() -> None:
        closed = 0

        def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal closed
            closed += 1
            writer.close()

        server = await asyncio.start_server(close, "127.0.0.1", 0)
        gone: list[int] = []
        probe = make_probe(server.sockets[0].getsockname(), LONG_MS, gone)
        probe.look_after(BROKER_ID)
        await until(lambda: not probe._probes)
        assert gone == []
        assert closed > 0
        server.close()
        await server.wait_closed()

    asyncio.run(scenario())
