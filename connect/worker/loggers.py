"""Reads and sets log levels while a worker runs, with log4j's names (KIP-495)."""

import logging
from collections.abc import Mapping
from typing import Any, Final

TRACE: Final = 5
OFF: Final = 1000
LEVELS: Final = {
    "OFF": OFF,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
    "ALL": 1,
}
_NAMES: Final = {
    logging.CRITICAL: "FATAL",
    logging.WARNING: "WARN",
    **{number: name for name, number in LEVELS.items() if name not in ("FATAL", "WARN")},
}
ROOT: Final = "root"

_changed_ms: dict[str, int] = {}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def known() -> list[str]:
    """Return the names of all loggers."""
    names = logging.Logger.manager.loggerDict
    there = [name for name, each in names.items() if isinstance(each, logging.Logger)]
    return sorted([ROOT, *there])


def level_of(name: str) -> dict[str, Any] | None:
    """Return a logger's level and when it changed; None when there is no such logger."""
    if name != ROOT and name not in known():
        return None
    number = _logger(name).getEffectiveLevel()
    shown = _NAMES.get(number, logging.getLevelName(number))
    return {"level": shown, "last_modified": _changed_ms.get(name)}


def all_levels() -> dict[str, dict[str, Any]]:
    """Return the levels of the root logger and of every logger with its own level."""
    own = [name for name in known() if name == ROOT or _logger(name).level != logging.NOTSET]
    return {name: level for name in own if (level := level_of(name)) is not None}


def set_level(name: str, level: str, timestamp_ms: int) -> list[str]:
    """Set the level of a logger and its descendants; return their names."""
    number = LEVELS.get(level.upper())
    if number is None:
        return []
    below = [each for each in known() if each.startswith(f"{name}.")]
    affected = known() if name == ROOT else sorted({name, *below})
    for each in affected:
        _logger(each).setLevel(number)
        _changed_ms[each] = timestamp_ms
    return affected


def own_levels() -> dict[str, int]:
    """Return the levels that were set while the worker runs, for the tasks' processes."""
    return {name: _logger(name).level for name in _changed_ms}


def take_levels(levels: Mapping[str, int]) -> None:
    """Set the levels that another process returned from `own_levels`."""
    for name, number in levels.items():
        _logger(name).setLevel(number)


def log_to_stderr() -> None:
    """Configure logging to stderr; all processes of a worker do this."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
