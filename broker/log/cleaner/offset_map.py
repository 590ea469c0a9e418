"""The last offset of every key, for one round of cleaning, within a memory limit.

A key of 16 bytes or more is replaced by its 16-byte BLAKE2 hash. Two keys with the same hash would
lose a record, but such keys cannot be found in practice. A shorter key is stored as it is, and
cannot equal a hash, because its length differs.
"""

from hashlib import blake2b

HASH_BYTES = 16
ENTRY_BYTES = 224
"""The memory of one entry: a slot of the dict at its sparsest, a bytes object, an int object."""


class OffsetMap:
    """Invariant: at most `capacity` keys; `latest_offset` is the last offset that was mapped."""

    def __init__(self, memory_bytes: int) -> None:
        self.capacity = max(1, memory_bytes // ENTRY_BYTES)
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Set the offset of a key; return False if the map is full and the key is new."""
        name = key if len(key) < HASH_BYTES else blake2b(key, digest_size=HASH_BYTES).digest()
        offsets = self._offsets
        if len(offsets) >= self.capacity and name not in offsets:
            return False
        offsets[name] = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the last offset of a key, -1 for a key that is not in the map."""
        name = key if len(key) < HASH_BYTES else blake2b(key, digest_size=HASH_BYTES).digest()
        return self._offsets.get(name, -1)
