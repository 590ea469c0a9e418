"""Dead letters: records that could not be handled, set aside with the reason.

A dead letter is the record as it came, with headers that say what is wrong with it and where it
was: those of the services and of the streams alike, so one tool reads both.
"""

from typing import NamedTuple

from common.kafka.topics import Topic

_REASON_MAX_CHARACTERS = 2000


class Origin(NamedTuple):
    """Where a record was read."""

    topic: str
    partition: int
    offset: int


def dead_letter_of(topic: str) -> str:
    """Return the topic that takes what cannot be handled of a topic."""
    return f"{topic}.dead-letter"


def dead_letter_topic(topic: str) -> Topic:
    """Return that topic as it is created: in one partition, since its keys meet no others."""
    return Topic(dead_letter_of(topic), 1, is_counted=False)


def reason_of(error: Exception) -> str:
    """Return what the headers say of an error."""
    return f"{type(error).__name__}: {error}"[:_REASON_MAX_CHARACTERS]


def dead_letter_headers(origin: Origin, application: str, reason: str) -> list[tuple[str, bytes]]:
    """Return the headers that a record gets besides its own."""
    return [
        ("dead-letter-reason", reason.encode(errors="backslashreplace")),
        ("dead-letter-application", application.encode()),
        ("dead-letter-topic", origin.topic.encode()),
        ("dead-letter-partition", str(origin.partition).encode()),
        ("dead-letter-offset", str(origin.offset).encode()),
    ]
