"""The network between the nodes of a `LocalCluster`: links (ports) and ways (directions).

A link is a port on loopback that forwards bytes to a node's listener. A way is the direction from
one node to another. A closed way behaves as a network that drops every packet: it accepts
connections but forwards neither bytes nor the end of a connection. When it is opened again, the
held bytes are forwarded. Two nodes are partitioned when both ways between them are closed. While
one way is closed, an existing connection still carries the other direction, but a new connection is
not established, since that needs both.

The dialling node must be known. A link may be that of one node (`add`). All nodes learn the same
address of a broker or a controller of a cluster, so its link is shared (`add_shared`): the client
id in the first request tells the dialling node. Connections from an unknown client are forwarded.

A link listens only while the node behind it listens, so that a connection is refused as the node
itself would refuse it. While a way is closed its links do listen, since a silent node must be told
apart from a dead one.

All links run on one event loop in their own thread.
"""

import asyncio
import contextlib
import re
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import NamedTuple

CHUNK_BYTES = 1 << 16
FIRST_POLL_SECONDS = 0.01
LAST_POLL_SECONDS = 0.1
_NOBODY = -1
_BROKEN = (ConnectionError, TimeoutError, OSError)


# The length of a request, its API's key and version, its correlation id, the client id's length.
_REQUEST_START = struct.Struct(">ihhih")
_NODE_IN_CLIENT_ID = re.compile(rb"(?:node|broker)-(\d+)")


class _Ways(NamedTuple):
    """The two ways of a connection: from the dialling node, and back."""

    onward: asyncio.Event
    back: asyncio.Event

    async def wait(self) -> None:
        """Wait until both are open."""
        await self.onward.wait()
        await self.back.wait()


class Links:
    """All links of a cluster. `add` them, then `cut` and `heal`; `close` ends the thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._links: list[_Link] = []
        self._ways: dict[tuple[int, int], asyncio.Event] = defaultdict(_open_way)
        self._linked: set[frozenset[int]] = set()
        self._thread = threading.Thread(target=self._run, name="cluster-links", daemon=True)
        self._thread.start()

    def add(self, source: int, target: int, address: tuple[str, int]) -> int:
        """Create the link through which `source` dials `target`; return its port."""
        self._linked.add(frozenset((source, target)))
        link = _Link(self._loop, target, address, self._between)
        link.source = source
        return self._follow(link)

    def add_shared(self, sources: Iterable[int], target: int, address: tuple[str, int]) -> int:
        """Create the link through which all of `sources` dial `target`; return its port."""
        self._linked |= {frozenset((source, target)) for source in sources}
        return self._follow(_Link(self._loop, target, address, self._between))

    def cut(self, a: int, b: int) -> None:
        """Close both ways between two nodes."""
        self.cut_one_way(a, b)
        self.cut_one_way(b, a)

    def cut_one_way(self, source: int, target: int) -> None:
        """Close the way from one node to another, for connections of both."""
        assert {source, target} in self._linked, f"there is no link between {source} and {target}"
        self._call(
            self._ways[source, target].clear,
            *(link.listen for link in self._links if link.target in (source, target)),
        )

    def heal(self) -> None:
        """Open all ways."""
        self._call(*(way.set for way in list(self._ways.values())))

    def close(self) -> None:
        """Drop all connections and end the thread."""
        self._call(*(link.close for link in self._links))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _follow(self, link: "_Link") -> int:
        self._links.append(link)
        self._call(link.follow)
        return link.port

    def _between(self, source: int, target: int) -> _Ways:
        return _Ways(self._ways[source, target], self._ways[target, source])

    def _call(self, *actions: Callable[[], None]) -> None:
        """Run these in the loop's thread, and return when they are done."""
        done: Future[None] = Future()

        def act() -> None:
            try:
                for action in actions:
                    action()
            except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                done.set_exception(error)
            else:
                done.set_result(None)

        self._loop.call_soon_threadsafe(act)
        done.result()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        pending = asyncio.all_tasks(self._loop)
        self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))


class _Link:
    """One link; everything but the constructor runs on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: int,
        address: tuple[str, int],
        between: Callable[[int, int], _Ways],
    ) -> None:
        self.target = target
        self.source: int | None = None  # the dialling node, if there is only one
        self._loop = loop
        self._address = address
        self._between = between
        # This socket is bound and never listens: it reserves the port while the link is closed.
        self._reserved = _bound_socket(0)
        self.port: int = self._reserved.getsockname()[1]
        self._listening: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._follower: asyncio.Task[None] | None = None

    # Actions of the cluster.

    def follow(self) -> None:
        """Close the link until the node listens."""
        self._stop_listening()
        if self._follower is None:
            self._follower = self._start(self._listen_with_target())

    def listen(self) -> None:
        """Accept connections even if the node does not."""
        if self._listening is None:
            self._listening = _bound_socket(self.port)
            self._listening.listen(64)
            self._listening.setblocking(False)
            self._loop.add_reader(self._listening.fileno(), self._accept, self._listening)

    def close(self) -> None:
        self._stop_listening()
        self._reserved.close()
        for task in self._tasks:
            task.cancel()

    # The listener.

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening.fileno())
            self._listening.close()
            self._listening = None

    async def _listen_with_target(self) -> None:
        delay = FIRST_POLL_SECONDS
        while self._listening is None:
            try:
                _, writer = await asyncio.open_connection(*self._address)
            except _BROKEN:
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_POLL_SECONDS)
            else:
                writer.close()
                self.listen()
        self._follower = None

    def _accept(self, listening: socket.socket) -> None:
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, ConnectionError):
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start(self._relay(connection))

    # One connection.

    async def _relay(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        with contextlib.closing(writer.transport):
            try:
                source, first = await self._who_dials(reader)
            except (asyncio.IncompleteReadError, *_BROKEN):
                return
            ways = self._between(source, self.target)
            await ways.wait()
            try:
                onward_reader, onward_writer = await asyncio.open_connection(*self._address)
            except _BROKEN:
                await ways.wait()
                self.follow()
                writer.transport.abort()
                return
            onward_writer.write(first)
            with contextlib.closing(onward_writer.transport):
                pumps = [
                    self._start(_pump(reader, onward_writer, ways.onward)),
                    self._start(_pump(onward_reader, writer, ways.back)),
                ]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                # The end of one side is the end of the other, when it gets through; and if it is
                # the node that has ended, the dialler is to be refused when it dials again.
                await ways.wait()
                await self._close_if_target_is_gone()
                for pump in pumps:
                    pump.cancel()
                writer.transport.abort()
                onward_writer.transport.abort()

    async def _who_dials(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        """Return the dialling node, and the bytes that were read to find it."""
        if self.source is not None:
            return self.source, b""
        start = await reader.readexactly(_REQUEST_START.size)
        client_id = await reader.readexactly(max(0, _REQUEST_START.unpack(start)[-1]))
        found = _NODE_IN_CLIENT_ID.search(client_id)
        return (int(found[1]) if found else _NOBODY), start + client_id

    async def _close_if_target_is_gone(self) -> None:
        try:
            _, writer = await asyncio.open_connection(*self._address)
        except _BROKEN:
            self.follow()
        else:
            writer.close()

    def _start(self, work: "asyncio._CoroutineLike[None]") -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: asyncio.Event
) -> None:
    with contextlib.suppress(*_BROKEN):
        while chunk := await reader.read(CHUNK_BYTES):
            await way.wait()
            writer.write(chunk)
            await writer.drain()


def _open_way() -> asyncio.Event:
    way = asyncio.Event()
    way.set()
    return way


def _bound_socket(port: int) -> socket.socket:
    made = socket.socket()
    # Two sockets share the port: the one that reserves it and the one that listens.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    return made
