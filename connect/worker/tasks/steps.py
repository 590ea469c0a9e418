"""Runs the steps of a record, such as a conversion, under the connector's error settings.

`SKIPPED` is the result of a step that failed when failures are tolerated: the record is left out.
`connect.errors.tolerance` decides what happens after a failure; this module waits for a retry and
reports the failure.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, Protocol

from common.process.clock import now_ms, randrange, timestamp_ms
from connect.errors.tolerance import Fail, Failure, Retry, Skip, Stage, Tolerance
from connect.worker.record_plugins import TransformationStage

log = logging.getLogger(__name__)


class Skipped(Enum):
    """The result of a step that failed and is tolerated."""

    SKIPPED = "skipped"


SKIPPED: Final = Skipped.SKIPPED


class Report(Protocol):
    """Reports a failure together with its record."""

    def __call__(self, failure: Failure, about: Any, /) -> None: ...


class Steps:
    """Runs the steps of one task. `wait` waits so many ms and returns whether to stop."""

    def __init__(self, tolerance: Tolerance, report: Report, wait: Callable[[int], bool]) -> None:
        self.tolerance = tolerance
        self._report = report
        self._wait = wait

    def take(
        self, stage: Stage, of: type, about: Any, step: Callable[..., Any], *given: Any
    ) -> Any:
        """Return the result of a step, or SKIPPED. Raises ConnectException when it failed.

        `about` is the record, for the report.
        """
        try:
            return step(*given)
        # A plugin may raise anything; `after` decides whether it is tolerated.
        except Exception as error:  # noqa: BLE001
            return self.after(error, stage, of, about, step, *given)

    def after(
        self,
        error: Exception,
        stage: Stage,
        of: type,
        about: Any,
        step: Callable[..., Any],
        *given: Any,
    ) -> Any:
        """Return the result of a step that has failed once, or SKIPPED, as `take` does."""
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

    def transform(self, stages: Sequence[TransformationStage], record: Any, about: Any) -> Any:
        """Transform a record: return the result, None if it was filtered out, or SKIPPED."""
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
        """Report a failure outside of a step. Raises ConnectException unless tolerated."""
        decision = self.tolerance.reported(stage, of, error, timestamp_ms())
        self._report(decision.failure, about)
        if isinstance(decision, Fail):
            raise decision.reason from error
