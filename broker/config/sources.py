"""The sources of settings: a properties file, then KAFKA_ variables, then overrides; the last one
wins.

The file is a Java properties file. Variables are read as in Kafka's container images:
`KAFKA_LOG_DIRS` is `log.dirs`; `__` stands for `_` and `___` for `-`.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from broker.config.known_settings import INTERNAL_SETTINGS, KNOWN_SETTINGS
from common.kafka.errors import ErrorCode, KafkaError
from common.process.properties import read_layers, suggestion

log = logging.getLogger("millstream.config")

PREFIX = "KAFKA_"
LISTENER_PREFIX = "listener.name."
NOT_SETTINGS = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HOME",
        "KAFKA_DEBUG",
        "KAFKA_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_BOOTSTRAP_SERVERS",
        "KAFKA_REST_URL",
        "KAFKA_CONTROL_URLS",
    }
)
"""Variables of Kafka's images for the Java process, and of our clients, which are not settings."""

_listener_name = re.compile(r"[\w-]+").fullmatch


def invalid(message: str) -> KafkaError:
    """Return the error for an invalid configuration."""
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def collect_settings(
    *, file: Path | None, environment: Mapping[str, str], overrides: Iterable[str]
) -> dict[str, str]:
    """Return all given settings; raise KafkaError(INVALID_CONFIG)."""
    try:
        settings = read_layers(file, _from_environment(environment), overrides)
    except ValueError as error:
        raise invalid(str(error)) from error
    for name in sorted(settings.keys() & INTERNAL_SETTINGS):
        log.warning("ignored: %s is internal to Apache Kafka and means nothing here", name)
        del settings[name]
    for name in settings:
        validate_name(name)
    return settings


def validate_name(name: str) -> None:
    """Raise INVALID_CONFIG, with the nearest known name, unless `name` is a setting."""
    if not is_known(name):
        raise invalid(f"unknown setting {name!r}{_suggestion(name)}")


def is_known(name: str) -> bool:
    """Whether `name` is a broker setting, with or without the prefix of a listener."""
    return name in KNOWN_SETTINGS or base_of(name) is not None


def base_of(name: str) -> str | None:
    """Return the setting that a listener has for itself by this name; None: it is no such name.

    `listener.name.LISTENER.` and `listener.name.LISTENER.MECHANISM.` prefix one (KIP-103, KIP-255).
    """
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, _, own = name.removeprefix(LISTENER_PREFIX).partition(".")
    _, _, of_mechanism = own.partition(".")
    if not _listener_name(listener):
        return None
    if own in KNOWN_SETTINGS:
        return own
    is_of_mechanism = of_mechanism in KNOWN_SETTINGS and of_mechanism.startswith("sasl.")
    return of_mechanism if is_of_mechanism else None


_FORMER = {
    "port": "listeners",
    "host.name": "listeners",
    "advertised.port": "advertised.listeners",
    "advertised.host.name": "advertised.listeners",
    "http.port": "http.listener",
    "http.host": "http.listener",
    "zookeeper.connect": "controller.quorum.voters",
}
"""Names that people know from older Kafkas and from other programs, and what they mean here."""


def _suggestion(name: str) -> str:
    if name in _FORMER:
        return f"; did you mean {_FORMER[name]!r}?"
    if name.startswith("zookeeper."):
        return "; there is no ZooKeeper here, see 'controller.quorum.voters'"
    return suggestion(name, KNOWN_SETTINGS)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for variable, value in sorted(environment.items()):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        name = _setting_name(variable)
        if is_known(name):
            settings[name] = value
        else:
            # Other programs may use such variables, so an unknown one is not an error.
            log.warning("ignored: %s names no setting%s", variable, _suggestion(name))
    return settings


def _setting_name(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
