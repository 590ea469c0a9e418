"""JSON objects that follow each other in a body that may never end. Pure.

`feed` takes the received bytes and returns the complete objects. An incomplete text is parsed again
when more has arrived. This is done only at places where the text can be complete, and for at most
eight times the received bytes: a client that sends one string in small pieces cannot use up a
processor.
"""

import codecs
from collections.abc import Iterator
from typing import Any, Final

from common.process.json_text import NotJsonError
from rest_proxy.json_text import EndsEarlyError, next_value
from rest_proxy.refusals import bad_request, too_large

_COST_FACTOR: Final = 8
_FREE_COST: Final = 1 << 20
_GROWTH: Final = 1.5


class ObjectStream:
    """Owns the received text that is not complete yet, at most `limit_bytes` characters."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._received = 0
        self._parsed = 0
        self._last_try = 0

    def feed(self, data: bytes, *, is_last: bool = False) -> Iterator[Any]:
        """Return the complete objects; raises RestError."""
        self._received += len(data)
        try:
            self._text += self._decoder.decode(data, final=is_last)
        except UnicodeDecodeError as error:
            raise bad_request(f"The body is not UTF-8: {error.reason}") from None
        if is_last or self._is_worth_it():
            yield from self._objects(is_last=is_last)
        if len(self._text) > self._limit_bytes:
            raise too_large(self._limit_bytes)

    def _is_worth_it(self) -> bool:
        size = len(self._text)
        if self._parsed + size > _COST_FACTOR * self._received + _FREE_COST:
            return False
        return size >= _GROWTH * self._last_try or self._text.rstrip().endswith("}")

    def _objects(self, *, is_last: bool) -> Iterator[Any]:
        at = 0
        try:
            while (found := next_value(self._text, at)) is not None:
                value, at = found
                yield _checked(value)
            self._text = ""
        except EndsEarlyError as error:
            if is_last:
                raise bad_request(f"The body ends in the middle of a record: {error}") from None
            self._text = self._text[at:]
        except NotJsonError as error:
            raise bad_request(f"The body is no JSON: {error}") from None
        self._parsed += at + len(self._text)
        self._last_try = len(self._text)


def _checked(value: Any) -> Any:
    """Return a record; raises RestError for other JSON, with a hint for common mistakes."""
    if isinstance(value, list):
        raise bad_request("Records are not in an array: send one JSON object after the other.")
    if isinstance(value, dict) and "records" in value:
        raise bad_request(
            'Records are not in {"records": [...]}, which is version 2: send one JSON object '
            "after the other."
        )
    return value
