"""Decides when a read has enough records. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Reading:
    """Counts the bytes that a read returns.

    A read ends before the record that would exceed `max_bytes`, or when it has `min_bytes` (-1: it
    waits for its whole time). The first record is always returned, whatever its size: otherwise a
    record above `max_bytes` would block its partition for ever.
    """

    max_bytes: int
    min_bytes: int
    read_bytes: int = 0
    count: int = 0

    def has_room(self, record_bytes: int) -> bool:
        """Return whether a record may still be returned."""
        return self.count == 0 or self.read_bytes + record_bytes <= self.max_bytes

    def take(self, record_bytes: int) -> None:
        self.read_bytes += record_bytes
        self.count += 1

    def is_enough(self) -> bool:
        if not self.count:
            return False
        return self.read_bytes >= self.max_bytes or 0 <= self.min_bytes <= self.read_bytes
