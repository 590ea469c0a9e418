"""Kinds of damage to a single file, as from a bad disk or a wrong action of a person."""

from collections.abc import Callable
from random import Random

Damage = Callable[[Random, bytes], bytes | None]
"""The contents of the damaged file; None if it is deleted."""

BATCH_HEADER_BYTES = 61
UNCHECKED = {*range(8), *range(12, 16)}
"""The base offset and leader epoch of a batch, which the leader writes and no CRC covers."""


def _flip(random: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def flip_in_log(random: Random, data: bytes) -> bytes:
    """Flip a bit of a file of batches that a checksum or a length covers."""
    if not data:
        return data
    starts, position = set(), 0
    while position + 12 <= len(data):
        starts |= {position + offset for offset in UNCHECKED}
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    at = random.choice([at for at in range(len(data)) if at not in starts])
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _cut(random: Random, data: bytes) -> bytes:
    return data[: random.randint(max(0, len(data) - 100), len(data))]


def _cut_anywhere(random: Random, data: bytes) -> bytes:
    return data[: random.randint(0, len(data))]


def _zero_tail(random: Random, data: bytes) -> bytes:
    start = random.randint(0, len(data))
    return data[:start] + bytes(len(data) - start)


def _zero_part(random: Random, data: bytes) -> bytes:
    start = random.randint(0, len(data))
    end = random.randint(start, len(data))
    return data[:start] + bytes(end - start) + data[end:]


def _zero(random: Random, data: bytes) -> bytes:
    return bytes(len(data))


def _empty(random: Random, data: bytes) -> bytes:
    return b""


def _delete(random: Random, data: bytes) -> None:
    return None


def _garbage_behind(random: Random, data: bytes) -> bytes:
    return data + random.randbytes(random.randint(1, 200))


def _garbage(random: Random, data: bytes) -> bytes:
    return random.randbytes(random.randint(1, len(data) + 1))


DAMAGES: dict[str, Damage] = {
    "flipped": _flip,
    "cut": _cut,
    "cut anywhere": _cut_anywhere,
    "zero tail": _zero_tail,
    "zero part": _zero_part,
    "zeroed": _zero,
    "emptied": _empty,
    "deleted": _delete,
    "garbage behind": _garbage_behind,
    "garbage": _garbage,
}
