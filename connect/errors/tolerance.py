"""What to do when a step on a record fails: KIP-298's rules.

A step is one stage's work on one record. The task runner begins an operation for it and asks after
each failure what comes next:

    operation = tolerance.begin(Stage.VALUE_CONVERTER, type(converter), now_ms)
    while True:
        try:
            return converter.to_connect_data(topic, value)
        except Exception as error:
            match operation.failed(error, now_ms(), randrange):
                case Retry(delay_ms):
                    if stop_was_asked_for_within(delay_ms):
                        report(operation.stopped(error))
                        return SKIPPED
                case Skip(failure):  # reported, and the record is left out
                    report(failure)
                    return SKIPPED
                case Fail(failure, reason):  # reported, and the task fails
                    report(failure)
                    raise reason from error

`report` logs and sends to the dead-letter topic (`dead_letters.py`). A record that failed outside
of a step, as one a sink reports itself (ErrantRecordReporter), goes through `Tolerance.reported`.

What counts: RetriableException is tried again in every stage, until `errors.retry.timeout` is over
(never by default, 0; for ever with -1), after 300 ms and then twice as long each time; once that
is more than `errors.retry.delay.max.ms`, after a random time below it. With `errors.tolerance=all`
any exception of a transformation or converter is skipped, elsewhere only RetriableException.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from millstream.connect.config.config_def import ConfigDef
from millstream.connect.config.types import Importance, Type, Width
from millstream.connect.config.validators import ValidString
from millstream.connect.errors import ConnectException, RetriableException

MIN_RETRY_DELAY_MS = 300
MAX_DOUBLINGS = 40  # 300 ms doubled forty times is beyond any setting that means something
GROUP = "Error Handling"


class Stage(Enum):
    """Where in a record's way something fails; the names are shown to users."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


_ANY_IS_TOLERABLE = {
    Stage.TRANSFORMATION,
    Stage.KEY_CONVERTER,
    Stage.VALUE_CONVERTER,
    Stage.HEADER_CONVERTER,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed, where, and in whose code."""

    stage: Stage
    executing_class: type
    error: BaseException


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after a while."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave the record out and go on."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Fail:
    """The task cannot go on."""

    failure: Failure
    reason: ConnectException


Randrange = Callable[[int], int]  # gives one of the whole numbers from 0 to below its argument


@dataclass(slots=True)
class ErrorCounts:
    """What a task's error metrics show, under the names of Kafka's task-error-metrics."""

    total_record_failures: int = 0
    total_record_errors: int = 0
    total_records_skipped: int = 0
    total_retries: int = 0
    total_errors_logged: int = 0
    deadletterqueue_produce_requests: int = 0
    deadletterqueue_produce_failures: int = 0
    last_error_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class ErrorSettings:
    """A connector's settings for errors."""

    retry_timeout_ms: int = 0
    retry_delay_max_ms: int = 60_000
    is_tolerated: bool = False
    is_logged: bool = False
    is_record_logged: bool = False

    @classmethod
    def of(cls, parsed: Mapping[str, Any]) -> "ErrorSettings":
        """Take them from a parsed configuration (see `define_error_settings`)."""
        return cls(
            parsed["errors.retry.timeout"],
            parsed["errors.retry.delay.max.ms"],
            parsed["errors.tolerance"] == "all",
            parsed["errors.log.enable"],
            parsed["errors.log.include.messages"],
        )


def define_error_settings(definition: ConfigDef) -> ConfigDef:
    """Add the settings every connector has for errors."""
    medium, low = Importance.MEDIUM, Width.SHORT
    return (
        definition.define(
            "errors.retry.timeout",
            Type.LONG,
            medium,
            "The time, in milliseconds, for which a step that fails is tried again: 0 is not "
            "at all, -1 for ever.",
            default=0,
            group=GROUP,
            order_in_group=1,
            width=Width.MEDIUM,
            display_name="Retry Timeout for Errors",
        )
        .define(
            "errors.retry.delay.max.ms",
            Type.LONG,
            medium,
            "The longest wait, in milliseconds, before the next attempt. The wait doubles each "
            "time; above this, it is a random time below it.",
            default=60_000,
            group=GROUP,
            order_in_group=2,
            width=Width.MEDIUM,
            display_name="Maximum Delay Between Retries for Errors",
        )
        .define(
            "errors.tolerance",
            Type.STRING,
            medium,
            "If a record cannot be processed, with none the task fails, with all "
            "the record is left out.",
            default="none",
            validator=ValidString("none", "all"),
            group=GROUP,
            order_in_group=3,
            width=low,
            display_name="Error Tolerance",
        )
        .define(
            "errors.log.enable",
            Type.BOOLEAN,
            medium,
            "Whether each error is logged, with the step and the record that failed. Errors that "
            "are not tolerated always are.",
            default=False,
            group=GROUP,
            order_in_group=4,
            width=low,
            display_name="Log Errors",
        )
        .define(
            "errors.log.include.messages",
            Type.BOOLEAN,
            medium,
            "Whether the log tells of which record an error is: for a sink its topic, partition, "
            "offset and timestamp, for a source its partition and offset in the source.",
            default=False,
            group=GROUP,
            order_in_group=5,
            width=low,
            display_name="Log Error Details",
        )
    )


@dataclass(slots=True)
class Tolerance:
    """One task's tolerance of errors."""

    settings: ErrorSettings
    counts: ErrorCounts = field(default_factory=ErrorCounts)

    def begin(self, stage: Stage, executing_class: type, now_ms: int) -> "Operation":
        """Begin a step on a record."""
        timeout_ms = self.settings.retry_timeout_ms
        deadline_ms = None if timeout_ms < 0 else now_ms + timeout_ms
        return Operation(self, stage, executing_class, deadline_ms)

    def reported(
        self, stage: Stage, executing_class: type, error: BaseException, timestamp_ms: int
    ) -> Skip | Fail:
        """Decide on a record that failed outside of a step."""
        failure = Failure(stage, executing_class, error)
        self.counts.total_record_failures += 1
        self.counts.last_error_timestamp = timestamp_ms
        if self.settings.is_tolerated:
            return Skip(failure)
        self.counts.total_record_errors += 1
        return Fail(failure, ConnectException("Tolerance exceeded in error handler"))


@dataclass(slots=True)
class Operation:
    """One step on one record, tried once or more."""

    tolerance: Tolerance
    stage: Stage
    executing_class: type
    deadline_ms: int | None  # None: it is tried again for ever
    attempts: int = 0

    def failed(
        self, error: BaseException, now_ms: int, randrange: Randrange
    ) -> Retry | Skip | Fail:
        """Decide what comes after a failure."""
        self.attempts += 1
        self.tolerance.counts.total_record_failures += 1
        is_in_time = self.deadline_ms is None or now_ms < self.deadline_ms
        if isinstance(error, RetriableException) and is_in_time:
            self.tolerance.counts.total_retries += 1
            return Retry(self._delay_ms(now_ms, randrange))
        return self._given_up(error, now_ms)

    def stopped(self, error: BaseException) -> Failure:
        """Give up between two attempts, because the task is being stopped."""
        counts = self.tolerance.counts
        counts.total_record_errors += 1
        counts.total_records_skipped += 1
        return Failure(self.stage, self.executing_class, error)

    def _given_up(self, error: BaseException, now_ms: int) -> Skip | Fail:
        counts, failure = self.tolerance.counts, Failure(self.stage, self.executing_class, error)
        counts.total_record_errors += 1
        counts.last_error_timestamp = now_ms
        is_tolerable = self.stage in _ANY_IS_TOLERABLE or isinstance(error, RetriableException)
        if not (is_tolerable and isinstance(error, Exception)):
            return Fail(failure, ConnectException("Unhandled exception in error handler"))
        if not self.tolerance.settings.is_tolerated:
            return Fail(failure, ConnectException("Tolerance exceeded in error handler"))
        counts.total_records_skipped += 1
        return Skip(failure)

    def _delay_ms(self, now_ms: int, randrange: Randrange) -> int:
        max_ms = max(0, self.tolerance.settings.retry_delay_max_ms)
        delay_ms = MIN_RETRY_DELAY_MS << min(self.attempts - 1, MAX_DOUBLINGS)
        if delay_ms > max_ms:
            delay_ms = randrange(max_ms) if max_ms else 0
        if self.deadline_ms is not None:
            delay_ms = min(delay_ms, max(0, self.deadline_ms - now_ms))
        return delay_ms
