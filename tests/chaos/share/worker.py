"""`python -m tests.chaos.share.worker`: one member of the share group, until it is killed.

It accepts most records, releases some, and keeps a book (`books`) of what it wants and is told.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

POLL_SECONDS = 0.5
COMMIT_SECONDS = 20.0
RELEASE_CHANCE = 0.04
WORK_SECONDS = 0.01
INVALID_RECORD_STATE = 121


class Book:
    """The lines of one worker; each is in the file when it returns."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("a", buffering=1)

    def note(self, what: str, places: list[tuple[int, int]]) -> None:
        """Write a line."""
        if places:
            self._file.write(json.dumps([time.monotonic(), what, places]) + "\n")


def outcome_of(error: KafkaException | None) -> str:
    """Return what an answer says: after most errors the change may be stored."""
    if error is None:
        return "accepted"
    return "refused" if error.args[0].code() == INVALID_RECORD_STATE else "unanswered"


def work(consumer: ShareConsumer, book: Book, source: random.Random) -> None:
    """Handle the records of one poll."""
    messages = [message for message in consumer.poll(POLL_SECONDS) if message.error() is None]
    if not messages:
        return
    book.note("begun", [(message.partition(), message.offset()) for message in messages])
    wanted: dict[int, list[int]] = {}
    released: list[tuple[int, int]] = []
    for message in messages:
        if source.random() < RELEASE_CHANCE:
            consumer.acknowledge(message, AcknowledgeType.RELEASE)
            released.append((message.partition(), message.offset()))
        else:
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            wanted.setdefault(message.partition(), []).append(message.offset())
    time.sleep(WORK_SECONDS)
    book.note("wanted", [(number, offset) for number in wanted for offset in wanted[number]])
    results = consumer.commit_sync(COMMIT_SECONDS)
    for place, error in results.items():
        offsets = wanted.pop(place.partition, [])
        book.note(outcome_of(error), [(place.partition, offset) for offset in offsets])
    book.note("released", released)


def main(arguments: list[str]) -> int:
    """Work until the process is killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.share.worker", description=__doc__)
    for name in ("bootstrap", "topic", "group", "book"):
        parser.add_argument(f"--{name}", required=True)
    parsed = parser.parse_args(arguments)
    book, source = Book(Path(parsed.book)), random.Random(parsed.book)
    settings = {
        "bootstrap.servers": parsed.bootstrap,
        "group.id": parsed.group,
        "share.acknowledgement.mode": "explicit",
        "socket.timeout.ms": 10_000,
        "log_level": 0,
    }
    with ShareConsumer(settings) as consumer:
        consumer.subscribe([parsed.topic])
        while True:
            try:
                work(consumer, book, source)
            except KafkaException as error:
                sys.stderr.write(f"{error}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
