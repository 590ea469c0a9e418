"""The steps of a record's way, each tried as the connector's settings for errors say.

`SKIPPED` stands for a record that is left out: a step failed, and that is tolerated. What comes
after a failure is decided by `connect.errors.tolerance`; here it is waited for and reported.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, Protocol

from connect.clock import now_ms, randrange, timestamp_ms
from connect.errors.tolerance import Fail, Failure, Retry, Skip, Stage, Tolerance
from connect.worker import plugging

log = logging.getLogger(__name__)


class Skipped(Enum):
    """The value of a step that was given up."""

    SKIPPED = "skipped"


SKIPPED: Final = Skipped.SKIPPED


class Report(Protocol):
    """Logs a failure and keeps what it was about."""

    def __call__(self, failure: Failure, about: Any, /) -> None: ...


class Steps:
    """One task's way of doing steps. `wait` waits so many ms and says whether to stop instead."""

    def __init__(self, tolerance: Tolerance, report: Report, wait: Callable[[int], bool]) -> None:
        self.tolerance = tolerance
        self._report = report
        self._wait = wait

    def take(
        self, stage: Stage, of: type, about: Any, step: Callable[..., Any], *given: Any
    ) -> Any:
        """Do a step; gives what it gives, or SKIPPED. Raises ConnectException when it failed.

        `about` is the record, for the report.
        """
        try:
            return step(*given)
        # What plugins raise is theirs; whether it is tolerable is decided below.
        except Exception as raised:  # noqa: BLE001
            error = raised
        operation = self.tolerance.begin(stage, of, now_ms())
        while True:
            match operation.failed(error, now_ms(), randrange):
                case Retry(delay_ms):
                    if self._wait(delay_ms):
                        self._report(operation.stopped(error), about)
                        return SKIPPED
                case Skip(failure):
                    self._report(failure, about)
                    return SKIPPED
                case Fail(failure, reason):
                    self._report(failure, about)
                    raise reason from error
            try:
                return step(*given)
            except Exception as raised:  # noqa: BLE001 - as above
                error = raised

    def transform(self, stages: Sequence[plugging.Stage], record: Any, about: Any) -> Any:
        """Send a record through transformations: gives the result, None if filtered, SKIPPED."""
        for stage in stages:
            if stage.predicate is not None:
                kind = type(stage.predicate)
                applies = self.take(Stage.TRANSFORMATION, kind, about, stage.applies_to, record)
                if applies is SKIPPED:
                    return SKIPPED
                if not applies:
                    continue
            transformation = stage.transformation
            record = self.take(
                Stage.TRANSFORMATION, type(transformation), about, transformation.apply, record
            )
            if record is None or record is SKIPPED:
                return record
        return record

    def failed_outside(self, stage: Stage, of: type, error: BaseException, about: Any) -> None:
        """Report a failure that no step raised. Raises ConnectException unless tolerated."""
        decision = self.tolerance.reported(stage, of, error, timestamp_ms())
        self._report(decision.failure, about)
        if isinstance(decision, Fail):
            raise decision.reason from error
