"""Reads JSON that others sent, strictly: what is read here can be written again for every client.

Python's reader also takes NaN, numbers that become infinite, bytes that are no UTF-8, and halves of
surrogate pairs (`"\\ud800"`). A text with such a half is no Unicode: it has no UTF-8, and a library
in C may end the process when it gets one (librdkafka's binding does). So it is refused where a text
comes in, and nothing behind that place has to look again.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that is half of a pair, or the beginning of a whole pair."""
NO_UNICODE: Final = "a text has half of a surrogate pair, which is no Unicode"


class NotJsonError(ValueError):
    """The text is not JSON, or not Unicode; the message has the reason."""


def read_json(
    data: bytes | str,
    parse_float: Callable[[str], Any] | None = None,
    *,
    may_have_halves: bool = False,
) -> Any:
    """Return the value of a text or of its bytes (UTF-8, -16 or -32; RFC 8259 and older ones).

    `parse_float` reads numbers that are not whole; without it they are floats. `may_have_halves` is
    for what is stored and only shown. Raises NotJsonError.
    """
    try:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))
        value = (_reader(parse_float) if parse_float else READER).decode(text)
    except NotJsonError:
        raise
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except ValueError as error:  # also an integer of thousands of digits
        raise NotJsonError(str(error)) from None
    if not may_have_halves:
        check_unicode(value, text)
    return value


def _reader(parse_float: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=refuse_constant, parse_float=parse_float)


def check_unicode(value: Any, text: str, start: int = 0, end: int | None = None) -> None:
    """Raise NotJsonError if a value, read from this part of a text, is not all Unicode."""
    if _HALF.search(text, start, len(text) if end is None else end) is not None:
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise NotJsonError(NO_UNICODE) from None


def is_unicode(text: str) -> bool:
    """Return False for a text with halves of surrogate pairs, as Python has them for odd bytes."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_constant(name: str) -> Any:
    """Refuse NaN, Infinity and -Infinity; raises NotJsonError."""
    raise NotJsonError(f"{name} is no JSON")


def finite(text: str) -> float:
    """Return a number; raises NotJsonError for one that is beyond a float."""
    number = float(text)
    if math.isinf(number):
        raise NotJsonError(f"the number {text[:30]} is too large")
    return number


READER: Final = _reader(finite)
"""Reads what is left of a text at a time, too (`raw_decode`); its user checks for Unicode."""
