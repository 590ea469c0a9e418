"""What becomes of a change that cannot be told: `event.processing.failure.handling.mode`. Pure."""

import logging

from millrace.connect import DataException

log = logging.getLogger(__name__)


class Refusals:
    """Owns how many changes were left out, and why the last one was."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._count = 0
        self._last = ""

    def refuse(self, error: DataException) -> None:
        """Leave a change out. Raises DataException when the mode says that the task fails."""
        if self._mode == "fail":
            raise DataException(
                f"{error}. (event.processing.failure.handling.mode=warn or skip leaves such a "
                "change out.)"
            ) from error
        self._count += 1
        self._last = str(error)
        log.log(
            logging.WARNING if self._mode == "warn" else logging.DEBUG,
            "change is left out reason=%s",
            error,
        )

    def note(self) -> str | None:
        if not self._count:
            return None
        return f"{self._count} changes were left out, the last one: {self._last}."
