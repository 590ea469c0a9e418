"""What the verifiable consumers do with the messages of a poll."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.cli.arguments import ToolFailed
from broker.cli.clients.library import check_received, error_text

if TYPE_CHECKING:
    from confluent_kafka import Message

    from broker.cli.clients.events import Events

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


def tell_each(events: "Events", received: "Mapping[tuple[str, int], list[Message]]") -> None:
    """Tell of every message."""
    for (topic, partition), messages in received.items():
        for message in messages:
            events.tell_record(message, topic, partition)
