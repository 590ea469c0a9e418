"""Shorten, mask or hash strings of columns: `column.truncate.*`, `column.mask.*`. Does no IO.

The hashes equal Debezium's: a digest of the salt and the string, in hex, cut to the column's
length. `column.mask.hash.ALGORITHM...` uses Java's serialized form of the string,
`column.mask.hash.v2.ALGORITHM...` the string itself.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from connect.connectors.name_patterns import Patterns, patterns_in
from millstream.connect import ConfigException

_TRUNCATE: Final = re.compile(r"column\.truncate\.to\.(\d{1,9})\.chars")
_STARS: Final = re.compile(r"column\.mask\.with\.(\d{1,9})\.chars")
_HASH: Final = re.compile(r"column\.mask\.hash\.(v2\.)?([^.]+)\.with\.salt\.(.+)")
_PREFIXES: Final = ("column.truncate.", "column.mask.")

Mask = Callable[[str | None, int], str | None]
"""Returns the masked string; the second argument is the column's length, 0 for no limit."""


class Masks:
    """The settings of one configuration that mask strings."""

    def __init__(self, settings: Mapping[str, str | None]) -> None:
        """Raise ConfigException for invalid settings."""
        self._masks: list[tuple[Patterns, Mask]] = []
        for name, value in settings.items():
            if name.startswith(_PREFIXES):
                self._masks.append((Patterns(patterns_in(value or "")), _mask(name)))

    def of(self, *names: str) -> list[Mask]:
        """Return the function that masks a column's strings, by its names `schema.table.column`."""
        return [mask for patterns, mask in self._masks if patterns.match(*names)]


def _mask(name: str) -> Mask:
    if match := _TRUNCATE.fullmatch(name):
        length = int(match[1])
        return lambda text, _: None if text is None else text[:length]
    if match := _STARS.fullmatch(name):
        stars = "*" * int(match[1])
        return lambda text, _: stars
    match = _HASH.fullmatch(name)
    if match is None:
        raise ConfigException(f"{name} lacks its length, or its algorithm and its salt")
    is_serialised, algorithm, salt = match[1] is None, match[2], match[3].encode()
    try:
        hashlib.new(algorithm.replace("-", "").lower())
    except ValueError:
        raise ConfigException(f"{name} names an unknown hash algorithm") from None

    def hashed(text: str | None, length: int) -> str | None:
        if text is None:
            return None
        octets = _serialised(text) if is_serialised else text.encode()
        digest = hashlib.new(algorithm.replace("-", "").lower(), salt + octets)
        return digest.hexdigest()[: length or None]

    return hashed


def _serialised(text: str) -> bytes:
    """Return a string as Java's ObjectOutputStream writes it (Object Serialization, chapter 6)."""
    octets = text.encode("utf-16-be", "surrogatepass")
    modified = b"".join(_modified(octets[at : at + 2]) for at in range(0, len(octets), 2))
    if len(modified) < 1 << 16:
        return b"\xac\xed\x00\x05t" + len(modified).to_bytes(2, "big") + modified
    return b"\xac\xed\x00\x05|" + len(modified).to_bytes(8, "big") + modified


def _modified(unit: bytes) -> bytes:
    """Return a UTF-16 unit in Java's modified UTF-8: no zero byte, surrogates one by one."""
    if unit == b"\0\0":
        return b"\xc0\x80"
    return unit.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
