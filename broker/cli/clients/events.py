"""The lines of JSON by which the verifiable clients tell a system test what they do."""

import json
import signal
import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING

from broker.cli.arguments import ToolFailed, ToolParser
from broker.cli.clients.library import check_received, error_text
from broker.server.clock import Clock

if TYPE_CHECKING:
    from confluent_kafka import Message


def add_consumer_flags(parser: ToolParser, group: str) -> None:
    """Add the flags that both verifiable consumers have; `group` is the kind of the group."""
    for flag, metavar, text in (
        ("topic", "TOPIC", "the topic to consume"),
        ("bootstrap-server", "HOST:PORT,...", "the brokers to connect to"),
        ("group-id", "GROUP", f"the {group}"),
    ):
        parser.add_argument(f"--{flag}", required=True, metavar=metavar, help=text)
    parser.add_argument("--verbose", action="store_true", help="print every message too")
    parser.add_argument(
        "--command-config", metavar="FILE", help="a properties file with settings of the clients"
    )


class Events:
    """Prints events; each has the time and a name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def tell(self, name: str, **more: object) -> None:
        event = {"timestamp": self._clock.timestamp_ms(), "name": name, **more}
        print(json.dumps(event, separators=(",", ":"), ensure_ascii=False))
        sys.stdout.flush()

    def tell_record(self, message: "Message", topic: str, partition: int) -> None:
        self.tell(
            "record_data",
            key=_text(message.key()),
            value=_text(message.value()),
            topic=topic,
            partition=partition,
            offset=message.offset(),
        )


class StopRequest:
    """SIGINT and SIGTERM as a flag: whoever watches it has yet to print how it ended."""

    def __init__(self) -> None:
        self.exit_status = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.exit_status = 128 + number


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


Received = dict[tuple[str, int], "list[Message]"]
"""Messages by topic and partition."""


def by_partition(messages: "Iterable[Message]", *, must_succeed: bool = False) -> Received:
    """Return the messages by partition, with a warning for each error that is among them.

    Raise ToolFailed for a fatal error, and for every error if the poll `must_succeed`.
    """
    received: Received = {}
    for message in messages:
        error = message.error()
        if error is None:
            place = message.topic() or "", message.partition() or 0
            received.setdefault(place, []).append(message)
        elif must_succeed:
            raise ToolFailed(error_text(error))
        else:
            check_received(error)
    return received


def tell_each(events: Events, received: "Mapping[tuple[str, int], list[Message]]") -> None:
    """Tell of every message."""
    for (topic, partition), messages in received.items():
        for message in messages:
            events.tell_record(message, topic, partition)
