"""A whole node in this process, without sockets: thousands of frames a second, and every exception.

The calls scheduled on the event loop run after each frame; their exceptions count too.
"""

import asyncio
import logging
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.config.oauth_config import HANDLER, UNSECURED_HANDLER
from broker.server.network.listener import Listener
from broker.server.node import Node, Stop
from common.kafka.protocol.framing import decode_response
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.processes.settings_files import PLAIN_MODULE, login_text
from tests.fuzz.valid_requests import BROKER, CONTROLLER, LOGGED_IN, TOKENS, TOPIC, World, before
from tests.lib.quorum_nodes import free_ports


def combined_settings() -> dict[str, str]:
    """Return the settings of a node that is broker and controller, with a listener for each.

    A third listener has every mechanism of SASL but GSSAPI, which needs a Kerberos realm.
    """
    broker_port, controller_port, sasl_port = free_ports(3)
    listeners = (
        f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port},"
        f"USERS://127.0.0.1:{sasl_port}"
    )
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT"
        ),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "sasl.enabled.mechanisms": ",".join(TOKENS),
        "connection.failed.authentication.delay.ms": "0",
        "delegation.token.secret.key": "fuzz-secret",
        "listener.name.users.plain.sasl.jaas.config": login_text(
            PLAIN_MODULE, user_alice="alice-secret"
        ),
        f"listener.name.users.oauthbearer.{HANDLER}": UNSECURED_HANDLER,
    }


STEPS_AFTER_ANSWER = 3
"""Turns of the loop for the work that a request leaves after its answer."""


WITHOUT_RIGHTS: Mapping[str, str] = MappingProxyType(
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)
"""Those who log in have no rights; the clients of the other listeners, the node too, have all."""
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class Finding(Exception):  # noqa: N818 - what a fuzzer finds, not an error of its own
    """A frame caused an exception, or a logged stack trace."""


class Stacks(logging.Handler):
    """Collects log records with a stack trace: each is a bug, also if it was caught."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record with a stack trace, and any critical one."""
        if record.exc_info or record.levelno >= logging.CRITICAL:
            self.found.append(logging.Formatter("%(message)s").format(record))


class _LoopbackSocket(socket.socket):
    """An end of a socket pair with an address, as the socket of a TCP connection has one."""

    def getpeername(self) -> tuple[str, int]:
        """Return an address of this machine."""
        return "127.0.0.1", 50_000


class InProcessNode:
    """One node as its own quorum; `send` raises the errors that a node logs with a stack trace."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.loop = asyncio.new_event_loop()
        self.failures: list[str] = []
        self._stacks = Stacks()
        logging.getLogger("millstream").addHandler(self._stacks)
        self.loop.set_exception_handler(self._on_loop_failure)
        config = BrokerConfig.from_settings(
            {**combined_settings(), **settings, "log.dir": str(folder)}
        )
        self.node = Node(config, cluster_id=None)
        self.stop = Stop()
        self.loop.run_until_complete(self.node.open(self.stop))
        broker, quorum = self.node._broker, self.node._quorum
        assert broker is not None
        assert quorum is not None
        self.quorum = quorum
        self._listeners: dict[str, Listener] = {
            BROKER: broker.listeners._by_name["PLAINTEXT"],
            CONTROLLER: quorum._listeners._listeners["CONTROLLER"],
            **dict.fromkeys((LOGGED_IN, *TOKENS), broker.listeners._by_name["USERS"]),
        }
        self.create_topic(TOPIC)
        self.world = World(
            quorum.cluster_id, quorum.image.topics.by_name[TOPIC].topic_id, str(folder)
        )

    def _on_loop_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.failures.append(f"{context.get('message')}: {error!r}")

    def create_topic(self, name: str) -> None:
        """Create a topic of two partitions."""
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic])
        self.quorum.channel.ask(request, 7, lambda answer: None, timeout_ms=1_000)

    def send(
        self,
        listener: str,
        frame: bytes,
        *,
        steps: int = STEPS_AFTER_ANSWER,
        answer_seconds: float = 0,
    ) -> list[bytes]:
        """Send a frame to a listener; return the answers that arrive soon, or raise Finding.

        What has to come `before` the frame is sent too, and its answers are left out.
        Soon is within a count of turns of the loop, fewer after an answer. For an answer that is
        certain and uses the node's own sockets, the wait has a time limit instead.
        """
        deadline = time.monotonic() + answer_seconds
        ours, other_end = socket.socketpair()
        theirs = _LoopbackSocket(fileno=other_end.detach())
        ours.setblocking(False)
        theirs.setblocking(False)
        accepting = self._listeners[listener]
        connection = accepting.acceptor.connect(theirs, "127.0.0.1")
        accepting._counts.add(accepting._name, connection.peer.host)
        accepting._add(connection)
        first = before(listener, frame)
        unsent, answers = memoryview(b"".join(map(_sized, [*first, frame]))), bytearray()
        with ours:
            while not connection.is_closed and (
                steps > 0
                or (not _has_whole(answers, len(first) + 1) and time.monotonic() < deadline)
            ):
                unsent = unsent[_sent(ours, unsent) :]
                self.loop.run_until_complete(asyncio.sleep(0))
                answers += _received(ours)
                steps -= not unsent
                if _has_whole(answers, len(first) + 1):
                    steps = min(steps, STEPS_AFTER_ANSWER)
            answers += _received(ours)
            connection.close()
        self._check()
        return list(_split(bytes(answers)))[len(first) :]

    def _check(self) -> None:
        found = self._stacks.found + self.failures
        if self.stop.failure is not None:
            found.append(f"the node stops: {self.stop.failure}")
        if found:
            self._stacks.found.clear()
            self.failures.clear()
            raise Finding("\n".join(found))

    def close(self) -> None:
        """Stop it."""
        logging.getLogger("millstream").removeHandler(self._stacks)
        self.loop.run_until_complete(self.node.stop())
        self.loop.close()


def _has_whole(answers: bytearray, count: int) -> bool:
    """Tell whether as many answers have arrived to their end."""
    position = 0
    for _ in range(count):
        if len(answers) < position + 4:
            return False
        position += 4 + int.from_bytes(answers[position : position + 4], "big")
    return len(answers) >= position


def _sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def _sent(ours: socket.socket, data: memoryview) -> int:
    try:
        return ours.send(data) if data else 0
    except (BlockingIOError, BrokenPipeError):
        return 0


def _received(ours: socket.socket) -> bytes:
    received = bytearray()
    try:
        while data := ours.recv(1 << 16):
            received += data
    except (BlockingIOError, ConnectionResetError):
        pass
    return bytes(received)


def _split(answers: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(answers):
        size = int.from_bytes(answers[position : position + 4], "big")
        yield answers[position + 4 : position + 4 + size]
        position += 4 + size


def answer_to(frame: bytes, answers: list[bytes]) -> Any:
    """Decode the answer to a frame that was valid."""
    key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    (answer,) = answers
    return decode_response(key, version, answer)[1]


@contextmanager
def in_process_node(settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[InProcessNode]:
    """Run a node in its own folder, with a quiet log: most messages are about bad frames."""
    logger = logging.getLogger("millstream")
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    with tempfile.TemporaryDirectory(prefix="millstream-fuzz-") as folder:
        node = InProcessNode(Path(folder), settings)
        try:
            yield node
        finally:
            node.close()
            logger.setLevel(logging.NOTSET)
            logger.propagate = True
