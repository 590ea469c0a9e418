"""Log levels at run time: the settings of the resource BROKER_LOGGER (KIP-412), by logger.

A level lasts until the process ends and is no metadata. Python's logging keeps the loggers; one is
known from the moment its module is imported. Each change is logged with the client that made it,
whatever the levels are.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from broker.server.settings.config_entries import CONFIG_TYPES, DescribedConfig, DescribedSynonym
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.incremental_alter_configs import AlterableConfig

log = logging.getLogger("millstream.log_levels")

DYNAMIC_BROKER_LOGGER_CONFIG = 6
ROOT = "root"
SET, DELETE = 0, 1
TRACE = 5
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's levels as Python's."""


@dataclass(frozen=True, slots=True)
class Author:
    """The client that changes a level."""

    client_id: str | None
    client_host: str
    principal: str


def describe_loggers() -> list[DescribedConfig]:
    """Return the effective level of each logger: its own, or that of its nearest parent."""
    described = []
    for name, logger in sorted(_loggers().items()):
        level = _name(logger.getEffectiveLevel())
        synonym = DescribedSynonym(name, level, DYNAMIC_BROKER_LOGGER_CONFIG)
        described.append(
            DescribedConfig(
                name=name,
                value=level,
                source=DYNAMIC_BROKER_LOGGER_CONFIG,
                config_type=CONFIG_TYPES["STRING"],
                synonyms=[synonym],
            )
        )
    return described


def alter_loggers(
    changes: Iterable[AlterableConfig], author: Author, *, is_trial: bool = False
) -> None:
    """Make all changes, or none; raises INVALID_CONFIG or INVALID_REQUEST for a wrong one."""
    loggers = _loggers()
    checked = [(change, _level(change, loggers)) for change in changes]
    if is_trial:
        return
    for change, level in checked:
        logger = loggers[change.name]
        before = _name(logger.getEffectiveLevel())
        logger.setLevel(level)
        # Given to the root logger directly: the new level may hide a normal log line.
        _audit(change.name, before, _name(logger.getEffectiveLevel()), author)


def _level(change: AlterableConfig, loggers: dict[str, logging.Logger]) -> int:
    name = change.name
    if name not in loggers:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if change.config_operation == DELETE:
        if name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Removing the log level of the {ROOT} logger is not allowed",
            )
        return logging.NOTSET
    if change.config_operation != SET:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Only SET and DELETE are allowed for the BROKER_LOGGER resource",
        )
    if change.value not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(LEVELS)}",
        )
    return LEVELS[change.value]


def _loggers() -> dict[str, logging.Logger]:
    known = {
        name: logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger)
    }
    return {ROOT: logging.root, **known}


def _name(level: int) -> str:
    return next((name for name, known in LEVELS.items() if level <= known), "OFF")


def _audit(name: str, before: str, after: str, author: Author) -> None:
    # Clients choose the names that are written with `repr`: none of them can forge a line.
    said = "log level changed logger=%s from=%s to=%s principal=%r client_id=%r client_host=%s"
    values = (name, before, after, author.principal, author.client_id, author.client_host)
    record = log.makeRecord(log.name, logging.WARNING, __file__, 0, said, values, None)
    logging.root.handle(record)
