"""The last offset of every key, for one round of cleaning, within a memory limit.

Keys of 16 bytes and more are replaced by a 16-byte BLAKE2 hash: two keys that were taken for one
would cost a record, and nobody can find two with the same hash. Shorter keys stand for themselves
and cannot be mistaken for a hash, having another length.
"""

from hashlib import blake2b

HASH_BYTES = 16
ENTRY_BYTES = 224
"""What an entry costs: slot of the dict at its sparsest, bytes object, int object."""


class OffsetMap:
    """Invariant: never more than `capacity` keys; `latest_offset` is how far the map has seen."""

    def __init__(self, memory_bytes: int) -> None:
        self.capacity = max(1, memory_bytes // ENTRY_BYTES)
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note the offset of a key; False when the map is full and the key is new."""
        name = key if len(key) < HASH_BYTES else blake2b(key, digest_size=HASH_BYTES).digest()
        offsets = self._offsets
        if len(offsets) >= self.capacity and name not in offsets:
            return False
        offsets[name] = offset
        return True

    def get(self, key: bytes) -> int:
        """Give the last offset of a key, -1 for a key that is not in the map."""
        name = key if len(key) < HASH_BYTES else blake2b(key, digest_size=HASH_BYTES).digest()
        return self._offsets.get(name, -1)
