"""When a read has enough. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Reading:
    """Counts what a read gives.

    It ends with the record after which the next one would pass `max_bytes`, or with `min_bytes`
    (-1: it waits all its time). The first record is always given, however large: otherwise a record
    above `max_bytes` would block its partition for ever.
    """

    max_bytes: int
    min_bytes: int
    read_bytes: int = 0
    count: int = 0

    def has_room(self, record_bytes: int) -> bool:
        """Tell whether a record may still be given."""
        return self.count == 0 or self.read_bytes + record_bytes <= self.max_bytes

    def take(self, record_bytes: int) -> None:
        self.read_bytes += record_bytes
        self.count += 1

    def is_enough(self) -> bool:
        if not self.count:
            return False
        return self.read_bytes >= self.max_bytes or 0 <= self.min_bytes <= self.read_bytes
