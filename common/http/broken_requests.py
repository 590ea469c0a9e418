"""Says in one line a minute that clients send what is no HTTP; aiohttp logs a stack trace each."""

import logging
from typing import Final

from aiohttp import web, web_urldispatcher
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

QUIET_SECONDS: Final = 60.0
_SHOWN_CHARACTERS: Final = 100
_OF_CLIENTS: Final = (HttpProcessingError, RequestPayloadError)


class BrokenRequests(logging.Filter):
    """Lets through every record but those of broken requests; of these one a minute, as a line."""

    def __init__(self) -> None:
        super().__init__()
        self._said_at = -QUIET_SECONDS

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError):
            return False  # that client is gone already
        if not isinstance(error, _OF_CLIENTS):
            return True
        if record.created - self._said_at < QUIET_SECONDS:
            return False
        self._said_at = record.created
        what = " ".join(str(error).split())[:_SHOWN_CHARACTERS]
        record.msg = "refused a request that cannot be read, as more may be: %s error=%s"
        record.args = (type(error).__name__, what)
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def quiet_logger() -> logging.Logger:
    """Return the logger of aiohttp's server, with the filter."""
    logger = logging.getLogger("aiohttp.server")
    if not any(isinstance(each, BrokenRequests) for each in logger.filters):
        logger.addFilter(BrokenRequests())
    return logger


class _UnknownExpectation(web.HTTPExpectationFailed):
    def __init__(self, *, text: str) -> None:
        # A header may have bytes that are no UTF-8.
        super().__init__(text=text.encode("utf-8", "backslashreplace").decode())


def answer_odd_expectations() -> None:
    """Have aiohttp answer 417 to every `Expect` that it does not know.

    Its default handler repeats the header in the answer, and ends in a UnicodeEncodeError (500,
    with a stack trace) if the header is no text. It runs before every middleware.
    """
    web_urldispatcher.HTTPExpectationFailed = _UnknownExpectation  # type: ignore[attr-defined, assignment]
