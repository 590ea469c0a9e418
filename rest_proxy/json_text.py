"""Reads JSON piece by piece, and writes it; `common.process.json_text` says what is refused.

`Objects` reads a text piece by piece: values that follow each other (a stream of version 3), or the
elements of a list within an object (the records of version 2). A body of ten megabytes is therefore
never parsed in one piece, and its reader can yield to the loop between two pieces.
"""

import json
import re
from collections.abc import Generator, Iterator
from typing import Any, Final

from common.process.json_text import READER, NotJsonError, check_unicode

_LONGEST_TOKEN: Final = 12
"""Two escapes that are one character: an error this near to its end may be an incomplete text."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class EndsEarlyError(NotJsonError):
    """The text ends before its JSON does; more of it may arrive."""


def decode_utf8(data: bytes) -> str:
    """Return a body's text; raises NotJsonError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJsonError(f"the body is not UTF-8: {error.reason} at {error.start}") from None


def write_json(value: Any) -> bytes:
    """Return a value as JSON. Raises ValueError for a number or a text without a JSON form."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def next_value(text: str, start: int) -> tuple[Any, int] | None:
    """Return the next of several values and its end; None if only space is left.

    Raises EndsEarlyError if the text ends within the value, NotJsonError for any other error.
    A number at the end of the text may be incomplete; a stream has objects only.
    """
    at = _skip(text, start)
    return None if at == len(text) else _value(text, at)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = READER.raw_decode(text, at)
    except NotJsonError:
        raise
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos}"
        is_at_end = error.pos >= len(text) - _LONGEST_TOKEN
        if is_at_end or error.msg.startswith("Unterminated string"):
            raise EndsEarlyError(reason) from None
        raise NotJsonError(reason) from None
    except RecursionError:
        raise NotJsonError("the JSON is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise NotJsonError(str(error)) from None
    check_unicode(value, text, at, end)
    return value, end


class Elements:
    """Reads an object whose one member is a list, element by element.

    Iterating gives the elements. Afterwards `members` has the object's other members. A text whose
    top is no object, or whose list is no list, raises NotJsonError.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self.members: dict[str, Any] = {}
        self.has_list = False

    def __iter__(self) -> Iterator[Any]:
        at = self._expect("{", 0)
        if self._peek(at) == "}":
            self._end(at + 1)
            return
        while True:
            key, at = _value(self._text, _skip(self._text, at))
            if not isinstance(key, str):
                raise NotJsonError("an object's member has no name")
            at = _skip(self._text, self._expect(":", at))
            if key == self._name:
                at = yield from self._list(at)
            else:
                self.members[key], at = _value(self._text, at)
            at = _skip(self._text, at)
            if self._peek(at) == "}":
                self._end(at + 1)
                return
            at = self._expect(",", at)

    def _list(self, at: int) -> Generator[Any, None, int]:
        if self.has_list or self._peek(at) != "[":
            raise NotJsonError(f"{self._name} has to be one list")
        self.has_list = True
        at = _skip(self._text, at + 1)
        if self._peek(at) == "]":
            return at + 1
        while True:
            element, at = _value(self._text, at)
            yield element
            at = _skip(self._text, at)
            if self._peek(at) == "]":
                return at + 1
            at = _skip(self._text, self._expect(",", at))

    def _peek(self, at: int) -> str:
        return self._text[at : at + 1]

    def _expect(self, what: str, at: int) -> int:
        at = _skip(self._text, at)
        if self._peek(at) != what:
            raise NotJsonError(f"expected {what} at character {at}")
        return at + 1

    def _end(self, at: int) -> None:
        if _skip(self._text, at) != len(self._text):
            raise NotJsonError(f"there is more behind the object, at character {at}")
