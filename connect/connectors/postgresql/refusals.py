"""Changes that cannot become records: `event.processing.failure.handling.mode`. Does no IO."""

import logging

from millstream.connect import DataException

log = logging.getLogger(__name__)


class Refusals:
    """Owns the number of skipped changes, and the reason of the last one."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._count = 0
        self._last = ""

    def refuse(self, error: DataException) -> None:
        """Skip a change. Raise DataException if the mode is `fail`."""
        if self._mode == "fail":
            raise DataException(
                f"{error}. (event.processing.failure.handling.mode=warn or skip skips such a "
                "change.)"
            ) from error
        self._count += 1
        self._last = str(error)
        log.log(
            logging.WARNING if self._mode == "warn" else logging.DEBUG,
            "change is skipped reason=%s",
            error,
        )

    def note(self) -> str | None:
        if not self._count:
            return None
        return f"{self._count} changes were skipped, the last one: {self._last}."
