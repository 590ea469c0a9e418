"""Read and write JSON as Jackson does, so that the bytes equal those of Kafka's JsonConverter.

The writer puts no blanks and escapes only what JSON requires, and characters beyond the first
65,536, which Jackson writes as two escapes. It writes numbers as Java does. The reader, like
Kafka's deserializer, allows leading zeros and ignores everything after the first value. It refuses
NaN and Infinity. Without a schema it also refuses a number of more than 64 bits.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal, DecimalException
from json.encoder import encode_basestring
from typing import Any

from common.process.json_text import NotJsonError, check_unicode
from millstream.connect.data.java_text import java_double, java_float
from millstream.connect.errors import DataException

# Python writes \u001f where Jackson writes \u001F; only these escapes contain a letter. Jackson
# also writes a character of two surrogates as two escapes.
_JACKSONS = re.compile("[\x0b\x0e\x0f\x1a-\x1f\U00010000-\U0010ffff]")
_LEADING_ZEROS = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+])(-?)0+(?=[0-9])', re.DOTALL)
_MAYBE_LEADING_ZEROS = re.compile(r"(?<![\w.+])-?0[0-9]")
_BLANKS = " \t\n\r"
_BLANK = re.compile(f"[{_BLANKS}]*")
INT64_END = 1 << 63
_MAX_DIGITS = 300


def quoted(text: str) -> str:
    """Return a string as JSON, in quotes."""
    if _JACKSONS.search(text) is None:
        return encode_basestring(text)
    parts = re.split(f"({_JACKSONS.pattern})", text)
    parts[::2] = [encode_basestring(part)[1:-1] for part in parts[::2]]
    parts[1::2] = [_escaped(part) for part in parts[1::2]]
    return f'"{"".join(parts)}"'


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be").hex().upper()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def number(value: float) -> str:
    """Return a float of 64 bits as JSON. NaN and infinities, unknown to JSON, are quoted."""
    text = java_double(value)
    return text if value - value == 0 else f'"{text}"'


def number32(value: float) -> str:
    """Return a float of 32 bits as JSON."""
    text = java_float(value)
    return f'"{text}"' if text[-1] in "Ny" else text


def _refuse(constant: str) -> None:
    raise DataException(f"Not JSON: {constant}")


def _exact(text: str) -> Decimal:
    try:
        return Decimal(text)
    except DecimalException:
        raise DataException(f"Number out of range: {text:.40}") from None


def long(value: int) -> int:
    """Return an integer if it fits into 64 bits (a Java long); otherwise raise DataException."""
    if not -INT64_END <= value < INT64_END:
        raise DataException(f"An integer of more than 64 bits: {value!s:.40}")
    return value


def _whole(text: str) -> int:
    # The time to convert digits grows faster than their number, so long ones are refused first.
    if len(text) > _MAX_DIGITS:
        raise DataException(f"An integer of more than 64 bits: {text:.40}")
    return int(text)


def _reader(parse_float: Callable[[str], Any], parse_int: Callable[[str], int]) -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=parse_float, parse_int=parse_int, parse_constant=_refuse)


EXACT = _reader(_exact, _whole)  # for values with a schema, which may be decimals
PLAIN = _reader(float, lambda text: int(text) if len(text) < 19 else long(_whole(text)))


def text_of(value: bytes) -> str:
    """Decode the bytes of JSON from UTF-8, UTF-16 or UTF-32, detected by their first bytes."""
    try:
        return value.decode(json.detect_encoding(value))
    except UnicodeDecodeError as error:
        raise DataException(f"Not JSON: {error}") from error


def read(text: str, reader: json.JSONDecoder) -> Any:
    """Return the first JSON value of a text; None if the text has none."""
    if _MAYBE_LEADING_ZEROS.search(text) is not None:
        text = _LEADING_ZEROS.sub(lambda found: found[1] or found[2] or "", text)
    value, end = read_at(text, 0, reader)
    if end < len(text):
        _require_end(value, text[end])
    return value


def _require_end(value: Any, following: str) -> None:
    """Refuse a number or a word with a wrong ending, as in 1.x, 7- or trueish."""
    is_word = value is None or isinstance(value, bool)
    is_number = not is_word and isinstance(value, int | float | Decimal)
    if (is_number and following not in _BLANKS) or (is_word and following.isalnum()):
        raise DataException(f"Not JSON: {following!r} after {value!s:.40}")


def read_at(text: str, start: int, reader: json.JSONDecoder) -> tuple[Any, int]:
    """Return the JSON value that begins at `place`, and the position after its end."""
    found = _BLANK.match(text, start)
    start = found.end() if found is not None else start
    if start == len(text):
        return None, start
    try:
        value, end = reader.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise DataException(f"Not JSON: {error}") from error
    except RecursionError:
        raise DataException("The JSON is nested too deeply") from None
    try:
        check_unicode(value, text, start, end)
    except NotJsonError as error:
        raise DataException(f"Not JSON: {error}") from None
    return value, end
