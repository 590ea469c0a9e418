"""Log levels that are changed at run time: the valid loggers and levels, and the audit line."""

import logging
from collections.abc import Iterator

import pytest

from broker.server.settings.log_levels import Author, alter_loggers, describe_loggers
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.incremental_alter_configs import AlterableConfig

NAME = "millstream.test_of_levels"
AUTHOR = Author("opera\ntor", "127.0.0.9", "User:ann")
SET, DELETE, APPEND = 0, 1, 2


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    made, root = logging.getLogger(NAME), logging.root.level
    yield made
    made.setLevel(logging.NOTSET)
    logging.root.setLevel(root)


def change(name: str, value: str | None, operation: int = SET) -> AlterableConfig:
    return AlterableConfig(name=name, config_operation=operation, value=value)


def level(name: str) -> str | None:
    return {config.name: config.value for config in describe_loggers()}[name]


def test_a_level_is_set_followed_and_taken_away() -> None:
    alter_loggers([change("root", "ERROR")], AUTHOR)
    assert level(NAME) == "ERROR"
    alter_loggers([change(NAME, "TRACE")], AUTHOR)
    assert (level(NAME), level("root")) == ("TRACE", "ERROR")
    alter_loggers([change(NAME, None, DELETE)], AUTHOR)
    assert level(NAME) == "ERROR"


def test_who_changed_a_level_is_logged_whatever_the_levels_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    alter_loggers([change("root", "FATAL"), change(NAME, "DEBUG")], AUTHOR)
    said = [record.getMessage() for record in caplog.records]
    assert said[-1].startswith(f"log level changed logger={NAME} from=FATAL to=DEBUG")
    assert said[-1].endswith(r"principal='User:ann' client_id='opera\ntor' client_host=127.0.0.9")
    assert "logger=root" in said[-2]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (change("no.such.logger", "INFO"), ErrorCode.INVALID_CONFIG),
        (change(NAME, "LOUD"), ErrorCode.INVALID_CONFIG),
        (change(NAME, None), ErrorCode.INVALID_CONFIG),
        (change("root", None, DELETE), ErrorCode.INVALID_REQUEST),
        (change(NAME, "INFO", APPEND), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_wrong_change_changes_nothing(wrong: AlterableConfig, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        alter_loggers([change(NAME, "FATAL"), wrong], AUTHOR)
    assert refused.value.code == code
    assert level(NAME) == level("root")


def test_a_trial_changes_nothing() -> None:
    alter_loggers([change(NAME, "FATAL")], AUTHOR, is_trial=True)
    assert level(NAME) == level("root")
