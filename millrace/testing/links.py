"""The network between the nodes of a `LocalCluster`: one link for each node that another dials.

A link is a port on loopback that passes bytes on to a node's controller listener. Cut, it swallows:
connections are accepted and stay silent, and neither bytes nor the end of a connection get through,
as on a network that drops every packet. Healed, what was held goes on.

A link that is not cut is as open as the node behind it: while nothing listens there, nothing
listens at the link either, so that a connection is refused as the node itself would refuse it. A
node that has died must be told apart from one that is silent.

All links run on one event loop in a thread of their own.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future

CHUNK_BYTES = 1 << 16
FIRST_POLL_SECONDS = 0.01
LAST_POLL_SECONDS = 0.1
_BROKEN = (ConnectionError, TimeoutError, OSError)


class Links:
    """All links of a cluster. `add` them, then `cut` and `heal`; `close` ends the thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._links: dict[tuple[int, int], _Link] = {}
        self._thread = threading.Thread(target=self._run, name="cluster-links", daemon=True)
        self._thread.start()

    def add(self, source: int, target: int, address: tuple[str, int]) -> int:
        """Make the link by which `source` dials `target`; gives its port."""
        link = _Link(self._loop, address)
        self._links[source, target] = link
        self._call(link.follow)
        return link.port

    def cut(self, a: int, b: int) -> None:
        """Let nothing through between two nodes, in either direction."""
        self._call(*(link.cut for link in self._between(a, b)))

    def heal(self) -> None:
        """Let everything through again."""
        self._call(*(link.heal for link in self._links.values()))

    def close(self) -> None:
        """Drop all connections and end the thread."""
        self._call(*(link.close for link in self._links.values()))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _between(self, a: int, b: int) -> Iterable["_Link"]:
        found = [self._links[key] for key in ((a, b), (b, a)) if key in self._links]
        assert found, f"there is no link between {a} and {b}"
        return found

    def _call(self, *actions: Callable[[], None]) -> None:
        """Do these on the loop's thread and return when they are done."""
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

    def __init__(self, loop: asyncio.AbstractEventLoop, address: tuple[str, int]) -> None:
        self._loop = loop
        self._address = address
        # Bound and never listening: it keeps the port ours while the link is closed.
        self._reserved = _bound_socket(0)
        self.port: int = self._reserved.getsockname()[1]
        self._listening: socket.socket | None = None
        self._is_through = asyncio.Event()
        self._is_through.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._follower: asyncio.Task[None] | None = None

    # What the cluster does to it.

    def cut(self) -> None:
        self._is_through.clear()
        self._listen()

    def heal(self) -> None:
        self._is_through.set()

    def follow(self) -> None:
        """Be closed until the node listens."""
        self._stop_listening()
        if self._follower is None:
            self._follower = self._start(self._listen_with_target())

    def close(self) -> None:
        self._stop_listening()
        self._reserved.close()
        for task in self._tasks:
            task.cancel()

    # The listener.

    def _listen(self) -> None:
        if self._listening is None:
            self._listening = _bound_socket(self.port)
            self._listening.listen(64)
            self._listening.setblocking(False)
            self._loop.add_reader(self._listening.fileno(), self._accept, self._listening)

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
                self._listen()
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
            await self._is_through.wait()
            try:
                onward_reader, onward_writer = await asyncio.open_connection(*self._address)
            except _BROKEN:
                self.follow()
                writer.transport.abort()
                return
            with contextlib.closing(onward_writer.transport):
                pumps = [
                    self._start(self._pump(reader, onward_writer)),
                    self._start(self._pump(onward_reader, writer)),
                ]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                # The end of one side is the end of the other, when it gets through; and if it is
                # the node that has ended, the dialler is to be refused when it dials again.
                await self._is_through.wait()
                await self._close_if_target_is_gone()
                for pump in pumps:
                    pump.cancel()
                writer.transport.abort()
                onward_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*_BROKEN):
            while chunk := await reader.read(CHUNK_BYTES):
                await self._is_through.wait()
                writer.write(chunk)
                await writer.drain()

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


def _bound_socket(port: int) -> socket.socket:
    made = socket.socket()
    # Two sockets share the port: the one that reserves it and the one that listens.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    return made
