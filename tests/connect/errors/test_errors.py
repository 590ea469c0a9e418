"""What becomes of records that cannot be processed."""

import random

import pytest

from connect.converters.json_converter import JsonConverter
from connect.errors.dead_letters import (
    MAX_TEXT_BYTES,
    DeadLetterSettings,
    Origin,
    context_headers,
    define_dead_letter_settings,
    sink_log_message,
    source_log_message,
)
from connect.errors.tolerance import (
    ErrorSettings,
    Fail,
    Failure,
    Retry,
    Skip,
    Stage,
    Tolerance,
    define_error_settings,
)
from millstream.connect.config.config_def import ConfigDef
from millstream.connect.errors import ConfigException, DataException, RetriableException

RANDOM = random.Random(1).randrange
AGAIN = RetriableException("not now")
WRONG = DataException("not this")


def tolerance(**settings: str) -> Tolerance:
    given = {f"errors.{name.replace('_', '.')}": value for name, value in settings.items()}
    return Tolerance(ErrorSettings.of(define_error_settings(ConfigDef()).parse(given)))


def failed(policy: Tolerance, error: Exception, stage: Stage) -> Retry | Skip | Fail:
    return policy.begin(stage, JsonConverter, 0).failed(error, 0, RANDOM)


def test_by_default_nothing_is_tried_again_or_tolerated() -> None:
    for error in (AGAIN, WRONG):
        decision = failed(tolerance(), error, Stage.VALUE_CONVERTER)

        assert isinstance(decision, Fail)
        assert str(decision.reason) == "Tolerance exceeded in error handler"


@pytest.mark.parametrize("stage", Stage)
def test_any_error_is_tolerated_in_converters_and_transformations_only(stage: Stage) -> None:
    policy = tolerance(tolerance="all")
    is_any = stage.value.endswith("CONVERTER") or stage is Stage.TRANSFORMATION

    decision = failed(policy, WRONG, stage)

    assert isinstance(decision, Skip if is_any else Fail)
    assert decision.failure == Failure(stage, JsonConverter, WRONG)
    assert isinstance(failed(policy, AGAIN, stage), Skip)
    if isinstance(decision, Fail):
        assert str(decision.reason) == "Unhandled exception in error handler"


def test_what_can_be_tried_again_waits_twice_as_long_each_time() -> None:
    operation = tolerance(retry_timeout="-1", retry_delay_max_ms="5000").begin(
        Stage.TASK_PUT, JsonConverter, 0
    )

    delays = [operation.failed(AGAIN, 0, RANDOM) for _ in range(60)]

    assert delays[:5] == [Retry(300), Retry(600), Retry(1200), Retry(2400), Retry(4800)]
    assert all(isinstance(one, Retry) and 0 <= one.delay_ms < 5000 for one in delays[5:])
    assert operation.attempts == 60


def test_after_the_timeout_nothing_is_tried_again_and_no_wait_goes_beyond_it() -> None:
    operation = tolerance(retry_timeout="1000", tolerance="all").begin(
        Stage.TRANSFORMATION, JsonConverter, 50
    )

    assert operation.failed(AGAIN, 50, RANDOM) == Retry(300)
    assert operation.failed(AGAIN, 900, RANDOM) == Retry(150)
    assert isinstance(operation.failed(AGAIN, 1050, RANDOM), Skip)


def test_a_longest_wait_of_nothing_is_no_wait() -> None:
    for longest in ("0", "-5"):
        policy = tolerance(retry_timeout="-1", retry_delay_max_ms=longest)

        assert failed(policy, AGAIN, Stage.TASK_POLL) == Retry(0)


def test_what_happened_is_counted() -> None:
    policy = tolerance(retry_timeout="10", tolerance="all")
    operation = policy.begin(Stage.TRANSFORMATION, JsonConverter, 0)
    operation.failed(AGAIN, 1, RANDOM)
    operation.failed(WRONG, 2, RANDOM)
    policy.begin(Stage.TRANSFORMATION, JsonConverter, 0).stopped(AGAIN)

    counts = policy.counts

    assert (counts.total_record_failures, counts.total_retries) == (2, 1)
    assert (counts.total_record_errors, counts.total_records_skipped) == (2, 2)
    assert counts.last_error_timestamp == 2


def test_a_record_a_sink_reports_is_skipped_or_the_end() -> None:
    reported = (Stage.TASK_PUT, JsonConverter, WRONG, 7)

    assert isinstance(tolerance(tolerance="all").reported(*reported), Skip)
    assert isinstance(tolerance().reported(*reported), Fail)


def test_an_interruption_is_never_tolerated() -> None:
    operation = tolerance(tolerance="all").begin(Stage.TRANSFORMATION, JsonConverter, 0)

    assert isinstance(operation.failed(KeyboardInterrupt(), 0, RANDOM), Fail)


def test_a_tolerance_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigException, match="String must be one of: none, all"):
        tolerance(tolerance="some")


def failure(error: Exception = WRONG) -> Failure:
    return Failure(Stage.VALUE_CONVERTER, JsonConverter, error)


def test_a_dead_letter_tells_what_failed_and_where() -> None:
    try:
        raise WRONG
    except DataException as error:
        headers = context_headers(failure(error), "sink", 3, Origin("orders", 2, 77))

    told = dict(headers)
    trace = told.pop("__connect.errors.exception.stacktrace")
    assert told == {
        "__connect.errors.topic": b"orders",
        "__connect.errors.partition": b"2",
        "__connect.errors.offset": b"77",
        "__connect.errors.connector.name": b"sink",
        "__connect.errors.task.id": b"3",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.class.name": b"org.apache.kafka.connect.json.JsonConverter",
        "__connect.errors.exception.class.name": b"org.apache.kafka.connect.errors.DataException",
        "__connect.errors.exception.message": b"not this",
    }
    assert trace is not None
    assert b"raise WRONG" in trace


def test_a_dead_letter_of_an_endless_error_stays_small() -> None:
    headers = dict(context_headers(failure(ValueError("é" * 10**6)), "sink", 0, None))

    assert "__connect.errors.topic" not in headers
    assert headers["__connect.errors.exception.class.name"] == b"builtins.ValueError"
    assert all(len(value or b"") < MAX_TEXT_BYTES + 100 for value in headers.values())
    assert (headers["__connect.errors.exception.message"] or b"").decode().endswith("é (cut)")
    assert (
        dict(context_headers(failure(ValueError()), "s", 0, None))[
            "__connect.errors.exception.message"
        ]
        is None
    )


def test_the_log_tells_of_the_record_only_when_it_may() -> None:
    origin = Origin("orders", 2, 77, 5, "CreateTime")
    begin = (
        "Error encountered in task sink-3. Executing stage 'VALUE_CONVERTER' with class "
        "'org.apache.kafka.connect.json.JsonConverter'"
    )

    assert sink_log_message(failure(), "sink", 3) == f"{begin}."
    assert sink_log_message(failure(), "sink", 3, origin) == (
        f"{begin}, where consumed record is {{topic='orders', partition=2, offset=77, "
        "timestamp=5, timestampType=CreateTime}."
    )
    assert source_log_message(failure(), "sink", 3) == f"{begin}."
    assert "sourceOffset={'line': 4}" in source_log_message(
        failure(), "sink", 3, ({"file": "a"}, {"line": 4})
    )


def test_a_sink_has_settings_for_its_dead_letters() -> None:
    definition = define_dead_letter_settings(ConfigDef())
    given = {
        "errors.deadletterqueue.topic.name": " dead ",
        "errors.deadletterqueue.context.headers.enable": "true",
    }

    assert DeadLetterSettings.of(definition.parse({})) == DeadLetterSettings()
    assert DeadLetterSettings.of(definition.parse(given)) == DeadLetterSettings("dead", 3, True)
