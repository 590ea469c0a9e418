"""The messages that are under way: which came back in time, and which are lost."""

from typing import NamedTuple


class Message(NamedTuple):
    """One message; times are monotonic seconds."""

    partition: int
    sent_at: float


class Tally:
    """Owns the messages under way. One that takes longer than `lost_seconds` is lost, for good."""

    def __init__(self, lost_seconds: float) -> None:
        self._lost_seconds = lost_seconds
        self._under_way: dict[int, Message] = {}
        """By number, in order of sending."""
        self._next = 0

    def send(self, partition: int, now: float) -> int:
        """Return the number of a message that is sent now."""
        number = self._next
        self._next += 1
        self._under_way[number] = Message(partition, now)
        return number

    def fail(self, number: int) -> None:
        """Forget a message that was not accepted: it cannot come back."""
        self._under_way.pop(number, None)

    def receive(self, number: int, now: float) -> tuple[int, float] | None:
        """Return the partition and the seconds of a message that came back; None if it is late.

        A message that comes twice counts once.
        """
        message = self._under_way.pop(number, None)
        return None if message is None else (message.partition, now - message.sent_at)

    def take_lost(self, now: float) -> list[int]:
        """Return the partition of each message that is lost by now."""
        lost = []
        for number, message in list(self._under_way.items()):
            if now - message.sent_at <= self._lost_seconds:
                break
            del self._under_way[number]
            lost.append(message.partition)
        return lost

    def __len__(self) -> int:
        """Return the number of messages under way."""
        return len(self._under_way)
