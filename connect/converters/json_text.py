"""JSON as Jackson reads and writes it, so that the bytes are those of Kafka's JsonConverter.

Written: no blanks, nothing escaped that need not be, numbers as Java writes them. Read: leading
zeros are allowed and what follows the first value is not looked at, as Kafka's deserializer does
it; a number of more than 64 bits, NaN and Infinity are refused.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal, DecimalException
from json.encoder import encode_basestring
from typing import Any

from millrace.connect.data.java_text import java_double, java_float
from millrace.connect.errors import DataException

# Python writes \u001f where Jackson writes \u001F: only these have letters in their number.
_WITH_LETTERS = re.compile("[\x0b\x0e\x0f\x1a-\x1f]")
_LEADING_ZEROS = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+])(-?)0+(?=[0-9])', re.DOTALL)
_MAYBE_LEADING_ZEROS = re.compile(r"(?<![\w.+])-?0[0-9]")
_BLANK = re.compile(r"[ \t\n\r]*")
INT64_END = 1 << 63


def quoted(text: str) -> str:
    """Write a text."""
    if _WITH_LETTERS.search(text) is None:
        return encode_basestring(text)
    parts = re.split(f"({_WITH_LETTERS.pattern})", text)
    parts[::2] = [encode_basestring(part)[1:-1] for part in parts[::2]]
    parts[1::2] = [f"\\u{ord(part):04X}" for part in parts[1::2]]
    return f'"{"".join(parts)}"'


def number(value: float) -> str:
    """Write a floating-point number; JSON has none that is not finite, so those are quoted."""
    text = java_double(value)
    return text if value - value == 0 else f'"{text}"'


def number32(value: float) -> str:
    """Write a floating-point number of 32 bits."""
    text = java_float(value)
    return f'"{text}"' if text[-1] in "Ny" else text


def _refuse(constant: str) -> None:
    raise DataException(f"Not JSON: {constant}")


def _exact(text: str) -> Decimal:
    try:
        return Decimal(text)
    except DecimalException:
        raise DataException(f"Not a number this can hold: {text:.40}") from None


def _long(text: str) -> int:
    if len(text) < 19:
        return int(text)
    value = int(text) if len(text) <= 1000 else INT64_END
    if not -INT64_END <= value < INT64_END:
        raise DataException(f"A whole number of more than 64 bits: {text:.40}")
    return value


def _reader(parse_float: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=parse_float, parse_int=_long, parse_constant=_refuse)


EXACT = _reader(_exact)  # for values with a schema, which may be decimals
PLAIN = _reader(float)


def text_of(value: bytes) -> str:
    """Decode the bytes of JSON: UTF-8, or UTF-16 or 32 when they look so."""
    try:
        return value.decode(json.detect_encoding(value))
    except UnicodeDecodeError as error:
        raise DataException(f"Not JSON: {error}") from error


def read(text: str, reader: json.JSONDecoder) -> Any:
    """Return the first value of a text, None when there is none."""
    if _MAYBE_LEADING_ZEROS.search(text) is not None:
        text = _LEADING_ZEROS.sub(lambda found: found[1] or found[2] or "", text)
    return read_at(text, 0, reader)[0]


def read_at(text: str, start: int, reader: json.JSONDecoder) -> tuple[Any, int]:
    """Return the value that begins at a place in a text, and where it ends."""
    found = _BLANK.match(text, start)
    start = found.end() if found is not None else start
    if start == len(text):
        return None, start
    try:
        return reader.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise DataException(f"Not JSON: {error}") from error
    except RecursionError:
        raise DataException("Not JSON that can be read: nested too deeply") from None
