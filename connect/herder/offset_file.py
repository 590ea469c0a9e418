"""The format of a standalone worker's offsets file, which is Kafka Connect's format.

Kafka writes a Java `HashMap<byte[], byte[]>` with Java's object serialization (the grammar is in
chapter 6 of its specification). This module reads and writes exactly that: one map whose keys are
byte arrays and whose values are byte arrays or null. It refuses all other content, since a Java
object stream can create objects of any class.
"""

import struct
from collections.abc import Mapping
from typing import Final

_HEADER: Final = bytes.fromhex("aced0005")
_MAP: Final = (
    b"\x73\x72\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02"
    b"F\x00\nloadFactorI\x00\tthresholdxp"
)
_BYTES_CLASS: Final = b"\x72\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
_NULL: Final = 0x70
_REFERENCE: Final = 0x71
_ARRAY: Final = 0x75
_END: Final = 0x78
_LOAD_FACTOR: Final = 0.75
_FIRST_HANDLE: Final = 0x7E0000
_BYTES_CLASS_HANDLE: Final = _FIRST_HANDLE + 2
_FIRST_ARRAY_HANDLE: Final = _FIRST_HANDLE + 3
_LEAST_CAPACITY: Final = 16


class OffsetFileError(Exception):
    """The file is not an offsets file."""


def encode_offset_file(entries: Mapping[bytes, bytes | None]) -> bytes:
    capacity = _LEAST_CAPACITY
    while capacity * _LOAD_FACTOR < len(entries):
        capacity *= 2
    threshold = int(capacity * _LOAD_FACTOR)
    parts = [_HEADER, _MAP, struct.pack(">fi", _LOAD_FACTOR, threshold)]
    parts.append(b"\x77\x08" + struct.pack(">ii", capacity, len(entries)))
    array_class = _BYTES_CLASS
    for data in (each for entry in entries.items() for each in entry):
        if data is None:
            parts.append(bytes([_NULL]))
            continue
        parts.append(bytes([_ARRAY]) + array_class + struct.pack(">i", len(data)) + data)
        array_class = bytes([_REFERENCE]) + struct.pack(">i", _BYTES_CLASS_HANDLE)
    parts.append(bytes([_END]))
    return b"".join(parts)


def decode_offset_file(data: bytes) -> dict[bytes, bytes | None]:
    """Read the entries. Raises OffsetFileError."""
    try:
        return _Reader(data).read()
    except struct.error as error:
        raise OffsetFileError("the file ends too early") from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._arrays: list[bytes] = []
        self._is_class_known = False

    def read(self) -> dict[bytes, bytes | None]:
        self._expect(_HEADER)
        self._expect(_MAP)
        self._at += 8  # The load factor and the threshold, which do not matter here.
        self._expect(b"\x77\x08")
        self._number()  # The capacity, which does not matter either.
        entries: dict[bytes, bytes | None] = {}
        for _ in range(self._number()):
            key = self._object()
            if key is None:
                raise OffsetFileError("an entry has no key")
            entries[key] = self._object()
        self._expect(bytes([_END]))
        return entries

    def _object(self) -> bytes | None:
        kind = self._byte()
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._known_array()
        if kind != _ARRAY:
            raise OffsetFileError(f"byte {self._at - 1} begins no byte array")
        if self._is_class_known:
            self._expect(bytes([_REFERENCE]) + struct.pack(">i", _BYTES_CLASS_HANDLE))
        else:
            self._expect(_BYTES_CLASS)
            self._is_class_known = True
        length = self._number()
        if not 0 <= length <= len(self._data) - self._at:
            raise OffsetFileError("the file ends too early")
        array = self._data[self._at : self._at + length]
        self._at += length
        self._arrays.append(array)
        return array

    def _known_array(self) -> bytes:
        index = self._number() - _FIRST_ARRAY_HANDLE
        if not 0 <= index < len(self._arrays):
            raise OffsetFileError("a reference leads nowhere")
        return self._arrays[index]

    def _expect(self, expected: bytes) -> None:
        if self._data[self._at : self._at + len(expected)] != expected:
            raise OffsetFileError(f"byte {self._at} is not what Kafka Connect writes")
        self._at += len(expected)

    def _byte(self) -> int:
        (value,) = struct.unpack_from(">B", self._data, self._at)
        self._at += 1
        return int(value)

    def _number(self) -> int:
        (value,) = struct.unpack_from(">i", self._data, self._at)
        self._at += 4
        return int(value)
